"""The panel's numbers are the engine's, at every moment, and keep to the formula."""

import re

from playwright.sync_api import expect

from tests.scripted import ScriptedModel

WATCH = """() => {
    window.__seen = [];
    const value = hook => Number(document.querySelector(`[data-testid=${hook}]`).dataset.value);
    new MutationObserver(() => window.__seen.push([value("cached-tokens"), value("cache-memory")]))
        .observe(document.getElementById("panel"), {childList: true, attributes: true, subtree: true});
}"""


def test_memory_is_tokens_times_bytes_per_token_while_it_grows(serve, visit):
    server = serve(ScriptedModel("word " * 20, seconds_per_token=0.005))
    chat = visit(server)
    per_token = server.parts.worker.snapshot().model.bytes_per_token
    chat.page.evaluate(WATCH)
    chat.ask_and_wait("Count")
    seen = chat.page.evaluate("window.__seen")
    assert all(size == tokens * per_token for tokens, size in seen)
    tokens = [tokens for tokens, _ in seen]
    assert tokens == sorted(tokens) and len(set(tokens)) > 3
    numbers = chat.numbers()
    assert chat.number("cached-tokens") == numbers["conversation"]["tokens"]
    assert chat.number("reused-tokens") == numbers["last_reply"]["reused"]
    assert chat.number("read-tokens") == numbers["last_reply"]["read"]
    assert chat.number("written-tokens") == numbers["last_reply"]["written"]


def test_a_second_turn_reuses_all_but_the_last_token_and_says_so(serve, visit):
    chat = visit(serve(ScriptedModel("First.", "Second.")))
    chat.ask_and_wait("One")
    cached = chat.number("cached-tokens")
    chat.ask_and_wait("Two")
    assert chat.number("reused-tokens") == cached
    assert chat.number("read-tokens") < cached
    expect(chat.answers.first).to_have_attribute("data-edge", "reused")
    expect(chat.answers.last).to_have_attribute("data-edge", "written")
    shown = chat.panel.inner_text()
    chat.reload()
    assert chat.panel.inner_text() == shown


def test_a_new_chat_begins_at_nothing_while_the_pool_stays(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One")
    cached = chat.number("cached-tokens")
    chat.begin_new_chat()
    expect(chat.page.locator("#welcome")).to_be_visible()
    assert chat.number("cached-tokens") == 0 and chat.number("cache-memory") == 0
    chat.page.get_by_text("All chats together").click()
    expect(chat.page.locator("[data-slot=pool_tokens]")).to_have_text(str(cached))
    expect(chat.page.get_by_text("A new chat begins at 0.")).to_be_visible()


def test_without_the_cache_the_page_says_why_it_is_slow(serve, visit):
    server = serve(ScriptedModel("word " * 6))
    chat = visit(server)
    chat.use_cache.uncheck()
    expect(chat.page.locator("#cache-off")).to_contain_text("reads the whole conversation again")
    server.model.hold(10)
    chat.ask("Slowly")
    expect(chat.state).to_have_text("Writing without the cache…")
    server.model.let_go()
    chat.wait_for_end()
    expect(chat.answers.last).to_contain_text("without the cache")
    without = chat.numbers()["last_reply"]["without_cache"]
    expect(chat.panel).to_contain_text(f"Computed {without:,} positions. With the cache at most")
    assert chat.number("cached-tokens") == 0
    chat.reload()
    assert not chat.use_cache.is_checked()
    chat.use_cache.check()
    expect(chat.page.locator("#cache-off")).to_be_hidden()


def test_what_was_computed_says_why_it_is_one_less_than_what_was_made(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One")
    line = chat.panel.locator("[data-way=cached]")
    expect(line).to_contain_text(f"Computed {chat.number('read-tokens') + chat.number('written-tokens') - 1} positions")
    expect(line).to_have_attribute("title", re.compile("last token written is computed only when the next turn"))


def test_the_technical_name_is_one_click_away(serve, visit):
    chat = visit(serve())
    chat.page.get_by_text("KV cache ?").click()
    expect(chat.page.get_by_text("key-value cache")).to_be_visible()
