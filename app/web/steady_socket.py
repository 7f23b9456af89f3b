"""The network socket under a WebSocket: what is sent is sent whole, in order, and the end is heard.

The WebSocket library sends from two threads (answers to the other side's control frames come from the one
that reads), ignores how much of a frame was sent, reads more than anybody takes, and closes a socket in
which unread data waits, upon which the system throws away the last frame too: nobody would learn why. This
wraps the socket to mend that.
"""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SEND_TIMEOUT_S = 20    # nobody takes anything for so long: the other side is gone
LINGER_S = 2.0         # how long the other side is given to hear the end
LINGER_BYTES = 256 * 2**20
BUSY_LOOK_S = 0.01


class SteadySocket:
    """`is_busy` may be set: while it says so nothing more is read, and the other side has to wait."""

    def __init__(self, raw: socket.socket):
        self._raw = raw
        self.is_busy: Callable[[], bool] = lambda: False
        self._lock = threading.Lock()
        self._corked: list[bytes] | None = None
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_TIMEOUT_S, 0))
        if raw.family in (socket.AF_INET, socket.AF_INET6):
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a token waits for no other

    def send(self, data: bytes) -> int:
        with self._lock:
            if self._corked is not None:
                self._corked.append(data)
            else:
                self._raw.sendall(data)
        return len(data)

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that is sent inside goes out at once, at the end."""
        with self._lock:
            self._corked = []
        try:
            yield
        finally:
            with self._lock:
                data, self._corked = b"".join(self._corked), None
                if data:
                    self._raw.sendall(data)

    def recv(self, size: int) -> bytes:
        while self.is_busy():
            time.sleep(BUSY_LOOK_S)
        return self._raw.recv(size)

    def fileno(self) -> int:
        return self._raw.fileno()

    def close(self) -> None:
        """Say that nothing more comes, and read away what was still on its way, so that the last frame is heard."""
        try:
            self._raw.shutdown(socket.SHUT_WR)
            self._raw.settimeout(LINGER_S)
            until, left = time.monotonic() + LINGER_S, LINGER_BYTES
            while left > 0 and time.monotonic() < until and (data := self._raw.recv(2**16)):
                left -= len(data)
        except OSError:
            pass
        self._raw.close()

    def abort(self) -> None:
        """End it now: whoever waits in `recv` is woken."""
        self.is_busy = lambda: False
        try:
            self._raw.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def make_steady(environ: dict) -> None:
    """Put a steady socket into a WSGI environment, before the WebSocket library takes it from there.

    Compression is declined: it would cost more time than a token on its way through one machine.
    """
    for name in ("werkzeug.socket", "gunicorn.socket"):
        if name in environ:
            environ[name] = SteadySocket(environ[name])
    environ.pop("HTTP_SEC_WEBSOCKET_EXTENSIONS", None)
