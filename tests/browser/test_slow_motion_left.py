"""What slow motion has not shown yet: it outlives a reload, a look elsewhere and a break of the line."""

from playwright.sync_api import expect

from tests.browser.slow_motion import TEXT, has_all, one_token_into, press_to_the_end, shows
from tests.scripted import ScriptedModel


def test_a_reload_in_the_middle_loses_nothing_and_stays_slow(serve, visit):
    said = "word " * 20
    server, chat = one_token_into(said, serve, visit)
    for letter in "word":
        chat.page.keyboard.press("Space")
    for _ in range(2):
        chat.reload()
        expect(chat.slow_next).to_be_focused()
        expect(chat.slow_ahead).to_contain_text("the model has written 26 tokens more")
        assert chat.page.evaluate(TEXT) == "word"
    server.model.let_go()
    has_all(chat, len(said) + 1 - len("word"))
    assert chat.page.evaluate(TEXT) == "word"
    press_to_the_end(chat)
    assert chat.page.evaluate(TEXT) == said.strip()


def test_after_a_reload_the_rest_of_an_answer_that_is_finished_waits_as_before(serve, visit):
    said = "A <|python_start|>1+1<|python_end|> here."
    chat = visit(serve(ScriptedModel("First.", said)))
    chat.ask_and_wait("One")
    chat.slow_motion.click()
    chat.ask("Two")
    expect(chat.slow_ahead).to_contain_text("the model has finished")
    for _ in range(3):
        chat.page.keyboard.press("Space")
    shows(chat, "written-tokens", 2)
    seen = [chat.number(hook) for hook in ("cached-tokens", "reused-tokens", "read-tokens")]
    cells = chat.page.locator("#strip [data-testid=token]").count()
    ahead = chat.slow_ahead.inner_text()
    chat.reload()
    expect(chat.slow_ahead).to_have_text(ahead)
    shows(chat, "written-tokens", 2)
    assert [chat.number(hook) for hook in ("cached-tokens", "reused-tokens", "read-tokens")] == seen
    expect(chat.page.locator("#strip [data-testid=token]")).to_have_count(cells)
    assert chat.page.evaluate(TEXT) == "A"
    expect(chat.stop).to_be_visible()
    press_to_the_end(chat)
    expect(chat.tool_result).to_have_text("2")
    told = chat.cache_events.locator("li").all_text_contents()
    cached = chat.number("cached-tokens")
    assert cached == chat.numbers()["conversation"]["tokens"]
    chat.reload()
    assert chat.cache_events.locator("li").all_text_contents() == told
    shows(chat, "cached-tokens", cached)
    expect(chat.send).to_be_visible()


def test_an_answer_asked_for_in_another_tab_is_not_counted_to_this_one_and_comes_after_it(serve, visit):
    server = serve(ScriptedModel("First.", "The second one."))
    chat = visit(server)
    chat.slow_motion.click()
    chat.ask("One")
    has_all(chat, len("First.") + 1)
    other = visit(server, chat.page.evaluate("location.pathname"), like=chat)
    other.ask_and_wait("Two")
    old = other.answers.last.get_attribute("data-id")
    other.answers.last.get_by_test_id("regenerate").click()
    expect(other.answers.last).not_to_have_attribute("data-id", old)
    other.wait_for_end()
    has_all(chat, len("First.") + 1)
    chat.page.bring_to_front()  # one behind another is drawn once a second
    chat.page.keyboard.press("Space")
    for left in range(len("First."), 1, -1):
        chat.page.keyboard.press("Space")
        has_all(chat, left)
    chat.page.keyboard.press("Space")
    expect(chat.slow_ahead).to_contain_text("the last token of its answer is held back")
    chat.page.keyboard.press("Space")
    expect(chat.answers.first).to_have_attribute("data-state", "done")
    expect(chat.slow_next).to_contain_text("Next: reading")
    has_all(chat, len("The second one.") + 1)
    chat.reload()  # by now the first of the two answers is gone
    has_all(chat, len("The second one.") + 1)
    press_to_the_end(chat)
    assert chat.text_of(chat.answers.last) == "The second one."
    assert chat.answers.count() == 2


KEPT = "JSON.stringify({...sessionStorage})"


def test_what_was_left_unshown_is_still_there_after_a_look_at_another_page_but_not_after_forgetting(serve, visit):
    chat = visit(serve(ScriptedModel("Secret.")))
    chat.slow_motion.click()
    chat.ask("Hi")
    has_all(chat, len("Secret.") + 1)
    chat.page.keyboard.press("Space")
    path = chat.page.evaluate("location.pathname")
    chat.page.goto(chat.server.url + "/race")
    chat.page.goto(chat.server.url + path)
    has_all(chat, len("Secret.") + 1)
    assert chat.page.evaluate(TEXT) == ""
    chat.forget.click()
    chat.forget_yes.click()
    expect(chat.page.locator("#welcome")).to_be_visible()
    assert "slow_left" not in chat.page.evaluate(KEPT)


def test_what_was_left_unshown_of_a_chat_goes_with_it(serve, visit):
    chat = visit(serve(ScriptedModel("Secret.")))
    chat.slow_motion.click()
    chat.ask("Hi")
    has_all(chat, len("Secret.") + 1)
    chat.begin_new_chat()
    assert "slow_left" in chat.page.evaluate(KEPT)
    chat.page.locator(".chat-item").hover()
    chat.chat_options.click()
    chat.delete.click()
    chat.confirm_yes.click()
    expect(chat.page.locator(".chat-item")).to_have_count(0)
    assert "slow_left" not in chat.page.evaluate(KEPT)


def test_a_break_of_the_line_in_the_middle_loses_nothing(serve, visit):
    said = "word " * 20
    server, chat = one_token_into(said, serve, visit)
    chat.page.context.set_offline(True)
    expect(chat.state).to_have_attribute("data-state", "reconnecting")
    server.model.let_go()
    chat.page.context.set_offline(False)
    has_all(chat, len(said) + 1)
    press_to_the_end(chat)
    assert chat.page.evaluate(TEXT) == said.strip()
    shows(chat, "cached-tokens", chat.numbers()["conversation"]["tokens"])
