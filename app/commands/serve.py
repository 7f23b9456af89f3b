"""`python -m app serve`: the server, which is gunicorn (see `gunicorn_settings`).

Options, model, folder and port are looked at before anything starts, so that a mistake gets its sentence
at once. The application is made in the worker, after the fork: this process must never import torch.
"""

from __future__ import annotations

import argparse
import errno
import ipaddress
import logging
import mmap
import os
import signal
import socket
import sys
import threading

from gunicorn.app.base import BaseApplication

from app.commands import FAILED, WRONG_VALUE, CommandError, gunicorn_settings, say
from app.commands.fetch import fetch_default_model
from app.commands.loading import check_model_path, quiet_about_sentences
from app.settings import Settings, SettingsError, add_options

def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    settings = Settings.from_args(args)
    check_model_path(settings)
    check_data_folder(settings)
    check_port(settings.host, settings.port)
    if settings.model == "default":
        fetch_default_model()
    if not is_loopback(settings.host):
        say(f"Warning: serving on {settings.host} lets every machine that reaches this one open the chat and use its "
            "processor. There is no password, and what is typed crosses the network unencrypted. "
            "With --host 127.0.0.1 only this machine gets in.")
    return Server(settings).serve()


# --- before the start

def check_data_folder(settings: Settings) -> None:
    try:
        settings.data.mkdir(parents=True, exist_ok=True)
    except OSError:
        raise SettingsError("--data", settings.data, "a folder, or a path where one can be made") from None
    if not os.access(settings.data, os.W_OK | os.X_OK):
        raise SettingsError("--data", settings.data, "a folder that may be written to")


def check_port(host: str, port: int) -> None:
    """Refuse an address that cannot be served on, by trying."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
            trial.listen()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            other = port + 1 if port < 65535 else 8000
            raise CommandError(f"port {port} is taken by another program; stop that one, or choose another port, "
                               f"such as --port {other}") from None
        if error.errno == errno.EACCES:
            raise CommandError(f"port {port} may not be opened by this user; choose one from 1024 up, such as --port 8000") from None
        raise SettingsError("--host", host, f"an address of this machine, such as {Settings.host} or 0.0.0.0") from None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def address_of(settings: Settings) -> str:
    """What to type into a browser on this machine."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}{settings.prefix}/"


# --- the server

class Server(BaseApplication):
    """gunicorn, configured here and not by its own command line or files."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self._failed = mmap.mmap(-1, 1)  # shared with the worker: 1 when it gave up
        super().__init__()

    def load_config(self) -> None:
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        own = {"on_starting": lambda arbiter: None,  # the settings were read already, and not only from the environment
               "post_worker_init": self._worker_started, "bind": f"{host}:{self.settings.port}", "loglevel": "warning"}
        for name, value in {**vars(gunicorn_settings), **own}.items():
            if name in self.cfg.settings:
                self.cfg.set(name, value)

    def load(self):
        from app import create_app
        from app.chat.errors import CannotStoreError, StoreError

        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
        quiet_about_sentences()
        try:
            return create_app(self.settings)
        except (StoreError, CannotStoreError) as error:
            self._give_up(f"glasschat: {error}")
            sys.exit(0)

    def serve(self) -> int:
        """Run until stopped -> exit status."""
        process = os.getpid()
        try:
            self.run()
        except SystemExit as end:
            if os.getpid() != process:  # the end of the worker, which was forked inside run
                raise
            return WRONG_VALUE if self._failed[0] else FAILED if end.code else 0
        return 0

    def _worker_started(self, worker) -> None:
        gunicorn_settings.post_worker_init(worker)
        threading.Thread(target=self._announce, args=(worker.wsgi.extensions["glasschat"],), daemon=True).start()

    def _announce(self, parts) -> None:
        snapshot = parts.worker.wait_ready()
        if snapshot.state == "failed":
            self._give_up(f"glasschat: {snapshot.failure}")
        elif snapshot.context < self.settings.context != Settings.context:
            self._refuse_context(f"at most {snapshot.context} with this model")
        elif snapshot.context < (least := self._least_context(parts.worker.tokenizer)):
            self._refuse_context(f"at least {least} with this model, or no question would fit")
        else:
            print(f"Glasschat is ready: {address_of(self.settings)}  (Ctrl-C stops it)", flush=True)

    def _least_context(self, tokenizer) -> int:
        from app.chat.fitting import least_context
        from app.chat.prompt import PromptBuilder

        return least_context(PromptBuilder(tokenizer), self.settings.max_tokens)

    def _refuse_context(self, allowed: str) -> None:
        self._give_up("glasschat: " + str(SettingsError("--context", self.settings.context, allowed)))

    def _give_up(self, sentence: str) -> None:
        say(sentence)
        self._failed[0] = 1
        os.kill(os.getppid(), signal.SIGTERM)
