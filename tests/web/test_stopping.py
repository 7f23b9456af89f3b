"""Stopping, vanishing, and coming back (T11, T12, T14, T15, T30, BC-18)."""

import json
import socket as network
import sqlite3
import threading

import pytest

from app.chat import vanished
from app.web import socket as socket_module
from tests.scripted import ScriptedModel
from tests.web.talk import Browser, Socket, wait_until


def test_stop_ends_the_engines_work_and_keeps_what_was_written(serve):
    """T11"""
    model = ScriptedModel("word " * 100, seconds_per_token=0.1)  # it does not come to its end here
    server = serve(model)
    browser = Browser(server)
    socket = browser.socket()
    socket.send("hi")
    reply = socket.until("message", role="assistant")["id"]
    for _ in range(3):
        socket.until("token")
    socket.say("stop", conversation=socket.conversation, message=reply)
    done = socket.until("done")
    model.seconds_per_token = 0
    steps = server.worker.snapshot().steps
    socket.until("state", state="idle")
    assert done["reason"] == "cancelled" and 0 < done["stats"]["generated_tokens"] < 500
    socket.silence(0.3)
    assert server.worker.snapshot().steps == steps
    stored = server.replies.store.messages(socket.conversation)
    assert (stored[0].text, stored[1].reason) == ("hi", "cancelled")
    assert stored[1].text == socket.prose() != ""
    remembered = socket.of("cache")[-1]["cache"]["conversation"]["tokens"]
    assert remembered >= 6 + done["stats"]["generated_tokens"] - 1
    assert socket.ask("more", socket.conversation)["stats"]["reused_tokens"] == remembered


def test_stop_while_reading_ends_before_the_prompt_is_read(serve):
    """T12"""
    model = ScriptedModel("never said", "said", seconds_per_read=1.0)
    server = serve(model, context=8192)
    socket = Browser(server).socket()
    socket.send("x" * 6000)
    reply = socket.until("message", role="assistant")["id"]
    wait_until(lambda: socket.until("reading")["done"] > 0)
    socket.say("stop", conversation=socket.conversation, message=reply)
    done = socket.until("done")
    model.seconds_per_read = 0
    assert done["reason"] == "cancelled" and done["stats"]["generated_tokens"] == 0
    assert 0 < done["stats"]["read_tokens"] < 6000
    assert done["stats"]["read_tokens"] in [event["done"] for event in socket.of("reading")]  # whole chunks
    assert socket.until("cache")["cache"]["conversation"]["tokens"] == done["stats"]["read_tokens"]
    after = socket.ask("more", socket.conversation)
    assert after["reason"] == "stop" and after["stats"]["reused_tokens"] == done["stats"]["read_tokens"]


def test_stop_of_a_reply_that_has_ended_is_ignored(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    socket.say("stop", conversation=socket.conversation, message=socket.of("message")[1]["id"])
    socket.say("ping")
    assert socket.next()["type"] == "pong"


def test_who_waits_is_told_their_place_and_can_leave_the_queue(serve):
    model = ScriptedModel("one")
    server = serve(model, rows=1)
    first, second, third = (Browser(server).socket() for _ in range(3))
    model.hold(1)
    first.send("hi")
    first.until("message", role="assistant")
    wait_until(model.holding.is_set)
    for socket in (second, third):
        socket.send("hi")
        socket.until("message", role="assistant")
    model.let_go(until=2)  # by one token, so that commands are taken
    assert second.until("state", state="queued")["place"] == 1
    assert third.until("state", state="queued")["place"] == 2
    second.say("stop", conversation=second.conversation, message=second.of("message")[1]["id"])
    second.until_taken()
    model.let_go()
    assert second.until("done")["reason"] == "cancelled"
    assert third.until("done")["reason"] == "stop"


def test_fifty_clients_that_vanish_leave_a_server_that_serves(serve):
    """T14"""
    model = ScriptedModel("word " * 40)
    server = serve(model)
    for _ in range(50):
        socket = Socket(server)  # without a cookie nobody can come back: their replies end with the socket
        socket.send("hi")
        socket.until("message", role="assistant")
        socket.kill()
    assert Browser(server).socket().ask("hi")["reason"] == "stop"
    wait_until(lambda: not server.replies.publisher._live)
    assert Browser(server).get("/healthz").status == 200


def test_a_reply_that_nobody_listens_to_is_stopped_after_a_while(serve, monkeypatch):
    """BC-18"""
    monkeypatch.setattr(vanished, "ABANDONED_AFTER_S", 0.1)
    model = ScriptedModel("word " * 400, seconds_per_token=0.05)
    server = serve(model, max_tokens=2000)
    browser = Browser(server)
    socket = browser.socket()
    socket.send("hi")
    reply = socket.until("message", role="assistant")["id"]
    socket.until("token")
    socket.kill()
    stored = wait_until(lambda: (m := server.replies.store.message(reply)).reason and m)
    assert stored.reason == "cancelled" and stored.text
    assert server.worker.snapshot().pool.tokens > 0  # kept for when they come back
    wait_until(lambda: "Nobody was listening" in browser.get(f"/c/{socket.conversation}").text)


def test_a_socket_that_answers_pings_stays_and_one_that_does_not_is_let_go(serve, monkeypatch):
    """BC-18, T34"""
    monkeypatch.setattr(socket_module, "HEARTBEAT_S", 3)  # so long an answer may take on a busy machine
    monkeypatch.setattr(socket_module, "LINGER_S", 0.1)
    server = serve()
    answering = Browser(server).socket()
    mute = network.create_connection(("127.0.0.1", server.port), timeout=20)
    mute.sendall(f"GET /ws HTTP/1.1\r\nHost: {server.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                 "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
    wait_until(lambda: len(server.replies.hub._outboxes) == 2)
    wait_until(lambda: len(server.replies.hub._outboxes) == 1)
    assert mute.recv(12) == b"HTTP/1.1 101"
    mute.close()
    assert answering.ask("hi")["reason"] == "stop"


def test_a_reply_goes_on_while_its_page_is_reloaded(serve):
    """T15: reload after some tokens, inside a tool block; nothing is missing or told twice."""
    text = "Before it. <|python_start|>2*21<|python_end|> After it."
    model = ScriptedModel(text)
    server = serve(model)
    browser = Browser(server)
    socket = browser.socket()
    model.hold(15)  # inside the expression
    socket.send("hi")
    wait_until(model.holding.is_set)
    socket.until("tool_call")
    socket.kill()
    page = wait_until(lambda: (p := browser.page(socket.conversation)) and p["busy"] and p)
    html = browser.get(f"/c/{socket.conversation}").text
    assert "<p>Before it.</p>" in html and 'data-state="writing"' in html
    again = browser.socket()
    again.say("open", conversation=socket.conversation, after=page["seq"])
    model.let_go()
    done = again.until("done")
    assert again.prose().strip() == "After it."
    assert [event["seq"] for event in again.heard] == list(range(page["seq"] + 1, page["seq"] + 1 + len(again.heard)))
    assert done["html"] == "<p>Before it.</p>\n<p>After it.</p>\n"


def without_strips(events):
    """The tokens of a strip that is told again are not kept: whoever was away fetches them."""
    return [{**event, "tokens": ...} if event["type"] == "strip" else event for event in events]


def test_two_windows_see_the_same(server, browser):
    first, second = browser.socket(), browser.socket()
    first.ask("hi")
    second.say("open", conversation=first.conversation, after=0)
    second.until("state", state="idle")
    first.ask("more", first.conversation)
    second.until("state", state="idle")
    assert without_strips(second.heard) == without_strips(first.heard)


def test_what_a_network_break_swallowed_comes_by_number(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    seen = socket.heard[5]["seq"]
    again = browser.socket()
    again.say("open", conversation=socket.conversation, after=seen)
    while len(again.heard) < len(socket.heard) - 6:
        again.next()
    assert without_strips(again.heard) == without_strips(socket.heard[6:])
    assert [event["tokens"] for event in again.heard if event["type"] == "strip"] == [None]  # to be fetched


def test_after_a_restart_a_page_gets_a_snapshot_and_numbers_go_on(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    last = socket.heard[-1]["seq"]
    server.restart()
    again = browser.socket()
    again.say("open", conversation=socket.conversation, after=last - 1)
    snapshot = again.next()
    assert (snapshot["type"], snapshot["seq"], snapshot["state"]) == ("snapshot", last, "idle")
    assert [message["text"] for message in snapshot["messages"]] == ["hi", "Hello."]
    assert snapshot["cache"]["conversation"]["tokens"] == 0
    again.ask("more", socket.conversation)
    assert [event["seq"] for event in again.heard[1:]] == list(range(last + 1, last + len(again.heard)))


def test_after_a_restart_in_mid_reply_what_was_written_is_there_marked_interrupted(serve):
    model = ScriptedModel("Some words, 2+2 = <|python_start|>2+2<|python_end|>.", "next")
    server = serve(model)
    browser = Browser(server)
    socket = browser.socket()
    model.hold(20)  # inside the expression
    socket.send("hi")
    reply = socket.until("message", role="assistant")["id"]
    wait_until(model.holding.is_set)
    server.restart()
    html = browser.get(f"/c/{socket.conversation}").text
    stored = server.replies.store.message(reply)
    assert (stored.reason, stored.text, stored.ids) == (
        "interrupted",
        "Some words, 2+2 = ",
        list(b"Some words, 2+2 = "),
    )
    assert 'data-state="interrupted"' in html and 'data-state="unfinished"' in html
    again = browser.socket()
    assert again.ask("more", socket.conversation)["reason"] == "stop"


def test_a_process_that_was_killed_leaves_what_was_stored_marked_interrupted(serve):
    model = ScriptedModel("Some words <|python_start|>2+2<|python_end|>.")
    server = serve(model)
    browser = Browser(server)
    socket = browser.socket()
    model.hold(13)
    socket.send("hi")
    reply = socket.until("message", role="assistant")["id"]
    wait_until(lambda: server.replies.store.message(reply).text == "Some words ")  # stored as it is written
    copy = (
        server.replies.store.path.read_bytes(),
        server.replies.store.path.with_name(server.replies.store.path.name + "-wal").read_bytes(),
    )
    seq_seen = socket.heard[-1]["seq"]
    server.stop()  # and now as if it had not been stopped, but killed at that moment
    path = server.replies.store.path
    path.write_bytes(copy[0])
    path.with_name(path.name + "-wal").write_bytes(copy[1])
    server.start()
    stored = server.replies.store.message(reply)
    assert (stored.reason, stored.text) == ("interrupted", "Some words ")
    assert [segment.get("state") for segment in stored.segments] == [None, "unfinished"]
    again = browser.socket()
    again.say("open", conversation=socket.conversation, after=seq_seen)
    snapshot = again.next()
    assert snapshot["type"] == "snapshot" and snapshot["seq"] > seq_seen
    assert snapshot["messages"][1]["state"] == "interrupted"


def test_nobody_sees_or_changes_what_is_not_theirs(serve):
    """T30"""
    model = ScriptedModel("a secret that is long enough to be stopped")
    server = serve(model)
    mine, yours = Browser(server), Browser(server)
    owner = mine.socket()
    model.hold(5)
    owner.send("hi")
    reply = owner.until("message", role="assistant")["id"]
    wait_until(model.holding.is_set)
    intruder = yours.socket()
    for type in ("open", "send", "stop", "regenerate", "continue", "edit", "rename", "delete"):
        intruder.say(type, conversation=owner.conversation, message=reply, text="x", title="x", request=type)
        error = intruder.until("error")
        assert (error["code"], error["request"]) == ("not_found", type)
    assert yours.get(f"/c/{owner.conversation}").status == 404
    assert yours.get(f"/api/cache?conversation={owner.conversation}").status == 404
    assert yours.request("POST", "/api/count", {"conversation": owner.conversation, "text": "x"}).status == 404
    assert owner.conversation not in yours.get("/").text
    model.let_go()
    assert owner.until("done")["reason"] == "stop"
    assert "secret" not in json.dumps(intruder.heard)


def test_forgetting_everything_leaves_nothing_for_the_next_visitor(serve):
    server = serve(ScriptedModel("Hello."))
    browser, other = Browser(server), Browser(server)
    socket, kept = browser.socket(), other.socket()
    socket.ask("hi")
    kept.ask("hi")
    cookie = browser.cookie
    assert browser.request("POST", "/api/forget").status == 204
    assert browser.cookie != cookie
    with pytest.raises(Exception):
        while True:
            socket.next(timeout_s=5)
    for known in (browser.cookie, cookie):
        browser.cookie = known
        assert browser.get(f"/c/{socket.conversation}").status == 404
        assert socket.conversation not in browser.get("/").text
    wait_until(lambda: list(server.worker.snapshot().cached_tokens) == [kept.conversation])
    assert other.get(f"/c/{kept.conversation}").status == 200


def test_a_reply_that_cannot_be_stored_at_its_end_is_stored_as_soon_as_it_can(server, browser, monkeypatch):
    socket, other = browser.socket(), browser.socket()
    really = server.replies.store.update_message
    is_full = threading.Event()
    is_full.set()

    def update(id, **changes):
        if is_full.is_set() and "reason" in changes:
            raise sqlite3.OperationalError("database or disk is full")
        really(id, **changes)

    monkeypatch.setattr(server.replies.store, "update_message", update)
    socket.send("hi")
    wait_until(lambda: any(reply.finished for reply in list(server.replies.publisher._live.values())))
    is_full.clear()
    assert socket.until("done")["reason"] == "stop"
    assert server.replies.store.messages(socket.conversation)[1].text == "Hello."
    assert other.ask("hi")["reason"] == "stop"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_engine_thread_that_has_died_fails_its_replies_and_the_health_check(serve):
    """T14: a dead engine is told, not waited for."""
    model = ScriptedModel("x" * 100)
    server = serve(model)
    browser = Browser(server)
    socket = browser.socket()
    model.hold(3)
    socket.send("hi")
    socket.until("message", role="assistant")
    wait_until(model.holding.is_set)

    def die(*_):
        raise SystemExit  # ends the thread, and nothing in it expects that

    model._next_id = die
    model.let_go()
    done = socket.until("done")
    assert done["reason"] == "error" and "stopped working" in done["text"]
    assert socket.until("state")["state"] == "failed"
    assert browser.get("/healthz").status == browser.get("/readyz").status == 503
    socket.send("more", socket.conversation)
    assert socket.until("error")["code"] == "failed"
