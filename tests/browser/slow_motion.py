"""Slow motion as a person meets it: what is held back, what is shown, and the way to the end."""

from playwright.sync_api import expect

from tests.scripted import ScriptedModel

TEXT = """() => [...document.querySelectorAll("[data-role=assistant]:last-child :is(.block, .tail)")]
    .map(part => part.textContent).join("").trim()"""  # without what is said while one waits

TO_THE_END = """async () => {
    const next = document.querySelector("[data-testid=slow-next]"), send = document.getElementById("send");
    while (send.hidden) {
        next.click();
        await new Promise(requestAnimationFrame);
    }
}"""


def press_to_the_end(chat) -> None:
    expect(chat.send).to_be_hidden()  # by the first frame after a reload, too
    chat.page.evaluate(TO_THE_END)


def shows(chat, hook: str, number: int) -> None:
    expect(chat.page.get_by_test_id(hook)).to_have_attribute("data-value", str(number))


def has_all(chat, tokens: int) -> None:
    """So many are held back: what the scripted model says has come."""
    expect(chat.slow_ahead).to_contain_text(f"the model has finished, and {tokens} tokens")


def one_token_into(said, serve, visit):
    """(the server, a chat) whose model waits after 30 tokens, of which the page has shown the first step."""
    server = serve(ScriptedModel(said))
    server.model.hold(30)
    chat = visit(server)
    chat.slow_motion.click()
    chat.ask("Hi")
    expect(chat.slow_ahead).to_contain_text("the model has written 30 tokens more")
    chat.page.keyboard.press("Space")
    return server, chat
