"""Whether company changes a reply: the same seeded requests alone, together, joining late, and in other rows.

    .venv/bin/python -m tests.bench.company [--tokens 20000] [--seed 1] [--model, --dtype, ... as for serve]

Rounds of eight requests each, short and long, hot and cold. Each is served alone; then all eight at once; then
joining one after another at random moments, in another order and so in other rows. The ids must be the same every
time. Goes on until so many tokens were compared, prints what it found, and has exit status 1 where anything differed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from dataclasses import dataclass, field, replace

import torch

from app.engine.messages import Finished, Request
from app.engine.scheduler import Scheduler
from app.settings import Settings, add_options

PEOPLE = 8
JOIN_CHANCE = 0.05  # in a step, of the next one
QUESTIONS = ("Write a long story about a lighthouse, a storm and a dog.", "Why is the sky blue? Explain it at length.",
             "Tell me everything about otters.", "Count from one to forty in words.")
FILLER = "The sea was grey, and 24 geese went over the bay. "


@dataclass
class Reply:
    ids: tuple[int, ...]
    row: int  # of the cache, in which it was made


@dataclass
class Found:
    """`differing` are sentences; `other_rows` counts the replies that were also made in another row."""
    replies: int = 0
    tokens: int = 0
    other_rows: int = 0
    differing: list[str] = field(default_factory=list)

    def add(self, way: str, alone: dict[str, Reply], there: dict[str, Reply]) -> None:
        for name, reply in alone.items():
            self.other_rows += reply.row != there[name].row
            if reply.ids != there[name].ids:
                same = next((at for at, (a, b) in enumerate(zip(reply.ids, there[name].ids)) if a != b), "the end")
                self.differing.append(f"{name} {way}: {len(reply.ids)} tokens, another from {same} on")


def serve(model, tokenizer, asked: list[Request], context: int, rng: random.Random | None = None) -> dict[str, Reply]:
    """All at once; with `rng` they join at random moments."""
    scheduler = Scheduler(model, tokenizer, rows=PEOPLE, context=context)
    rows: dict[str, int] = {}
    replies: dict[str, Reply] = {}

    def hear(event: object) -> None:
        if isinstance(event, Finished):
            assert event.error is None, event.error
            replies[event.reply] = Reply(event.ids, rows[event.reply])

    waiting = list(asked)
    while waiting or scheduler.busy:
        while waiting and (rng is None or not scheduler.busy or rng.random() < JOIN_CHANCE):
            scheduler.submit(waiting.pop(0), hear)
        rows |= {job.request.reply: job.row for job in scheduler._jobs() if job.row is not None}
        scheduler.step()
    return replies


def compare(model, tokenizer, asked: list[Request], context: int, rng: random.Random, found: Found) -> None:
    """One round."""
    alone = {}
    for request in asked:
        alone |= serve(model, tokenizer, [request], context)
    found.replies += len(asked)
    found.tokens += sum(len(reply.ids) for reply in alone.values())
    found.add("among seven others", alone, serve(model, tokenizer, asked, context))
    shuffled = rng.sample(asked, len(asked))
    found.add("joining in the middle", alone, serve(model, tokenizer, shuffled, context, rng))


def requests(tokenizer, number: int, rng: random.Random) -> list[Request]:
    made = []
    for each in range(PEOPLE):
        text = FILLER * rng.choice((0, 0, 1, 12, 25)) + rng.choice(QUESTIONS)
        ids = tokenizer.render_for_completion({"messages": [{"role": "user", "content": text},
                                                            {"role": "assistant", "content": ""}]})
        name = f"round {number}, request {each}"
        made.append(Request(name, name, tuple(ids), temperature=rng.choice((0.0, 0.2, 0.8, 1.0)),
                            top_k=rng.choice((None, 50)), max_tokens=rng.choice((64, 256, 400)),
                            seed=rng.randrange(2**31)))
    return made


@torch.inference_mode()
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser, "model", "device", "dtype", "threads", "seed")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.set_defaults(seed="1")
    args = parser.parse_args()
    from app import _load

    settings = replace(Settings.from_args(args), context=1024)
    model, tokenizer = _load(settings)
    rng, found, started, number = random.Random(settings.seed), Found(), time.monotonic(), 0
    while found.tokens < args.tokens:
        compare(model, tokenizer, requests(tokenizer, number, rng), settings.context, rng, found)
        number += 1
        print(f"{found.tokens:,} tokens, {len(found.differing)} replies differ", file=sys.stderr, flush=True)
    seconds = time.monotonic() - started
    print(f"{found.tokens:,} tokens in {found.replies} replies ({settings.dtype}, {seconds:.0f} s), each made "
          f"alone, among seven others and joining in the middle, {found.other_rows} times in another row: "
          f"{'all the same' if not found.differing else f'{len(found.differing)} differ'}")
    for sentence in found.differing[:20]:
        print(f"  {sentence}")
    return 1 if found.differing else 0


if __name__ == "__main__":
    sys.exit(main())
