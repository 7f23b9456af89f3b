"""The WebSocket: a browser's wishes in, the events of its conversations out.

One thread serves one socket: it sleeps until a frame has come in or an event waits to go out. Whatever a
frame says, the socket stays open; only a frame over the size limit ends it (1009). A listener who cannot
keep up is let go (1013) and may come back by `seq`.
"""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import suppress

from flask import abort, current_app, request, url_for
from flask_sock import Sock
from simple_websocket import ConnectionClosed
from wsproto.events import Ping

from app.chat.chats import Caller
from app.chat.errors import CannotStoreError, ChatError
from app.chat.hub import Outbox, to_json
from app.chat.recovery import SOCKET_OWNER
from app.chat.sentences import sentence
from app.web.frames import read_frame, request_of
from app.web.languages import translated
from app.web.retelling import error_text, retold_frame
from app.web.sessions import known_owner
from app.web.steady_socket import LINGER_S, make_steady

logger = logging.getLogger(__name__)

MAX_FRAME_BYTES = 4 * 2**20
HEARTBEAT_S = 20.0
LOADING_LOOK_S = 0.5
FRAMES_AT_ONCE = 200
FRAMES_WAITING = 20  # that came in and were not taken yet: then no more are read
TRY_AGAIN_LATER, SERVICE_RESTART = 1013, 1012
MOST_OPEN = 224  # each holds one of the server's 256 threads: the others stay for pages, and for whoever watches the server

sock = Sock()


def prepare_socket() -> None:
    """Before the request is handled, and after its origin was checked."""
    if request.headers.get("Upgrade", "").lower() == "websocket":
        if current_app.extensions["glasschat"].replies.hub.num_connected >= MOST_OPEN:
            abort(503, sentence("So many pages are open already that no other can be served. Please try again in a moment."))
        make_steady(request.environ)


@sock.route("/ws")
def listen(ws) -> None:
    parts = current_app.extensions["glasschat"]
    owner = known_owner()
    # A program that is no browser may have no cookie: its chats live as long as its socket.
    listener = Listener(ws, parts, owner or SOCKET_OWNER + secrets.token_urlsafe(16), url_for("pages.index"))
    try:
        listener.run()
    finally:
        listener.end()
        if owner is None and not listener.caller.outbox.closed:  # closed: the server ends, and there is no store
            with suppress(CannotStoreError):  # the next start deletes them
                parts.forget_everything(listener.caller.owner)


class Listener:
    """One open socket."""

    def __init__(self, ws, parts, owner: str, root: str):
        self._ws, self._replies, self._races = ws, parts.replies, parts.races
        self._outbox = Outbox(owner, wake=ws.event.set, lists_chats="list" in request.args)
        self.caller = Caller(owner, self._outbox, root)
        self._pinged_at = time.monotonic()
        self._engine_state = "ready"
        self._wishes = {"open": self._open, "send": self._send, "stop": self._stop, "regenerate": self._regenerate,
                        "continue": self._continue, "edit": self._edit, "pick": self._pick, "rename": self._rename,
                        "delete": self._delete, "race": self._race, "race_open": self._race_open,
                        "race_stop": self._race_stop, "ping": self._ping}
        ws.sock.is_busy = lambda: len(ws.input_buffer) >= FRAMES_WAITING
        self._replies.hub.connect(self._outbox)

    def run(self) -> None:
        """Until the other side is gone."""
        try:
            while self._goes_on:
                self._tell_engine_state()
                self._take_frames()
                self._send_events()
                if not self._keep_alive():
                    return
                if self._goes_on:  # the library's `receive` may have taken the wake-up that told of an end
                    self._ws.event.wait(LOADING_LOOK_S if self._engine_state == "loading" else HEARTBEAT_S)
                    self._ws.event.clear()
        except (ConnectionClosed, OSError):
            pass

    @property
    def _goes_on(self) -> bool:
        return self._ws.connected and not self._outbox.closed and not self._outbox.overflowed

    def end(self) -> None:
        self._replies.hub.disconnect(self._outbox)
        self._races.leave(self._outbox)
        try:
            if self._ws.connected:
                self._send_events()
                self._ws.close(TRY_AGAIN_LATER if self._outbox.overflowed else SERVICE_RESTART)
        except (ConnectionClosed, OSError):
            pass
        self._ws.thread.join(LINGER_S)  # it may still be telling the other side about the end
        self._ws.sock.abort()

    # --- out

    def _send_events(self) -> None:
        with self._ws.sock.together():
            for _ in range(FRAMES_AT_ONCE):
                frame = self._outbox.take()
                if frame is None:
                    return
                self._ws.send(retold_frame(frame))
        self._ws.event.set()  # there may be more

    def _keep_alive(self) -> bool:
        """Ping now and then; False when the last ping was not answered."""
        now = time.monotonic()
        if now - self._pinged_at >= HEARTBEAT_S:
            if not self._ws.pong_received:
                return False
            self._ws.pong_received = False
            self._pinged_at = now
            self._ws.sock.send(self._ws.ws.send(Ping()))
        return True

    def _tell_engine_state(self) -> None:
        """While the model is loaded there may be no conversation yet that could tell."""
        snapshot = self._replies.worker.snapshot()
        if snapshot.state in (self._engine_state, "stopped"):
            return
        self._engine_state = snapshot.state
        if snapshot.state == "ready" and self._hears_a_reply():
            return  # a question that waited for the model: its own states say more
        shown = "idle" if snapshot.state == "ready" else snapshot.state
        self._tell({"type": "state", "state": shown, "text": snapshot.failure})

    def _hears_a_reply(self) -> bool:
        return any(self._replies.publisher.live_in(channel.conversation) for channel in list(self._outbox.channels))

    def _tell(self, event: dict) -> None:
        self._outbox.put(to_json(event))

    def _tell_error(self, frame: str | bytes, code: str, text: str, **figures) -> None:
        self._tell({**figures, "type": "error", "code": code, "text": text, "request": request_of(frame)})

    # --- in

    def _take_frames(self) -> None:
        while (frame := self._ws.receive(timeout=0)) is not None:
            self._take(frame)
            self._send_events()

    def _take(self, frame: str | bytes) -> None:
        try:
            wish = read_frame(frame)
            self._wishes[wish.pop("type")](**wish)
        except ChatError as error:
            if isinstance(error, CannotStoreError):
                logger.warning("a wish was refused: %s", error.reason)
            self._tell_error(frame, error.code, error_text(error), **error.figures)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException:  # a fault inside of a library's Rust code is no Exception
            logger.exception("a wish could not be fulfilled")
            self._tell_error(frame, "internal", translated("The server made a mistake, which is written in its log."))

    def _open(self, conversation, after):
        self._replies.chats.open(self.caller, conversation, after)

    def _send(self, text, conversation, request, base, settings):
        self._replies.send(self.caller, conversation, text, request, base, settings)

    def _stop(self, conversation, message):
        self._replies.stop(self.caller, conversation, message)

    def _regenerate(self, conversation, message, request, settings):
        self._replies.regenerate(self.caller, conversation, message, settings, request)

    def _continue(self, conversation, message, request, settings):
        self._replies.go_on(self.caller, conversation, message, settings, request)

    def _edit(self, conversation, message, text, request, base, settings):
        self._replies.edit(self.caller, conversation, message, text, settings, request, base)

    def _pick(self, conversation, message, request):
        self._replies.chats.pick(self.caller, conversation, message)

    def _rename(self, conversation, title, request):
        self._replies.chats.rename(self.caller, conversation, title)

    def _delete(self, conversation, request):
        self._replies.chats.delete(self.caller, conversation)

    def _race(self, text, max_tokens, seed, temperature, request):
        self._races.start(self.caller, text, max_tokens, seed, temperature, request)

    def _race_open(self, race):
        self._races.open(self.caller, race)

    def _race_stop(self, race):
        self._races.stop(self.caller, race)

    def _ping(self):
        self._tell({"type": "pong"})
