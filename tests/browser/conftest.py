"""A real Chromium, and the real application in a real server, with whatever model a test wants to hear.

`serve(model)` starts a server; `visit(server)` opens a page of it and watches it: an error in its console, a
script that fails or a request that leaves the server's own address fails the test.

What a browser keeps of a server is files that never change, so tests that ask for the same kind of browser session share
them: the servers of a run have one address, one after the other, and a session is emptied and used again (`Sessions`).
"""

from __future__ import annotations

import json
import logging
import socket
import threading
import weakref
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from werkzeug.serving import make_server

from app import create_app
from app.settings import Settings
from tests.browser.chat_page import ChatPage
from tests.browser.race_page import STORY, RacePage
from tests.find_browser import browser_path
from tests.free_port import free_port
from tests.scripted import ByteTokenizer, ScriptedModel

CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                  "--disable-background-networking", "--disable-component-update", "--disable-sync",
                  "--process-per-site"]  # with a page that stays open, the next one needs no new process: see Sessions
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
PATIENCE_MS = 60_000  # a busy machine is slow, not wrong

logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a line a request says nothing about a failure
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="session")
def browser() -> Browser:
    path = browser_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


class Sessions:
    """Browser sessions: a few stay open for the next test that wants one with the same options.

    A session that is taken is as good as new: no other page, no cookies, nothing stored. It has kept only the static files,
    whose addresses change with them, and one page of the server (a `keeper`): by it the process stays that shows such pages.
    """

    MOST_KEPT = 3

    def __init__(self, browser: Browser):
        self._browser = browser
        self._kept: list[tuple[str, BrowserContext]] = []  # each with what it was made for

    def take(self, url: str, options: dict) -> BrowserContext:
        for index, (kind, context) in enumerate(self._kept):
            if kind == _kind(url, options):
                del self._kept[index]
                context.clear_cookies()
                context.pages[0].evaluate("localStorage.clear()")
                return context
        context = self._browser.new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        context.new_page().goto(url + "/healthz")
        return context

    def give_back(self, url: str, options: dict, context: BrowserContext) -> None:
        for page in context.pages[1:]:
            page.close()
        context.set_offline(False)
        self._kept.append((_kind(url, options), context))
        if len(self._kept) > self.MOST_KEPT:
            self._kept.pop(0)[1].close()


def _kind(url: str, options: dict) -> str:
    return json.dumps([url, options], sort_keys=True)


@pytest.fixture(scope="session")
def sessions(browser) -> Sessions:
    return Sessions(browser)


class Connections:
    """Those of one server. A browser opens some before it has anything to ask, and asks through them later: of a server
    that has been stopped by then, although another one listens at its address."""

    def __init__(self, server):
        self._open, self._asked, self._take = weakref.WeakSet(), weakref.WeakSet(), server.process_request
        self._answer = server.app
        server.process_request, server.app = self._note, self._note_asked

    def _note(self, connection, address) -> None:
        self._open.add(connection)
        self._take(connection, address)

    def _note_asked(self, environ, start_response):
        self._asked.add(environ["werkzeug.socket"])
        return self._answer(environ, start_response)

    def close_unasked(self) -> None:
        for connection in set(self._open) - set(self._asked):
            with suppress(OSError):  # the other side has closed it
                connection.shutdown(socket.SHUT_RDWR)


class RunningServer:
    """The application, served by threads of this process. `restart` keeps the address and what is stored."""

    usual_port = free_port()  # of one server after the other, where it is free

    def __init__(self, data, model, tokenizer, settings: dict):
        self.model, self._tokenizer = model, tokenizer
        self._settings = Settings(data=data, **{"max_tokens": 1500, **settings})
        self._port = 0
        self.start()

    def start(self) -> None:
        given = {} if self._tokenizer is None else {"model": self.model, "tokenizer": self._tokenizer}
        self.app = create_app(self._settings, **given)
        self._server = self._listen()
        self._connections = Connections(self._server)
        self._port = self._server.server_port
        self.url = f"http://127.0.0.1:{self._port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def _listen(self):
        if not self._port:
            with suppress(SystemExit):  # so Werkzeug says that it is taken
                return make_server("127.0.0.1", self.usual_port, self.app, threaded=True)
        return make_server("127.0.0.1", self._port or free_port(), self.app, threaded=True)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._connections.close_unasked()
        self.parts.worker._commands.put(None)  # before a model that waits is let go: it writes no token more
        self.model.let_go()
        self.parts.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def parts(self):
        return self.app.extensions["glasschat"]

    @property
    def steps(self) -> int:
        return self.parts.worker.snapshot().steps


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """`serve(model, **settings)` -> RunningServer. Without a model: one that says hello.

    `load`, a function, makes the server load its model with it, as it would load a real one.
    """
    with ExitStack() as at_the_end:
        def start(model=None, load=None, **settings) -> RunningServer:
            model = model or ScriptedModel("Hello there.")
            if load is not None:
                monkeypatch.setattr("app._load", lambda settings: (load(), ByteTokenizer()))
            server = RunningServer(tmp_path / "data", model, None if load else ByteTokenizer(), settings)
            at_the_end.callback(server.stop)
            at_the_end.callback(model.let_go)
            return server
        yield start


@pytest.fixture
def visit(sessions):
    """`visit(server, path="/", **context)` -> ChatPage, in a browser session of its own unless `like` names one."""
    problems: list[str] = []
    with ExitStack() as at_the_end:
        def open_page(server, path="/", like: ChatPage | None = None, **context_options) -> ChatPage:
            if like is None:
                context_options.setdefault("viewport", DESKTOP)
                context = sessions.take(server.url, context_options)
                at_the_end.callback(sessions.give_back, server.url, context_options, context)
            else:
                context = like.page.context
            page = context.new_page()
            _watch(page, server.url, problems)
            page.goto(server.url + path)
            return ChatPage(page, server)
        yield open_page
    assert problems == []


@pytest.fixture
def open_race(serve, visit):
    """`open_race(said or model, server)` -> RacePage, which shows the end of a race at once: see `reduced_motion`."""
    def go(said=STORY * 3, server=None, **context) -> RacePage:
        context.setdefault("reduced_motion", "reduce")
        model = said if isinstance(said, ScriptedModel) else ScriptedModel(said)
        return RacePage(visit(server or serve(model), "/race", **context))
    return go


def _watch(page: Page, own_url: str, problems: list[str]) -> None:
    own_host = urlsplit(own_url).netloc

    def check_request(request) -> None:
        if urlsplit(request.url).scheme in ("http", "https") and urlsplit(request.url).netloc != own_host:
            problems.append(f"a request left the page's host: {request.url}")

    def check_console(message) -> None:
        # a page that was asked for and is not there, or a server that a test has stopped, are no faults of the page
        is_about_the_line = message.text.startswith(("Failed to load resource", "WebSocket connection to"))
        if message.type == "error" and not is_about_the_line:
            problems.append(f"the console says: {message.text}")

    page.on("request", check_request)
    page.on("console", check_console)
    page.on("pageerror", lambda error: problems.append(f"a script failed: {error}"))
    page.on("dialog", lambda dialog: (problems.append(f"a dialog opened: {dialog.message}"), dialog.dismiss()))
