"""The list of chats, their settings, and forgetting."""

from playwright.sync_api import expect

from tests.browser.hostile import PAYLOADS, assert_harmless
from tests.scripted import ScriptedModel


def item(chat, title):
    return chat.page.locator(".chat-item", has_text=title)


def open_options(chat, title):
    item(chat, title).hover()
    item(chat, title).get_by_test_id("chat-options").click()


def test_chats_are_listed_found_renamed_and_deleted(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("About otters")
    chat.begin_new_chat()
    expect(chat.messages).to_have_count(0)
    assert chat.number("cached-tokens") == 0
    chat.ask_and_wait("About seals")
    expect(chat.page).to_have_title("About seals · Glasschat")
    expect(chat.page.locator(".chat-item")).to_have_count(2)

    chat.search.fill("OTTER")
    expect(item(chat, "About otters")).to_be_visible()
    expect(item(chat, "About seals")).to_be_hidden()
    chat.search.fill("whale")
    expect(chat.page.get_by_text("No chat has that in its title.")).to_be_visible()
    chat.search.fill("")

    open_options(chat, "About seals")
    expect(chat.rename_title).to_be_focused()
    chat.rename_title.fill("Of seals")
    chat.rename_title.press("Enter")
    expect(item(chat, "Of seals")).to_be_visible()
    expect(chat.page).to_have_title("Of seals · Glasschat")

    open_options(chat, "About otters")
    chat.delete.click()
    expect(chat.confirm).to_contain_text("About otters")
    chat.page.keyboard.press("Escape")
    expect(item(chat, "About otters")).to_be_visible()
    open_options(chat, "About otters")
    chat.delete.click()
    chat.confirm_yes.click()
    expect(item(chat, "About otters")).to_have_count(0)
    assert "/c/" in chat.page.url, "the chat that is open was not the deleted one"

    open_options(chat, "Of seals")
    chat.delete.click()
    chat.confirm_yes.click()
    expect(chat.page).to_have_url(chat.server.url + "/")
    expect(chat.page.locator(".chat-item")).to_have_count(0)


def test_a_blank_name_is_said_to_be_none(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("About otters")
    for blank in ("  ", "\u200b"):
        open_options(chat, "About otters")
        chat.rename_title.fill(blank)
        chat.rename.click()
        expect(chat.notice).to_contain_text("still called “About otters”")
        chat.notice.get_by_role("button").click()
    chat.reload()
    expect(item(chat, "About otters")).to_have_count(1)


def test_a_draft_outlives_the_chat_that_is_deleted_in_another_tab(serve, visit):
    server = serve()
    chat = visit(server)
    chat.ask_and_wait("About otters")
    chat.composer.fill("Not sent yet")
    other = visit(server, chat.page.url.removeprefix(server.url), like=chat)
    open_options(other, "About otters")
    other.delete.click()
    other.confirm_yes.click()
    expect(other.page).to_have_url(server.url + "/")
    expect(other.notice).to_be_hidden()
    expect(chat.page).to_have_url(server.url + "/")
    expect(chat.composer).to_have_value("Not sent yet")
    expect(chat.notice).to_contain_text("deleted in another window")
    chat.reload()
    expect(chat.composer).to_have_value("Not sent yet")
    expect(chat.notice).to_be_hidden()


def test_a_hostile_name_given_to_a_chat_is_only_text(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("A chat")
    for payload in PAYLOADS[:4]:
        chat.page.locator(".chat-item").hover()
        chat.chat_options.click()
        chat.rename_title.fill(payload)
        chat.rename.click()
        expect(item(chat, payload)).to_have_count(1)
        assert_harmless(chat)
        chat.reload()
        expect(item(chat, payload)).to_have_count(1)
        assert_harmless(chat)


def test_the_list_tells_chats_in_memory_from_those_that_will_be_read_again(serve, visit):
    chat = visit(serve(rows=1))
    chat.ask_and_wait("First chat")
    tokens = chat.number("cached-tokens")
    warm, cold = chat.page.locator("[data-group=warm]"), chat.page.locator("[data-group=cold]")
    expect(warm.locator("[data-slot=tokens]")).to_have_text(str(tokens))
    expect(cold).to_be_hidden()
    chat.begin_new_chat()
    chat.ask_and_wait("Second chat")
    expect(warm).to_contain_text("Second chat")
    expect(cold).to_contain_text("First chat")
    chat.page.locator(".chat-item__link", has_text="First chat").click()
    expect(chat.cached_tokens).to_have_attribute("data-value", "0")
    expect(chat.cache_events).to_contain_text("forgotten")


def test_a_chat_that_waits_in_the_queue_is_not_listed_as_warm(serve, visit):
    server = serve(ScriptedModel("word " * 10), rows=1)
    server.model.hold(10)
    first = visit(server)
    first.ask("First chat")
    waiting = visit(server)
    waiting.ask("Second chat")
    expect(waiting.state).to_have_attribute("data-state", "queued")
    expect(waiting.page.locator("[data-group=cold]")).to_contain_text("Second chat")
    expect(waiting.page.locator("[data-group=warm]")).to_be_hidden()
    server.model.let_go()
    waiting.wait_for_end()
    expect(waiting.page.locator("[data-group=warm]")).to_contain_text("Second chat")
    expect(waiting.page.locator("[data-group=cold]")).to_be_hidden()


def test_a_system_prompt_that_nobody_set_is_the_models_own(serve, visit):
    chat = visit(serve())
    chat.settings.click()
    expect(chat.page.get_by_label("System prompt")).to_have_attribute("placeholder", "the model's own")


def test_forget_everything_deletes_all_chats_and_their_memory(serve, visit):
    server = serve()
    chat = visit(server)
    chat.ask_and_wait("A secret")
    address = chat.page.url
    chat.forget.click()
    expect(chat.forget_dialog).to_contain_text("cookie")
    chat.forget_yes.click()
    expect(chat.page).to_have_url(server.url + "/")
    expect(chat.page.locator(".chat-item")).to_have_count(0)
    assert chat.page.goto(address).status == 404
    chat.wait_until(lambda: server.parts.worker.snapshot().pool.tokens == 0)


def test_a_chat_of_another_browser_is_not_here(serve, visit):
    server = serve()
    chat = visit(server)
    chat.ask_and_wait("Mine")
    other = visit(server)
    assert other.page.locator(".chat-item").count() == 0
    assert other.page.goto(chat.page.url).status == 404
    expect(other.page.get_by_role("heading", level=1)).to_be_visible()
    other.page.get_by_role("link", name="Back to the chat").click()
    expect(other.composer).to_be_visible()


def test_settings_are_kept_checked_and_sent(serve, visit):
    chat = visit(serve(ScriptedModel("word " * 30)))
    chat.settings.click()
    expect(chat.settings_panel).to_contain_text("empties the memory")
    chat.page.get_by_label("Temperature").fill("-1")
    chat.settings_save.click()
    expect(chat.page.locator("#settings-error")).to_contain_text("Temperature")
    chat.page.get_by_label("Temperature").fill("0.7")
    chat.page.get_by_label("Longest answer").fill("7")
    chat.page.get_by_label("Seed").fill("99")
    chat.page.get_by_label("System prompt").fill("Be brief.")
    chat.settings_save.click()
    expect(chat.settings_panel).to_be_hidden()
    sent = chat.frames("send", "done")
    chat.ask("Go")
    expect(chat.answers.last).to_have_attribute("data-state", "length")
    assert sent[0]["settings"] == {
        "temperature": 0.7, "max_tokens": 7, "seed": 99, "system": "Be brief.", "use_cache": True}
    assert sent[-1]["stats"]["generated_tokens"] == 7
    expect(chat.answers.last).to_contain_text("seed 99")
    chat.settings.click()
    expect(chat.page.get_by_label("Seed")).to_have_value("99")
    chat.settings_reset.click()
    chat.settings_save.click()
    chat.ask("Go")
    chat.wait_for_end()
    assert sent[-1]["stats"]["generated_tokens"] > 7
