"""The page in the reader's language: found by itself, switched by hand, kept, and the same in sentences that come later."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.test_access import assert_accessible
from tests.scripted import ScriptedModel

CHINESE = {"locale": "zh-CN"}
HAN = re.compile(r"[\u4e00-\u9fff]")
SAID = "<|python_start|>12*3<|python_end|> <|python_start|>2**8<|python_end|> done."


def test_the_page_speaks_the_language_of_the_browser(serve, visit):
    server = serve()
    chinese, english, german = (visit(server, locale=locale) for locale in ("zh-CN", "en-US", "de-DE"))
    expect(chinese.page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(chinese.send).to_have_text("发送")
    for chat in (english, german):
        expect(chat.page.locator("html")).to_have_attribute("lang", "en")
        expect(chat.send).to_have_text("Send")


def test_the_switch_changes_the_language_at_once_and_for_good_and_keeps_chat_and_draft(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("Hello")
    chat.composer.fill("half a thought")
    address = chat.page.url
    chat.language.click()
    expect(chat.send).to_have_text("发送")
    expect(chat.composer).to_have_value("half a thought")
    expect(chat.answers).to_have_count(1)
    assert chat.page.url == address
    chat.reload()
    expect(chat.page.locator("html")).to_have_attribute("lang", "zh-Hans")
    again = visit(chat.server, "/memory", like=chat)
    expect(again.page.locator("html")).to_have_attribute("lang", "zh-Hans")
    again.language.click()
    expect(again.page.locator("html")).to_have_attribute("lang", "en")
    assert again.page.url == chat.server.url + "/memory"


def test_the_switch_works_without_scripts(serve, visit):
    chat = visit(serve(), java_script_enabled=False)
    chat.language.click()
    expect(chat.page.locator("html")).to_have_attribute("lang", "zh-Hans")


def test_what_happens_while_the_page_is_open_is_told_in_its_language(serve, visit):
    chat = visit(serve(ScriptedModel(SAID)), **CHINESE)
    chat.ask_and_wait("Hello")
    badges = chat.tool_call.locator("[data-slot=badge]")
    expect(badges).to_have_text([re.compile("填入 .* 个词元"), "未计算：不允许使用乘方"])
    events = chat.cache_events.locator("li")
    expect(events.first).to_contain_text("个词元")
    told = events.all_text_contents()
    assert all(HAN.search(sentence) for sentence in told)
    expect(chat.announcer).to_contain_text("现在记住了")
    chat.reload()
    expect(events).to_have_text(told)
    expect(badges.last).to_have_text("未计算：不允许使用乘方")


def test_a_refusal_is_told_in_the_pages_language(serve, visit):
    chat = visit(serve(), **CHINESE)
    chat.composer.fill("x" * 3_000_000)
    expect(chat.notice).to_contain_text("太长了")


def test_two_windows_in_two_languages_hear_the_same_events_each_in_its_own(serve, visit):
    chat = visit(serve(ScriptedModel(SAID)))
    chat.ask_and_wait("Hello")
    other = visit(chat.server, chat.page.url.removeprefix(chat.server.url) + "?language=zh", like=chat)
    expect(other.page.locator("html")).to_have_attribute("lang", "zh-Hans")
    chat.ask_and_wait("Again")
    expect(other.answers).to_have_count(2)
    expect(other.tool_call.last.locator("[data-slot=badge]")).to_have_text("未计算：不允许使用乘方")
    expect(chat.tool_call.last.locator("[data-slot=badge]")).to_have_text("refused: powers are not allowed")


def test_numbers_that_scripts_write_are_those_that_the_server_wrote(serve, visit):
    chat = visit(serve(ScriptedModel("word " * 60)), **CHINESE)
    chat.ask_and_wait("Hello")
    numbers = [chat.page.locator(f"[data-slot={name}]").first for name in ("tokens", "bytes_used", "without_cache", "stats")]
    live = [number.text_content() for number in numbers]
    chat.reload()
    for number, text in zip(numbers, live, strict=True):
        expect(number).to_have_text(text)


def test_no_english_is_left_on_a_chinese_page_and_each_fits_a_narrow_window(serve, visit):
    server = serve()
    first = visit(server, viewport={"width": 360, "height": 800}, **CHINESE)
    for path in ("/", "/race", "/memory", "/c/none"):
        first.page.goto(server.url + path)
        assert english_on(first.page) == [], path
        assert first.page.evaluate("document.documentElement.scrollWidth") <= 360, path


def english_on(page) -> list[str]:
    return page.evaluate("""() => {
        const seen = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        const texts = [];
        while (seen.nextNode()) {
            if (!seen.currentNode.parentElement.closest("script, style, noscript, textarea, [lang=en], kbd")) texts.push(seen.currentNode.data);
        }
        for (const element of document.querySelectorAll("[aria-label], [title], [placeholder]")) {
            for (const name of ["aria-label", "title", "placeholder"]) texts.push(element.getAttribute(name) ?? "");
        }
        return texts.filter((text) => /[a-z]{2,} [a-z]{2,}/.test(text));
    }""")


@pytest.mark.parametrize("scheme, screen", [("light", {}), ("dark", PHONE)], ids=["desktop", "phone"])
def test_axe_finds_nothing_on_the_chinese_chat_page(serve, visit, scheme, screen):
    chat = visit(serve(ScriptedModel(SAID)), color_scheme=scheme, reduced_motion="reduce", **CHINESE, **screen)
    assert_accessible(chat)
    chat.ask_and_wait("法国的首都是哪里？")
    chat.tool_call.first.locator("summary").click()
    assert_accessible(chat)
