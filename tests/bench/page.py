"""What a fast answer costs the page: the real page and server, a model that writes as fast as it is told to.

    .venv/bin/python -m tests.bench.page [--tokens 5000] [--speed 500] [--rounds 3]

Chromium itself says what it measured: tasks of the page that took longer than 50 ms, how much of the layout jumped, and how
long it took from a key or a click to the next picture. Prints, for the answer while it is written, the speed, the longest
task after its first second, and the jumps; then, with all those tokens in the strip, the slowest key or movement in it, and
the trace of all tokens opened. Each figure is the median of the rounds, and the worst.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from statistics import median

import torch
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import CHROMIUM_FLAGS, DESKTOP
from tests.find_browser import browser_path
from tests.scripted import ASSISTANT_END, VOCAB_SIZE, ScriptedModel
from tests.web.talk import RunningServer

PARAGRAPH = ("The lighthouse stood where the land ends, and a **dog** watched it. `wind = 12` was all that the log said.\n\n"
             "- a storm\n- a lamp\n- a long night\n\n```python\nfor wave in sea:\n    print(wave)\n```\n\n")
STEPS = 60                # keys pressed, and places pointed at, in the strip
TRACE_WITHIN_MS = 60_000
WATCH = """() => {
    window.seen = { tasks: [], jumps: 0, slowest: 0 };
    const watch = (type, take, more) => new PerformanceObserver(list => list.getEntries().forEach(take)).observe({ type, ...more });
    watch("longtask", entry => seen.tasks.push([entry.startTime, entry.duration]));
    watch("layout-shift", entry => { seen.jumps += entry.hadRecentInput ? 0 : entry.value; }); // a key or a click may move things
    watch("event", entry => { seen.slowest = Math.max(seen.slowest, entry.duration); }, { durationThreshold: 16 });
    return performance.now();
}"""


class Typist(ScriptedModel):
    """Writes one answer, a character a token, so many a second: it waits for the moment of each, not between them."""

    def __init__(self, tokens: int, speed: float):
        super().__init__("", sequence_len=2 * tokens + 1024)
        self._script = (PARAGRAPH * (1 + tokens // len(PARAGRAPH)))[:tokens].encode()
        self._seconds = 1 / speed
        self._written, self._began = 0, 0.0

    def forward(self, ids, kv_cache=None):
        if ids.shape[1] > 1:
            self._written, self._began = 0, time.perf_counter()
        else:
            self._written += 1
            time.sleep(max(0.0, self._began + self._written * self._seconds - time.perf_counter()))
        logits = torch.zeros(1, ids.shape[1], VOCAB_SIZE)
        logits[0, -1, self._script[self._written] if self._written < len(self._script) else ASSISTANT_END] = 100.0
        kv_cache.advance(ids.shape[1])
        return logits


def measure(chat: ChatPage, tokens: int) -> dict[str, float]:
    """One answer and a walk through its tokens -> milliseconds by name, and `jumps` and `tokens a second`."""
    page = chat.page
    expect(chat.send).to_be_enabled()
    began_ms = page.evaluate(WATCH)
    started = time.perf_counter()
    chat.ask("Go")
    chat.wait_for_end()
    seconds, seen = time.perf_counter() - started, page.evaluate("seen")
    found = {"tokens a second": tokens / seconds, "jumps": seen["jumps"],
             "longest task after the first second, ms": longest(seen["tasks"], began_ms + 1000)}
    found["slowest key or movement in the strip, ms"] = walk(chat, page)
    opened_ms = page.evaluate(WATCH)
    page.get_by_test_id("open-trace").click()
    expect(page.locator("[data-testid=trace] [data-position]").nth(tokens - 1)).to_be_attached(timeout=TRACE_WITHIN_MS)
    chat.wait_for_frames(10)
    found["longest task in opening the trace, ms"] = longest(page.evaluate("seen.tasks"), opened_ms)
    return found


def walk(chat: ChatPage, page: Page) -> float:
    """Keys and the pointer, through the cells of the strip -> the slowest, from the press to the picture."""
    strip = page.get_by_test_id("token-strip")
    strip.focus()
    page.evaluate(WATCH)
    for step in range(STEPS):
        page.keyboard.press(("ArrowRight", "ArrowDown", "ArrowLeft", "End", "Home")[step % 5])
    box = strip.bounding_box()
    for step in range(STEPS):
        page.mouse.move(box["x"] + box["width"] * (step % 10 + 0.5) / 10, box["y"] + box["height"] * (step % 7 + 0.5) / 7)
    chat.wait_for_frames(10)
    return page.evaluate("Math.max(seen.slowest, ...seen.tasks.map(task => task[1]))")


def longest(tasks: list[list[float]], after_ms: float) -> float:
    """Of [start, milliseconds] each; 0 where none took longer than 50 ms."""
    return max((took for start, took in tasks if start >= after_ms), default=0.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=5000)
    parser.add_argument("--speed", type=float, default=500, help="tokens a second")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rounds, browser_file = [], browser_path()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as data:
        browser = playwright.chromium.launch(executable_path=browser_file, args=CHROMIUM_FLAGS)
        server = RunningServer(data, Typist(args.tokens, args.speed), context=args.tokens + 512, rows=1, max_tokens=args.tokens)
        for _ in range(args.rounds):
            context = browser.new_context(viewport=DESKTOP)
            page = context.new_page()
            page.goto(f"http://{server.host}/")
            rounds.append(measure(ChatPage(page, server), args.tokens))
            context.close()
        server.stop()
        browser.close()
    print(f"{args.tokens:,} tokens, asked for {args.speed:.0f} a second; {args.rounds} rounds: median, worst")
    for name in rounds[0]:
        values = [each[name] for each in rounds]
        digits = 3 if name == "jumps" else 0
        worst = min(values) if name == "tokens a second" else max(values)
        print(f"{name:45}{median(values):10.{digits}f}{worst:10.{digits}f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
