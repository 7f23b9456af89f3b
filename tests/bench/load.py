"""Many people at once: N sockets ask short and long questions of one real server.

    .venv/bin/python -m tests.bench.load [--people 8] [--turns 3] [--tokens 100] [--port 8000] [--model, ... as for serve]

Prints, for everybody together and for the slowest and fastest: seconds to the first token, milliseconds
between tokens (median, 95th of a hundred, worst), tokens a second, and how fair it was. A token counts when
its frame arrives.
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
LONG = "Here is what I wrote down last week. " + "The sea was grey, and 24 geese went over the bay. " * 60 + "Tell me about it."


class Person:
    """One socket and one conversation; every third person pastes a long text each turn."""

    def __init__(self, number: int, port: int, turns: int, tokens: int):
        self.text = LONG if number % 3 == 2 else SHORT
        self.turns, self.tokens = turns, tokens
        self.first_s: list[float] = []   # to the first token, one a turn
        self.gaps_s: list[float] = []    # between the frames of a turn
        self.rates: list[float] = []     # tokens a second of a turn, from its first token on
        self.written = 0
        self._socket = simple_websocket.Client(f"ws://127.0.0.1:{port}/ws")
        self._conversation = None

    def talk(self) -> None:
        for turn in range(self.turns):
            self._socket.send(json.dumps({
                "type": "send", "conversation": self._conversation, "text": self.text, "request": f"turn {turn}",
                "settings": {"temperature": 0.7, "max_tokens": self.tokens, "seed": turn}}))
            self._listen(time.perf_counter())
        self._socket.close()

    def _listen(self, asked_at: float) -> None:
        first_at = last_at = None
        tokens = 0
        while True:
            event = json.loads(self._socket.receive())
            self._conversation = event.get("conversation") or self._conversation
            if event["type"] == "error":
                sys.exit(f"the server said: {event['text']}")
            if event["type"] == "done":
                break
            if event["type"] != "token" or not event["tokens"]:
                continue
            now = time.perf_counter()
            if first_at is None:
                first_at = now
                self.first_s.append(now - asked_at)
            else:
                self.gaps_s.append(now - last_at)
                tokens += len(event["tokens"])
            last_at = now
        self.written += tokens
        if tokens:
            self.rates.append(tokens / (last_at - first_at))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, "model", "device", "dtype", "threads", "port")
    parser.add_argument("--people", type=int, default=8)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100)
    args = parser.parse_args()
    settings = Settings.from_args(args)
    with tempfile.TemporaryDirectory() as data, serving(settings, settings.port, data):
        alone = Person(0, settings.port, 2, args.tokens)
        alone.talk()
        people = [Person(number, settings.port, args.turns, args.tokens) for number in range(args.people)]
        threads = [threading.Thread(target=person.talk) for person in people]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - started
    report(alone, people, seconds)
    return 0


def report(alone: Person, people: list[Person], seconds: float) -> None:
    first = sorted(each for person in people for each in person.first_s)
    gaps = sorted(each for person in people for each in person.gaps_s)
    total = sum(person.written for person in people) / seconds
    means = [sum(person.rates) / len(person.rates) for person in people]
    print(f"{len(people)} people, {len(first)} replies, {seconds:.1f} s")
    print(f"{'one person alone':28}{median(alone.rates):8.1f} tokens/s")
    print(f"{'all together, reading too':28}{total:8.1f} tokens/s")
    print(f"{'each while writing, median':28}{median(means):8.1f} tokens/s")
    print(f"{'slowest of fastest':28}{min(means) / max(means):8.2f}")
    print(f"{'first token after':28}{_three(first, 1)} s (median, 95 %, worst)")
    print(f"{'between tokens':28}{_three(gaps, 1000)} ms (median, 95 %, worst)")


def _three(values: list[float], scale: float) -> str:
    return "  ".join(f"{scale * values[min(len(values) - 1, int(len(values) * share))]:8.2f}" for share in (0.5, 0.95, 1.0))


if __name__ == "__main__":
    sys.exit(main())
