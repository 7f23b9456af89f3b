"""What is waited for has a name, and each name is another."""

import threading
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from app.models import ModelError
from tests.browser.conftest import PHONE
from tests.browser.test_access import assert_accessible
from tests.full_disk import full_disk, read_only_disk
from tests.scripted import ScriptedModel


class SlowReader(ScriptedModel):
    """Waits before it reads a prompt, while it is told to."""

    def __init__(self, *replies):
        super().__init__(*replies)
        self._may_read = threading.Event()
        self._may_read.set()

    @contextmanager
    def unread(self):
        self._may_read.clear()
        try:
            yield
        finally:
            self._may_read.set()

    def forward(self, ids, kv_cache=None):
        if ids.shape[1] > 1:
            self._may_read.wait(300)
        return super().forward(ids, kv_cache)


def test_loading_queued_reading_writing_calculating_and_failed_are_six_different_words(serve, visit):
    model = SlowReader("word " * 20, "Well: <|python_start|>12*3<|python_end|>.")
    is_there = threading.Event()

    def load():
        assert is_there.wait(300)
        return model

    server = serve(model, load=load, rows=1)
    words = {}

    def note(chat, state):
        expect(chat.state).to_have_attribute("data-state", state)
        words[state] = chat.state.inner_text().split()[0]

    chat = visit(server)
    note(chat, "loading")
    is_there.set()
    expect(chat.state).to_have_text("Ready")

    model.hold(20)
    with model.unread():
        chat.ask("A question that is long enough to be read in several pieces. " * 20)
        note(chat, "reading")
        expect(chat.state).to_contain_text(" of ")
    note(chat, "writing")

    assert model.holding.wait(60)
    other = visit(server)
    other.ask("And I?")
    note(other, "queued")
    other.stop_while_held(wishes=2)  # the question and its end
    model.let_go()
    expect(other.answers.last).to_have_attribute("data-state", "cancelled")

    chat.wait_for_end()
    model.hold(len("Well: ") + 4)
    chat.ask("Calculate")
    note(chat, "calculating")
    model.let_go()
    chat.wait_for_end()

    note(visit(serve(load=refuse)), "failed")
    assert len(set(words.values())) == 6, words


def refuse():
    raise ModelError("This file is no model.")


def test_until_the_scripts_are_there_the_page_does_not_say_that_it_is_ready(serve, visit):
    server = serve()
    chat = visit(server)
    expect(chat.state).to_have_text("Ready")
    chat.page.route("**/js/chat.js", lambda route: route.abort())
    chat.reload()
    expect(chat.send).to_be_disabled()
    expect(chat.state).to_have_text("Starting…")


def test_a_question_asked_while_the_model_is_loaded_is_answered_when_it_is_there(serve, visit):
    is_there = threading.Event()

    def load():
        assert is_there.wait(300)
        return ScriptedModel("Here I am.")

    chat = visit(serve(load=load))
    sent = chat.frames("send")
    expect(chat.state).to_have_text("Loading the model…")
    chat.composer.fill("Are you there?")
    chat.send.click()
    chat.wait_until(lambda: sent)
    is_there.set()
    expect(chat.answers).to_have_count(1)
    assert chat.wait_for_end() == "Here I am."
    expect(chat.state).to_have_text("Ready")
    assert chat.composer.input_value() == ""
    assert chat.number("cached-tokens") > 0


def test_a_failed_model_says_why(serve, visit):
    chat = visit(serve(load=refuse))
    expect(chat.state).to_contain_text("This file is no model.")


@pytest.mark.parametrize("screen", [{}, PHONE])
def test_an_answer_that_cannot_be_stored_says_why_until_it_can(serve, visit, screen):
    server = serve(ScriptedModel("word " * 280))
    chat = visit(server, **screen)
    server.model.hold(5)
    chat.ask("Go on.")
    chat.wait_until(server.model.holding.is_set)
    why = "The disk is full, so this answer cannot be stored."
    with full_disk(server.parts.store):
        server.model.let_go()
        expect(chat.state).to_contain_text(why)
        expect(chat.announcer).to_contain_text(why)
        assert chat.state.evaluate("each => each.scrollWidth <= each.clientWidth"), "nothing of it is cut"
        chat.reload()
        expect(chat.state).to_contain_text(why)
        assert_accessible(chat)
    chat.wait_for_end()
    expect(chat.state).to_have_text("Ready")


def test_what_a_disk_refuses_is_told_and_what_was_typed_stays(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("Hello")
    with read_only_disk(chat.server.parts.store):
        chat.composer.fill("More")
        chat.send.click()
        expect(chat.notice).to_contain_text("The chats cannot be written: nothing was changed.")
        expect(chat.composer).to_have_value("More")
        chat.notice.get_by_role("button").click()
        chat.forget.click()
        chat.forget_yes.click()
        expect(chat.notice).to_be_visible()
        expect(chat.notice).to_contain_text("The chats cannot be written: nothing was changed.")
    chat.send.click()
    expect(chat.answers).to_have_count(2)
