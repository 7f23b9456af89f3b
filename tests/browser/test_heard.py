"""What a screen reader is told without being asked: each thing once, and whatever is seen to have happened."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import PHONE
from tests.browser.test_answers import ask, set_answers
from tests.scripted import ScriptedModel

LISTEN = """() => {
    const LIVE = "[aria-live], [role=status], [role=alert], [role=log], output";
    window.__told = [];
    new MutationObserver(records => {
        const regions = records.map(({target}) => (target.nodeType === 1 ? target : target.parentElement).closest(LIVE));
        for (const region of new Set(regions)) {
            const text = region?.checkVisibility() ? region.innerText.trim() : "";
            if (text) window.__told.push(text);
        }
    }).observe(document, {subtree: true, childList: true, characterData: true, attributeFilter: ["hidden"]});
}"""


def listen(chat) -> None:
    chat.page.evaluate(LISTEN)


def told(chat) -> list[str]:
    """What was told since this was asked before."""
    return chat.page.evaluate("window.__told.splice(0)")


def wait_until_told(chat, sentence: str) -> None:
    """Until it is told; whatever was told up to it counts as heard."""
    chat.wait_until(lambda: chat.page.evaluate(
        "sentence => { const at = window.__told.indexOf(sentence); return at >= 0 && window.__told.splice(0, at + 1); }",
        sentence))


def ask_and_hear(chat, question: str) -> None:
    """Ask, with the model held until the start was told: of what begins and ends within one frame the end alone is."""
    chat.server.model.hold(1)
    chat.ask(question)
    expect(chat.announcer).to_have_text("The model is answering.")


def test_an_answer_with_a_calculation_is_told_by_its_start_and_its_end_alone(serve, visit):
    chat = visit(serve(ScriptedModel("It is <|python_start|>6*7<|python_end|> then.")))
    listen(chat)
    for _ in range(2):
        ask_and_hear(chat, "Sum?")
        chat.server.model.let_go()
        chat.wait_for_end()
        start, end = told(chat)
        assert start == "The model is answering."
        assert end.startswith("The answer is finished: ")
        assert end.endswith(f" {chat.number('cached-tokens')} tokens are remembered.")


def test_why_an_answer_ended_early_is_told_with_the_memory(serve, visit):
    server = serve(ScriptedModel("word " * 9, "word " * 9, RuntimeError("lost")), max_tokens=20)
    chat = visit(server)
    listen(chat)
    ask_and_hear(chat, "Long?")
    server.model.let_go()
    chat.wait_for_end()
    ask_and_hear(chat, "Stopped?")
    chat.stop_while_held()
    server.model.let_go()
    chat.wait_for_end()
    cut, stopped = told(chat)[1::2]
    assert cut.startswith("Cut off: the longest answer was reached. ") and cut.endswith(" tokens are remembered.")
    assert stopped.startswith("Stopped. ") and stopped.endswith(" tokens are remembered.")
    chat.ask("Fails?")
    failed = chat.answers.last.locator("[data-slot=end]")
    expect(failed).not_to_be_empty()
    expect(chat.announcer).to_have_text(f"{failed.inner_text()}. 0 tokens are remembered.")
    assert set(told(chat)) <= {"The model is answering.", chat.announcer.inner_text()}


def test_that_the_line_is_broken_and_is_back_is_told(serve, visit):
    server = serve()
    chat = visit(server)
    listen(chat)
    chat.page.context.set_offline(True)
    chat.page.evaluate("dispatchEvent(new Event('offline'))")
    wait_until_told(chat, "Reconnecting…")
    chat.page.context.set_offline(False)
    wait_until_told(chat, "Ready")
    assert told(chat) == []


def test_that_something_was_copied_is_told_each_time(serve, visit):
    chat = visit(serve())
    chat.ask_and_wait("Hello")
    listen(chat)
    for _ in range(2):
        chat.copy.last.click()
        wait_until_told(chat, "Copied")
        expect(chat.announcer).to_be_empty()
    chat.open_trace.click()
    chat.trace_copy_text.click()
    wait_until_told(chat, "Copied")
    assert chat.trace.locator("[role=status]").count() == 1  # outside of the dialog it would not be heard
    chat.page.goto(chat.server.url + "/memory")
    listen(chat)
    chat.copy_link.click()
    wait_until_told(chat, "Copied")


def test_which_answer_the_chat_goes_on_with_is_told(serve, visit):
    chat = visit(serve())
    set_answers(chat, 2)
    ask(chat, "Two?", 2)
    chat.wait_for_end()
    listen(chat)
    chat.pick.last.click()
    chat.wait_until(lambda: any(text.startswith("The chat goes on with answer 2.") for text in told(chat)))


def test_every_button_says_what_it_does_where_nothing_stands_around_it(serve, visit):
    chat = visit(serve(), color_scheme="light")
    set_answers(chat, 2)
    ask(chat, "Two?", 2)
    chat.wait_for_end()
    link = chat.page.locator(".chat-item.is-current a")
    expect(link).to_have_accessible_name(f"Two? {chat.number('cached-tokens')} tokens")
    for button, name in ((chat.copy.first, "Copy the question"), (chat.copy.last, "Copy the answer"),
                         (chat.edit, "Edit the question"), (chat.pick.first, "Pick this one: answer 1"),
                         (chat.pick.last, "Pick this one: answer 2"), (chat.theme, "Dark theme")):
        expect(button).to_have_accessible_name(name)
        assert button.text_content().strip() in name  # whoever speaks to the page says what stands there
    expect(chat.regenerate_all).to_have_accessible_name("Answer the question again")
    chat.reload()
    expect(chat.pick.last).to_have_accessible_name("Pick this one: answer 2")
    expect(link).to_have_accessible_name(f"Two? {chat.number('cached-tokens')} tokens")
    chat.pick.last.click()
    expect(chat.regenerate.first).to_have_accessible_name("Answer the question again")
    chat.theme.click()
    expect(chat.theme).to_have_accessible_name("Light theme")
    expect(chat.use_cache).to_have_accessible_description(re.compile("^Off: for each word the model reads the whole"))


def test_what_a_cache_would_take_is_told_once_the_slider_stands_still(serve, visit):
    chat = visit(serve())
    chat.page.goto(chat.server.url + "/memory")
    listen(chat)
    slider = chat.page.locator("[data-slider=people]")
    was = chat.what_bytes.inner_text()
    slider.focus()
    for _ in range(3):
        slider.press("ArrowRight")
    line = chat.page.locator("#what [data-slot=line]").inner_text()
    wait_until_told(chat, f"{chat.what_bytes.inner_text()} {line}")
    assert chat.what_bytes.inner_text() != was
