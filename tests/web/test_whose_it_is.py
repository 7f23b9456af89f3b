"""A chat is its owner's alone, and gone when they want it (T30)."""

import json

import pytest

from tests.scripted import ScriptedModel
from tests.web.talk import Browser, wait_until


def test_nobody_sees_or_changes_what_is_not_theirs(serve):
    """T30"""
    model = ScriptedModel("a secret that is long enough to be stopped")
    server = serve(model)
    mine, yours = Browser(server), Browser(server)
    owner = mine.socket()
    model.hold(5)
    owner.send("hi")
    reply = owner.until("message", role="assistant")["id"]
    wait_until(model.holding.is_set)
    intruder = yours.socket()
    for type in ("open", "send", "stop", "regenerate", "continue", "edit", "rename", "delete"):
        intruder.say(type, conversation=owner.conversation, message=reply, text="x", title="x", request=type)
        error = intruder.until("error")
        assert (error["code"], error["request"]) == ("not_found", type)
    assert yours.get(f"/c/{owner.conversation}").status == 404
    assert yours.get(f"/api/cache?conversation={owner.conversation}").status == 404
    assert yours.request("POST", "/api/count", {"conversation": owner.conversation, "text": "x"}).status == 404
    assert owner.conversation not in yours.get("/").text
    model.let_go()
    assert owner.until("done")["reason"] == "stop"
    assert "secret" not in json.dumps(intruder.heard)


def test_forgetting_everything_leaves_nothing_for_the_next_visitor(serve):
    server = serve(ScriptedModel("Hello."))
    browser, other = Browser(server), Browser(server)
    socket, kept = browser.socket(), other.socket()
    socket.ask("hi")
    kept.ask("hi")
    cookie = browser.cookie
    assert browser.request("POST", "/api/forget").status == 204
    assert browser.cookie != cookie
    with pytest.raises(Exception):
        while True:
            socket.next(timeout_s=5)
    for known in (browser.cookie, cookie):
        browser.cookie = known
        assert browser.get(f"/c/{socket.conversation}").status == 404
        assert socket.conversation not in browser.get("/").text
    wait_until(lambda: list(server.worker.snapshot().cached_tokens) == [kept.conversation])
    assert other.get(f"/c/{kept.conversation}").status == 200
