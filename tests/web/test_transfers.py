"""Chats that leave as files and come in as files, and the script of a replay."""

import copy
import json
import time

import pytest

from app.chat.chats import Caller
from tests.scripted import ScriptedModel
from tests.web.talk import Browser

CALC = "It is <|python_start|>12*3<|python_end|>, so 36."


def export_of(browser, socket) -> dict:
    answer = browser.get(f"/c/{socket.conversation}/export")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    return answer.json


def taken_in(browser, document):
    return browser.request("POST", "/api/import", document)


def without_ids(document: dict) -> dict:
    document = copy.deepcopy(document)
    names = {message["id"]: index for index, message in enumerate(document["messages"])}
    for message in document["messages"]:
        message["reply_to"] = names.get(message["reply_to"])
        message["id"] = names[message["id"]]
    return document


@pytest.fixture
def chat(serve):
    """(server, browser, socket) after two turns, one with a tool call, and several answers to the last."""
    server = serve(ScriptedModel(CALC, "Fine.", "One of two."))
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("How much is 12*3?")
    socket.ask("Thanks 🦦", socket.conversation)
    socket.send("Several", socket.conversation, settings={"n": 2, "temperature": 1.0})
    socket.until("done")
    socket.until("done")
    socket.until("state", state="idle")
    return server, browser, socket


def test_an_export_taken_in_by_another_session_exports_equal_but_for_ids(chat):
    server, browser, socket = chat
    document = export_of(browser, socket)
    assert (document["format"], document["version"], document["title"]) == ("glasschat-conversation", 1, "How much is 12*3?")
    other = Browser(server)
    other.get("/")
    answer = taken_in(other, document)
    assert answer.status == 201 and answer.json["url"] == f"/c/{answer.json['id']}"
    assert (answer.json["title"], answer.json["messages"]) == (document["title"], 6)  # the other answer is none of them
    again = other.get(answer.json["url"] + "/export").json
    assert without_ids(again) == without_ids(document)
    assert {message["id"] for message in again["messages"]}.isdisjoint(message["id"] for message in document["messages"])
    # it belongs to whoever took it in, and to nobody else
    assert browser.get(answer.json["url"]).status == 404
    assert other.get(f"/c/{socket.conversation}/export").status == 404
    assert "Fine." in other.get(answer.json["url"]).text


def test_the_list_the_figures_and_the_events_say_which_chat_came_from_a_file(chat):
    server, browser, socket = chat
    document = export_of(browser, socket)
    del document["messages"][4:]  # the several answers
    taken = taken_in(browser, document).json["id"]
    listed = {each["id"]: each["imported_s"] for each in server.replies.chats.list(Caller(browser_owner(server, taken)))}
    assert listed[socket.conversation] is None and listed[taken] == pytest.approx(time.time(), abs=600)
    page = browser.get(f"/c/{taken}").text
    assert page.count('data-testid="chat-imported"') == 1
    assert "This chat was opened from a file. Nothing of it is remembered here" in page
    stats = document["messages"][3]["stats"]
    numbers = browser.cache(taken)
    assert numbers["conversation"]["tokens"] == 0
    assert numbers["last_reply"]["from_file"] is True and numbers["last_reply"]["reused"] == stats["reused_tokens"]
    assert "from_file" not in browser.cache(socket.conversation)["last_reply"]
    browser.socket().ask("on", taken)  # what is answered here was measured here
    assert "from_file" not in browser.cache(taken)["last_reply"]


def browser_owner(server, id):
    return server.replies.store.conversation(id).owner


def test_the_timeline_has_a_time_for_each_token_and_the_counts_of_the_engine(chat):
    _, browser, socket = chat
    for message in export_of(browser, socket)["messages"]:
        if message["role"] == "user" or message["answer"] > 0:  # a copy has read nothing of its own
            continue
        run, = message["timeline"]
        stats = message["stats"]
        assert len(run["times"]) == len(run["shown"]) == len(message["ids"])
        assert sum(run["shown"]) == len(message["text"])
        assert run["reads"][-1][1] == run["prompt"] == stats["prompt_tokens"]
        assert run["reused"] == stats["reused_tokens"]
        assert run["cached"] == run["prompt"] + len(run["times"]) - 1
        assert sum(run["times"]) <= run["ended"]
        assert sum(run["prompt"] + index for index in range(len(run["times"]))) == stats["without_cache"]
    first = export_of(browser, socket)["messages"][1]
    assert [state for *_, state in first["timeline"][0]["calls"]] == ["writing", "done"]


def test_a_file_from_before_marks_were_counted_is_taken_in(one_turn):
    browser, document = one_turn
    document = copy.deepcopy(document)
    call = next(segment for segment in document["messages"][1]["segments"] if segment["type"] == "tool_call")
    del call["written_marks"], call["forced_marks"]
    address = taken_in(browser, document).json["url"]
    page = browser.get(address).text
    assert f"put in: {call['forced_tokens']} tokens<" in page
    browser.socket().say("delete", conversation=address.rsplit("/", 1)[1])


def test_ids_are_reused_only_by_the_tokenizer_that_they_belong_to(chat):
    server, browser, socket = chat
    document = export_of(browser, socket)
    del document["messages"][4:]  # the several answers
    same = taken_in(browser, document).json["id"]
    ids = [id for message in document["messages"] for id in message["ids"]]
    next_turn = browser.socket()
    asked = next_turn.ask("on", same)["stats"]
    assert asked["prompt_tokens"] == len(ids) + len("on") + 3
    for message in document["messages"]:
        message["fingerprint"] = "another"
    foreign = taken_in(browser, document).json["id"]
    for message in document["messages"]:
        message["fingerprint"], message["ids"] = "bytes-1", [70_000] * len(message["ids"])
    hostile = taken_in(browser, document).json["id"]
    for other in (foreign, hostile):
        assert next_turn.ask("on", other)["reason"] == "stop"
        assert browser.get(f"/api/strip?conversation={other}").status in (200, 404)
    events = [event.code for event in server.replies.store.events(hostile)]
    assert "encoded_again" in events


def test_hostile_text_stays_text(chat):
    _, browser, socket = chat
    document = export_of(browser, socket)
    evil = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    document["title"] = evil
    document["messages"][0]["text"] = evil
    document["messages"][1]["segments"] = [{"type": "text", "text": evil}]
    document["messages"][1]["text"] = evil
    document["messages"][1]["error"] = evil
    document["messages"][1]["timeline"][0]["shown"][0] = len(evil)
    document["messages"][1]["timeline"][0]["model"]["name"] = evil
    document["events"] = [{"code": evil[:40], "text": evil + "{x}", "figures": {"x": evil}, "created_s": 1.0}]
    answer = taken_in(browser, document)
    assert answer.status == 201
    for path in ("", "/replay"):
        html = browser.get(answer.json["url"] + path).text
        assert "<img src=x" not in html and "<script>alert" not in html


@pytest.mark.parametrize("change", [
    lambda d: d.update(format="other"), lambda d: d.update(version=2), lambda d: d.update(version="1"),
    lambda d: d.update(version=True), lambda d: d.update(title=""), lambda d: d.update(title=7),
    lambda d: d.update(title="x" * 300), lambda d: d.update(created_s=float("nan")), lambda d: d.update(created_s="now"),
    lambda d: d.update(messages=[]), lambda d: d.update(messages={}), lambda d: d.update(messages=[None]),
    lambda d: d.update(events=None), lambda d: d.update(system=[1]),
    lambda d: d["messages"].pop(0), lambda d: d["messages"].pop(1),
    lambda d: d["messages"][0].update(role="system"), lambda d: d["messages"][0].update(id=d["messages"][1]["id"]),
    lambda d: d["messages"][1].update(reply_to=None), lambda d: d["messages"][1].update(choice="both"),
    lambda d: d["messages"][0].update(left_out=True), lambda d: d["messages"][1].update(left_out=True),
    lambda d: d["messages"][1].update(choice="folded"), lambda d: d["messages"][1].update(place=-2),
    lambda d: d["messages"][0].update(ids=[-1]), lambda d: d["messages"][0].update(ids=[2**40]),
    lambda d: d["messages"][0].update(ids=[True]), lambda d: d["messages"][1].update(masks=[1]),
    lambda d: d["messages"][1].update(masks=[2] * len(d["messages"][1]["ids"])),
    lambda d: d["messages"][1].update(reason="because"), lambda d: d["messages"][1].update(reason=[]),
    lambda d: d["messages"][1].update(stats={"seed": -1}), lambda d: d["messages"][1].update(stats={"a": {}}),
    lambda d: d["messages"][1].update(settings={}), lambda d: d["messages"][1]["settings"].update(temperature="hot"),
    lambda d: d["messages"][1]["settings"].update(other=1),
    lambda d: d["messages"][1].update(segments=[{"type": "html"}]), lambda d: d["messages"][1].update(segments=["x"]),
    lambda d: d["messages"][1].update(segments=[{"type": "tool_call", "state": "running"}]),
    lambda d: d["messages"][1].update(chances="%"), lambda d: d["messages"][1].update(chances="AAAA"),
    lambda d: d["messages"][1]["timeline"][0].update(times=[1]),
    lambda d: d["messages"][1]["timeline"][0]["times"].__setitem__(0, -1),
    lambda d: d["messages"][1]["timeline"][0].update(reads=[[0, 10**6]]),
    lambda d: d["messages"][1]["timeline"][0].update(calls=[[0, 0, "maybe"]]),
    lambda d: d["messages"][1]["timeline"][0].update(calls=[[0, 0, []]]),
    lambda d: d["messages"][1]["timeline"][0].update(model={}), lambda d: d["messages"][1].update(timeline={}),
    lambda d: d.update(events=[{"code": "x", "text": "{n}", "figures": {"n": [1]}, "created_s": 1}]),
    lambda d: d.update(events=[{"code": "x", "text": "{n}", "figures": {"n": None}, "created_s": 1}])])
def test_what_is_no_export_is_refused_with_a_sentence_and_nothing_is_stored(one_turn, change):
    browser, document = one_turn
    document = copy.deepcopy(document)
    change(document)
    answer = taken_in(browser, document)
    assert answer.status == 400 and answer.json["code"] == "bad_import" and answer.json["text"].endswith(".")
    assert browser.get("/").text.count('class="chat-item__link"') == 2  # its own chat, and the template


@pytest.fixture(scope="module")
def one_turn(tmp_path_factory):
    from tests.web.talk import RunningServer
    server = RunningServer(tmp_path_factory.mktemp("one") / "data", ScriptedModel(CALC))
    browser = Browser(server)
    socket = browser.socket()
    browser.get("/")
    socket = browser.socket()
    socket.ask("hi")
    yield browser, export_of(browser, socket)
    server.stop()


@pytest.mark.parametrize("body", ["", "{", "[1]", "null", '"text"', "[" * 5000])
def test_what_is_no_json_object_is_refused(one_turn, body):
    browser, _ = one_turn
    answer = browser.request("POST", "/api/import", body)
    assert answer.status == 400 and answer.json["code"] == "bad_import"


def test_a_file_over_the_size_limit_is_refused(one_turn):
    browser, document = one_turn
    answer = taken_in(browser, {**document, "filler": "x" * (8 * 2**20)})
    assert answer.status == 413 and answer.json["text"]


def test_a_chat_that_is_being_answered_cannot_leave(serve):
    model = ScriptedModel("slow")
    browser = Browser(serve(model))
    socket = browser.socket()
    model.hold(1)
    socket.send("hi")
    socket.until("message", role="assistant")
    answer = browser.get(f"/c/{socket.conversation}/export")
    assert answer.status == 400 and answer.json["code"] == "busy"
    model.let_go()
    socket.until("done")


def test_a_replay_tells_the_text_the_calls_and_the_numbers_that_were(chat):
    _, browser, socket = chat
    html = browser.get(f"/c/{socket.conversation}/replay").text
    script = json.loads(html.split('id="page-data">')[1].split("</script>")[0])["script"]
    times = [at for at, *_ in script]
    assert times == sorted(times)
    document = export_of(browser, socket)
    wanted = "".join(m["text"] for m in document["messages"] if m["role"] == "assistant" and not m["answer"])
    texts = [what[0] if isinstance(what[0], str) else what[0].get("text", "") if what[0]["type"] == "token" else ""
             for _, *what in script]
    assert "".join(texts) == wanted
    calls = [what[0] for _, *what in script if isinstance(what[0], dict) and what[0]["type"] == "tool_call"]
    assert [(call["state"], call["result"]) for call in calls] == [("writing", None), ("done", "36")]
    assert sum(what[1] for _, *what in script if len(what) == 2) == 4  # put in: two marks and two digits
    told = [what[0]["edges"] for _, *what in script if isinstance(what[0], dict) and what[0]["type"] == "edges"]
    assert told == ["rw", "uurw", "uuuurw"]  # read, written and reused, a letter a message
    events = [what[0]["code"] for _, *what in script if isinstance(what[0], dict) and what[0]["type"] == "event"]
    assert events == [event["code"] for event in document["events"]]


def test_a_reply_that_went_on_is_played_as_it_was(serve):
    server = serve(ScriptedModel("abcdefghij"), max_tokens=4)
    browser = Browser(server)
    socket = browser.socket()
    socket.ask("hi")
    socket.say("continue", conversation=socket.conversation, message=socket.of("message")[-1]["id"],
               settings={"max_tokens": 100})
    socket.until("done", reason="stop")
    socket.until("state", state="idle")
    runs = export_of(browser, socket)["messages"][1]["timeline"]
    assert [(run["first"], sum(run["shown"])) for run in runs] == [(0, 4), (4, 6)]
    html = browser.get(f"/c/{socket.conversation}/replay").text
    script = json.loads(html.split('id="page-data">')[1].split("</script>")[0])["script"]
    assert "".join(what[0] for _, *what in script if len(what) == 2) == "abcdefghij"
