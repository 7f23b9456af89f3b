"""A disk that takes nothing is named, and costs nobody what was stored or remembered (T14)."""

import json
import logging

import pytest

from tests.full_disk import LONG, full_disk, read_only_disk
from tests.scripted import ScriptedModel
from tests.web.table import DrawingModel, Table
from tests.web.talk import Browser, wait_until


def rows(server):
    return dict(server.worker.snapshot().cached_tokens)


def told_in(caplog):
    return [record for record in caplog.records if record.name.startswith("app") and record.levelno >= logging.WARNING]


def test_a_question_that_finds_no_room_is_refused_with_a_sentence_and_a_line_in_the_log(server, browser, caplog):
    socket = browser.socket()
    with full_disk(server.replies.store):
        socket.send(LONG)
        error = socket.until("error")
    assert error["code"] == "disk_full" and error["text"].startswith("The disk is full: nothing was changed.")
    assert [record.exc_info for record in told_in(caplog)] == [None]
    assert socket.ask(LONG)["reason"] == "stop"


def test_what_cannot_be_written_for_another_reason_says_so_in_the_readers_language(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    with read_only_disk(server.replies.store):
        for wish in ({"type": "rename", "title": "new"}, {"type": "delete"}, {"type": "send", "text": "more"}):
            socket.say(**wish, conversation=socket.conversation)
            error = socket.until("error")
            assert error["code"] == "cannot_store" and error["text"].startswith("The chats cannot be written")
        chinese = browser.socket(**{"Accept-Language": "zh-CN"})
        chinese.say("rename", conversation=socket.conversation, title="new")
        assert chinese.until("error")["text"].startswith("无法写入对话")
    assert browser.page(socket.conversation)["conversation"]["title"] == "hi"


def test_a_file_that_finds_no_room_is_refused_with_507_and_a_line_in_the_log(server, browser, caplog):
    socket = browser.socket()
    socket.ask(LONG)
    document = browser.get(f"/c/{socket.conversation}/export").json
    with full_disk(server.replies.store):
        answer = browser.request("POST", "/api/import", document)
    assert answer.status == 507 and answer.json["code"] == "disk_full"
    assert [record.exc_info for record in told_in(caplog)] == [None]
    assert len(server.replies.store.conversations(server.replies.store.conversation(socket.conversation).owner)) == 1
    with read_only_disk(server.replies.store):
        assert browser.request("POST", "/api/import", document).status == 503
        assert browser.request("POST", "/api/forget").status == 503
    assert browser.request("POST", "/api/import", document).status == 201


def test_what_is_refused_for_want_of_room_forgets_nothing_that_was_remembered(serve):
    """One row: a question of another chat would take it."""
    server = serve(rows=1)
    socket, other = Browser(server).socket(), Browser(server).socket()
    socket.ask("hi")
    before = rows(server)
    with read_only_disk(server.replies.store):
        socket.say("delete", conversation=socket.conversation)
        assert socket.until("error")["code"] == "cannot_store"
        other.send("me too")
        assert other.until("error")["code"] == "cannot_store"
        socket.send("more", socket.conversation)
        assert socket.until("error")["code"] == "cannot_store"
    assert rows(server) == before and list(before) == [socket.conversation]
    more = socket.ask("more", socket.conversation)
    assert more["stats"]["reused_tokens"] == before[socket.conversation]
    assert server.worker._unfinished == 0  # the places that were held for them are free


@pytest.mark.parametrize("cause", ["queue", "disk"])
def test_a_refused_question_leaves_the_answers_to_choose_from_their_rows(table, monkeypatch, cause):
    answers = table.ask()
    before = table.rows()
    assert len(before) == 3
    with monkeypatch.context() as patched:
        if cause == "queue":
            patched.setattr(table.server.worker, "_max_queue", -table.server.worker._rows)
            table.socket.send("more", table.socket.conversation)
            assert table.socket.until("error")["code"] == "queue_full"
        else:
            with read_only_disk(table.store):
                table.socket.send("more", table.socket.conversation)
                assert table.socket.until("error")["code"] == "cannot_store"
    assert table.rows() == before
    table.pick(answers[2])
    table.settings["n"] = 1
    table.ask("more")
    assert table.socket.of("done")[-1]["stats"]["reused_tokens"] == before[f"{table.socket.conversation}/{answers[2]}"]


def test_answers_to_choose_from_make_room_for_those_that_follow_and_no_other_chat_does(serve):
    server = serve(DrawingModel("-one", "-two"), rows=4)
    other = Browser(server).socket()
    other.ask("hi")
    table = Table(server)
    table.ask()
    assert len(table.rows()) == 4
    table.ask("more")
    assert other.conversation in table.rows() and other.of("event")[-1]["code"] != "evicted"


def test_an_answer_that_cannot_be_stored_says_so_once_and_ends_as_soon_as_it_can(serve, caplog):
    model = ScriptedModel("x" * 1200)
    server = serve(model)
    browser = Browser(server)
    socket, other = browser.socket(), Browser(server).socket()
    model.hold(3)
    socket.send("hi", settings={"max_tokens": 1300})
    reply = socket.until("message", role="assistant")["id"]
    wait_until(model.holding.is_set)
    with full_disk(server.replies.store):
        model.let_go()
        while not (told := socket.until("state", message=reply)).get("text"):
            pass
        assert told["state"] == "writing" and told["text"].startswith("The disk is full, so this answer cannot be stored.")
        socket.say("stop", conversation=socket.conversation, message=reply)
        socket.send("more", socket.conversation)  # not kept waiting for the end of what was stopped
        assert socket.until("error")["code"] == "disk_full"
        assert browser.page(socket.conversation)["state"] == "writing"
        assert "The disk is full, so this answer" in browser.get(f"/c/{socket.conversation}").text
        chinese = browser.get(f"/c/{socket.conversation}", headers={"Accept-Language": "zh-CN"}).text
        assert "磁盘已满，这个回答暂时无法保存。" in chinese
        tried_at = server.replies.publisher._stored_at
        wait_until(lambda: server.replies.publisher._stored_at > tried_at)  # and again, half a second on
        assert [record.exc_info for record in told_in(caplog) if "cannot be stored" in record.message] == [None]
        assert not any(record.exc_info for record in told_in(caplog))
    assert socket.until("done")["reason"] == "stop"
    assert socket.until("state")["state"] == "idle"
    assert [event for event in socket.of("state") if event.get("text")] == [told]
    assert server.replies.store.messages(socket.conversation)[1].text == "x" * 1200
    assert other.ask("hi", settings={"max_tokens": 5})["reason"] == "length"


def test_what_happens_to_the_memory_is_told_though_it_cannot_be_stored(server, browser):
    socket = browser.socket()
    socket.ask("hi")
    with read_only_disk(server.replies.store):
        server.replies.publisher._teller.system_changed(server.replies.hub.channel(socket.conversation))
        assert socket.until("event", code="system_changed")
    assert socket.ask("more", socket.conversation)["reason"] == "stop"
    assert "system_changed" not in [event.code for event in server.replies.store.events(socket.conversation)]


def test_the_end_of_a_reply_is_told_to_those_who_come_while_it_cannot_be_stored(serve):
    server = serve(ScriptedModel("Hello."))
    browser = Browser(server)
    socket, late = browser.socket(), browser.socket()
    server.model.hold(2)
    socket.send("hi")
    wait_until(server.model.holding.is_set)
    wait_until(lambda: socket.next()["type"] == "token")
    with read_only_disk(server.replies.store):
        server.model.let_go()
        while not socket.until("state").get("text"):
            pass
        late.say("open", conversation=socket.conversation, after=None)
        assert late.until("snapshot")["text"].startswith("The chats cannot be written, so this answer")
    assert late.until("done")["reason"] == "stop"
