"""The tour in slow motion, over a reload: a step is done when its answer has been shown, not when the model has finished."""

import pytest
from playwright.sync_api import expect

from tests.browser.slow_motion import TEXT, has_all, press_to_the_end
from tests.browser.test_tour import TITLES, at_step
from tests.scripted import ScriptedModel

ASKED = "Ask a second question in this chat."
REUSED = "tokens were reused"
SAID = "The second one."


def again_slowly(serve, visit, said=SAID, held_after=None, at=2):
    """A chat at a step of the tour, "Ask again" if no other: slow motion holds back all of the answer that it suggests
    asking for. With `held_after` the model waits after so many tokens, else it has finished."""
    server = serve(ScriptedModel("First.", said))
    chat = visit(server)
    chat.ask_and_wait("One")
    at_step(chat, at)
    chat.slow_motion.click()
    if held_after:
        server.model.hold(held_after)
    chat.tour_suggest.click()
    told = f"the model has written {held_after} tokens more" if held_after else "the model has finished"
    expect(chat.slow_ahead).to_contain_text(told)
    expect(chat.slow_next).to_be_focused()
    return chat


def stays_at(chat, title: str, text: str) -> None:
    expect(chat.tour_title).to_have_text(title)
    expect(chat.tour_text).to_contain_text(text)


def is_slow(chat) -> None:
    expect(chat.slow_motion).to_have_attribute("aria-pressed", "true")
    expect(chat.slow).to_be_visible()


@pytest.mark.parametrize("shown", [0, 1, 4], ids=["nothing shown", "the reading shown", "some tokens shown"])
def test_a_step_whose_answer_is_held_back_is_done_when_that_has_been_shown_after_a_reload(serve, visit, shown):
    chat = again_slowly(serve, visit)
    for _ in range(shown):
        chat.page.keyboard.press("Space")
    seen = SAID[:max(0, shown - 1)]
    expect(chat.answers).to_have_count(2)
    stays_at(chat, TITLES[2], ASKED)
    for _ in range(2):
        chat.reload()
        is_slow(chat)
        has_all(chat, len(SAID) + 1 - len(seen))
        assert chat.page.evaluate(TEXT) == seen.strip()
        stays_at(chat, TITLES[2], ASKED)
        expect(chat.tour_next).to_be_hidden()
    press_to_the_end(chat)
    stays_at(chat, TITLES[2], f"{chat.numbers()['last_reply']['reused']} {REUSED}")
    is_slow(chat)
    assert chat.text_of(chat.answers.last) == SAID
    chat.tour_next.click()
    expect(chat.tour_title).to_have_text(TITLES[3])
    chat.reload()
    stays_at(chat, TITLES[3], "Ask for a calculation.")  # what the step before was done by is not told again


def test_a_step_whose_answer_is_still_written_at_the_reload_is_done_when_all_of_it_was_shown(serve, visit):
    chat = again_slowly(serve, visit, "word " * 8, held_after=10)
    chat.page.keyboard.press("Space")
    chat.page.keyboard.press("Space")
    expect(chat.slow_ahead).to_contain_text("the model has written 9 tokens more")
    chat.reload()
    is_slow(chat)
    expect(chat.slow_ahead).to_contain_text("the model has written 9 tokens more")
    stays_at(chat, TITLES[2], ASKED)
    chat.server.model.let_go()
    has_all(chat, 40)
    stays_at(chat, TITLES[2], ASKED)
    press_to_the_end(chat)
    stays_at(chat, TITLES[2], REUSED)
    chat.ask("And on")  # nothing is stuck
    expect(chat.slow_next).to_contain_text("Next: reading")
    press_to_the_end(chat)
    expect(chat.answers).to_have_count(3)


@pytest.mark.parametrize("way", ["let it flow", "the switch", "the key"])
def test_switched_off_after_the_reload_the_answer_flows_and_counts(serve, visit, way):
    chat = again_slowly(serve, visit)
    chat.page.keyboard.press("Space")
    chat.reload()
    has_all(chat, len(SAID) + 1)
    {"let it flow": lambda: chat.slow_off.click(), "the switch": lambda: chat.slow_motion.click(),
     "the key": lambda: chat.page.keyboard.press("s")}[way]()
    assert chat.wait_for_end() == SAID
    expect(chat.slow).to_be_hidden()
    stays_at(chat, TITLES[2], REUSED)
    chat.reload()
    expect(chat.slow_motion).to_have_attribute("aria-pressed", "false")
    stays_at(chat, TITLES[2], REUSED)


def test_the_calculators_step_counts_what_was_put_in_before_the_reload(serve, visit):
    chat = again_slowly(serve, visit, "<|python_start|>6*7<|python_end|> it is.", at=3)
    for _ in range(9):  # the reading, the block, and what was put in
        chat.page.keyboard.press("Space")
    expect(chat.tool_result).to_have_text("42")
    chat.reload()
    stays_at(chat, TITLES[3], "Ask for a calculation.")
    press_to_the_end(chat)
    stays_at(chat, TITLES[3], f"{chat.numbers()['last_reply']['forced']} tokens were put in")


def test_stopped_after_the_reload_nothing_is_stuck(serve, visit):
    chat = again_slowly(serve, visit, "word " * 8, held_after=10)
    chat.page.keyboard.press("Space")
    chat.reload()
    expect(chat.slow_ahead).to_contain_text("the model has written 10 tokens more")
    chat.stop_while_held()
    chat.server.model.let_go()
    chat.wait_for_end()
    expect(chat.answers.last).to_have_attribute("data-state", "cancelled")
    stays_at(chat, TITLES[2], REUSED)  # it was remembered, however far it came
    is_slow(chat)
    chat.tour_next.click()
    stays_at(chat, TITLES[3], "Ask for a calculation.")


def test_left_in_the_middle_for_another_page_the_tour_goes_along_and_counts_it_afterwards(serve, visit):
    chat = again_slowly(serve, visit)
    path = chat.page.evaluate("location.pathname")
    chat.page.goto(chat.server.url + "/memory")
    expect(chat.tour_title).to_have_text(TITLES[2])
    chat.tour_chat.click()
    expect(chat.slow_next).to_be_focused()
    assert chat.page.evaluate("location.pathname") == path
    has_all(chat, len(SAID) + 1)
    stays_at(chat, TITLES[2], ASKED)
    press_to_the_end(chat)
    stays_at(chat, TITLES[2], REUSED)


def test_an_answer_that_began_in_the_step_before_says_nothing_of_this_one_after_a_reload_either(serve, visit):
    chat = visit(serve(ScriptedModel("First.", SAID)))
    chat.ask_and_wait("One")
    at_step(chat, 1)
    chat.slow_motion.click()
    chat.ask("Two")
    has_all(chat, len(SAID) + 1)
    chat.tour_skip.click()
    for _ in range(2):
        stays_at(chat, TITLES[2], ASKED)
        chat.reload()
        has_all(chat, len(SAID) + 1)
    press_to_the_end(chat)
    assert chat.text_of(chat.answers.last) == SAID
    chat.wait_until_ready()
    stays_at(chat, TITLES[2], ASKED)


def test_a_changed_beginning_is_still_known_as_one_after_a_reload(serve, visit):
    chat = visit(serve(ScriptedModel("First.")))
    chat.ask_and_wait("One")
    at_step(chat, 4)
    chat.slow_motion.click()
    chat.tour_suggest.click()
    chat.edit_send.click()
    has_all(chat, len("First.") + 1)
    chat.page.keyboard.press("Space")
    chat.reload()
    has_all(chat, len("First.") + 1)
    stays_at(chat, TITLES[4], "Edit your first question")
    press_to_the_end(chat)
    stays_at(chat, TITLES[4], "tokens from before the change were kept")
