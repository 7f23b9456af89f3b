"""A disk that takes nothing is named, and costs nobody what was stored or remembered (T14)."""

import json
import logging

import pytest

from tests.full_disk import LONG, full_disk, read_only_disk
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
