"""Of several answers one is picked: the chat goes on with it, and the rows of the others are free."""

import pytest

from tests.scripted import ASSISTANT_END, ByteTokenizer, ScriptedModel
from tests.web.table import DrawingModel, Table
from tests.web.talk import Browser, wait_until


@pytest.mark.parametrize("number", [0, 1, 2])
def test_the_chat_goes_on_in_the_row_of_the_picked_one_and_the_others_are_free(table, number):
    answers = table.ask()
    text = table.store.message(answers[number]).text
    event = table.pick(answers[number])
    assert event["message"] == answers[number] and event["others"] == answers[:number] + answers[number + 1:]
    wait_until(lambda: list(table.rows()) == [table.socket.conversation])
    told = table.socket.until("event", code="picked")
    assert told["figures"]["rows"] == 2 and told["figures"]["tokens"] == 2 * (6 + 4)
    while (cache := table.socket.until("cache")["cache"])["pool"]["rows_used"] > 1:  # told before the engine came to it
        pass
    assert "copies" not in cache
    assert table.line() == ["hi", text]
    table.settings["n"] = 1
    table.ask("more")
    assert table.line() == ["hi", text, "more", table.line()[-1]]
    stats = table.socket.of("done")[-1]["stats"]
    assert stats["reused_tokens"] == 6 + 4  # all that was kept of the picked one
    folded = table.look()["messages"][1]
    assert (folded["choice"], [other["choice"] for other in folded["others"]]) == ("picked", ["folded", "folded"])


def test_the_next_question_goes_on_with_the_first_where_none_is_picked(table):
    answers = table.ask()
    start = len(table.socket.heard)
    more = table.ask("more", base=answers[2])  # the last that was seen
    picked = next(event for event in table.socket.heard[start:] if event["type"] == "picked")
    assert (picked["message"], picked["others"]) == (answers[0], answers[1:])
    assert table.line()[:3] == ["hi", table.store.message(answers[0]).text, "more"]
    assert table.socket.of("done")[-3]["stats"]["prompt_tokens"] == 6 + 5 + 3 + 4
    first = next(e for e in table.socket.of("done") if e["message"] == more[0])
    assert first["stats"]["reused_tokens"] == 6 + 4
    conversation = table.socket.conversation
    wait_until(lambda: set(table.rows()) == {conversation, f"{conversation}/{more[1]}", f"{conversation}/{more[2]}"})


def test_another_may_be_picked_while_the_chat_has_not_gone_on_and_not_after(table):
    answers = table.ask()
    table.pick(answers[1])
    table.pick(answers[2])
    assert table.line()[1] == table.store.message(answers[2]).text
    assert "after all" in table.socket.until("event", code="picked")["text"]
    table.settings["n"] = 1
    table.ask("more")
    assert table.socket.of("done")[-1]["stats"]["reused_tokens"] >= 6
    table.say("pick", message=answers[0])
    assert table.socket.until("error")["code"] == "not_last"
    table.say("pick", message="nothing")
    assert table.socket.until("error")["code"] == "not_found"


def test_somebody_else_picks_nothing(table):
    answers = table.ask()
    Table(table.server).socket.say("pick", conversation=table.socket.conversation, message=answers[1])
    stranger = Browser(table.server).socket()
    stranger.say("pick", conversation=table.socket.conversation, message=answers[1])
    assert stranger.until("error")["code"] == "not_found"
    assert table.store.message(answers[1]).choice == "open"


def test_picking_one_stops_those_that_are_still_written(serve):
    model = ScriptedModel("x" * 300, seconds_per_token=0.2)  # none comes to its end here
    table = Table(serve(model))
    table.socket.send("hi", settings=table.settings)
    answers = [table.socket.until("message", role="assistant")["id"] for _ in range(3)]
    table.socket.until("token", message=answers[1])
    table.say("stop", message=answers[1])
    table.socket.until("done", message=answers[1])
    kept = len(table.store.message(answers[1]).ids)
    table.pick(answers[1])
    model.seconds_per_token = 0
    table.socket.until("state", state="idle")
    assert {event["reason"] for event in table.socket.of("done")} == {"cancelled"}
    wait_until(lambda: list(table.rows()) == [table.socket.conversation])
    table.settings["n"] = 1
    table.socket.send("more", table.socket.conversation, settings=table.settings | {"max_tokens": 3})
    done = table.socket.until("done")
    assert done["stats"]["reused_tokens"] == 6 + kept


def test_after_a_restart_the_interrupted_answers_are_there_and_one_may_be_picked(serve):
    table = Table(serve(DrawingModel("long enough to be interrupted")))
    answers = table.ask_and_hold(6)
    for id in answers:
        table.socket.until("token", message=id)
    table.server.restart()
    view = table.look()["messages"][1]
    assert [each["state"] for each in (view, *view["others"])] == ["interrupted"] * 3
    conversation, table.socket = table.socket.conversation, table.browser.socket()
    table.socket.conversation = conversation
    table.say("open")
    table.pick(answers[2])
    table.say("continue", message=answers[2], settings=table.settings)
    table.socket.until("state", state="idle")
    assert table.line()[1][1:] == "ong enough to be interrupted"


def test_an_answer_that_was_not_picked_does_not_go_on(table):
    answers = table.ask()
    table.say("continue", message=answers[1])
    assert table.socket.until("error")["code"] == "not_picked"


def test_going_on_with_the_first_picks_it(serve):
    table = Table(serve(DrawingModel("-something long")), max_tokens=4)
    answers = table.ask()
    table.settings.update(max_tokens=50)
    table.say("continue", message=answers[0], settings=table.settings)
    assert table.socket.until("picked")["message"] == answers[0]
    table.socket.until("state", state="idle")
    assert table.line()[1][1:] == "something long"
    wait_until(lambda: list(table.rows()) == [table.socket.conversation])


@pytest.mark.parametrize("number", [0, 1])
def test_one_that_goes_on_stays_the_picked_one_and_a_repeated_request_tells_of_it_alone(serve, number):
    table = Table(serve(DrawingModel("-something long")), max_tokens=4)
    answers = table.ask()
    table.pick(answers[number])
    wish = {"message": answers[number], "settings": table.settings | {"max_tokens": 50}, "request": "more of it"}
    table.say("continue", **wish)
    assert table.socket.until("message", id=answers[number])["choice"] == "picked"
    table.socket.until("state", state="idle")
    start = len(table.socket.heard)
    table.say("continue", **wish)
    table.socket.until("message", id=answers[number])
    table.say("rename", title="After it")
    table.socket.until("conversation", title="After it")
    told = [event["id"] for event in table.socket.heard[start:] if event["type"] == "message"]
    assert told == [answers[number]]


def test_an_answer_whose_row_went_to_another_chat_is_told_of_and_can_still_be_picked(serve):
    table = Table(serve(DrawingModel("-one", "-two"), rows=3))
    answers = table.ask()
    others = [table.browser.socket() for _ in range(3)]
    for socket in others:
        socket.ask("me too", settings={"n": 1})
    codes = [table.socket.until("event")["code"] for _ in range(3)]
    assert codes == ["evicted", "copy_evicted", "copy_evicted"]
    table.pick(answers[2])
    table.settings["n"] = 1
    table.ask("more")
    done = table.socket.of("done")[-1]
    assert done["stats"]["reused_tokens"] == 0 and done["reason"] == "stop"
    stored = table.store.message(answers[2])
    assert stored.ids[-1] == ASSISTANT_END and ByteTokenizer().decode(stored.ids[:-1]) == stored.text
