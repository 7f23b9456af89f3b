"""The chat page as a person meets it: what can be done on it, and what can be read on it."""

from __future__ import annotations

import json
import time

from playwright.sync_api import Locator, Page, expect

NUMBERS = """async () => {
    const id = location.pathname.split("/").pop();
    return (await fetch(`${document.body.dataset.root}api/cache?conversation=${id}`)).json();
}"""
HEAR = """button => {
    window.__heard = [];
    new MutationObserver(() => window.__heard.push(button.innerText)).observe(button, {childList: true, subtree: true});
}"""
FRAMES = "async (count) => { while (count--) await new Promise(requestAnimationFrame); }"
PATIENCE_S = 60
ENDED = "[data-testid=message][data-role=assistant]:last-child:not([data-state=writing])"


class ChatPage:
    def __init__(self, page: Page, server):
        self.page, self.server = page, server

    def __getattr__(self, name: str) -> Locator:
        """`chat.cached_tokens` is the element with the hook `cached-tokens`."""
        return self.page.get_by_test_id(name.replace("_", "-"))

    # --- doing

    def ask(self, text: str) -> None:
        """Send a question, and wait until the server has it."""
        answers = self.answers.count()
        self.composer.fill(text)
        self.send.click()
        expect(self.answers).to_have_count(answers + 1)

    def ask_and_wait(self, text: str) -> str:
        """The answer, when it is finished."""
        self.ask(text)
        return self.wait_for_end()

    def wait_for_another_answer(self, old: str) -> str:
        """The answer that takes the place of the one with the id `old`, when it is finished."""
        expect(self.answers.first).not_to_have_attribute("data-id", old)
        return self.wait_for_end()

    def wait_for_end(self) -> str:
        """The answer, when it is finished and the page has heard all that is told of its end."""
        self.page.wait_for_selector(ENDED)
        expect(self.send).to_be_visible()
        self.wait_until_ready()
        return self.text_of(self.answers.last)

    def wait_until_ready(self) -> None:
        """Until nothing is being written, and the page says so: it is told that last, behind all numbers."""
        expect(self.state).to_have_attribute("data-state", "idle")

    def stop_while_held(self, wishes: int = 1) -> None:
        """Press Stop, and wait until that waits for the engine, whose model is held: as the last of so many wishes."""
        self.stop.click()
        self.wait_until(lambda: self.server.parts.worker._commands.qsize() >= wishes)

    def wait_until(self, condition) -> None:
        """For what no locator can wait for. The page's events come in meanwhile."""
        until = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < until, "what was waited for did not happen"
            self.page.wait_for_timeout(20)

    def click_and_hear(self, button: Locator, said: str) -> None:
        """Click a button, and wait until it has said so, if only for a moment."""
        button.evaluate(HEAR)
        button.click()
        self.wait_until(lambda: any(said in text for text in self.page.evaluate("window.__heard")))

    def wait_for_frames(self, count: int = 30) -> None:
        """Until the page has been painted so many times: whatever it does by itself, it does from frame to frame."""
        self.page.evaluate(FRAMES, count)

    def begin_new_chat(self) -> None:
        self.new_chat.click()
        expect(self.page.locator("#welcome")).to_be_visible()
        expect(self.send).to_be_enabled()  # the scripts are there

    def reload(self) -> None:
        self.page.reload()

    # --- reading

    @property
    def messages(self) -> Locator:
        return self.page.get_by_test_id("message")

    @property
    def questions(self) -> Locator:
        return self.page.locator("[data-testid=message][data-role=user]")

    @property
    def answers(self) -> Locator:
        return self.page.locator("[data-testid=message][data-role=assistant]")

    @property
    def transcript_box(self) -> Locator:
        return self.page.locator("#transcript")

    @property
    def announcer(self) -> Locator:
        return self.page.locator("#announcer")

    def text_of(self, message: Locator) -> str:
        """What stands in a message, without its buttons."""
        return message.locator(".message__body").inner_text().strip()

    def number(self, hook: str) -> int:
        """The number behind a hook of the panel."""
        return int(self.page.get_by_test_id(hook).get_attribute("data-value"))

    def wait_for_number(self, hook: str, at_least: int) -> int:
        """The number behind a hook of the panel, once it is so large."""
        self.wait_until(lambda: self.number(hook) >= at_least)
        return self.number(hook)

    def numbers(self) -> dict:
        """What the server says of this chat: the `cache` object."""
        return self.page.evaluate(NUMBERS)

    def frames(self, *types: str) -> list[dict]:
        """Frames that this page sends and receives from now on, of these types; the list grows."""
        seen: list[dict] = []

        def keep(payload) -> None:
            frame = json.loads(payload)
            if frame["type"] in types:
                seen.append(frame)

        self.page.on("websocket", lambda socket: (socket.on("framesent", keep), socket.on("framereceived", keep)))
        self.page.reload()
        return seen
