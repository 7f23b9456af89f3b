"""Several answers to one question: side by side until one is picked, and what that costs."""

import pytest

from tests.web.table import DrawingModel, Table
from tests.web.talk import wait_until

BYTES_PER_TOKEN = 2 * 2 * 2 * 4 * 4


def test_the_question_is_read_once_and_each_answer_has_its_seed(table):
    answers = table.ask()
    events = table.socket.of("message")
    assert [(event["answer"], event["choice"], event["seed"]) for event in events[1:]] == [
        (0, "open", 7), (1, "open", 8), (2, "open", 9)]
    assert {event["reply_to"] for event in events[1:]} == {events[0]["id"]}
    done = {event["message"]: event for event in table.socket.of("done")}
    assert [done[id]["stats"]["seed"] for id in answers] == [7, 8, 9]
    assert [done[id]["stats"]["read_tokens"] for id in answers] == [6, 0, 0]
    assert [done[id]["stats"]["reused_tokens"] for id in answers] == [0, 6, 6]
    texts = [table.store.message(id).text for id in answers]
    assert len(set(texts)) > 1 and all(text[1:] == "one" for text in texts)
    assert [event["state"] for event in table.socket.of("state")].count("idle") == 1
    # each is what its seed alone gives
    table.settings.update(n=1)
    for seed, text in zip((7, 8, 9), texts, strict=True):
        other = Table(table.server, n=1, seed=seed)
        assert table.store.message(other.ask()[0]).text == text


def test_the_numbers_say_what_the_copies_cost(table):
    table.ask()
    cache = table.socket.of("cache")[-1]["cache"]
    held = 2 * (6 + 4)  # the last token of each is in no cache
    assert cache["conversation"]["tokens"] == 6 + 4
    assert cache["copies"] == {"rows": 2, "prompt_tokens": 6, "copied_tokens": 12, "copied_bytes": 12 * BYTES_PER_TOKEN,
                               "tokens": held, "bytes_used": held * BYTES_PER_TOKEN}
    assert cache["last_reply"]["read"] == 6
    (told,) = table.socket.reasons()
    assert told["code"] == "copied" and told["figures"]["tokens"] == 12
    assert "3 answers at once: the 6 tokens before them were read once" in told["text"]
    assert "12 tokens, 1.54 kB" in told["text"]
    assert wait_until(lambda: table.browser.cache(table.socket.conversation)["pool"]["rows_used"] == 3)


def test_without_copies_the_numbers_do_not_speak_of_them(serve):
    table = Table(serve(), n=1)
    table.ask()
    assert all("copies" not in event["cache"] for event in table.socket.of("cache"))
    assert table.socket.reasons() == [] and table.socket.of("message")[1]["choice"] == "only"


def test_stopping_one_lets_the_others_go_on(serve):
    model = DrawingModel("long enough to be stopped")
    table = Table(serve(model))
    answers = table.ask_and_hold(3)
    table.say("stop", message=answers[0])
    table.say("pick", message=answers[1])
    assert table.socket.until("error")["code"] == "busy"
    model.let_go()
    table.socket.until("state", state="idle")
    reasons = {event["message"]: event["reason"] for event in table.socket.of("done")}
    assert [reasons[id] for id in answers] == ["cancelled", "stop", "stop"]


def test_a_second_tab_and_a_reload_see_the_same_answers_in_mid_stream(serve):
    model = DrawingModel("long enough to look twice")
    table = Table(serve(model))
    answers = table.ask_and_hold(6)
    for id in answers:
        table.socket.until("token", message=id)
    question, first = table.look()["messages"]
    views = [first, *first["others"]]
    assert [view["state"] for view in views] == ["writing"] * 3 and all(view["tail"] for view in views)
    assert [view["seed"] for view in views] == [7, 8, 9]
    tab = table.browser.socket()
    tab.say("open", conversation=table.socket.conversation)
    snapshot = tab.until("snapshot")
    assert [other["id"] for other in snapshot["messages"][1]["others"]] == [view["id"] for view in views[1:]]
    views = [snapshot["messages"][1], *snapshot["messages"][1]["others"]]  # more may have been told meanwhile
    model.let_go()
    table.socket.until("state", state="idle")
    tab.until("state", state="idle")
    for view in views:
        heard = "".join(event["text"] for event in tab.of("token") if event["message"] == view["id"])
        assert view["tail"] + heard == table.store.message(view["id"]).text
    table.pick(views[2]["id"])
    assert tab.until("picked")["message"] == views[2]["id"]
    assert question["id"] in table.browser.get(f"/c/{table.socket.conversation}").text


def test_a_repeated_request_is_told_all_answers_and_done_once(table):
    answers = table.ask(request="once")
    table.socket.send("hi", table.socket.conversation, request="once", settings=table.settings)
    told = [table.socket.next() for _ in range(4 + 1)]
    assert [event["id"] for event in told if event["type"] == "message"][1:] == answers
    assert len(table.store.answers_beside(table.socket.conversation)) == 2


def test_deleting_the_chat_frees_all_rows(table):
    table.ask()
    wait_until(lambda: len(table.rows()) == 3)
    table.say("delete")
    wait_until(lambda: table.rows() == {})


def test_deleting_in_mid_stream_ends_all_answers(serve):
    model = DrawingModel("long enough to be deleted")
    table = Table(serve(model))
    table.ask_and_hold(3)
    table.say("delete")
    table.socket.until("conversation", deleted=True)
    model.let_go()
    wait_until(lambda: table.server.worker.snapshot().pool.rows_used == 0)


@pytest.mark.parametrize("kind", ["edit", "regenerate"])
def test_asking_again_takes_the_place_of_all_answers_and_frees_their_rows(table, kind):
    answers = table.ask()
    question = table.store.messages(table.socket.conversation)[0]
    fields = {"message": question.id, "text": "ho"} if kind == "edit" else {"message": answers[1]}
    start = len(table.socket.heard)
    table.say(kind, **fields, settings=table.settings | {"n": 2, "seed": 20})
    table.socket.until("state", state="idle")
    new = [event for event in table.socket.heard[start:] if event["type"] == "message" and event["role"] == "assistant"]
    assert [(event["answer"], event["seed"]) for event in new] == [(0, 20), (1, 21)]
    assert all(table.store.message(id) is None for id in answers)
    conversation = table.socket.conversation
    wait_until(lambda: set(table.rows()) == {conversation, f"{conversation}/{new[1]['id']}"})


@pytest.mark.parametrize(("rows", "settings", "sentence"), [
    (8, {"n": 2, "use_cache": False}, "Switch the cache on"),
    (2, {"n": 3}, "3 answers at once need as many places in the memory; places here: 2"),
    (8, {"n": 5}, "n must be a whole number from 1 to 4"),
])
def test_what_cannot_be_had_is_refused_with_a_sentence(serve, rows, settings, sentence):
    table = Table(serve(rows=rows))
    table.socket.send("hi", settings=settings)
    error = table.socket.until("error")
    assert error["code"] == "bad_settings" and sentence in error["text"]
    assert "/c/" not in table.browser.get("/").text


def test_copies_are_no_chats_in_the_list(table):
    table.ask()
    wait_until(lambda: len(table.rows()) == 3)
    page = table.browser.get("/").text
    assert page.count('class="chat-item__link"') == 1 + 1  # and the template


def test_the_largest_seed_has_a_next_one(serve):
    table = Table(serve(), n=2, seed=2**63 - 1)
    table.ask()
    assert {event["stats"]["seed"] for event in table.socket.of("done")} == {2**63 - 1, 0}  # either may end first
