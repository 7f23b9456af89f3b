"""When Enter sends, and when it does not."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE

ENTER = """(area, extra) => area.dispatchEvent(
    new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true, ...extra}))"""

of_an_input_method = pytest.mark.parametrize("extra", [{"isComposing": True}, {"keyCode": 229}],
                                             ids=["while composing", "safari after composing"])


@of_an_input_method
def test_the_enter_of_an_input_method_sends_nothing(serve, visit, extra):
    chat = visit(serve())
    sent = chat.frames("send")
    chat.composer.fill("にほん")
    chat.composer.evaluate(ENTER, extra)
    assert chat.composer.input_value() == "にほん"
    chat.ask_and_wait("日本")
    assert [frame["text"] for frame in sent] == ["日本"]


@of_an_input_method
def test_the_enter_of_an_input_method_starts_no_race(open_race, extra):
    race = open_race()
    race.prompt.fill("にほん")
    race.prompt.evaluate(ENTER, extra)
    expect(race.narrator).to_have_attribute("data-state", "idle")
    race.prompt.evaluate(ENTER, {})
    race.wait_for_end()


def test_enter_sends_once_and_shift_enter_breaks_the_line(serve, visit):
    chat = visit(serve())
    sent = chat.frames("send")
    chat.composer.press_sequentially("one")
    chat.composer.press("Shift+Enter")
    chat.composer.press_sequentially("two")
    assert chat.messages.count() == 0
    chat.composer.press("Enter")
    chat.wait_for_end()
    assert [frame["text"] for frame in sent] == ["one\ntwo"]
    assert chat.composer.input_value() == ""


def test_enter_with_nothing_but_space_sends_nothing(serve, visit):
    chat = visit(serve())
    sent = chat.frames("send")
    chat.composer.fill("  \n ")
    chat.composer.press("Enter")
    chat.ask_and_wait("text")
    assert [frame["text"] for frame in sent] == ["text"]


def test_on_a_touch_screen_enter_breaks_the_line_and_the_button_sends(serve, visit):
    chat = visit(serve(), **PHONE)
    chat.composer.tap()
    chat.composer.press_sequentially("one")
    chat.composer.press("Enter")
    chat.composer.press_sequentially("two")
    assert chat.composer.input_value() == "one\ntwo"
    assert chat.messages.count() == 0
    chat.send.tap()
    chat.wait_for_end()
    assert chat.questions.first.locator(".message__text").inner_text() == "one\ntwo"


def test_enter_while_an_answer_is_written_keeps_the_text(serve, visit):
    server = serve()
    server.model.hold(3)
    chat = visit(server)
    chat.ask("First")
    chat.composer.fill("Second")
    chat.composer.press("Enter")
    expect(chat.notice).to_be_visible()
    assert chat.composer.input_value() == "Second"
    server.model.let_go()
    chat.wait_for_end()
    assert chat.questions.count() == 1
    assert chat.composer.input_value() == "Second"
