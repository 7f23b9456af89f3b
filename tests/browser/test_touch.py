"""A phone in the hand: what the panel tells is reached by tapping alone, without a mouse that could point or a key."""

from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.test_strip import card, cell, first_of, strip_of
from tests.scripted import ScriptedModel


def test_the_sheet_opens_and_closes_by_tapping_and_the_chat_is_there_again(serve, visit):
    chat = visit(serve(), **PHONE)
    chat.ask_and_wait("One?")
    expect(chat.panel).to_be_hidden()
    chat.panel_line.tap()
    expect(chat.cached_tokens).to_be_in_viewport()
    chat.page.get_by_role("button", name="Close the panel").tap()
    expect(chat.panel).to_be_hidden()
    chat.panel_line.tap()
    expect(chat.panel).to_be_visible()
    chat.page.locator(".shade").tap(position={"x": 20, "y": 20})  # beside the sheet
    expect(chat.panel).to_be_hidden()
    chat.composer.tap()
    chat.composer.fill("Two?")
    chat.send.tap()
    expect(chat.answers).to_have_count(2)


def test_a_tapped_cell_tells_how_likely_its_token_was(serve, visit):
    chat = visit(serve(ScriptedModel("Yes.")), **PHONE)
    chat.ask_and_wait("One?")
    chat.panel_line.tap()
    cell(chat, first_of(strip_of(chat)["tokens"], "written")).tap()
    expect(card(chat)).to_contain_text("Written by the model")
    expect(card(chat).locator("tbody tr")).to_have_count(4)  # itself and three runners-up
    expect(card(chat)).to_be_in_viewport(ratio=1)


def test_the_trace_is_opened_read_and_closed_by_tapping(serve, visit):
    chat = visit(serve(ScriptedModel("Yes.")), **PHONE)
    chat.ask_and_wait("One?")
    chat.panel_line.tap()
    chat.open_trace.tap()
    expect(chat.trace).to_be_visible()
    position = first_of(strip_of(chat)["tokens"], "written")
    box = chat.trace_token.nth(position)
    box.tap()
    told = chat.page.locator("#trace-card")
    expect(told).to_contain_text(f"position {position}")
    expect(told).to_be_in_viewport(ratio=1)
    expect(box).to_be_in_viewport()
    chat.trace_table.tap()
    expect(chat.page.locator(".trace-table tbody tr").nth(position)).to_contain_text("Y")
    chat.page.get_by_role("button", name="Close the trace").tap()
    expect(chat.trace).to_be_hidden()
    expect(chat.panel).to_be_visible()
