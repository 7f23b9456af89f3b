"""The race page as a person meets it."""

from __future__ import annotations

from playwright.sync_api import Locator, expect

STORY = "Once upon a time there was a cat. "


class RacePage:
    """Hooks are had as on `ChatPage`: `race.speedup` is the element with the hook `race-speedup`."""

    def __init__(self, chat_page):
        self._chat, self.page, self.server = chat_page, chat_page.page, chat_page.server

    def __getattr__(self, name: str) -> Locator:
        return self.page.get_by_test_id("race-" + name.replace("_", "-"))

    def run(self, text: str, tokens: int | None = None) -> None:
        """Ask for a race; it is measured, or refused."""
        self.prompt.fill(text)
        if tokens is not None:
            self.length.fill(str(tokens))
        self.start.click()

    def stop_while_held(self) -> None:
        """Press Stop, and wait until that waits for the engine, whose model is held."""
        self.stop.click()
        self._chat.wait_until(self.server.parts.worker._commands.qsize)

    def run_to_the_end(self, text: str, tokens: int | None = None) -> float:
        """-> how many times faster."""
        self.run(text, tokens)
        return self.wait_for_end()

    def wait_for_end(self) -> float:
        self.wait_for_state("done")
        return float(self.speedup.get_attribute("data-value"))

    def wait_for_state(self, state: str) -> None:
        expect(self.narrator).to_have_attribute("data-state", state)

    def said(self, lane: str) -> str:
        return self.page.get_by_test_id(f"race-{lane}").locator("[data-slot=text]").inner_text()

    def figure(self, lane: str, name: str) -> str:
        return self.page.get_by_test_id(f"race-{lane}").locator(f"[data-slot={name}]").inner_text()
