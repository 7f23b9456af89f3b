"""The presenter's view, and the single keys: one letter does it, but never where one types."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_access import assert_accessible
from tests.scripted import ScriptedModel


def out_of_the_box(chat) -> None:
    expect(chat.send).to_be_enabled()
    chat.transcript_box.focus()


def test_one_key_leaves_the_chat_and_the_memory_alone_on_the_page_in_large_type(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("Hello")
    size = "parseFloat(getComputedStyle(document.querySelector('.message__text')).fontSize)"
    before = chat.page.evaluate(size)
    out_of_the_box(chat)
    chat.page.keyboard.press("p")
    expect(chat.new_chat).to_be_hidden()
    expect(chat.cached_tokens).to_be_visible()
    expect(chat.composer).to_be_visible()
    assert chat.page.evaluate(size) > before
    chat.page.keyboard.press("p")
    expect(chat.new_chat).to_be_visible()


def test_it_is_remembered_for_the_tab_there_before_the_first_paint_and_left_with_escape(serve, visit):
    chat = visit(serve())
    chat.presenter.click()
    chat.page.add_init_script("""document.addEventListener("DOMContentLoaded", () => {
        window.__early = document.documentElement.hasAttribute("data-presenter");
    })""")
    chat.reload()
    assert chat.page.evaluate("window.__early")
    expect(chat.new_chat).to_be_hidden()
    expect(chat.presenter_leave).to_have_attribute("aria-pressed", "true")
    other = visit(chat.server, like=chat)
    expect(other.new_chat).to_be_visible()
    chat.composer.press("Escape")
    expect(chat.new_chat).to_be_visible()


def test_escape_closes_what_is_open_first(serve, visit):
    chat = visit(serve())
    chat.presenter.click()
    out_of_the_box(chat)
    chat.page.keyboard.press("?")
    expect(chat.shortcuts).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(chat.shortcuts).to_be_hidden()
    expect(chat.new_chat).to_be_hidden()
    chat.page.keyboard.press("Escape")
    expect(chat.new_chat).to_be_visible()


def test_letters_that_are_typed_are_text(serve, visit):
    chat = visit(serve())
    chat.composer.press_sequentially("stop? p")
    assert chat.composer.input_value() == "stop? p"
    chat.search.press_sequentially("sp?")
    assert chat.search.input_value() == "sp?"
    expect(chat.new_chat).to_be_visible()
    expect(chat.slow).to_be_hidden()
    expect(chat.shortcuts).to_be_hidden()


def test_single_keys_can_be_switched_off(serve, visit):
    chat = visit(serve())
    chat.open_shortcuts.click()
    chat.single_keys.uncheck()
    chat.page.keyboard.press("Escape")
    chat.reload()
    out_of_the_box(chat)
    for key in ("p", "s", "?"):
        chat.page.keyboard.press(key)
    expect(chat.new_chat).to_be_visible()
    expect(chat.slow).to_be_hidden()
    expect(chat.shortcuts).to_be_hidden()
    chat.open_shortcuts.click()
    expect(chat.single_keys).not_to_be_checked()


def test_chosen_from_the_list_of_chats_where_that_is_behind_a_button_it_leaves_the_chat_in_reach(serve, visit):
    chat = visit(serve(), viewport={"width": 1000, "height": 800})
    chat.page.get_by_role("button", name="Open the list of chats").click()
    chat.presenter.click()
    assert chat.ask_and_wait("Hello") == "Hello there."


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_the_presenters_view_and_the_list_of_keys(serve, visit, scheme):
    chat = visit(serve(ScriptedModel("A <|python_start|>12*3<|python_end|> `code`.")), color_scheme=scheme,
                 reduced_motion="reduce")
    chat.presenter.click()
    assert_accessible(chat)
    chat.ask_and_wait("Hello")
    assert_accessible(chat)
    out_of_the_box(chat)
    chat.page.keyboard.press("?")
    assert_accessible(chat)


@pytest.mark.parametrize("size", [(1280, 800), (390, 844)])
@pytest.mark.parametrize("expression", ["240*19/100", "1234567*7654321/1000+24680*13579/3", '"a long word indeed".count("ee")'])
def test_the_result_of_a_calculation_is_never_cut_for_the_words_beside_it(serve, visit, size, expression):
    chat = visit(serve(ScriptedModel(f"<|python_start|>{expression}<|python_end|> It is.")),
                 viewport=dict(zip(("width", "height"), size, strict=True)))
    out_of_the_box(chat)
    chat.page.keyboard.press("p")
    chat.ask_and_wait("Hello")
    assert chat.tool_result.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    line, result = chat.page.locator(".tool-call__line").bounding_box(), chat.tool_result.bounding_box()
    assert line["x"] <= result["x"] and result["x"] + result["width"] <= line["x"] + line["width"] + 1
    name = chat.page.locator(".tool-call__name")
    assert name.evaluate("e => e.getClientRects().length") == 1 and name.bounding_box()["height"] < 2 * result["height"]
    if expression == "240*19/100" and size[0] > 1000:  # with room a short one is not cut either
        assert chat.tool_expression.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert chat.tool_call.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


@pytest.mark.parametrize("width", [1024, 1280, 1920, 2560])
def test_no_width_makes_the_presenters_view_scroll_sideways(serve, visit, width):
    chat = visit(serve(), viewport={"width": width, "height": 900})
    out_of_the_box(chat)
    chat.page.keyboard.press("p")
    chat.ask_and_wait("unbreakable" * 20)
    assert chat.page.evaluate("document.documentElement.scrollWidth") <= width
    assert chat.panel.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert chat.transcript_box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
