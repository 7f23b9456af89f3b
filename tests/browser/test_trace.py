"""The conversation as the model sees it: every token a box, to be read, walked through and copied."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.test_access import assert_accessible
from tests.browser.test_strip import strip_of
from tests.scripted import ByteTokenizer, ScriptedModel

COPIED = "() => navigator.clipboard.readText()"
CLIPBOARD = ["clipboard-read", "clipboard-write"]
SAID = "Zoë:\n\n\t2 <|python_start|>6*7<|python_end|> 👍"


def open_trace(chat):
    chat.open_trace.click()
    expect(chat.trace).to_be_visible()
    expect(chat.trace_token).to_have_count(chat.token.count() + chat.token_waiting.count())


def ids_of(chat) -> list[int]:
    strip = strip_of(chat)
    return [token["id"] for token in strip["tokens"] + strip["waiting"]]


def test_every_token_is_a_box_in_its_order_with_marks_and_white_space_to_be_seen(serve, visit):
    chat = visit(serve(ScriptedModel(SAID)))
    chat.ask_and_wait("a b")
    open_trace(chat)
    texts = chat.trace_token.all_inner_texts()
    assert [text.strip() for text in texts] == [
        "<|bos|>", "<|user_start|>", "a", "·", "b", "<|user_end|>", "<|assistant_start|>",
        "Z", "o", "\\xc3", "\\xab", ":", "⏎", "⏎", "→", "2", "·", "<|python_start|>", "6", "*", "7", "<|python_end|>",
        "<|output_start|>", "4", "2", "<|output_end|>", "·", "\\xf0", "\\x9f", "\\x91", "\\x8d", "<|assistant_end|>"]
    assert chat.page.locator(".trace__message").all_inner_texts() == [
        "Turn 1: the question, and the marks around it", "Turn 1: the answer"]
    expect(chat.trace).to_contain_text("32 tokens, 31 of them remembered")
    expect(chat.trace_token.last).to_have_class(re.compile("is-waiting"))


def test_a_trace_is_copied_as_text_and_as_numbers(serve, visit):
    chat = visit(serve(ScriptedModel(SAID)), permissions=CLIPBOARD)
    chat.ask_and_wait("a b")
    open_trace(chat)
    chat.click_and_hear(chat.trace_copy_text, "Copied")
    assert chat.page.evaluate(COPIED) == ByteTokenizer().decode(ids_of(chat))
    chat.click_and_hear(chat.trace_copy_numbers, "Copied")
    assert chat.page.evaluate(COPIED) == str(ids_of(chat))
    expect(chat.trace_copy_numbers).to_have_text("Copy as numbers")


def test_a_trace_is_copied_without_the_clipboard_of_secure_pages(serve, visit):
    chat = visit(serve(), permissions=CLIPBOARD)
    chat.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    chat.reload()
    chat.ask_and_wait("a b")
    open_trace(chat)
    chat.click_and_hear(chat.trace_copy_numbers, "Copied")


def test_arrow_keys_walk_through_the_boxes_and_tell_of_each(serve, visit):
    chat = visit(serve(ScriptedModel("Two\nlines.")))
    chat.ask_and_wait("a b")
    open_trace(chat)
    press, boxes = chat.page.keyboard.press, chat.trace_token
    boxes.first.focus()
    for key, at in (("ArrowRight", 1), ("ArrowLeft", 0), ("End", 17), ("ArrowUp", 10), ("ArrowLeft", 9), ("ArrowLeft", 8),
                    ("ArrowLeft", 7), ("ArrowDown", 11), ("Home", 0)):
        press(key)
        expect(boxes.nth(at)).to_be_focused()
        expect(chat.page.locator("#trace-card")).to_contain_text(f"position {at}")
        expect(boxes.nth(at)).to_have_accessible_name(re.compile(f", position {at}, (Read now|Written by the model|Chosen)"))
    press("Shift+Tab")
    press("Tab")
    expect(boxes.first).to_be_focused()  # one stop for Tab, not one for each token
    press("Escape")
    expect(chat.trace).to_be_hidden()
    expect(chat.open_trace).to_be_focused()


def test_the_same_is_there_as_a_table(serve, visit):
    chat = visit(serve(ScriptedModel("Yes.")))
    chat.ask_and_wait("a b")
    open_trace(chat)
    chat.trace_table.click()
    lines = chat.trace.locator("tbody[data-slot=lines] tr")
    expect(lines).to_have_count(len(ids_of(chat)))
    assert lines.nth(7).locator("th, td").all_inner_texts() == ["7", "Y", "89", "1", "Written by the model", "100 %"]
    assert lines.nth(3).locator("th, td").all_inner_texts() == ["3", "·", "32", "1", "Read now", ""]
    chat.trace_boxes.click()
    expect(chat.trace_token).to_have_count(len(ids_of(chat)))


def test_an_open_trace_grows_with_the_answer(serve, visit):
    server = serve(ScriptedModel("word " * 6))
    chat = visit(server)
    server.model.hold(5)
    chat.ask("Slowly")
    expect(chat.page.locator("[data-testid=token][data-origin=written]")).to_have_count(4)
    expect(chat.token_waiting).to_have_count(1)
    open_trace(chat)
    before = chat.trace_token.count()
    server.model.let_go()
    expect(chat.trace_token).to_have_count(before + 26)  # what was left of it, and its end
    chat.wait_until_ready()
    assert len(ids_of(chat)) == before + 26


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_in_the_trace(serve, visit, scheme, screen):
    chat = visit(serve(ScriptedModel(SAID)), color_scheme=scheme, reduced_motion="reduce", **screen)
    chat.ask_and_wait("Look")
    if screen:
        chat.panel_line.click()
    open_trace(chat)
    chat.trace_token.nth(12).click()
    assert_accessible(chat)
    assert chat.trace.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    chat.trace_table.click()
    assert_accessible(chat)
