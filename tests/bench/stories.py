"""The ready stories of the empty page, played in the real page with the real model, many times over.

    .venv/bin/python -m tests.bench.stories [--times 20] [--only long] [--verbose] [--model, --port, ... as for serve]

Each play is a new visitor's, in a browser session of its own: a click on the story, then on "Next" up to its end. After
each answer it is looked at what the story promises (story_promises.py). Prints for each story and language how often
it was played, went to its end, and kept what it promises; how many different plays there were, by the words of their
answers (greedy, so one); and seconds, the median. Has exit status 1 where one did not end or keep its promise.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from statistics import median
from types import SimpleNamespace

from playwright.sync_api import Browser, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from app.settings import Settings, add_options
from tests.bench.story_promises import PROMISES, Step, faults_of
from tests.bench.streaming import serving
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import CHROMIUM_FLAGS, DESKTOP
from tests.find_browser import browser_path

LOCALES = {"en": "en-US", "zh": "zh-CN"}
ANSWERED_WITHIN_MS = 300_000
WORDS = "JSON.parse(document.getElementById('page-words').textContent)"
REMEMBERED = """async () => {
    const id = location.pathname.split("/").pop();
    const strip = await (await fetch(`${document.body.dataset.root}api/strip?conversation=${id}`)).json();
    return strip.tokens.map(token => token.text).join("");
}"""


@dataclass
class Play:
    steps: list[Step] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    is_at_end: bool = False
    seconds: float = 0.0

    @property
    def answers(self) -> tuple[str, ...]:
        return tuple(step.answer for step in self.steps)


# --- one play

def play(chat: ChatPage, name: str, language: str) -> Play:
    """The story `name`, on the empty page of a new visitor."""
    made, words = Play(), chat.page.evaluate(WORDS)
    listen(chat, made)
    expect(chat.send).to_be_enabled()
    chat.wait_until_ready()
    started = time.perf_counter()
    try:
        for number in range(1, len(PROMISES[name]) + 1):
            go_on(chat, name, number)
            made.steps.append(look(chat, words, name, number, language, made.steps[-1].after if made.steps else {}))
        made.is_at_end = words["story.end"] in chat.story_look.inner_text() and not chat.story_next.is_visible()
    except (AssertionError, PlaywrightError) as error:
        made.faults.append(f"it got stuck: {str(error).splitlines()[0]}")
    made.seconds = time.perf_counter() - started
    made.faults += faults_of(name, made.steps)
    return made


def listen(chat: ChatPage, made: Play) -> None:
    """For errors of the page."""
    def hear(said) -> None:
        if said.type == "error":
            made.faults.append(f"the console says: {said.text}")

    chat.page.on("console", hear)
    chat.page.on("pageerror", lambda error: made.faults.append(f"a script failed: {error}"))


def go_on(chat: ChatPage, name: str, number: int) -> None:
    """One click, and the answer to its end."""
    answer_before = chat.answers.last.get_attribute("data-id") if number > 1 else ""
    (chat.story_next if number > 1 else chat.page.locator(f"[data-story={name}]")).click()
    expect(chat.page.locator("[data-role=assistant]:last-child")).not_to_have_attribute("data-id", answer_before)
    chat.wait_for_end()


def look(chat: ChatPage, words: dict[str, str], name: str, number: int, language: str, before: dict) -> Step:
    """At the answer that has just ended, and at what the story says of it."""
    sentence, about = words[f"story.{name}.look{number}"], words[f"story.{name}.about"]
    chat.wait_until(lambda: chat.story_look.inner_text() != about)  # the figures come behind the answer
    answer = chat.answers.last
    said = chat.story_look.inner_text()
    return Step(
        language=language, question=words[f"story.{name}.ask{number}"], answer=chat.text_of(answer),
        state=answer.get_attribute("data-state"), said=said, figures=figures_in(said, sentence),
        before=before, after=chat.numbers(), remembered=chat.page.evaluate(REMEMBERED),
        calls=[look_into(call) for call in answer.get_by_test_id("tool-call").all()])


def look_into(call) -> dict:
    """Opens a block of the calculator, and closes it again."""
    call.locator("summary").click()
    opens = call.locator("dl").is_visible()
    call.locator("summary").click()
    return {"state": call.get_attribute("data-state"), "opens": opens,
            **{part: call.get_by_test_id(f"tool-{part}").inner_text() for part in ("expression", "result")}}


def figures_in(said: str, sentence: str) -> dict[str, int]:
    """What stands in the `{slots}` of a sentence; nothing where something else is said."""
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[\\d,]+)", re.escape(sentence))
    found = re.match(pattern, said)
    return {name: int(figure.replace(",", "")) for name, figure in found.groupdict().items()} if found else {}


# --- many

Plays = dict[tuple[str, str], list[Play]]  # by story and language


def play_all(browser: Browser, url: str, names: list[str], times: int, is_verbose: bool) -> Plays:
    """In turn, so that a slow minute falls on all."""
    plays: Plays = {(name, language): [] for name in names for language in LOCALES}
    for round in range(1, times + 1):
        for name, language in plays:
            context = browser.new_context(viewport=DESKTOP, locale=LOCALES[language])
            context.set_default_timeout(ANSWERED_WITHIN_MS)
            page = context.new_page()
            page.goto(url)
            made = play(ChatPage(page, SimpleNamespace(url=url)), name, language)
            context.close()
            plays[name, language].append(made)
            if is_verbose and round == 1:
                show(name, language, made)
        print("\n".join([f"round {round} of {times}", *table(plays)]), file=sys.stderr, flush=True)
    return plays


def show(name: str, language: str, made: Play) -> None:
    for number, step in enumerate(made.steps, start=1):
        print(f"--- {name} ({language}) {number}: {step.question}\n{step.answer}\n"
              f"    [{step.state}] {step.said}\n    {json.dumps(step.counted)}")
    print(flush=True)


def table(plays: Plays) -> list[str]:
    lines = [f"{'story':12}{'':4}{'played':>8}{'ended':>8}{'kept':>8}{'different':>11}{'seconds':>9}"]
    for (name, language), made in plays.items():
        ended, kept = sum(each.is_at_end for each in made), sum(not each.faults for each in made)
        lines.append(f"{name:12}{language:4}{len(made):8}{ended:8}{kept:8}{len({each.answers for each in made}):11}"
                     f"{median(each.seconds for each in made):9.1f}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, "model", "device", "dtype", "threads", "port")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", choices=PROMISES, help="one of the stories")
    parser.add_argument("--verbose", action="store_true", help="print what was asked, answered and said in the first round")
    args = parser.parse_args()
    settings = Settings.from_args(args)
    expect.set_options(timeout=ANSWERED_WITHIN_MS)
    path = browser_path()  # before Playwright is begun: it begins one, too
    with tempfile.TemporaryDirectory() as data, serving(settings, settings.port, data), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        names = [args.only] if args.only else list(PROMISES)
        plays = play_all(browser, f"http://127.0.0.1:{settings.port}/", names, args.times, args.verbose)
        browser.close()
    print("\n".join(table(plays)))
    faults = Counter(f"{name} ({language}), {fault}" for (name, language), made in plays.items()
                     for each in made for fault in each.faults)
    for fault, times in faults.items():
        print(f"  {times} times: {fault}")
    return 1 if faults or not all(each.is_at_end for made in plays.values() for each in made) else 0


if __name__ == "__main__":
    sys.exit(main())
