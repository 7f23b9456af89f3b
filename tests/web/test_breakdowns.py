"""A full disk or a dead engine is told, and loses no reply that could be kept (T14)."""

import sqlite3
import threading

import pytest

from tests.scripted import ScriptedModel
from tests.web.talk import Browser, wait_until


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
