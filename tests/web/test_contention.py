"""Wishes that come at the worst moment: two at once, behind a stop, from several tabs."""

import threading

import pytest

from app.chat import publisher
from tests.scripted import ScriptedModel
from tests.web.talk import Browser, begin, wait_until

SLOW = "word " * 30


def begin_held(server):
    """As `begin`, and the model waits in the middle of the reply."""
    server.model.hold(5)
    socket, reply = begin(server)
    wait_until(server.model.holding.is_set)
    socket.until("token")
    return socket, reply


def texts(server, conversation):
    return [message.text for message in server.replies.store.messages(conversation)]


# --- stop

def test_a_question_right_behind_a_stop_is_answered_and_only_the_old_answer_is_cut(serve, monkeypatch):
    monkeypatch.setattr(publisher, "STOPPED_WITHIN_S", 60)
    server = serve(ScriptedModel(SLOW, "whole"))
    socket, reply = begin_held(server)
    socket.say("stop", conversation=socket.conversation, message=reply)
    socket.say("ping")
    socket.send("more", socket.conversation)
    socket.until("pong")  # the stop is taken, and the question waits for the model, which is let go only now
    server.model.let_go()
    assert socket.until("done", message=reply)["reason"] == "cancelled"
    done = socket.until("done")
    assert (done["reason"], done["html"]) == ("stop", "<p>whole</p>\n")
    assert socket.of("error") == []
    assert texts(server, socket.conversation)[2:] == ["more", "whole"]


@pytest.mark.parametrize("kind", ["regenerate", "edit", "continue"])
def test_other_wishes_right_behind_a_stop_are_fulfilled_too(serve, monkeypatch, kind):
    monkeypatch.setattr(publisher, "STOPPED_WITHIN_S", 60)
    server = serve(ScriptedModel(SLOW))
    socket, reply = begin_held(server)
    question = socket.of("message")[0]["id"]
    socket.say("stop", conversation=socket.conversation, message=reply)
    socket.say("ping")
    fields = {"message": question, "text": "ho"} if kind == "edit" else {"message": reply}
    socket.say(kind, conversation=socket.conversation, **fields)
    socket.until("pong")
    server.model.let_go()
    assert socket.until("done")["reason"] == "cancelled"
    assert socket.until("done")["reason"] == "stop"
    assert socket.of("error") == []


def test_a_stop_that_comes_after_the_next_question_ends_nothing(serve):
    server = serve(ScriptedModel("first", SLOW, seconds_per_token=0.002))
    socket = Browser(server).socket()
    socket.ask("hi")
    old = socket.of("message")[1]["id"]
    socket.send("more", socket.conversation)
    for _ in range(3):
        socket.say("stop", conversation=socket.conversation, message=old)
    assert socket.until("done")["reason"] == "stop"


def test_many_stops_at_once_from_two_tabs_end_a_reply_once(serve):
    server = serve(ScriptedModel(SLOW, "next"))
    browser = Browser(server)
    server.model.hold(5)
    first, reply = begin(server, browser)
    second = browser.socket()
    second.say("open", conversation=first.conversation, after=0)
    second.until("token")
    wait_until(server.model.holding.is_set)
    for socket in (second, first, second, second):
        socket.say("stop", conversation=first.conversation, message=reply)
    for socket in (first, second):
        socket.until_taken()
    server.model.let_go()
    for socket in (first, second):
        assert socket.until("done")["reason"] == "cancelled"
        socket.until("state", state="idle")
        socket.silence()
        assert len(socket.of("done")) == 1
    assert second.ask("more", first.conversation)["stats"]["reused_tokens"] > 6  # what was written is remembered


def test_a_stop_inside_of_a_tool_call_ends_it_unfinished_and_the_chat_goes_on(serve):
    model = ScriptedModel("So <|python_start|>1+1<|python_end|>", "fine")
    server = serve(model)
    model.hold(6)
    socket, reply = begin(server)
    wait_until(model.holding.is_set)
    socket.say("stop", conversation=socket.conversation, message=reply)
    socket.until_taken()
    model.let_go()
    assert socket.until("done")["reason"] == "cancelled"
    stored = server.replies.store.message(reply)
    assert [segment.get("state") for segment in stored.segments] == [None, "unfinished"]
    assert bytes(stored.ids) == b"So "
    assert socket.ask("more", socket.conversation)["reason"] == "stop"


# --- two at once

def test_of_two_tabs_that_send_at_once_one_is_answered_and_the_other_is_told_so(serve):
    server = serve(ScriptedModel("one", SLOW, seconds_per_token=0.002))
    browser = Browser(server)
    tabs = [browser.socket(), browser.socket()]
    tabs[0].ask("hi")
    conversation, base = tabs[0].conversation, tabs[0].of("message")[-1]["id"]
    tabs[1].say("open", conversation=conversation, after=0)
    tabs[1].until("state", state="idle")
    together = threading.Barrier(2)

    def send(number):
        together.wait()
        tabs[number].send(f"from tab {number}", conversation, request=f"tab {number}", base=base)

    senders = [threading.Thread(target=send, args=(number,)) for number in range(2)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    for number, tab in enumerate(tabs):
        while not (answered(tab, number) and len(tab.of("done")) == 2 and tab.of("state")[-1]["state"] == "idle"):
            tab.next()
    errors = [event for tab in tabs for event in tab.of("error")]
    assert [error["code"] in ("busy", "stale") for error in errors] == [True]
    refused = int(errors[0]["request"][-1])
    assert texts(server, conversation) == ["hi", "one", f"from tab {1 - refused}", SLOW.strip() + " "]
    assert tabs[refused].ask("again", conversation, base=tabs[refused].of("message")[-1]["id"])["reason"] == "stop"


def answered(tab, number) -> bool:
    """Whether the server took its question, or refused it."""
    return any(event.get("request") == f"tab {number}" for event in tab.heard)


def test_the_same_request_from_two_connections_at_once_is_done_once(serve):
    server = serve(ScriptedModel("one", seconds_per_token=0.002))
    browser = Browser(server)
    tabs = [browser.socket() for _ in range(4)]
    for tab in tabs:
        tab.send("hi", request="the one")
    assert len({tab.until("conversation")["id"] for tab in tabs}) == 1
    for tab in tabs:
        tab.until("done")
    assert texts(server, tabs[0].conversation) == ["hi", "one"]


def test_while_a_prompt_is_read_it_is_not_edited_and_a_delete_ends_it(serve):
    server = serve(ScriptedModel("never said", seconds_per_read=1.0), context=8192)  # it is not read to its end here
    socket = Browser(server).socket()
    socket.send("x" * 5000)
    question = socket.until("message", role="user")["id"]
    wait_until(lambda: socket.until("reading")["done"] > 0)
    socket.say("edit", conversation=socket.conversation, message=question, text="shorter")
    assert socket.until("error")["code"] == "busy"
    socket.say("delete", conversation=socket.conversation)
    assert socket.until("conversation")["deleted"]
    server.model.seconds_per_read = 0
    wait_until(lambda: server.worker.snapshot().pool.rows_used == 0)
    assert Browser(server).socket().ask("next")["reason"] == "stop"


def test_a_deletion_reaches_the_other_tabs(server, browser):
    first, second = browser.socket(), browser.socket()
    first.ask("hi")
    second.say("open", conversation=first.conversation)
    second.until("snapshot")
    first.say("delete", conversation=first.conversation)
    assert second.until("conversation")["deleted"] is True
    second.send("too late", first.conversation)
    assert second.until("error")["code"] == "not_found"
