"""Wishes that come at the worst moment: two at once, behind a stop, in the queue, from several tabs."""

import json
import socket as network
import threading

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, TextMessage
from wsproto.events import Request as Upgrade

from app.chat import hub as hub_module
from app.chat import publisher, vanished
from app.web import steady_socket as steady_socket_module
from tests.scripted import ScriptedModel
from tests.web.talk import Browser, wait_until

SLOW = "word " * 30


def begin(server, browser=None, **fields):
    """A socket whose reply has begun -> the socket and the reply's id."""
    socket = (browser or Browser(server)).socket()
    socket.send("hi", **fields)
    return socket, socket.until("message", role="assistant")["id"]


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


# --- who waits

def test_a_chat_deleted_while_it_waits_leaves_the_queue_and_the_others_move_up(serve):
    model = ScriptedModel("one")
    server = serve(model, rows=1)
    model.hold(1)
    first, _ = begin(server)
    wait_until(model.holding.is_set)
    second, third = begin(server)[0], begin(server)[0]
    second.say("delete", conversation=second.conversation)
    assert second.until("conversation")["deleted"]
    model.let_go()
    assert first.until("done")["reason"] == third.until("done")["reason"] == "stop"
    wait_until(lambda: server.worker.snapshot().queued == ())
    assert second.conversation not in server.worker.snapshot().cached_tokens
    assert not server.replies.publisher.live_in(second.conversation)


def test_whoever_vanished_makes_way_for_one_who_waits(serve, monkeypatch):
    monkeypatch.setattr(vanished, "MAKES_WAY_AFTER_S", 0.1)
    server = serve(ScriptedModel("word " * 400, seconds_per_token=0.05), rows=1, max_tokens=2000)
    browser = Browser(server)
    gone, reply = begin(server, browser)
    gone.until("token")
    gone.kill()
    waiting, _ = begin(server)
    stored = wait_until(lambda: (m := server.replies.store.message(reply)).reason and m)
    assert stored.reason == "cancelled" and stored.text
    waiting.until("token")
    wait_until(lambda: "somebody else waited" in browser.get(f"/c/{gone.conversation}").text)


def test_whoever_vanished_is_let_on_while_nobody_waits_and_so_is_one_who_came_back(serve, monkeypatch):
    monkeypatch.setattr(vanished, "MAKES_WAY_AFTER_S", 0)
    server = serve(ScriptedModel(SLOW, seconds_per_token=0.005), rows=2)
    browser = Browser(server)
    gone, reply = begin(server, browser)
    back, _ = begin(server)
    gone.kill()
    again = browser.socket()
    again.say("open", conversation=gone.conversation, after=0)
    again.until("message")  # it listens
    waiting, _ = begin(server)
    assert again.until("done")["reason"] == back.until("done")["reason"] == waiting.until("done")["reason"] == "stop"


def test_the_row_of_a_closed_tab_stays_for_when_its_reader_is_back(server, browser):
    socket = browser.socket()
    first = socket.ask("hi")["stats"]
    socket.close()
    Browser(server).socket().ask("somebody else")
    again = browser.socket().ask("more", socket.conversation)["stats"]
    assert again["reused_tokens"] == first["prompt_tokens"] + first["generated_tokens"] - 1


def test_the_same_question_in_another_browser_or_another_chat_is_read_anew(server, browser):
    browser.socket().ask("the very same")
    for other in (Browser(server), browser):
        assert other.socket().ask("the very same")["stats"]["reused_tokens"] == 0


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


# --- a reader that never reads

class StuckReader:
    """A WebSocket that says what it wants and never reads an answer."""

    def __init__(self, server, cookie):
        self.socket = network.socket()
        self.socket.setsockopt(network.SOL_SOCKET, network.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", server.port))
        self._connection = WSConnection(ConnectionType.CLIENT)
        self.socket.sendall(self._connection.send(Upgrade(host=server.host, target="/ws",
                                                          extra_headers=[(b"Cookie", cookie.encode())])))
        self._connection.receive_data(self.socket.recv(1000))
        assert isinstance(next(self._connection.events()), AcceptConnection)

    def say(self, wish: dict) -> None:
        self.socket.sendall(self._connection.send(TextMessage(json.dumps(wish))))


def test_a_stuck_reader_holds_nobody_up_is_let_go_and_may_resume_by_number(serve, monkeypatch):
    monkeypatch.setattr(steady_socket_module, "SEND_TIMEOUT_S", 5)
    server = serve(ScriptedModel("one", "two " * 60, seconds_per_token=0.005), context=8192)
    browser = Browser(server)
    other = browser.socket()
    other.ask("x" * 1500, request="large")
    conversation, seen = other.conversation, other.heard[-1]["seq"]
    outboxes = set(server.replies.hub._outboxes)
    stuck = StuckReader(server, browser.cookie)
    stuck.say({"type": "open", "conversation": conversation, "after": seen})
    (outbox,) = wait_until(lambda: server.replies.hub._outboxes - outboxes)
    wait_until(lambda: outbox.channels)
    for _ in range(2500):  # each is answered with the large question again: more than the system holds for a reader
        stuck.say({"type": "send", "text": "again", "conversation": conversation, "request": "large"})
    really = outbox.put

    def put_into_a_small_one(frame):
        with monkeypatch.context() as patch:
            patch.setattr(hub_module, "OUTBOX_EVENTS", 20)
            return really(frame)

    monkeypatch.setattr(outbox, "put", put_into_a_small_one)
    while not outbox.overflowed:  # at first it may still be busy with what it was asked for
        seen, start = other.heard[-1]["seq"], len(other.heard)
        assert other.ask("more", conversation)["reason"] == "stop"
        assert outbox.overflowed or outbox in server.replies.hub._outboxes
    assert Browser(server).socket().ask("hi")["reason"] == "stop"
    wait_until(lambda: outbox not in server.replies.hub._outboxes)
    stuck.socket.close()
    monkeypatch.undo()
    again = browser.socket()
    again.say("open", conversation=conversation, after=seen)
    again.until("state", state="idle")
    assert [event["seq"] for event in again.heard] == [event["seq"] for event in other.heard[start:]]
    assert again.prose() == "two " * 60
