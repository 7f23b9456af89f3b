"""A port for a server of a test."""

import secrets
import socket

FROM, TO = 20_000, 32_000  # below those that a system gives to whoever asks for any: a connection of another test may have those


def free_port() -> int:
    """One that nobody uses, and that is still free when a server is started there a while later, or started again."""
    while True:
        port = FROM + secrets.randbelow(TO - FROM)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
