"""A calculation: one line that opens, the same live and after a reload, and never a mark in the text."""

from playwright.sync_api import expect

from tests.scripted import ScriptedModel

SAID = "Each eats it, so <|python_start|>123*456<|python_end|> in all."
WATCH_MARKS = """() => {
    window.__marks = [];
    new MutationObserver(() => {
        const text = document.getElementById("messages").textContent;
        if (/<\\||\\|>/.test(text)) window.__marks.push(text);
    }).observe(document.getElementById("messages"), {childList: true, characterData: true, subtree: true});
}"""


def test_a_call_is_one_line_that_opens_by_key_and_marks_are_never_seen(serve, visit):
    chat = visit(serve(ScriptedModel(SAID, seconds_per_token=0.003)))
    chat.page.evaluate(WATCH_MARKS)
    chat.ask_and_wait("How much?")
    assert chat.page.evaluate("window.__marks") == []
    expect(chat.tool_call).to_have_count(1)
    for _ in ("live", "after a reload"):
        expect(chat.tool_call).to_have_attribute("data-state", "done")
        assert chat.tool_expression.inner_text() == "123*456"
        assert chat.tool_result.inner_text() == "56088"
        assert chat.tool_call.get_attribute("open") is None
        facts = chat.tool_call.locator(".tool-call__facts")
        expect(facts).to_be_hidden()
        chat.tool_call.locator("summary").focus()
        chat.page.keyboard.press("Enter")
        expect(facts).to_be_visible()
        # 7 letters and two marks were written; 5 digits and two marks were put in
        expect(chat.tool_call.locator(".badge")).to_have_text("put in: 7 tokens, 2 of them marks")
        expect(facts).to_contain_text("9 tokens, 2 of them marks around it")
        expect(facts).to_contain_text("7 tokens, 2 of them marks around it")
        assert chat.number("forced-tokens") == 7
        chat.reload()


def test_a_call_is_seen_while_it_is_written_and_the_page_says_so(serve, visit):
    server = serve(ScriptedModel(SAID))
    server.model.hold(len("Each eats it, so ") + 1 + 4)
    chat = visit(server)
    chat.ask("How much?")
    expect(chat.tool_call).to_have_attribute("data-state", "writing")
    expect(chat.state).to_have_text("Calculating…")
    server.model.let_go()
    chat.wait_for_end()
    expect(chat.tool_call).to_have_attribute("data-state", "done")


def test_a_refused_and_an_unfinished_call_say_so(serve, visit):
    chat = visit(serve(ScriptedModel("So <|python_start|>1/0<|python_end|> and <|python_start|>12*")))
    chat.ask_and_wait("How much?")
    for _ in ("live", "after a reload"):
        refused, unfinished = chat.tool_call.nth(0), chat.tool_call.nth(1)
        expect(refused).to_have_attribute("data-state", "refused")
        expect(refused.locator(".badge")).to_contain_text("division by zero")
        assert refused.get_by_test_id("tool-result").is_hidden()
        expect(unfinished).to_have_attribute("data-state", "unfinished")
        expect(unfinished.locator(".badge")).to_have_text("unfinished")
        expect(unfinished.locator("[data-slot=written]")).to_have_text("4 tokens, one of them the mark before it")
        chat.reload()


def test_a_stop_inside_of_a_call_leaves_it_unfinished(serve, visit):
    server = serve(ScriptedModel(SAID, "Next."))
    server.model.hold(len("Each eats it, so ") + 1 + 4)
    chat = visit(server)
    chat.ask("How much?")
    expect(chat.tool_call).to_have_attribute("data-state", "writing")
    assert server.model.holding.wait(60)
    chat.stop_while_held()
    server.model.let_go()
    chat.wait_for_end()
    expect(chat.tool_call).to_have_attribute("data-state", "unfinished")
    assert chat.ask_and_wait("And now?") == "Next."
