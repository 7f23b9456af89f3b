"""For everyone: axe finds nothing, all is reached by keyboard, on a phone as on a wall."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.scripted import ScriptedModel

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
         "resultTypes": ["violations"]}  # of all else one example each: what it would tell at length takes longer than looking
SAID = ("A list:\n\n1. one\n2. two\n\n```python\ndef f(x):\n    return x * 'a' + 1  # a comment\n```\n\n"
        "| a | b |\n|---|--:|\n| 1 | 2 |\n\n> quoted\n\n[A link](https://example.org) and `code`. "
        "<|python_start|>12*3<|python_end|> <|python_start|>1/0<|python_end|> done.")


def assert_accessible(chat) -> None:
    found = Axe().run(chat.page, options=RULES)
    problems = [(v["id"], v["help"], [node["html"][:160] for node in v["nodes"]]) for v in found.response["violations"]]
    assert problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_on_the_chat_page(serve, visit, scheme, screen):
    chat = visit(serve(ScriptedModel(SAID)), color_scheme=scheme, reduced_motion="reduce", **screen)
    assert_accessible(chat)
    chat.ask_and_wait("Everything")
    chat.tool_call.first.locator("summary").click()
    assert_accessible(chat)
    chat.panel.locator(".fold").evaluate_all("folds => { for (const fold of folds) fold.open = true; }")
    if not screen:
        chat.formula.locator("button").first.focus()
        assert_accessible(chat)
    if screen:
        chat.panel_line.click()
        expect(chat.panel.get_by_role("button", name="Close the panel")).to_be_focused()
        assert_accessible(chat)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_dialogs_notices_and_the_error_page(serve, visit, scheme):
    chat = visit(serve(), color_scheme=scheme, reduced_motion="reduce")
    chat.ask_and_wait("Hello")
    chat.settings.click()
    assert_accessible(chat)
    chat.page.keyboard.press("Escape")
    chat.page.locator(".chat-item").hover()
    chat.chat_options.click()
    assert_accessible(chat)
    chat.delete.click()
    assert_accessible(chat)
    chat.page.keyboard.press("Escape")
    chat.forget.click()
    assert_accessible(chat)
    chat.page.keyboard.press("Escape")
    chat.use_cache.uncheck()
    chat.composer.fill("x" * 2_000_000)
    expect(chat.notice).to_be_visible()
    assert_accessible(chat)
    chat.page.goto(chat.server.url + "/c/none")
    assert_accessible(chat)


def test_everything_is_reached_by_keyboard_with_visible_focus(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("Hello")
    chat.page.evaluate("document.activeElement.blur()")
    seen = []
    for _ in range(60):
        chat.page.keyboard.press("Tab")
        seen.append(chat.page.evaluate("""() => {
            const e = document.activeElement, style = getComputedStyle(e), form = e.closest(".composer");
            const shown = style.outlineStyle !== "none" || (form && getComputedStyle(form).boxShadow !== "none");
            return [e.dataset.testid || e.id || e.className, shown];
        }"""))
    reached = {name for name, _ in seen}
    assert {"new-chat", "search", "chat-options", "settings", "theme", "forget", "transcript", "copy", "edit",
            "regenerate", "repeat", "composer", "send", "use-cache"} <= reached
    assert [name for name, is_shown in seen if not is_shown and name] == []


def test_the_theme_is_switched_remembered_and_there_before_the_first_paint(serve, visit):
    chat = visit(serve(), color_scheme="light")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = chat.page.evaluate(ground)
    chat.theme.click()
    dark = chat.page.evaluate(ground)
    assert dark != light
    chat.page.add_init_script("""document.addEventListener("DOMContentLoaded", () => {
        window.__early = document.documentElement.dataset.theme;
    })""")
    chat.reload()
    assert chat.page.evaluate(ground) == dark
    assert chat.page.evaluate("window.__early") == "dark"
    chat.theme.click()
    assert chat.page.evaluate(ground) == light


@pytest.mark.parametrize("width", [360, 390, 768, 1024, 1280, 1920, 2560])
def test_no_width_makes_the_page_scroll_sideways(serve, visit, width):
    chat = visit(serve(ScriptedModel(SAID + "\n\n" + "unbreakable" * 40)), viewport={"width": width, "height": 900})
    chat.ask_and_wait("unbreakable" * 40)
    assert chat.page.evaluate("document.documentElement.scrollWidth") <= width
    assert chat.transcript_box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    assert chat.panel.evaluate("e => e.scrollWidth - e.clientWidth") <= 0


def test_on_a_phone_chats_and_panel_open_and_close(serve, visit):
    chat = visit(serve(), **PHONE)
    chat.ask_and_wait("Hello")
    expect(chat.panel).to_be_hidden()
    expect(chat.panel_line).to_contain_text(f"{chat.number('cached-tokens')} remembered · ")
    chat.panel_line.click()
    expect(chat.cached_tokens).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(chat.panel).to_be_hidden()
    expect(chat.panel_line).to_be_focused()
    chat.page.get_by_role("button", name="Open the list of chats").click()
    expect(chat.page.get_by_role("button", name="Close the list of chats")).to_be_focused()
    for _ in range(15):
        chat.page.keyboard.press("Tab")
        assert chat.page.evaluate("document.activeElement.closest('#sidebar') !== null")
    chat.page.get_by_role("button", name="Close the list of chats").click()
    expect(chat.new_chat).to_be_hidden()


def test_a_policy_without_inline_scripts_holds(serve, visit):
    chat = visit(serve())
    response = chat.page.goto(chat.server.url + "/")
    policy = response.header_value("content-security-policy")
    assert "'unsafe-inline'" not in policy and "'unsafe-eval'" not in policy
    assert chat.page.locator("[style], [onclick], script:not([src]):not([type='application/json'])").count() == 0
