"""How well a model uses the calculator, and whether it talks as before where none belongs.

    .venv/bin/python -m tests.bench.calculator [--adapter calculator|none|PATH] [--temperature 0.7] [--limit N]
                                               [--seeds 3] [--rows 16] [--wrong] [--json]

Asks the default model with the adapter, and beside it the model as published, all questions of
`calculator_set/` through the engine's scheduler, at most 160 tokens a reply, greedily unless a temperature is
given (then with top-k 50). What the figures mean:

    right            the prose after the last block concludes with the right number (see calculator_judge)
    invents nothing  of the sums that the calculator refuses: the reply states no result
    false calls      of the replies where no tool belongs: with a calculator block
    malformed        of the replies to sums and counts: with an expression that the calculator refused
    without end      of all replies: with a block that was never closed
    nats lost        mean over the ordinary prompts p of  L(answer of this model to p) - L(published answer to p),
                     where both answers are greedy and L is the mean of -ln P(token | all before it) under the
                     published model over the tokens that the answer's model sampled
    same answers     of the ordinary prompts: answered token for token as by the published model
    key words        of the questions with a known answer: it is said, at the model's own temperature and top-k,
                     over all seeds
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean

from tests.bench.calculator_items import KINDS, Item, items_of
from tests.bench.calculator_judge import invents_number, is_right
from tests.bench.calculator_replies import CONTEXT_TOKENS, Answer, Sampling, answer_all, nats_per_token

KEY_WORD_TOKENS = 60
FIRST_SEED = 1


@dataclass
class Share:
    """So many of so many."""
    hits: int = 0
    of: int = 0

    def count(self, is_hit: bool) -> bool:
        self.hits, self.of = self.hits + is_hit, self.of + 1
        return is_hit

    def __str__(self):
        return f"{100 * self.hits / self.of:.1f} % ({self.hits} of {self.of})" if self.of else "–"


@dataclass
class Figures:
    """What one model did. Those of ordinary talk are None where there is no published model beside it."""
    sums: Share = field(default_factory=Share)
    counts: Share = field(default_factory=Share)
    two_turns: Share = field(default_factory=Share)
    invents_nothing: Share = field(default_factory=Share)
    false_calls: Share = field(default_factory=Share)
    malformed: Share = field(default_factory=Share)
    without_end: Share = field(default_factory=Share)
    cut: Share = field(default_factory=Share)
    key_words: Share = field(default_factory=Share)
    nats_lost: float | None = None
    same_answers: Share | None = None
    wrong: list[dict] = field(default_factory=list)  # what went wrong, to be looked at

    def judge(self, item: Item, answers: list[Answer]) -> None:
        for place, (turn, answer) in enumerate(zip(item.turns, answers, strict=True)):
            states = {call.state for call in answer.calls}
            faults = []
            if turn.answer is not None:
                share = {"sums": self.sums, "counts": self.counts, "two_turns": self.two_turns}[item.kind]
                if not share.count(is_right(answer.conclusion, turn.answer, item.given(place))):
                    faults.append("not right")
                if self.malformed.count("refused" in states):
                    faults.append("malformed")
            elif item.kind == "refusals":
                if not self.invents_nothing.count(not invents_number(answer.conclusion, item.given(place))):
                    faults.append("invented")
            elif self.false_calls.count(bool(answer.calls)):
                faults.append("false call")
            if self.without_end.count(bool(states & {"writing", "unfinished"})):
                faults.append("without end")
            self.cut.count(answer.reason == "length")
            if faults:
                self.note(item, place, answer, faults)

    def judge_key_words(self, item: Item, answer: Answer) -> None:
        if not self.key_words.count(says_any(answer.text, item.expect)):
            self.note(item, 0, answer, ["key word missing"])

    def note(self, item: Item, place: int, answer: Answer, faults: list[str]) -> None:
        self.wrong.append({"kind": item.kind, "faults": faults, "question": item.turns[place].question,
                           "right": item.turns[place].answer or ", ".join(item.expect), "text": answer.text,
                           "calls": [[call.expression, call.result or call.state] for call in answer.calls]})

    def compare(self, answers: list[Answer], published_answers: list[Answer], published_model) -> None:
        """Set the answers to ordinary prompts against those of the published model."""
        self.same_answers, lost = Share(), []
        for own, published in zip(answers, published_answers, strict=True):
            is_same = self.same_answers.count(own.ids == published.ids)
            lost.append(0.0 if is_same else nats_per_token(published_model, own) - nats_per_token(published_model, published))
        self.nats_lost = mean(lost)

    def as_json(self) -> dict:
        shares = {name: [value.hits, value.of] for name, value in vars(self).items() if isinstance(value, Share)}
        return {**shares, "nats_lost": self.nats_lost, "wrong": self.wrong}


def says_any(text: str, words: tuple[str, ...]) -> bool:
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) for word in words)


@dataclass
class Measured:
    figures: Figures
    ordinary: list[Answer]  # to the ordinary prompts, in order


def measure(model, tokenizer, args: argparse.Namespace, name: str) -> Measured:
    items = [item for kind in KINDS for item in items_of(kind, args.limit)]
    answers = answer_all(model, tokenizer, items, Sampling(args.temperature), args.rows, progress(name))
    figures = Figures()
    for item, own in zip(items, answers, strict=True):
        figures.judge(item, own)
    known = [item for item in items_of("ordinary") if item.expect]
    known = known[:args.limit]
    own = {"max_tokens": KEY_WORD_TOKENS, **model.recommended}
    for seed in range(FIRST_SEED, FIRST_SEED + args.seeds):
        replies = answer_all(model, tokenizer, known, Sampling(**own, seed=seed), args.rows, progress(f"{name}, key words"))
        for item, (answer,) in zip(known, replies, strict=True):
            figures.judge_key_words(item, answer)
    return Measured(figures, [own[0] for item, own in zip(items, answers, strict=True) if item.kind == "ordinary"])


def progress(name: str) -> Callable[[int], None]:
    def show(done: int) -> None:
        print(f"\r{name}: {done} replies", end="", file=sys.stderr, flush=True)

    return show if sys.stderr.isatty() else lambda done: None


def load(adapter: str | None):
    from app.models.errors import ModelError
    from app.models.registry import load_model

    try:
        return load_model("default", device="auto", dtype="auto", context=CONTEXT_TOKENS, adapter=adapter)
    except ModelError as error:
        sys.exit(str(error))


def main() -> int:
    args = arguments()
    published_model, tokenizer = load(None)
    model = None if args.adapter is None else load(args.adapter)[0]  # before all else: it may not be there
    published = measure(published_model, tokenizer, args, "as published")
    columns = {"as published": published.figures}
    if model is not None:
        own = measure(model, tokenizer, args, "with the adapter")
        if args.temperature == 0:
            own.figures.compare(own.ordinary, published.ordinary, published_model)
        columns = {"with the adapter": own.figures, **columns}
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if args.json:
        print(json.dumps({"adapter": args.adapter, "temperature": args.temperature, "limit": args.limit, "seeds": args.seeds,
                          "models": {name: figures.as_json() for name, figures in columns.items()}}, ensure_ascii=False))
        return 0
    print("\n".join(table(columns)))
    if args.wrong:
        for name, figures in columns.items():
            print(f"\n{name}:", *(json.dumps(each, ensure_ascii=False) for each in figures.wrong), sep="\n")
    return 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adapter", default="calculator", type=lambda text: None if text == "none" else text,
                        help="calculator, none, or the path of one (calculator)")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the likeliest token each time (0)")
    parser.add_argument("--limit", type=int, metavar="N", help="ask so many questions of each kind alone")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="how often the key words are asked for (3)")
    parser.add_argument("--rows", type=int, default=16, metavar="N", help="replies at once (16)")
    parser.add_argument("--wrong", action="store_true", help="list the answers that were not as they should be")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead, with the wrong answers")
    return parser.parse_args()


def table(columns: dict[str, Figures]) -> list[str]:
    def row(label: str, cell: Callable[[Figures], object]) -> str:
        return f"{label:34}" + "".join(f"  {str(cell(each)):>22}" for each in columns.values())

    return [" " * 34 + "".join(f"  {name:>22}" for name in columns),
            "-" * (34 + 24 * len(columns)),
            row("sums right", lambda each: each.sums),
            row("counts right", lambda each: each.counts),
            row("in two turns right", lambda each: each.two_turns),
            row("refused sums: invents nothing", lambda each: each.invents_nothing),
            row("false calls", lambda each: each.false_calls),
            row("malformed expressions", lambda each: each.malformed),
            row("blocks without end", lambda each: each.without_end),
            row("cut at 160 tokens", lambda each: each.cut),
            row("key words, at its own temperature", lambda each: each.key_words),
            row("ordinary: nats lost a token", lambda each: "–" if each.nats_lost is None else f"{each.nats_lost:.4f}"),
            row("ordinary: same answers", lambda each: each.same_answers or "–")]


if __name__ == "__main__":
    sys.exit(main())
