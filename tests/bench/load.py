"""Many people at once: N sockets ask short questions, then short and long ones, of one real server.

    .venv/bin/python -m tests.bench.load [--people 8] [--turns 3] [--rounds 3] [--tokens 100] [--model, --port, ... as for serve]
    .venv/bin/python -m tests.bench.load --paste 1500       one person pastes so many tokens while others are written to
    .venv/bin/python -m tests.bench.load --remembered 1500  20 more tokens after so many remembered ones, and after 100

Prints seconds to the first token and milliseconds between tokens (median, 95th of a hundred, worst), tokens a
second, and how fair it was: the slowest person's speed, of the fastest's. A token counts when its frame arrives.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from statistics import median

import simple_websocket

from app.settings import Settings, add_options
from tests.bench.streaming import serving

SHORT = "Write a long story about a lighthouse, a storm and a dog."
SENTENCE = "The sea was grey, and 24 geese went over the bay. "
LONG = "Here is what I wrote down last week. " + SENTENCE * 60 + "Tell me about it."


class Person:
    """One socket and one conversation; `asks` is what they say at each turn."""

    def __init__(self, port: int, asks: list[str], tokens: int):
        self.asks, self.tokens = asks, tokens
        self.first_s: list[float] = []   # to the first token, one a turn
        self.gaps_s: list[float] = []    # between the frames of a turn
        self.rates: list[float] = []     # tokens a second of a turn, from its first token on
        self.stats: list[dict] = []      # what the server says of each reply
        self.written = 0
        self.is_written_to = threading.Event()
        self._socket = simple_websocket.Client(f"ws://127.0.0.1:{port}/ws")
        self._conversation = None

    def talk(self) -> None:
        for turn, text in enumerate(self.asks):
            self.ask(text, self.tokens, turn)
        self.close()

    def ask(self, text: str, tokens: int, seed: int = 0) -> None:
        self._socket.send(json.dumps({
            "type": "send", "conversation": self._conversation, "text": text, "request": f"turn {len(self.stats)}",
            "settings": {"temperature": 0.7, "max_tokens": tokens, "seed": seed}}))
        self._listen(time.perf_counter())

    def close(self) -> None:
        self._socket.close()

    def _listen(self, asked_at: float) -> None:
        first_at = last_at = done = None
        tokens = 0
        while True:
            event = json.loads(self._socket.receive())
            self._conversation = event.get("conversation") or self._conversation
            if event["type"] == "error":
                sys.exit(f"the server said: {event['text']}")
            if event["type"] == "done":
                done = event
            if done and event["type"] == "state":  # what comes after is another turn's
                break
            if event["type"] != "token" or not event["tokens"]:
                continue
            now = time.perf_counter()
            self.is_written_to.set()
            if first_at is None:
                first_at = now
                self.first_s.append(now - asked_at)
            else:
                self.gaps_s.append(now - last_at)
                tokens += len(event["tokens"])
            last_at = now
        self.stats.append(done["stats"])
        self.written += tokens
        if tokens:
            self.rates.append(tokens / (last_at - first_at))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, "model", "device", "dtype", "threads", "port")
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--turns", type=int, default=3, help="turns of each in a crowd")
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="what is printed are their medians")
    parser.add_argument("--paste", type=int, help="one person pastes about so many tokens while others are written to")
    parser.add_argument("--remembered", type=int, help="time to the first token after about so many remembered tokens")
    args = parser.parse_args()
    settings = Settings.from_args(args)
    with tempfile.TemporaryDirectory() as data, serving(settings, settings.port, data):
        Person(settings.port, [SHORT, LONG], 20).talk()  # warms it up
        if args.paste:
            paste(settings.port, args.people, args.rounds, args.tokens, args.paste)
        elif args.remembered:
            remember(settings.port, args.rounds, args.remembered)
        else:
            crowd(settings.port, args.people, args.turns, args.tokens, args.rounds)
    return 0


# --- a crowd

def crowd(port: int, number: int, turns: int, tokens: int, rounds: int) -> None:
    """All at once, first with short questions alone, then with every third person pasting a long text each turn. Before
    each, one person talks alone, so that a slow minute falls on both; rates and ratios are medians of the rounds."""
    for title, long_ones in (("short questions", ()), ("every third pastes", range(2, number, 3))):
        alone, together, everybody = [], [], []
        for _ in range(rounds):
            one = Person(port, [SHORT] * turns, tokens)
            alone.append(tokens_a_second([one]))
            people = [Person(port, [LONG if each in long_ones else SHORT] * turns, tokens) for each in range(number)]
            together.append(tokens_a_second(people))
            everybody.append(people)
        first = sorted(each for people in everybody for person in people for each in person.first_s)
        gaps = sorted(each for people in everybody for person in people for each in person.gaps_s)
        means = [[sum(person.rates) / len(person.rates) for person in people] for people in everybody]
        print(f"{title}: {number} people, {len(first)} replies in {rounds} rounds; tokens a second, reading too")
        line("one person alone", f"{median(alone):8.1f}   ({min(alone):.1f} to {max(alone):.1f})")
        line("all together", f"{median(together):8.1f}   ({min(together):.1f} to {max(together):.1f})")
        line("of one alone", f"{median(all_ / one for all_, one in zip(together, alone)):8.2f} times")
        line("slowest of fastest", f"{median(min(each) / max(each) for each in means):8.2f}")
        line("first token after", f"{_three(first, 1)} s (median, 95 %, worst)")
        line("between tokens", f"{_three(gaps, 1000)} ms (median, 95 %, worst)")


def tokens_a_second(people: list[Person]) -> float:
    """What they all get in sum from the first question to the last token."""
    seconds = all_talk(people)
    return sum(person.written for person in people) / seconds


def all_talk(people: list[Person]) -> float:
    """-> how many seconds it took."""
    threads = [threading.Thread(target=person.talk) for person in people]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started


# --- a paste

def paste(port: int, number: int, rounds: int, tokens: int, paste_tokens: int) -> None:
    """How long the others wait while one person's long text is read."""
    quiet, pasted, worst, read = [], [], [], []
    for _ in range(rounds):
        quiet += _gaps(port, number - 1, tokens, None)[0]
        gaps, paster = _gaps(port, number - 1, tokens, text_of(paste_tokens))
        pasted += gaps
        worst.append(max(gaps))
        read.append((paster.stats[0]["read_tokens"], paster.first_s[0]))
    print(f"{number - 1} people are written to, and one pastes {read[0][0]:,} tokens; {rounds} rounds")
    line("between tokens, no paste", f"{_three(sorted(quiet), 1000)} ms (median, 95 %, worst)")
    line("between tokens, with it", f"{_three(sorted(pasted), 1000)} ms (median, 95 %, worst)")
    line("worst gap of a round, median", f"{1000 * median(worst):8.2f} ms")
    line("first token of the paste", f"{median(seconds for _, seconds in read):8.2f} s")


def _gaps(port: int, number: int, tokens: int, text: str | None) -> tuple[list[float], Person | None]:
    """The gaps of `number` people, all of whom are being written to when somebody pastes `text`."""
    people = [Person(port, [SHORT], tokens) for _ in range(number)]
    paster = Person(port, [text], 5) if text is not None else None

    def wait_and_paste() -> None:
        for person in people:
            person.is_written_to.wait(60)
        paster.talk()

    pasting = threading.Thread(target=wait_and_paste if paster else lambda: None)
    pasting.start()
    all_talk(people)
    pasting.join()
    return [gap for person in people for gap in person.gaps_s], paster


# --- what is remembered

def remember(port: int, rounds: int, remembered: int) -> None:
    """The time to the first token of a turn that adds 20 tokens, after a long chat and after a short one."""
    seconds: dict[int, list[float]] = {remembered: [], 100: []}
    stats: dict[int, list[dict]] = {remembered: [], 100: []}
    for _ in range(rounds):
        for before in seconds:  # in turn, so that a slow moment falls on both
            person = Person(port, [], 0)
            person.ask(text_of(before - 64), 8)
            for _ in range(3):
                person.ask("And what else was there to be seen?", 2)
            person.close()
            seconds[before] += person.first_s[1:]
            stats[before] += person.stats[1:]
    for before, each in seconds.items():
        reused = median(stat["reused_tokens"] for stat in stats[before])
        read = median(stat["read_tokens"] for stat in stats[before])
        line(f"{reused:,.0f} remembered, {read:.0f} read", f"{1000 * median(each):8.1f} ms to the first token, "
             f"median of {len(each)}; worst {1000 * max(each):.1f}")
    line("longer by", f"{median(seconds[remembered]) / median(seconds[100]):8.2f} times")


def text_of(tokens: int) -> str:
    """About so many, of the default model."""
    return SENTENCE * max(1, round(tokens / 14.5)) + "Tell me about it."


def line(name: str, figure: str) -> None:
    print(f"{name:30}{figure}")


def _three(values: list[float], scale: float) -> str:
    chosen = (values[min(len(values) - 1, int(len(values) * share))] for share in (0.5, 0.95, 1.0))
    return "  ".join(f"{scale * value:8.2f}" for value in chosen)


if __name__ == "__main__":
    sys.exit(main())
