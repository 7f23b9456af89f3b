"""What each ready story promises whoever watches it, and whether a play of it kept that.

A promise is what the story's own sentences say, with the figures that stand in them, and what its title leads one to
expect of the answers. The words of the stories are in templates/_words_show.html. Never asks or opens anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LONG_TOKENS = 150  # less is no long story


@dataclass
class Step:
    """A question of a story, answered. `said`: the sentence about it; `figures`: those that stand in it, by the names of
    its slots. `before` and `after`: the `cache` objects; `remembered`: the text of all tokens that are in the cache."""
    language: str
    question: str
    answer: str
    state: str
    said: str
    figures: dict[str, int]
    before: dict
    after: dict
    remembered: str = ""
    calls: list[dict] = field(default_factory=list)  # {state, expression, result, opens}

    @property
    def tokens_before(self) -> int:
        return (self.before.get("conversation") or {}).get("tokens") or 0

    @property
    def counted(self) -> dict[str, int]:
        """What the engine counted, by the names of the slots."""
        reply = self.after["last_reply"]
        computed = reply["read"] + reply["written"] + reply["forced"] - 1  # the last one made is not computed with
        return {**{name: reply[name] for name in ("reused", "read", "written", "forced")}, "computed": computed,
                "without": reply["without_cache"], "tokens": self.after["conversation"]["tokens"]}


def faults_of(name: str, steps: list[Step]) -> list[str]:
    """Sentences: what the play of the story `name` did not keep."""
    faults = []
    for number, step in enumerate(steps, start=1):  # fewer, where the play got stuck
        told = _general(step) + PROMISES[name][number - 1](step, steps)
        faults += [f"question {number}: {fault}" for fault in told]
    return faults


def _general(step: Step) -> list[str]:
    """What holds for every step: the model came to an end by itself, and the figures are those of the engine."""
    faults = [f"{name} is said to be {told}, and is {step.counted[name]}"
              for name, told in step.figures.items() if told != step.counted[name]]
    if step.state != "done":
        faults.append(f"the answer is {step.state}")
    if not step.figures:
        faults.append(f"nothing is told of it: {step.said!r}")
    return faults


def unless(is_kept: object, fault: str) -> list[str]:
    return [] if is_kept else [fault]


def names(step: Step, *words: str) -> list[str]:
    return [f"the answer does not name {word!r}" for word in words if word.casefold() not in step.answer.casefold()]


def reads_only_the_new(step: Step) -> list[str]:
    reused, read = step.counted["reused"], step.counted["read"]
    return (unless(reused == step.tokens_before > 0, f"{step.tokens_before} were remembered, {reused} reused")
            + unless(read < reused, f"{read} read is not less than what was reused"))


def remembers_all_but_the_last(step: Step, steps: list[Step]) -> list[str]:
    made = sum(step.counted[name] for name in ("reused", "read", "written", "forced"))
    return unless(step.counted["tokens"] == made - 1, f"{step.counted['tokens']} of {made} are remembered")


def calculates(step: Step, expression: str, result: str) -> list[str]:
    if len(step.calls) != 1:
        return [f"{len(step.calls)} calls of the calculator"]
    call, done = step.calls[0], (step.calls[0]["expression"], step.calls[0]["result"])
    return (unless(call["state"] == "done" and call["opens"], f"the block of the calculator: {call}")
            + unless(done == (expression, result), " = ".join(done))
            + unless(step.counted["forced"] == len(result) + 2, f"{step.counted['forced']} tokens were put in")
            + names(step, result))


def capital_of_germany(step: Step, steps: list[Step]) -> list[str]:
    """In Chinese it asks in Chinese, and says that the model is bad at that: no answer is promised."""
    return (reads_only_the_new(step) + remembers_all_but_the_last(step, steps)
            + (names(step, "Berlin") if step.language == "en" else []))


def long_story(step: Step, steps: list[Step]) -> list[str]:
    written = step.counted["written"]
    return (names(step, "owl", "dark") + unless(written >= LONG_TOKENS, f"{written} tokens are not long")
            + unless(step.counted["without"] > 10 * step.counted["computed"], "the cache saved little"))


def name_of_the_owl(step: Step, steps: list[Step]) -> list[str]:
    """The answer names somebody of the story."""
    named = set(re.findall(r"\b[A-Z][a-z]+", step.answer)) - {"The", "Owl", "His", "Her", "Its", "In"}
    is_known = any(re.search(rf"\b{name}\b", steps[0].answer) for name in named)
    return reads_only_the_new(step) + unless(is_known, f"nobody of the story is named: {sorted(named)}")


def one_sentence(step: Step, word: str) -> list[str]:
    """What the question asks for."""
    ends = re.findall(r"[.!?](?=\s|$)", step.answer)
    return names(step, word) + unless(len(ends) == 1, f"the answer has {len(ends)} sentences")


def changes_the_beginning(step: Step, steps: list[Step]) -> list[str]:
    kept, read = step.counted["reused"], step.counted["read"]
    forgotten = step.tokens_before - kept
    is_gone = not any(word in step.remembered for word in ("otter", "fox"))
    return (one_sentence(step, "whale") + remembers_all_but_the_last(step, steps)
            + unless(0 < kept < steps[0].counted["read"], f"{kept} are kept of before the change")
            + unless(forgotten > read, f"only {forgotten} were forgotten")
            + unless(is_gone, "what was changed is still remembered"))


PROMISES = {
    "remembers": [
        lambda step, steps: names(step, "Paris") + remembers_all_but_the_last(step, steps),
        lambda step, steps: names(step, "Tokyo") + reads_only_the_new(step),
        capital_of_germany],
    "calculator": [
        lambda step, steps: calculates(step, "123*456", "56088"),
        lambda step, steps: (calculates(step, "1000/8", "125") + reads_only_the_new(step)
                             + unless("56088" in step.remembered, "the result is not remembered"))],
    "long": [long_story, name_of_the_owl],
    "change": [
        lambda step, steps: one_sentence(step, "otter") + remembers_all_but_the_last(step, steps),
        lambda step, steps: one_sentence(step, "fox") + reads_only_the_new(step) + remembers_all_but_the_last(step, steps),
        changes_the_beginning],
}
