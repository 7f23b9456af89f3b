"""A fast stream is gathered into frames, and a screen reader hears its start and its end."""

from playwright.sync_api import expect

from tests.scripted import ScriptedModel

LINES = "".join(f"x{n} = {n}\n" for n in range(460))  # about 4,900 tokens of one byte
WATCH_WORK = """() => {
    window.__work = {frames: 0, changes: 0};
    const count = () => { window.__work.frames += 1; requestAnimationFrame(count); };
    requestAnimationFrame(count);
    new MutationObserver(records => { window.__work.changes += records.length; })
        .observe(document.getElementById("messages"), {characterData: true, subtree: true});
}"""
WATCH_SPEECH = """() => {
    window.__said = [];
    for (const region of document.querySelectorAll("[aria-live], [role=status], [role=alert], [role=log]"))
        new MutationObserver(() => { if (region.textContent) window.__said.push(region.textContent); })
            .observe(region, {childList: true, characterData: true, subtree: true});
}"""


def test_five_thousand_tokens_change_the_page_at_most_once_a_frame(serve, visit):
    chat = visit(serve(ScriptedModel(f"Before.\n\n```python\n{LINES}```\n\nAfter."), context=8192, max_tokens=8000))
    chat.page.evaluate(WATCH_WORK)
    chat.ask("Write fast")
    chat.page.wait_for_selector("[data-testid=message][data-role=assistant][data-state=done]", timeout=120_000)
    chat.wait_until_ready()
    work = chat.page.evaluate("window.__work")
    assert 0 < work["changes"] <= work["frames"] * 3, work  # the text, and the two numbers of its waiting line
    code = chat.answers.last.locator("pre").inner_text()
    assert code.strip() == LINES.strip()
    expect(chat.answers.last).to_contain_text("After.")


def test_a_screen_reader_hears_the_start_the_end_and_the_memory_only(serve, visit):
    server = serve(ScriptedModel("word " * 20))
    server.model.hold(50)
    chat = visit(server)
    chat.page.evaluate(WATCH_SPEECH)
    chat.ask("Speak")
    chat.wait_for_number("written-tokens", at_least=50)
    server.model.let_go()
    chat.wait_for_end()
    expect(chat.announcer).to_contain_text("The answer is finished")
    said = chat.page.evaluate("window.__said")
    assert 2 <= len(said) <= 3
    assert said[0] == "The model is answering."
    assert said[-1].endswith("tokens are remembered.") and f"{chat.number('cached-tokens'):,}" in said[-1]
