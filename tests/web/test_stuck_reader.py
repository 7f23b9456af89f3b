"""A reader that never reads: nobody waits for it, and it may come back."""

import json
import socket as network

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, TextMessage
from wsproto.events import Request as Upgrade

from app.chat import hub as hub_module
from app.web import steady_socket as steady_socket_module
from tests.scripted import ScriptedModel
from tests.web.talk import Browser, wait_until


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
