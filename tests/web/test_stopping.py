"""Stopping, waiting and vanishing (T11, T12, T14, BC-18)."""

import socket as network

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
