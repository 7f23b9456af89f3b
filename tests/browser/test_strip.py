"""Every token in memory is a cell that says what it is; cells and the conversation point at each other."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.test_access import assert_accessible
from tests.browser.test_stream import LINES
from tests.browser.without_cache import then_without_the_cache
from tests.scripted import ScriptedModel

CALCULATES = "It is <|python_start|>6*7<|python_end|> then."
ORIGINS = "cells => cells.map(cell => cell.dataset.origin)"
WATCH_CELLS = """() => {
    window.__work = {frames: 0, appends: 0};
    const count = () => { window.__work.frames += 1; requestAnimationFrame(count); };
    requestAnimationFrame(count);
    new MutationObserver(records => { window.__work.appends += records.filter(r => r.addedNodes.length).length; })
        .observe(document.querySelector("[data-testid=token-strip]"), {childList: true});
}"""

POINT_AT_CORNERS = """box => [...box.children].filter(cell => {
    const {left, right, top, bottom} = cell.getBoundingClientRect();
    return [[left + 0.5, top + 0.5], [right - 0.5, bottom - 0.5]].some(([clientX, clientY]) => {
        box.dispatchEvent(new PointerEvent("pointermove", {clientX, clientY, pointerType: "mouse"}));
        return !cell.classList.contains("is-pointed-at");
    });
}).map(cell => cell.dataset.position)"""


def strip_of(chat) -> dict:
    conversation = chat.page.url.rsplit("/", 1)[1]
    return chat.page.evaluate(f"async () => (await fetch('../api/strip?conversation={conversation}')).json()")


def cell(chat, position):
    return chat.token_strip.locator(f"[data-position='{position}']")


def card(chat):
    return chat.page.locator("#token-card")


def first_of(tokens, origin) -> int:
    return next(token["position"] for token in tokens if token["origin"] == origin)


def test_there_is_one_cell_for_each_token_in_the_cache_and_each_says_where_it_came_from(serve, visit):
    chat = visit(serve(ScriptedModel(CALCULATES, "No.")))
    for question in ("One?", "Two?"):
        chat.ask_and_wait(question)
        expect(chat.token).to_have_count(chat.number("cached-tokens"))
        assert chat.token.evaluate_all(ORIGINS) == [token["origin"] for token in strip_of(chat)["tokens"]]
        expect(chat.token_waiting).to_have_count(1)  # the last one, which nothing was computed with
    assert set(chat.token.evaluate_all(ORIGINS)) == {"reused", "read", "written"}
    shown = chat.token.evaluate_all(ORIGINS)
    chat.reload()
    expect(chat.token).to_have_count(len(shown))
    assert chat.token.evaluate_all(ORIGINS) == shown
    assert chat.token.evaluate_all("cells => cells.map(cell => Number(cell.dataset.position))") == list(range(len(shown)))


def test_cells_grow_while_the_answer_is_written(serve, visit):
    server = serve(ScriptedModel("word " * 8))
    chat = visit(server)
    server.model.hold(10)
    chat.ask("Slowly")
    expect(chat.page.locator("[data-testid=token][data-origin=written]")).to_have_count(9)
    expect(chat.cached_tokens).to_have_attribute("data-value", str(chat.token.count()))
    server.model.let_go()
    chat.wait_for_end()
    expect(chat.token).to_have_count(chat.number("cached-tokens"))


def test_pointing_at_a_cell_tells_all_of_it_and_marks_its_message(serve, visit):
    server = serve(ScriptedModel("Yes."))
    chat = visit(server)
    chat.ask_and_wait("One?")
    position = first_of(strip_of(chat)["tokens"], "written")
    cell(chat, position).hover()
    per_token = server.parts.worker.snapshot().model.bytes_per_token
    expect(card(chat)).to_contain_text(re.compile(
        f"Y.*position {position}.*Written by the model.*turn 1 · {per_token:,} bytes of memory · number 89", re.DOTALL))
    rows = card(chat).locator("tbody tr")
    expect(rows).to_have_count(4)  # itself and three runners-up
    expect(rows.first).to_have_text(re.compile("Y.*100 %"))
    expect(card(chat)).to_contain_text("The likeliest of all.")
    expect(chat.answers.first).to_have_class(re.compile("is-marked"))
    cell(chat, 1).hover()
    expect(card(chat)).to_contain_text("<|user_start|>")
    expect(card(chat)).to_contain_text("a mark of the chat, not text")
    expect(card(chat).locator(".token-card__chances")).to_be_hidden()
    expect(chat.questions.first).to_have_class(re.compile("is-marked"))
    chat.composer.hover()
    expect(card(chat)).to_be_hidden()
    expect(chat.page.locator(".is-marked")).to_have_count(0)


@pytest.mark.parametrize("words", [40, 140], ids=["large cells", "small cells"])
@pytest.mark.parametrize("width", [1280, 2200])
def test_the_cell_under_the_pointer_is_the_one_that_is_told_up_to_its_corners(serve, visit, width, words):
    chat = visit(serve(ScriptedModel("word " * words)), viewport={"width": width, "height": 900})
    chat.ask_and_wait("Where?")
    expect(chat.token).to_have_count(chat.number("cached-tokens"))
    assert (chat.token.count() > 500) == (words > 100)  # from there on they are small
    assert chat.token_strip.evaluate(POINT_AT_CORNERS) == []


def test_what_was_drawn_against_the_odds_says_so_also_after_a_reload(serve, visit):
    class Torn(ScriptedModel):
        """Finds two tokens as likely as 3 to 1."""
        def forward(self, ids, kv_cache=None):
            logits = super().forward(ids, kv_cache)
            said = logits[..., -1, :].argmax(-1)
            logits[..., -1, :] = -1e9
            logits[..., -1, ord("n")] = 1.0986  # three times as likely as the other
            logits[:, -1].scatter_(-1, said[:, None], 0.0)
            return logits

    chat = visit(serve(Torn("y"), max_tokens=1, temperature=100.0))
    chat.ask_and_wait("One?")
    for _ in range(2):
        waiting = strip_of(chat)["waiting"][0]
        likelier = {"y": "25 %", "n": "75 %"}[waiting["text"]]
        chat.token_waiting.hover()
        expect(card(chat).locator("[data-taken]")).to_contain_text(likelier.split()[0])
        expect(card(chat)).to_contain_text("The likeliest" if waiting["text"] == "n" else "Another was likelier")
        expect(card(chat)).to_contain_text("not computed yet")
        chat.reload()
        expect(chat.token_waiting).to_have_count(1)


def test_a_tool_call_and_its_cells_mark_each_other(serve, visit):
    chat = visit(serve(ScriptedModel(CALCULATES)))
    chat.ask_and_wait("Sum?")
    tokens = strip_of(chat)["tokens"]
    cell(chat, first_of(tokens, "forced")).hover()
    expect(card(chat)).to_contain_text("Put in by the calculator")
    expect(chat.tool_call).to_have_class(re.compile("is-marked"))
    expect(chat.answers.first).not_to_have_class(re.compile("is-marked"))
    chat.tool_call.hover()
    marked = chat.page.locator("[data-testid=token].is-marked")
    expect(marked).to_have_count(sum("call" in token for token in tokens))
    chat.questions.first.hover()
    question = tokens[0]["message"]
    expect(marked).to_have_count(sum(token["message"] == question for token in tokens))
    chat.composer.hover()
    expect(marked).to_have_count(0)


def test_focusing_a_button_of_a_message_marks_its_cells(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("One?")
    marked = chat.page.locator(".cell.is-marked")
    chat.transcript_box.focus()
    chat.page.keyboard.press("Tab")
    expect(marked).to_have_count(8)
    chat.composer.focus()
    expect(marked).to_have_count(0)


def test_arrow_keys_go_from_cell_to_cell_and_from_line_to_line(serve, visit):
    chat = visit(serve(ScriptedModel("word " * 20)))
    chat.ask_and_wait("Keys?")
    last = chat.number("cached-tokens")  # the cell that waits stands there
    strip, press = chat.token_strip, chat.page.keyboard.press
    columns = strip.evaluate("box => getComputedStyle(box).gridTemplateColumns.split(' ').length")
    chat.open_trace.focus()
    press("Tab")
    expect(strip).to_be_focused()
    for key, position in (("Home", 0), ("ArrowRight", 1), ("ArrowDown", 1 + columns), ("ArrowLeft", columns),
                          ("ArrowUp", 0), ("ArrowUp", 0), ("End", last), ("ArrowRight", last)):
        press(key)
        expect(strip.locator(".is-pointed-at")).to_have_attribute("data-position", str(position))
        expect(strip).to_have_attribute("aria-valuenow", str(position))
        expect(card(chat)).to_contain_text(f"position {position}")
    press("Home")
    expect(strip).to_have_attribute("aria-valuetext", re.compile(r"“<\|bos\|>”, position 0, Read now, a mark of the chat"))
    press("Escape")
    expect(card(chat)).to_be_hidden()
    press("Tab")
    expect(strip).not_to_be_focused()


def test_a_tap_shows_a_token_until_something_else_is_tapped(serve, visit):
    chat = visit(serve(), **PHONE)
    chat.ask_and_wait("One?")
    chat.panel_line.click()
    cell(chat, 3).scroll_into_view_if_needed()
    cell(chat, 3).tap()
    expect(card(chat)).to_contain_text("position 3")
    cell(chat, 5).tap()
    expect(card(chat)).to_contain_text("position 5")
    chat.cached_tokens.tap()
    expect(card(chat)).to_be_hidden()


def test_a_changed_question_cuts_the_strip_where_it_parts(serve, visit):
    server = serve(ScriptedModel("First.", "Second answer."))
    chat = visit(server)
    chat.ask_and_wait("One")
    chat.ask_and_wait("Two")
    before = chat.number("cached-tokens")
    expect(chat.token).to_have_count(before)
    chat.questions.first.hover()
    chat.questions.first.get_by_test_id("edit").click()
    chat.edit_text.fill("X")
    chat.edit_send.click()
    chat.confirm_yes.click()
    expect(chat.questions).to_have_count(1)
    chat.wait_for_end()
    expect(chat.token).to_have_count(chat.number("cached-tokens"))
    assert chat.token.count() < before
    assert chat.token.evaluate_all(ORIGINS) == [token["origin"] for token in strip_of(chat)["tokens"]]


def test_without_the_cache_the_strip_stays_what_is_remembered(serve, visit):
    chat, held = then_without_the_cache(serve, visit)
    chat.ask_and_wait("Two")
    expect(chat.token).to_have_count(held)
    assert chat.number("cached-tokens") == held


def test_an_answer_without_the_cache_leaves_cells_that_are_all_of_before(serve, visit):
    chat, held = then_without_the_cache(serve, visit)
    assert set(chat.token.evaluate_all(ORIGINS)) == {"read", "written"}
    chat.server.model.hold(3)
    chat.ask("Two")
    of_before = chat.page.locator("[data-testid=token][data-origin=reused]")
    expect(of_before).to_have_count(held)  # while it is written
    chat.server.model.let_go()
    chat.wait_for_end()
    left = len(strip_of(chat)["waiting"])
    for _ in range(2):
        expect(chat.page.locator("#strip")).to_contain_text(f"The {left} tokens after these are not remembered.")
        expect(of_before).to_have_count(held)
        chat.reload()
    chat.open_trace.click()
    chat.trace_table.click()
    states = chat.page.locator(".trace-table tbody td:nth-child(5)")
    expect(states.nth(held - 1)).to_have_text("Remembered; the model wrote it in an earlier turn")
    expect(states.nth(held + left - 2)).to_have_text("Not remembered: the next turn reads it")
    expect(states.nth(held + left - 1)).to_have_text("Chosen, but not computed yet: the next turn reads it")


def test_a_forgotten_chat_says_so_in_place_of_its_cells(serve, visit):
    server = serve(rows=1)
    chat = visit(server)
    chat.ask_and_wait("One?")
    tokens = len(strip_of(chat)["tokens"]) + 1
    other = visit(server, like=chat)
    other.ask_and_wait("Another?")
    expect(chat.token).to_have_count(0)
    expect(chat.page.locator("#strip")).to_contain_text(
        f"Nothing of this chat is remembered now. The next turn reads its {tokens} tokens again.")
    chat.reload()
    expect(chat.page.locator("#strip")).to_contain_text("Nothing of this chat is remembered now.")
    expect(chat.token).to_have_count(0)


def test_a_new_chat_has_an_empty_strip_with_a_word_about_it(serve, visit):
    chat = visit(serve())
    expect(chat.page.locator("#strip")).to_contain_text("The first question fills it")
    expect(chat.open_trace).to_be_disabled()


def test_five_thousand_tokens_are_added_at_most_once_a_frame(serve, visit):
    chat = visit(serve(ScriptedModel(f"```python\n{LINES}```"), context=8192, max_tokens=8000))
    chat.page.evaluate(WATCH_CELLS)
    chat.ask("Write fast")
    chat.page.wait_for_selector("[data-testid=message][data-role=assistant][data-state=done]", timeout=120_000)
    chat.wait_until_ready()
    expect(chat.token).to_have_count(chat.number("cached-tokens"))
    work = chat.page.evaluate("window.__work")
    assert 0 < work["appends"] <= work["frames"] + 1, work


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_at_a_pointed_cell(serve, visit, scheme):
    chat = visit(serve(ScriptedModel(CALCULATES)), color_scheme=scheme, reduced_motion="reduce")
    chat.ask_and_wait("Sum?")
    cell(chat, first_of(strip_of(chat)["tokens"], "written")).hover()
    expect(card(chat)).to_be_visible()
    assert_accessible(chat)
