"""A reload at any moment, a lost connection and a server that begins again lose nothing and double nothing."""

import pytest
from playwright.sync_api import expect

from tests.scripted import ScriptedModel

PLAIN = "".join(f"Sentence {n} of it.\n\n" for n in range(12)) + "The end."
WITH_TOOL = "First **this**.\n\nThen <|python_start|>123*456<|python_end|> is what they eat.\n\nThe end."


@pytest.mark.parametrize("said, after_tokens", [(PLAIN, 20), (PLAIN, 75), (WITH_TOOL, 26), (WITH_TOOL, 40)],
                         ids=["in a line", "after blocks", "in a tool block", "after a tool block"])
def test_a_reload_in_mid_reply_comes_back_and_goes_on_without_gap_or_repeat(serve, visit, said, after_tokens):
    server = serve(ScriptedModel(said))
    whole = visit(server).ask_and_wait("Say it at once")
    server.model.hold(after_tokens)
    chat = visit(server)
    chat.ask("Say it")
    assert server.model.holding.wait(60)
    frames = chat.frames("token", "block", "tool_call", "done", "state")  # reloads
    expect(chat.state).not_to_have_text("Ready")
    expect(chat.stop).to_be_visible()
    cached = chat.wait_for_number("cached-tokens", at_least=after_tokens + 1)  # the numbers come behind the text
    server.model.let_go()
    assert chat.wait_for_end() == whole
    numbers = [frame["seq"] for frame in frames if "seq" in frame]
    assert numbers == sorted(set(numbers))
    assert chat.number("cached-tokens") > cached


def test_what_was_written_live_looks_the_same_after_a_reload(serve, visit):
    said = ("A list:\n\n1. one\n2. two\n\n```python\nx = 1  # a comment\n```\n\n"
            "| a | b |\n|---|--:|\n| 1 | 2 |\n\n> quoted\n\n"
            "So <|python_start|>12*3<|python_end|> and <|python_start|>1/0<|python_end|> it is, **surely**.")
    chat = visit(serve(ScriptedModel(said)))
    chat.ask_and_wait("Everything")
    shape = """element => [...element.querySelectorAll("*")].map(e => [
        e.tagName, e.className.toString(), e.dataset.state, e.dataset.index, e.dataset.slot,
        e.children.length ? "" : e.textContent].join("|"))"""
    body = chat.answers.last.locator(".message__body")
    live = body.evaluate(shape)
    chat.reload()
    assert body.evaluate(shape) == live


def test_a_lost_connection_is_named_and_mends_itself(serve, visit):
    server = serve(ScriptedModel("word " * 40))
    server.model.hold(30)
    chat = visit(server)
    chat.ask("Go on for long")
    expect(chat.answers.last).to_contain_text("word")
    chat.page.context.set_offline(True)
    expect(chat.state).to_have_attribute("data-state", "reconnecting")
    expect(chat.state).to_contain_text("Reconnecting")
    chat.composer.fill("Not sent yet")
    server.model.let_go()
    chat.page.context.set_offline(False)
    assert chat.wait_for_end() == ("word " * 40).strip()
    expect(chat.state).to_have_text("Ready")
    assert chat.composer.input_value() == "Not sent yet"


def test_a_question_sent_into_a_broken_line_is_sent_when_it_is_back_and_once(serve, visit):
    server = serve()
    chat = visit(server)
    chat.ask_and_wait("First")
    chat.page.context.set_offline(True)
    expect(chat.state).to_have_attribute("data-state", "reconnecting")
    chat.composer.fill("Second")
    chat.composer.press("Enter")
    expect(chat.state).to_contain_text("then your message is sent")
    assert chat.composer.input_value() == "Second"
    chat.page.context.set_offline(False)
    expect(chat.answers).to_have_count(2)
    chat.wait_for_end()
    assert chat.composer.input_value() == ""
    assert chat.questions.count() == 2


def test_after_a_restart_in_mid_reply_question_and_text_are_there_and_marked(serve, visit):
    server = serve(ScriptedModel("word " * 40))
    server.model.hold(30)
    chat = visit(server)
    chat.ask("Go on for long")
    expect(chat.answers.last).to_contain_text("word word")
    server.restart()
    chat.reload()
    expect(chat.questions.last.locator(".message__text")).to_have_text("Go on for long")
    expect(chat.answers.last).to_contain_text("word word")
    expect(chat.answers.last).to_have_attribute("data-state", "interrupted")
    expect(chat.answers.last).to_contain_text("Interrupted")
    assert chat.number("cached-tokens") == 0


def test_a_page_that_stays_open_over_a_restart_shows_what_became_of_the_answer(serve, visit):
    server = serve(ScriptedModel("word " * 40, "Again."))
    server.model.hold(30)
    chat = visit(server)
    chat.ask("Go on for long")
    expect(chat.answers.last).to_contain_text("word word")
    server.restart()
    expect(chat.answers.last).to_have_attribute("data-state", "interrupted")
    expect(chat.answers.last).to_contain_text("word word")
    expect(chat.state).to_have_text("Ready")
    assert chat.questions.count() == chat.answers.count() == 1
    assert chat.ask_and_wait("And now?") == "Again."


def test_two_tabs_on_one_chat_see_the_same(serve, visit):
    server = serve(ScriptedModel("First answer.", "Second <|python_start|>2*3<|python_end|> answer."))
    one = visit(server)
    one.ask_and_wait("First")
    two = visit(server, one.page.evaluate("location.pathname"), like=one)
    two.ask_and_wait("Second")
    expect(one.answers).to_have_count(2)
    one.wait_for_end()
    assert one.text_of(one.answers.last) == two.text_of(two.answers.last)
    remembered = one.numbers()["conversation"]["tokens"]
    for tab in (one, two):
        expect(tab.page.get_by_test_id("cached-tokens")).to_have_attribute("data-value", str(remembered))


def test_a_draft_outlives_a_reload_and_is_gone_once_it_is_sent(serve, visit):
    chat = visit(serve())
    chat.composer.fill("Sent")
    chat.wait_until(lambda: "Sent" in chat.page.evaluate("JSON.stringify(sessionStorage)"))  # as a draft
    chat.send.click()
    chat.wait_for_end()
    chat.begin_new_chat()
    expect(chat.composer).to_have_value("")
    chat.composer.fill("Half a thought")
    chat.reload()
    expect(chat.composer).to_have_value("Half a thought")


def test_a_chat_is_complete_without_javascript(serve, visit, browser):
    server = serve(ScriptedModel(WITH_TOOL))
    chat = visit(server)
    chat.ask_and_wait("Say it")
    cookies = chat.page.context.cookies()
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto(chat.page.url)
    assert page.get_by_test_id("message").nth(0).locator(".message__text").inner_text() == "Say it"
    answer = page.get_by_test_id("message").nth(1)
    assert "The end." in answer.inner_text()
    assert answer.get_by_test_id("tool-result").inner_text() == "56088"
    answer.locator("summary").click()
    assert "Put in" in answer.inner_text()
    assert int(page.get_by_test_id("cached-tokens").get_attribute("data-value")) == chat.number("cached-tokens")
    assert page.get_by_test_id("panel").is_visible()
    assert not page.get_by_test_id("composer").is_visible()
    assert page.locator(".chat-item__link").is_visible()
    for part in ("#sidebar", "#panel"):
        borders = page.locator(part).evaluate("part => getComputedStyle(part).borderWidth")
        assert borders == "0px", "they are columns no more"
    context.close()
