"""How gunicorn runs the app: used by `serve`, and by the Procfile through `--config`.

One worker, since there is one engine; many threads, since each open socket holds one. No preload: the
engine starts in the worker, after the fork, which no thread would outlive.
"""

from __future__ import annotations

import logging
import os
import signal
import sys

from app.commands import WRONG_VALUE, say
from app.settings import Settings, SettingsError

workers = 1
worker_class = "gthread"
threads = 256
timeout = 120
graceful_timeout = 10  # how long the worker may take to stop, before it is killed
control_socket_disable = True

WAIT_FOR_REQUESTS_S = 1  # of which this long for requests to be answered: open sockets never are


def on_starting(arbiter) -> None:
    """Refuse a wrong environment variable before anything starts, in one line."""
    try:
        Settings.from_env()
    except SettingsError as error:
        say(f"glasschat: {error}")
        sys.exit(WRONG_VALUE)


def post_worker_init(worker) -> None:
    worker.cfg.set("graceful_timeout", WAIT_FOR_REQUESTS_S)

    def stop_at_once(number, frame) -> None:
        """In place of gunicorn's own, which closes its pool of threads within the handler: that waits for ever where the
        signal met the main thread while it gave the pool a connection."""
        worker.cfg.set("graceful_timeout", 0)
        worker.handle_exit(number, frame)

    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, stop_at_once)


def worker_exit(arbiter, worker) -> None:
    """The last thing a worker does: end the engine and close the database.

    Then it ends at once, since Python would wait in vain for the threads that open sockets hold.
    """
    if getattr(worker, "wsgi", None) is not None:
        worker.wsgi.extensions["glasschat"].close()
        logging.shutdown()
        os._exit(0)
