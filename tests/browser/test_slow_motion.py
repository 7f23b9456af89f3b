"""Slow motion: an answer is shown one token at a time, with the numbers in step, and nothing of it is ever lost."""

import pytest
from playwright.sync_api import expect

from tests.browser.slow_motion import TEXT, has_all, one_token_into, press_to_the_end, shows
from tests.scripted import ScriptedModel


def test_reading_and_each_token_are_steps_and_the_numbers_keep_in_step(serve, visit):
    said = "Hello."
    chat = visit(serve(ScriptedModel(said)))
    chat.slow_motion.click()
    chat.ask("Hi")
    has_all(chat, len(said) + 1)
    expect(chat.slow_next).to_be_focused()
    assert chat.number("read-tokens") == 0
    chat.page.keyboard.press("Space")
    shows(chat, "written-tokens", 0)
    expect(chat.slow_shown).to_contain_text("0 remembered, ")
    read = chat.numbers()["last_reply"]["read"]
    shows(chat, "read-tokens", read)
    shows(chat, "cached-tokens", read)
    expect(chat.slow_shown).to_have_text(f"0 remembered, {read} read in one go")
    for written in range(1, len(said) + 1):
        chat.page.keyboard.press("Space")
        shows(chat, "written-tokens", written)
        shows(chat, "cached-tokens", read + written - 1)  # the last one has not been computed with
        assert chat.page.evaluate(TEXT) == said[:written]
        without = sum(range(read, read + written))
        expect(chat.panel.locator("[data-way=cached] [data-slot=without_cache]")).to_contain_text(f"{without:,}")
        expect(chat.slow_shown).to_contain_text(f"“{said[written - 1]}” written by the model")
    chat.page.keyboard.press("Space")  # the token that ends it
    chat.wait_for_end()
    numbers = chat.numbers()
    shows(chat, "cached-tokens", numbers["conversation"]["tokens"])
    assert chat.number("written-tokens") == numbers["last_reply"]["written"] == len(said) + 1
    expect(chat.answers.last).to_have_attribute("data-state", "done")


def test_that_what_is_shown_is_behind_is_said_in_both_places_until_it_is_not(serve, visit):
    server = serve(ScriptedModel("Hello."))
    chat = visit(server)
    chat.slow_motion.click()
    server.model.hold(2)
    chat.ask("Hi")
    behind = "What you see is behind the model"
    answer = chat.answers.last
    expect(chat.slow_ahead).to_have_text(
        "What you see is behind: the model has written 2 tokens more, which are held back here.")
    expect(chat.state).to_have_text(behind)
    expect(answer).to_contain_text(behind)
    for left in ("2 tokens", "one token"):
        chat.page.keyboard.press("Space")
        expect(chat.slow_ahead).to_contain_text(f"the model has written {left} more")
        expect(chat.state).to_have_text(behind)
    chat.page.keyboard.press("Space")
    expect(chat.slow_ahead).to_have_text("Nothing is held back: the model is at work on what comes next.")
    expect(chat.state).to_have_text("Writing…")
    server.model.let_go()
    has_all(chat, len("llo.") + 1)
    expect(chat.state).to_have_text(behind)
    press_to_the_end(chat)
    expect(chat.state).to_have_text("Ready")


def test_a_second_question_shows_what_was_remembered_and_what_is_read(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One")
    cached = chat.number("cached-tokens")
    chat.slow_motion.click()
    chat.ask("Two")
    expect(chat.slow_ahead).to_contain_text("the model has finished")
    chat.slow_next.click()
    shows(chat, "reused-tokens", cached)
    read = chat.number("read-tokens")
    expect(chat.slow_shown).to_have_text(f"{cached} remembered, {read} read in one go")


def test_no_character_is_shown_by_halves_and_none_is_lost(serve, visit):
    said = "Ünï 法国 🦦 go"
    chat = visit(serve(ScriptedModel(said)))
    chat.slow_motion.click()
    chat.ask("Hi")
    has_all(chat, len(said.encode()) + 1)
    chat.page.keyboard.press("Space")
    for _ in said.encode():
        chat.page.keyboard.press("Space")
        chat.wait_for_frames(3)
        assert said.startswith(chat.page.evaluate(TEXT))
    press_to_the_end(chat)
    assert chat.page.evaluate(TEXT) == said


def test_what_the_calculator_puts_in_is_shown_token_by_token_too(serve, visit):
    chat = visit(serve(ScriptedModel("It is <|python_start|>12*3<|python_end|> then.")))
    chat.slow_motion.click()
    chat.ask("Hi")
    expect(chat.slow_ahead).to_contain_text("the model has finished")
    seen = []
    while chat.stop.is_visible():
        before = chat.slow_shown.inner_text()
        chat.page.keyboard.press("Space")
        expect(chat.slow_shown).not_to_have_text(before)
        chat.wait_for_frames(3)
        seen.append((chat.slow_shown.inner_text(), chat.number("forced-tokens")))
    forced = [number for told, number in seen if "put in by the calculator" in told]
    assert forced == list(range(1, chat.numbers()["last_reply"]["forced"] + 1))
    expect(chat.tool_result).to_have_text("36")


def test_space_belongs_to_whoever_has_the_focus(serve, visit):
    chat = visit(serve(ScriptedModel("Hello there.")))
    chat.slow_motion.click()
    chat.ask("Hi")
    has_all(chat, 13)
    chat.composer.press_sequentially("a b")
    assert chat.composer.input_value() == "a b"
    assert chat.slow_shown.inner_text() == ""
    chat.use_cache.focus()
    chat.page.keyboard.press("Space")
    expect(chat.use_cache).not_to_be_checked()
    assert chat.slow_shown.inner_text() == ""
    chat.transcript_box.focus()
    chat.page.keyboard.press("Space")
    expect(chat.slow_shown).to_contain_text("read in one go")


@pytest.mark.parametrize("way", ["let it flow", "the switch", "the key"])
def test_switched_off_in_the_middle_all_of_it_flows(serve, visit, way):
    said = "word " * 20
    chat = visit(serve(ScriptedModel(said)))
    chat.slow_motion.click()
    chat.ask("Hi")
    has_all(chat, len(said) + 1)
    for _ in range(5):
        chat.page.keyboard.press("Space")
    {"let it flow": lambda: chat.slow_off.click(), "the switch": lambda: chat.slow_motion.click(),
     "the key": lambda: chat.page.keyboard.press("s")}[way]()
    assert chat.wait_for_end() == said.strip()
    expect(chat.slow).to_be_hidden()
    shows(chat, "cached-tokens", chat.numbers()["conversation"]["tokens"])
    expect(chat.slow_motion).to_have_attribute("aria-pressed", "false")


def test_stop_shows_what_was_written_until_then(serve, visit):
    server, chat = one_token_into("word " * 40, serve, visit)
    chat.page.keyboard.press("Space")
    chat.stop_while_held()
    server.model.let_go()
    shown = chat.wait_for_end()
    assert shown.startswith(("word " * 6).strip())
    expect(chat.answers.last).to_have_attribute("data-state", "cancelled")
    chat.reload()
    assert chat.text_of(chat.answers.last) == shown


LOSE_STOPS = """() => {
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (frame) { if (JSON.parse(frame).type !== "stop") send.call(this, frame); };
}"""


def test_what_still_comes_after_stop_is_not_held_back(serve, visit):
    said = "word " * 40
    server, chat = one_token_into(said, serve, visit)
    chat.page.evaluate(LOSE_STOPS)  # as if the model were through before the server hears of it
    chat.stop.click()
    server.model.let_go()
    assert chat.wait_for_end() == said.strip()
    chat.ask("Hi")
    has_all(chat, len(said) + 1)  # the next one is slow again


def test_an_answer_that_fails_says_so_where_it_fails(serve, visit):
    chat = visit(serve(ScriptedModel("Fine.", RuntimeError("broken"))))
    chat.ask_and_wait("One")
    chat.slow_motion.click()
    chat.ask("Two")
    expect(chat.slow_next).to_have_attribute("aria-disabled", "false")
    press_to_the_end(chat)
    expect(chat.answers.last).to_have_attribute("data-state", "error")
