"""Stopping, and what remains."""

from playwright.sync_api import expect

from tests.scripted import ScriptedModel


# Where Send is, with no time between: after 0.4 seconds, Stop means what it says.
CLICK_TWICE = """send => {
    const { x, y, width, height } = send.getBoundingClientRect();
    for (let times = 0; times < 2; times += 1) document.elementFromPoint(x + width / 2, y + height / 2).closest("button").click();
}"""


def test_stop_ends_the_work_keeps_the_text_and_lets_one_go_on(serve, visit):
    server = serve(ScriptedModel("word " * 200, "Again.", seconds_per_token=0.1))  # it does not come to its end here
    chat = visit(server)
    chat.ask("Tell me much")
    expect(chat.answers.last).to_contain_text("word word")
    chat.stop.click()
    expect(chat.answers.last).to_have_attribute("data-state", "cancelled")
    steps = server.steps
    chat.page.wait_for_timeout(1000)
    assert server.steps <= steps + 2
    assert "Stopped." in chat.text_of(chat.answers.last)
    assert "word word" in chat.text_of(chat.answers.last)
    expect(chat.send).to_be_enabled()
    assert chat.questions.last.locator(".message__text").inner_text() == "Tell me much"
    assert chat.ask_and_wait("And now?") == "Again."
    chat.reload()
    expect(chat.answers.first).to_have_attribute("data-state", "cancelled")
    expect(chat.answers.first).to_contain_text("Stopped.")


def test_a_double_click_on_send_does_not_stop_the_answer(serve, visit):
    chat = visit(serve(ScriptedModel("word " * 20, seconds_per_token=0.02)))
    chat.composer.fill("Tell me much")
    chat.send.evaluate(CLICK_TWICE)
    assert chat.wait_for_end() == ("word " * 20).strip()
    expect(chat.answers.last).to_have_attribute("data-state", "done")


def test_a_cut_answer_goes_on_where_it_ended(serve, visit):
    chat = visit(serve(ScriptedModel("one two three four five"), max_tokens=13))
    chat.ask("Count")
    expect(chat.answers.last).to_have_attribute("data-state", "length")
    first = chat.text_of(chat.answers.last)
    assert first.startswith("one two three") and "Cut off" in first
    getattr(chat, "continue").click()
    expect(chat.answers.last).to_contain_text("four five")
    chat.wait_for_end()
    chat.reload()
    assert "one two three four five" in " ".join(chat.text_of(chat.answers.last).split())
    assert chat.answers.count() == 1


def test_escape_stops_the_answer_but_first_closes_what_is_open(serve, visit):
    server = serve(ScriptedModel("word " * 200, seconds_per_token=0.1))  # nor here
    chat = visit(server)
    chat.ask("Tell me much")
    expect(chat.answers.last).to_contain_text("word word")
    chat.settings.click()
    chat.page.keyboard.press("Escape")
    expect(chat.settings_panel).to_be_hidden()
    expect(chat.answers.last).to_have_attribute("data-state", "writing")
    chat.search.fill("otters")
    chat.search.press("Escape")
    expect(chat.answers.last).to_have_attribute("data-state", "writing")
    chat.composer.press("Escape")
    expect(chat.answers.last).to_have_attribute("data-state", "cancelled")
    chat.composer.fill("A draft")
    chat.composer.press("Escape")
    expect(chat.composer).to_have_value("A draft")
