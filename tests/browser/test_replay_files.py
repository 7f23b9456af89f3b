"""A chat saved as a file, and opened elsewhere."""

import re

from playwright.sync_api import expect

from tests.browser.replay import CALC, saved, words_of
from tests.browser.test_access import assert_accessible
from tests.scripted import ScriptedModel


def test_a_chat_is_saved_and_opened_in_another_browser(serve, visit, tmp_path):
    server = serve(ScriptedModel(CALC))
    chat = visit(server)
    answer = chat.ask_and_wait("How much is it?")
    path = saved(chat, tmp_path)
    other = visit(server)
    other.import_file.set_input_files(path)
    expect(other.answers).to_have_count(1)
    assert words_of(other, other.answers.first) == answer.split()
    assert other.page.url != chat.page.url
    current = other.page.locator(".chat-item.is-current")
    expect(current).to_contain_text("How much is it?")
    expect(current.get_by_role("link")).to_have_accessible_name(re.compile(r"How much is it\? from a file, "))
    opened = "Opened “How much is it?”: 2 messages. The model reads them when you go on."
    expect(other.notice).to_have_text(opened)
    expect(other.announcer).to_have_text(opened)
    expect(other.panel_then).to_contain_text("These figures came with the file")
    assert other.number("cached-tokens") == 0 and other.number("written-tokens") > 0
    assert_accessible(other)
    other.ask_and_wait("And now?")
    expect(other.panel_then).to_have_text("")
    expect(other.notice).to_be_hidden()
    other.reload()
    expect(other.answers).to_have_count(2)
    expect(other.notice).to_be_hidden()
    expect(chat.page.locator(".chat-item__origin")).to_have_count(0)


def test_a_file_that_is_no_chat_is_refused_with_a_sentence(serve, visit, tmp_path):
    chat = visit(serve())
    path = tmp_path / "other.json"
    path.write_text('{"format": "something else"}')
    chat.import_file.set_input_files(path)
    expect(chat.notice).to_contain_text("This file is no chat that was exported from here.")
    path.write_bytes(b"x" * (8 * 2**20 + 1))
    chat.import_file.set_input_files(path)
    expect(chat.notice).to_contain_text("too large")
    expect(chat.page.locator(".chat-item")).to_have_count(0)
