"""The panel's numbers are the engine's, at every moment, and keep to the formula."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.scripted import ScriptedModel

WATCH = """() => {
    window.__seen = [];
    const value = hook => Number(document.querySelector(`[data-testid=${hook}]`).dataset.value);
    new MutationObserver(() => window.__seen.push([value("cached-tokens"), value("cache-memory")]))
        .observe(document.getElementById("panel"), {childList: true, attributes: true, subtree: true});
}"""


def test_memory_is_tokens_times_bytes_per_token_while_it_grows(serve, visit):
    server = serve(ScriptedModel("word " * 20))
    chat = visit(server)
    per_token = server.parts.worker.snapshot().model.bytes_per_token
    chat.page.evaluate(WATCH)
    server.model.hold(20)
    chat.ask("Count")
    for written in (20, 40, 60, 80):
        chat.wait_for_number("written-tokens", at_least=written)
        server.model.let_go(until=written + 20 if written < 80 else None)
    chat.wait_for_end()
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
    words = [re.escape(word) for word in chat.panel.inner_text().split()]
    memory = words.index("program") + 1
    words[memory:memory + 2] = [r"[\d.,]+", "[kMG]B"]  # of the whole program, which changes meanwhile
    chat.reload()
    expect(chat.panel).to_have_text(re.compile(r"^\s*" + r"\s+".join(words) + r"\s*$"), use_inner_text=True)


def test_where_one_token_more_was_counted_than_is_remembered_the_panel_says_which(serve, visit):
    server = serve(ScriptedModel("It is <|python_start|>12*3<|python_end|> then."))
    server.model.hold(4)
    chat = visit(server)
    chat.ask("Hi")
    expect(chat.written_tokens).to_have_attribute("data-value", "4")
    expect(chat.all_but_last).to_be_empty()  # the next step computes it, not the next turn
    server.model.let_go()
    chat.wait_for_end()
    expect(chat.all_but_last).not_to_be_empty()
    reply, cached = chat.numbers()["last_reply"], chat.number("cached-tokens")
    assert reply["read"] + reply["written"] + reply["forced"] == cached + 1
    expect(chat.all_but_last).to_have_text(f"The last of these {cached + 1} is read with the next turn.")
    chat.reload()
    expect(chat.all_but_last).to_have_text(f"The last of these {cached + 1} is read with the next turn.")
    chat.use_cache.uncheck()
    chat.ask_and_wait("Without")
    expect(chat.all_but_last).to_be_empty()


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
    line = chat.panel.locator("[data-way=reference]")
    expect(line).to_contain_text(re.compile(rf"Tokens computed\s*{without:,}\s*With the cache, at most"))
    assert chat.number("cached-tokens") == 0
    chat.reload()
    expect(chat.use_cache).not_to_be_checked()
    chat.use_cache.check()
    expect(chat.page.locator("#cache-off")).to_be_hidden()


def test_what_was_computed_says_why_it_is_one_less_than_what_was_made(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One")
    line = chat.panel.locator("[data-way=cached]")
    computed = chat.number("read-tokens") + chat.number("written-tokens") - 1
    expect(line).to_contain_text(re.compile(rf"Tokens computed\s*{computed}\s*Without the cache"))
    expect(line.locator("[title]")).to_have_attribute("title", re.compile("last token written is computed only when the"))


def test_the_technical_name_is_one_click_away(serve, visit):
    chat = visit(serve())
    chat.page.get_by_text("KV cache ?").click()
    expect(chat.page.get_by_text("key-value cache")).to_be_visible()


def test_what_a_token_is_is_said_where_they_are_counted_and_more_of_it_by_key_and_by_tap(serve, visit):
    server = serve()
    chat = visit(server)
    more = chat.page.get_by_text("is a piece of a word, or a whole short one")
    summary = chat.what_is_a_token.locator("summary")
    expect(summary).to_have_text("pieces of words ?")
    summary.focus()
    chat.page.keyboard.press("Enter")
    expect(more).to_be_visible()
    chat.page.keyboard.press("Escape")
    expect(more).to_be_hidden()
    expect(summary).to_be_focused()
    phone = visit(server, **PHONE)
    phone.panel_line.click()
    phone.what_is_a_token.locator("summary").tap()
    card = phone.what_is_a_token.locator(".explain__card")
    expect(card).to_be_in_viewport(ratio=1)
    phone.cache_memory.tap()
    expect(card).to_be_hidden()
    expect(phone.panel).to_be_visible()


def test_every_factor_of_the_formula_says_what_it_is_and_they_make_the_bytes(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One")
    factors = chat.formula.locator("button")
    values = [int(re.sub(r"\D", "", text)) for text in factors.all_inner_texts()]
    product = 1
    for value in values[:-1]:
        product *= value
    assert product == values[-1] == chat.number("cache-memory")
    explanations = set()
    for factor in factors.all():
        factor.focus()
        why = chat.page.locator(f"#{factor.get_attribute('aria-describedby')}")
        expect(why).to_be_visible()
        explanations.add(why.inner_text())
        expect(chat.page.locator(".factor-why >> visible=true")).to_have_count(1)
    assert len(explanations) == len(values)
    factors.first.hover()  # what is pointed at is explained, whatever has the focus
    expect(chat.page.locator("#factor-two")).to_be_visible()
    expect(chat.page.locator("#factor-bytes")).to_be_hidden()


def test_what_sharing_kv_heads_saves_is_said_in_this_models_numbers(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One")
    expect(chat.sharing).to_contain_text("4 query heads, which ask, share 2 KV heads, which remember. Without it, it would be 2 times as much, ")
    model = ScriptedModel("Hello.")
    model.config = replace(model.config, n_kv_head=4)
    other = visit(serve(model))
    other.ask_and_wait("One")
    expect(other.sharing).to_contain_text("Each of the 4 query heads, which ask, has a KV head of its own")


def test_how_many_times_more_would_be_computed_without_the_cache(serve, visit):
    chat = visit(serve(ScriptedModel("word " * 8)))
    chat.ask_and_wait("Count")
    last = chat.numbers()["last_reply"]
    computed = last["read"] + last["written"] - 1
    times = last["without_cache"] / computed
    shown = f"{times:.0f}" if times >= 10 else f"{times:.1f}"
    expect(chat.panel.locator("[data-way=cached]")).to_contain_text(
        re.compile(rf"Without the cache\s*{last['without_cache']:,}\s*How many times as many\s*{re.escape(shown)}×"))
    expect(chat.panel).to_contain_text("Work, not seconds: without the cache, all is computed again for each new token.")


def test_before_the_context_is_full_it_says_how_many_more_questions_fit(serve, visit):
    chat = visit(serve(ScriptedModel("ok"), context=128))
    said = []
    while not said or not said[-1].startswith("With the next question"):
        chat.ask_and_wait("hi")
        if chat.room.inner_text() not in said:
            said.append(chat.room.inner_text())
        shown = chat.room.inner_text()
        chat.reload()
        expect(chat.room).to_have_text(shown)
    assert said[0] == "when full: oldest turns are left out"
    assert said[1:] == ["About 3 more questions like the last fit; then the oldest turns are left out.",
                        "About 2 more questions like the last fit; then the oldest turns are left out.",
                        "About one more question like the last fits; then the oldest turns are left out.",
                        "With the next question the oldest turns are left out, and what remains is read again."]
    chat.ask_and_wait("hi")
    expect(chat.cache_events).to_contain_text("are left out from now on")


def test_the_memory_of_weights_cache_and_program_are_three_things(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One")
    numbers = chat.numbers()
    chat.page.get_by_text("All chats together").click()
    rows = chat.page.locator("#machine .amounts__row:visible")
    expect(rows).to_have_count(3)
    reserved = float(rows.nth(1).locator(".amount__reserved").get_attribute("width").rstrip("%"))
    used = float(rows.nth(1).locator(".amount__used").get_attribute("width").rstrip("%"))
    pool, resident = numbers["pool"], numbers["process"]["resident_bytes"]
    assert reserved == pytest.approx(100 * pool["bytes_reserved"] / resident, rel=0.2)
    assert used / reserved == pytest.approx(pool["bytes_used"] / pool["bytes_reserved"], rel=0.1)
    assert rows.nth(2).locator(".amount__whole").get_attribute("width") == "100%"


def test_nothing_in_the_panel_moves_while_an_answer_is_written(serve, visit):
    chat = visit(serve(ScriptedModel("word " * 40, seconds_per_token=0.004)))
    chat.ask_and_wait("One")  # what stands there from the first answer on
    chat.ask_and_wait("Two")
    chat.page.evaluate("""() => {
        window.__places = new Set();
        const parts = [...document.querySelectorAll("#panel h3, #panel .tile, #panel .facts__row, #panel .context-bar")];
        const look = () => {
            const shown = parts.filter(part => part.checkVisibility() && !part.closest("#happened, #strip, #cost, #machine"));
            window.__places.add(JSON.stringify(shown.map(part => [part.offsetTop, part.offsetHeight, part.offsetWidth])));
            window.__watch = requestAnimationFrame(look);
        };
        look();
    }""")
    chat.ask_and_wait("Three")
    assert chat.page.evaluate("window.__places.size") == 1


def test_a_model_whose_layers_look_back_less_far_says_how_much_it_looks_up(serve, visit):
    model = ScriptedModel("word " * 4)
    model.windows = [None, 8]
    server = serve(model)
    chat = visit(server)
    chat.ask_and_wait("Count")
    each = server.parts.worker.snapshot().model.bytes_per_token // 2  # of each of its two layers
    tokens = chat.number("cached-tokens")
    chat.why_speeds.locator("summary").click()
    expect(chat.why_speeds).to_contain_text(f"{each * (tokens + 8) / 1000:.2f} kB for one more token now.")
    expect(chat.why_speeds).to_contain_text("Layers that look back over the last 8 tokens alone: 1 of 2.")
    shown = chat.why_speeds.inner_text()
    chat.reload()
    chat.why_speeds.locator("summary").click()
    expect(chat.why_speeds).to_have_text(shown, use_inner_text=True)
