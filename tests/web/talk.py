"""A real server in a thread, and browsers that are programs: a cookie jar and a socket."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import struct
import threading
import time

from simple_websocket import Client, ConnectionClosed
from werkzeug.serving import make_server

from app import create_app
from app.chat.turn_story import SENTENCES
from app.settings import Settings
from tests.free_port import free_port
from tests.scripted import ByteTokenizer, ScriptedModel

PATIENCE_S = 60  # a busy machine is slow, not wrong


class RunningServer:
    """The application on a port of its own. `restart` keeps the port, the model and what is stored."""

    def __init__(self, data, model=None, tokenizer=None, waits=True, **settings):
        self.model = model or ScriptedModel("Hello.")
        self.tokenizer = tokenizer or ByteTokenizer()
        self._settings = Settings(data=data, **{"temperature": 0.0, **settings})
        self.port = free_port()
        self.start(waits)

    def start(self, waits=True) -> None:
        self.app = create_app(self._settings, model=self.model, tokenizer=self.tokenizer)
        self._server = make_server("127.0.0.1", self.port, self.app, threaded=True)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        if waits:
            self.worker.wait_ready(PATIENCE_S)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.worker._commands.put(None)  # before a model that waits is let go: it writes no token more
        if isinstance(self.model, ScriptedModel):
            self.model.let_go()
        self.app.extensions["glasschat"].close()

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def worker(self):
        return self.app.extensions["glasschat"].worker

    @property
    def replies(self):
        return self.app.extensions["glasschat"].replies

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


class Browser:
    """One browser session: its cookie, kept from the first page on."""

    def __init__(self, server: RunningServer, visits=True):
        self.server, self.cookie = server, None
        if visits:
            assert self.get("/").status == 200

    def request(self, method, path, body=None, headers=None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE_S)
        headers = {**({"Cookie": self.cookie} if self.cookie else {}), **(headers or {})}
        if isinstance(body, dict):
            body, headers = json.dumps(body), {"Content-Type": "application/json", **headers}
        connection.request(method, path, body, headers)
        answer = Answer(connection.getresponse())
        connection.close()
        if "Set-Cookie" in answer.headers:
            self.cookie = answer.headers["Set-Cookie"].split(";")[0]
        return answer

    def get(self, path, **options) -> Answer:
        return self.request("GET", path, **options)

    def cache(self, conversation=None) -> dict:
        return self.get("/api/cache" + (f"?conversation={conversation}" if conversation else "")).json

    def socket(self, **headers) -> Socket:
        return Socket(self.server, {**({"Cookie": self.cookie} if self.cookie else {}), **headers})

    def page(self, conversation) -> dict:
        """What the page of a conversation shows, from where the page gets it."""
        answer = self.get(f"/c/{conversation}")
        assert answer.status == 200
        return json.loads(answer.text.split('id="page-data">')[1].split("</script>")[0])


class Socket:
    """A WebSocket that remembers all it heard. `conversation` is that of the last `conversation` event."""

    _requests = itertools.count()

    def __init__(self, server: RunningServer, headers=None, path="/ws"):
        self.client = Client.connect(f"ws://{server.host}{path}", headers=headers or {})
        self.heard: list[dict] = []
        self.conversation: str | None = None

    def say(self, type, **fields) -> None:
        self.client.send(json.dumps({"type": type, **fields}))

    def send(self, text, conversation=None, request=None, **fields) -> str:
        request = request or f"r{next(self._requests)}"
        self.say("send", text=text, conversation=conversation, request=request, **fields)
        return request

    def next(self, timeout_s=PATIENCE_S) -> dict:
        frame = self.client.receive(timeout=timeout_s)
        assert frame is not None, f"nothing came for {timeout_s} s after {[event['type'] for event in self.heard[-5:]]}"
        event = json.loads(frame)
        self.heard.append(event)
        if event["type"] == "conversation":
            self.conversation = event["id"]
        return event

    def until(self, type, **fields) -> dict:
        """Listen up to the next event of a type, with these fields."""
        while True:
            event = self.next()
            if event["type"] == type and all(event.get(name) == value for name, value in fields.items()):
                return event

    def ask(self, text, conversation=None, **fields) -> dict:
        """A whole turn -> its `done`, after which the state is idle."""
        self.send(text, conversation, **fields)
        done = None
        while True:
            event = self.next()
            assert event["type"] != "error", event
            done = event if event["type"] == "done" else done
            if done and event["type"] == "state" and event["state"] in ("idle", "failed"):
                return done

    def until_taken(self) -> None:
        """Until the server has taken all that was said."""
        self.say("ping")
        self.until("pong")

    def of(self, type) -> list[dict]:
        return [event for event in self.heard if event["type"] == type]

    def reasons(self) -> list[dict]:
        """What happened to the memory, but for the line that every turn has."""
        return [event for event in self.of("event") if event["code"] not in SENTENCES]

    def prose(self) -> str:
        return "".join(event["text"] for event in self.of("token"))

    def silence(self, for_s=0.2) -> None:
        """Nothing comes."""
        frame = self.client.receive(timeout=for_s)
        assert frame is None, frame

    def close(self) -> None:
        try:
            self.client.close()
        except ConnectionClosed:
            pass

    def kill(self) -> None:
        """Vanish without a word, as a machine does that falls asleep."""
        self.client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.client.sock.shutdown(socket.SHUT_RDWR)
        self.client.sock.close()


def wait_until(condition, timeout_s=PATIENCE_S):
    until = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < until, "what was waited for did not happen"
        time.sleep(0.01)
    return value


def begin(server, browser=None, **fields):
    """A socket whose reply has begun -> the socket and the reply's id."""
    socket = (browser or Browser(server)).socket()
    socket.send("hi", **fields)
    return socket, socket.until("message", role="assistant")["id"]
