"""Several answers to one question: side by side, one is picked, the others fold away."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.test_access import assert_accessible
from tests.scripted import ScriptedModel

TWO_LAYERS_BYTES_PER_TOKEN = 2 * 2 * 2 * 4 * 4


def set_answers(chat, n):
    chat.settings.click()
    field = chat.page.get_by_label("Answers at once")
    field.fill(str(n))
    chat.settings_save.click()
    expect(field).to_be_hidden()


def ask(chat, text, n):
    chat.composer.fill(text)
    before = chat.answers.count()
    chat.send.click()
    expect(chat.answers).to_have_count(before + n)


def in_the_chat(chat):
    """The answers that the conversation consists of, without those folded away."""
    return chat.page.locator(".message[data-role=assistant]:not([data-choice=folded])")


def test_answers_stream_side_by_side_and_the_chat_goes_on_with_the_picked_one(serve, visit):
    server = serve(ScriptedModel("Otters swim.", "They eat fish."))
    chat = visit(server)
    set_answers(chat, 3)
    server.model.hold(6)
    ask(chat, "Otters?", 3)
    for number in range(3):
        answer = chat.answers.nth(number)
        expect(answer).to_contain_text("Otters")
        expect(answer).to_contain_text(f"Answer {number + 1}")
        assert answer.locator("[data-slot=own_seed]").inner_text().startswith("seed ")
    boxes = chat.answers.evaluate_all("all => all.map(each => each.getBoundingClientRect().toJSON())")  # at one moment
    assert boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"] and len({box["y"] for box in boxes}) == 1
    server.model.let_go()
    expect(chat.pick).to_have_count(3)
    chat.wait_for_end()

    copies = chat.numbers()["copies"]
    expect(chat.copies).to_be_visible()
    expect(chat.copies).to_have_attribute("data-value", str(copies["prompt_tokens"] * 2 * TWO_LAYERS_BYTES_PER_TOKEN))
    expect(chat.copies).to_contain_text(f"{copies['copied_tokens']} tokens copied")
    expect(chat.copies.locator("[data-slot=copied_times]")).to_have_text("2 times")
    expect(chat.page.locator(".chat-item")).to_have_count(1)

    seed = chat.answers.nth(1).locator("[data-slot=own_seed]").inner_text()
    chat.pick.nth(1).click()
    expect(in_the_chat(chat)).to_have_count(1)
    expect(in_the_chat(chat)).to_contain_text(seed)
    expect(chat.copies).to_be_hidden()
    expect(chat.composer).to_be_focused()
    expect(chat.other_answers).to_have_text("2 other answers")
    set_answers(chat, 1)
    ask(chat, "And eat?", 1)
    chat.wait_for_end()
    assert chat.number("reused-tokens") > 10
    expect(chat.panel.locator("dd[data-slot=rows]")).to_have_text("1 of 8")

    chat.reload()
    expect(in_the_chat(chat)).to_have_count(2)
    chat.other_answers.click()
    folded = chat.page.locator("[data-choice=folded]")
    expect(folded).to_have_count(2)
    expect(folded.first).to_contain_text("Otters swim.")
    expect(folded.first.get_by_test_id("pick")).to_be_hidden()  # the chat has gone on


def test_one_stop_ends_all_and_each_has_its_own(serve, visit):
    server = serve(ScriptedModel("word " * 200, seconds_per_token=0.1))  # it does not come to its end here
    chat = visit(server)
    set_answers(chat, 2)
    ask(chat, "Go", 2)
    expect(chat.answers.last).to_contain_text("word word")
    chat.stop_one.nth(1).click()
    expect(chat.answers.nth(1)).to_have_attribute("data-state", "cancelled")
    expect(chat.answers.nth(0)).to_have_attribute("data-state", "writing")
    chat.stop.click()
    expect(chat.answers.nth(0)).to_have_attribute("data-state", "cancelled")
    expect(chat.send).to_be_visible()


def test_a_reload_in_mid_stream_and_a_second_tab_show_all_answers(serve, visit):
    server = serve(ScriptedModel("One answer that is long enough."))
    chat = visit(server)
    set_answers(chat, 2)
    server.model.hold(10)
    ask(chat, "Go", 2)
    expect(chat.answers.last).to_contain_text("One answer")
    chat.reload()
    other = visit(server, chat.page.url.removeprefix(server.url), like=chat)
    for page in (chat, other):
        expect(page.answers).to_have_count(2)
        expect(page.stop).to_be_visible()
    server.model.let_go()
    for page in (chat, other):
        for number in range(2):
            expect(page.answers.nth(number)).to_contain_text("One answer that is long enough.")
        expect(page.send).to_be_visible()
    other.pick.nth(1).click()
    expect(in_the_chat(chat)).to_have_count(1)
    assert in_the_chat(chat).get_attribute("data-answer") == "1"


def test_a_question_without_a_pick_goes_on_with_the_first_and_again_replaces_all(serve, visit):
    chat = visit(serve(ScriptedModel("First.", "Second.")))
    set_answers(chat, 2)
    ask(chat, "Go", 2)
    chat.wait_for_end()
    first = chat.answers.first.get_attribute("data-id")
    ask(chat, "More", 2)
    chat.wait_for_end()
    assert in_the_chat(chat).first.get_attribute("data-id") == first
    expect(in_the_chat(chat)).to_have_count(3)
    old = chat.answers.last.get_attribute("data-id")
    chat.regenerate_all.last.click()
    expect(chat.page.locator(f"[data-id='{old}']")).to_have_count(0)
    expect(in_the_chat(chat)).to_have_count(3)
    chat.wait_for_end()


def test_without_the_cache_there_is_one_answer(serve, visit):
    chat = visit(serve())
    set_answers(chat, 3)
    chat.use_cache.uncheck()
    expect(chat.page.locator("#cache-off")).to_contain_text("one answer at a time")
    assert chat.ask_and_wait("Hello") == "Hello there."


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [{}, PHONE], ids=["desktop", "phone"])
def test_answers_are_for_everyone_and_fit_every_screen(serve, visit, scheme, screen):
    server = serve(ScriptedModel("An answer of some words. " * 6))
    chat = visit(server, color_scheme=scheme, reduced_motion="reduce", **screen)
    if screen:
        chat.page.get_by_role("button", name="Open the list of chats").click()
    set_answers(chat, 3)
    if screen:
        chat.page.keyboard.press("Escape")
    ask(chat, "Go", 3)
    chat.wait_for_end()
    assert_accessible(chat)
    width = chat.page.viewport_size["width"]
    assert chat.page.evaluate("document.documentElement.scrollWidth") <= width
    assert chat.transcript_box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
    if screen:  # the second card is a swipe away
        assert chat.answers.nth(0).bounding_box()["width"] > 0.7 * width
        chat.answers.nth(2).scroll_into_view_if_needed()
        chat.wait_until(lambda: (box := chat.answers.nth(2).bounding_box())["x"] + box["width"] <= width)
    chat.pick.nth(2).click()
    chat.other_answers.click()
    assert_accessible(chat)
    assert chat.transcript_box.evaluate("e => e.scrollWidth - e.clientWidth") <= 0
