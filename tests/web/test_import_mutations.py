"""A chat's file with one thing in it changed: it is refused with a sentence, or all that is made of it can be had."""

import copy
import json
import random

import pytest

from app.chat.chats import Caller
from tests.scripted import ScriptedModel
from tests.web.talk import Browser, RunningServer, wait_until

CALCULATED = "It is <|python_start|>12*3<|python_end|>, so 36. Not <|python_start|>1/0<|python_end|>.\n\n* a\n* b"
TRIED = 250  # of some thousands
VALUES = (None, True, False, -1, 0, 1, 0.5, 2**31, 2**37, 2**62, 2**64, 1e308, -1e308, 10**400, float("nan"), "", "{a}", "\ud800",
          "x" * 70_000, [], [None], [[]], {}, {"a": {}}, [0] * 20_001)
PAGES = ("/c/{id}", "/c/{id}?language=zh", "/api/cache?conversation={id}", "/api/strip?conversation={id}", "/c/{id}/replay",
         "/c/{id}/replay?language=zh", "/c/{id}/export")


def answer(question: str):
    return {"calculate": CALCULATED, "fail": RuntimeError("a broken model")}.get(question, "A long answer, of which some is cut.")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = RunningServer(tmp_path_factory.mktemp("mutations") / "data", ScriptedModel(answer), rows=2)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def document(server):
    """A chat with a reply of every kind: calculated, cut and gone on with, stopped, stopped while it waited, made without
    the cache, failed, interrupted, and several to one question."""
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("calculate")
    chat = socket.conversation
    socket.ask("cut", chat, settings={"max_tokens": 4})
    socket.say("continue", conversation=chat, message=socket.of("done")[-1]["message"], settings={"max_tokens": 100})
    socket.until("done", reason="stop")
    socket.until("state", state="idle")
    _stop_one_that_is_written(server, socket)
    _stop_one_that_waits(server, browser, socket)
    socket.ask("without", chat, settings={"use_cache": False})
    assert socket.ask("fail", chat)["reason"] == "error"
    server.model.hold(3)
    socket.send("interrupted", chat)
    wait_until(server.model.holding.is_set)
    server.restart()
    socket = browser.socket()
    socket.send("two", chat, settings={"n": 2, "temperature": 1.0})
    socket.until("done")
    socket.until("done")
    socket.until("state", state="idle")
    document = browser.get(f"/c/{chat}/export").json
    assert [message["reason"] for message in document["messages"] if message["role"] == "assistant"] == \
        ["stop", "stop", "cancelled", "cancelled", "stop", "error", "interrupted", "stop", "stop"]
    return document


def _stop_one_that_is_written(server, socket):
    server.model.hold(3)
    socket.send("stopped", socket.conversation)
    reply = socket.until("message", role="assistant")["id"]
    wait_until(server.model.holding.is_set)
    _stop(server, socket, reply)


def _stop_one_that_waits(server, browser, socket):
    """Another chat holds both rows."""
    server.model.hold(1)
    other = browser.socket()
    other.send("hi", settings={"n": 2})
    wait_until(server.model.holding.is_set)
    socket.send("waits", socket.conversation)
    reply = socket.until("message", role="assistant")["id"]
    server.model.let_go(until=2)  # by one token, so that commands are taken
    socket.until("state", state="queued", place=1)
    _stop(server, socket, reply)
    other.until("done")
    other.until("done")


def _stop(server, socket, reply):
    socket.say("stop", conversation=socket.conversation, message=reply)
    socket.until_taken()
    server.model.let_go()
    socket.until("done", reason="cancelled")
    socket.until("state", state="idle")


@pytest.fixture(scope="module")
def visitor(server, document):
    """Who takes files in, at the server as it is once the file was made."""
    visitor = server.app.test_client()
    visitor.get("/")
    return visitor


def leaves_of(value, path=()):
    """The places of all single values, and of lists and objects as wholes; of a list of numbers the first and last alone."""
    if path:
        yield path
    if isinstance(value, dict):
        for name in value:
            yield from leaves_of(value[name], (*path, name))
    elif isinstance(value, list):
        is_of_numbers = bool(value) and all(isinstance(each, int | float) for each in value)
        for index in sorted({0, len(value) - 1}) if is_of_numbers else range(len(value)):
            yield from leaves_of(value[index], (*path, index))


def mutants_of(document):
    """(place, what is done there): every value at every place, a thing that is missing, and one that is there twice."""
    for path in leaves_of(document):
        yield from ((path, ("put", value)) for value in VALUES)
        yield path, ("remove", None)
        yield path, ("repeat", None)


def mutated(document, path, change):
    kind, value = change
    document = copy.deepcopy(document)
    within = document
    for step in path[:-1]:
        within = within[step]
    last = path[-1]
    if kind == "put":
        within[last] = value
    elif kind == "remove":
        del within[last]
    elif isinstance(within, list):
        within.insert(last, within[last])
    else:
        within[last + last] = within[last]
    return document


def fault_of(server, visitor, document) -> str | None:
    """What is wrong with how the server takes such a file; None where nothing is."""
    taken = visitor.post("/api/import", data=json.dumps(document), content_type="application/json")
    if taken.status_code in (400, 413):
        is_told = taken.json["text"].endswith(".") and taken.json["code"] in ("bad_import", "too_long", "too_large")
        return None if is_told else f"refused with {taken.text[:200]!r}"
    if taken.status_code != 201:
        return f"the import answers {taken.status_code}"
    id = taken.json["id"]
    for page in PAGES:
        got = visitor.get(page.format(id=id))
        if got.status_code != 200:
            return f"{page} answers {got.status_code}"
        if got.is_json:
            json.loads(got.text, parse_constant=pytest.fail)
    if visitor.post("/api/import", data=got.text.encode(), content_type="application/json").status_code != 201:
        return "its own export is refused"
    owner = server.replies.store.conversation(id).owner
    server.replies.chats.forget_everything(owner)
    return None


def test_a_chat_with_replies_of_every_kind_is_taken_in_as_it_is(server, visitor, document):
    assert document["messages"][7]["stats"]["time_to_first_token_s"] is None  # it never began
    taken = visitor.post("/api/import", json=document)
    assert taken.status_code == 201
    server.replies.chats.delete(Caller(server.replies.store.conversation(taken.json["id"]).owner), taken.json["id"])
    assert fault_of(server, visitor, document) is None


def test_a_file_with_one_thing_changed_is_refused_or_all_its_pages_are_there(server, visitor, document):
    chance = random.Random(4)
    mutants = list(mutants_of(document))
    faults = {}
    for path, change in chance.sample(mutants, TRIED):
        fault = fault_of(server, visitor, mutated(document, path, change))
        if fault:
            faults[(*path, *change)] = fault
    assert faults == {}


@pytest.mark.parametrize("path, change, place", [
    (("stats", "generated_tokens"), ("put", None), "messages[1].stats.generated_tokens"),
    (("stats", "reused_tokens"), ("put", None), "messages[1].stats.reused_tokens"),
    (("stats", "read_tokens"), ("remove", None), "messages[1].stats.read_tokens"),
    (("stats", "time_to_first_token_s"), ("remove", None), "messages[1].stats.time_to_first_token_s"),
    (("stats", "write_tokens_per_s"), ("put", True), "messages[1].stats.write_tokens_per_s"),
    (("stats", "use_cache"), ("put", 1), "messages[1].stats.use_cache")])
def test_a_figure_of_a_reply_that_pages_cannot_show_is_refused_with_its_place(visitor, document, path, change, place):
    refused = visitor.post("/api/import", json=mutated(document, ("messages", 1, *path), change))
    assert refused.status_code == 400 and place in refused.json["text"]


@pytest.mark.parametrize("text, figures", [
    ("{a}", {"a": True}), ("{a}", {"a": None}), ("{a:size}", {"a": 2**63}), ("{a}" * 600, {"a": "x" * 2_000})])
def test_an_event_that_cannot_be_told_in_every_language_is_refused(visitor, document, text, figures):
    event = {"code": "x", "text": text, "figures": figures, "created_s": 1.0}
    refused = visitor.post("/api/import", data=json.dumps({**document, "events": [event]}), content_type="application/json")
    assert refused.status_code == 400 and "events[0]" in refused.json["text"]


@pytest.mark.parametrize("change", [
    lambda run: run.update(reads=[[0, run["prompt"]]] * 2),
    lambda run: run.update(reads=[[0, done % (run["prompt"] + 1)] for done in range(10_001)]),
    lambda run: run.update(reads=[[5, 1], [4, 2]]),
    lambda run: run.update(calls=[[0, 0, "done"], [0, 0, "done"]]),
    lambda run: run.update(calls=[[0, 0, "writing"], [0, 0, "writing"]]),
    lambda run: run.update(calls=[[0, 1, "writing"], [0, 0, "writing"]])])
def test_a_timeline_that_tells_the_same_again_is_refused(visitor, document, change):
    document = copy.deepcopy(document)
    change(document["messages"][1]["timeline"][0])
    refused = visitor.post("/api/import", json=document)
    assert refused.status_code == 400 and "messages[1].timeline" in refused.json["text"]


def test_more_runs_than_can_be_told_again_are_refused(visitor, document):
    document = copy.deepcopy(document)
    run = {**document["messages"][1]["timeline"][0], "times": [], "shown": [], "calls": []}
    turns = [copy.deepcopy(document["messages"][:2]) for _ in range(300)]
    for place, turn in enumerate(turns):
        question, reply = turn
        question.update(id=f"q{place}", place=2 * place, reply_to=f"a{place - 1}" if place else None)
        reply.update(id=f"a{place}", place=2 * place + 1, reply_to=f"q{place}", timeline=[run] * 20)
    whole = {**document, "messages": [message for turn in turns for message in turn]}
    assert visitor.post("/api/import", json=whole).status_code == 201
    for _, reply in turns[-10:]:
        reply["timeline"] = [run] * 1_000
    assert visitor.post("/api/import", json=whole).status_code == 400
