"""Whole conversations to learn from: questions with their calculator blocks, follow-ups, refusals, and ordinary chat.

A conversation is {"messages": […]} as `render_conversation` takes it. What the calculator puts in is computed by the
calculator itself, and an answer repeats it as it was put in. This module must never know about training.
"""

from __future__ import annotations

import random
import re

from app.engine.calculator import use_calculator
from app.training.counts import Counts, expression_for
from app.training.numbers import whole
from app.training.ordinary import SYSTEMS
from app.training.own_answers import whole_answers
from app.training.sums import KINDS, POWERS, asked_for
from app.training.typed import as_typed
from app.training.word_problems import story
from app.training.wordings import forms_of

SUM_ANSWERS = ["{e} = {r}", "{e} = {r}.", "That is {r}.", "The answer is {r}.", "It is {r}.", "The result is {r}.", "{r}", "That makes {r}.", "It comes to {r}."]
UNIT_ANSWERS = ["That is {r} {u}.", "The answer is {r} {u}.", "There are {r} {u}.", "{r} {u}.", "It is {r} {u}."]
COUNT_ANSWERS = ['There are {r} "{l}" in {w}.', "The letter {l} appears {t} in {w}.", 'I count {r} "{l}" in {w}.', "{r}", "The answer is {r}.", "{l} occurs {t} in {w}."]
ONE_ANSWERS = ['There is {r} "{l}" in {w}.'] + COUNT_ANSWERS[1:]
REFUSED = ["I cannot work this out: the calculator gives no result.", "The calculator gives no result for this, so I cannot tell.",
           "I cannot work that out.", "That cannot be worked out here: the calculator has no answer.", "I cannot calculate this one."]
CHANGES = ["And with {new} instead of {old}?", "what about {new} instead of {old}", "Sorry, I meant {new}, not {old}.", "And if it were {new} rather than {old}?",
           "now the same with {new} in place of {old}", "What if it is {new} and not {old}?", "oops, {new} instead of {old}", "Make the {old} a {new}. What then?",
           "Same question, but {new} where I said {old}.", "and for {new}, not {old}?", "Change {old} to {new}, please."]


def text(content: str) -> dict:
    return {"type": "text", "text": content}


def block(expression: str) -> list[dict]:
    """A calculator block, with what the calculator puts in; a refused one has nothing."""
    result = use_calculator(expression)
    parts = [{"type": "python", "text": expression}]
    return parts if result is None else [*parts, {"type": "python_output", "text": result}]


class Conversations:
    """`words` are for the counts. `own` is what the published model answered: {"messages", "text", "ended"}."""

    def __init__(self, words: list[str], own: list[dict]):
        self._counts = Counts(words)
        self._own = whole_answers(own)

    def any(self, rng: random.Random) -> dict:
        kind = rng.random()
        if kind < 0.74:
            messages = self._question(rng)
            while rng.random() < 0.4 and len(messages) < 6:  # one question after the other
                messages += self._question(rng)
        elif kind < 0.81:
            messages = self.follow_up(rng)
        elif kind < 0.84:
            messages = self.changed(rng)
        elif kind < 0.86:
            messages = self.two_in_one(rng)
        elif kind < 0.90:
            messages = self.refusal(rng)
        else:
            messages = self._question(rng)
            return self.after_ordinary(rng, messages) if kind < 0.95 else self.then_ordinary(rng, messages)
        if rng.random() < 0.12:
            messages = [{"role": "system", "content": rng.choice(SYSTEMS)}, *messages]
        return {"messages": messages}

    def _question(self, rng: random.Random) -> list[dict]:
        return self.sum(rng) if rng.random() < 0.8 else self.count(rng)

    def sum(self, rng: random.Random) -> list[dict]:
        question, expression, unit = self._solvable(rng)
        return [_user(question), _assistant([*block(expression), text(_sum_answer(rng, expression, unit))])]

    def count(self, rng: random.Random) -> list[dict]:
        question, expression, (part, word) = self._counts.ask(rng)
        return [_user(question), _assistant([*block(expression), text(_count_answer(rng, expression, part, word))])]

    def _solvable(self, rng: random.Random):
        while True:
            kinds, weights = zip(*KINDS, (story, 34))
            question, expression, unit = rng.choices(kinds, weights)[0](rng)
            if use_calculator(expression) is not None:
                return as_typed(question, rng), expression, unit

    def follow_up(self, rng: random.Random) -> list[dict]:
        if rng.random() < 0.25:
            return self._second_letter(rng)
        messages = self.sum(rng)
        result = messages[1]["content"][1]["text"]
        for _ in range(rng.choice([1, 1, 2])):
            question, expression = self._next_step(rng, result)
            messages += [_user(question), _assistant([*block(expression), text(_sum_answer(rng, expression, None))])]
            result = use_calculator(expression)
        return messages

    def _next_step(self, rng: random.Random, result: str) -> tuple[str, str]:
        while True:
            form, formula = rng.choice(forms_of("follow_ups"))
            values = {"r": result, "a": whole(rng, 3), "h": rng.randint(2, 9), "p": rng.choice([5, 10, 15, 20, 25, 50])}
            expression = formula.format(**values)
            if use_calculator(expression) is not None:
                return form.format(**values), expression

    def changed(self, rng: random.Random) -> list[dict]:
        """The same question once more, with another number in it."""
        while True:
            question, expression, unit = self._solvable(rng)
            found = [number for number in re.findall(r"(?<![\d.,])\d+(?![\d.,])", question)
                     if len(re.findall(rf"(?<![\d.,]){number}(?![\d.,])", expression)) == 1]
            if not found:
                continue
            old = rng.choice(found)
            new = str(rng.randint(2 if len(old) == 1 else 10 ** (len(old) - 1), 10 ** len(old) - 1))
            other = re.sub(rf"(?<![\d.,]){old}(?![\d.,])", new, expression)
            if new != old and use_calculator(other) is not None:
                break
        return [_user(question), _assistant([*block(expression), text(_sum_answer(rng, expression, unit))]),
                _user(rng.choice(CHANGES).format(new=new, old=old)),
                _assistant([*block(other), text(_sum_answer(rng, other, unit))])]

    def _second_letter(self, rng: random.Random) -> list[dict]:
        messages = self.count(rng)
        word = messages[1]["content"][0]["text"].split('"')[1]
        letter = rng.choice(word.replace(" ", "") + ("ETAOINSR" if word.isupper() else "etaoinsr"))
        form = rng.choice(["and how many {l}?", "And {l}?", "how many {l} then?", "And how many {l}'s?", "what about {l}?", "now count the {l}"])
        expression = f'"{word}".count("{letter}")'
        return [*messages, _user(form.format(l=letter)), _assistant([*block(expression), text(_count_answer(rng, expression, letter, word.strip()))])]

    def two_in_one(self, rng: random.Random) -> list[dict]:
        """Two questions in one message: two blocks, one after the other."""
        (first, e1), (second, e2) = [rng.choice([self._short_sum, self._short_count])(rng) for _ in range(2)]
        question = rng.choice(["What is {a}, and what is {b}?", "What is {a} and what is {b}?", "{a} and {b}?", "Tell me {a} and also {b}."]).format(a=first, b=second)
        return [_user(question), _assistant([*block(e1), text(f"The first is {use_calculator(e1)}. "), *block(e2), text(f"The second is {use_calculator(e2)}.")])]

    def _short_sum(self, rng: random.Random) -> tuple[str, str]:
        a, b, sign = whole(rng, 3), whole(rng, 3), rng.choice("+-*")
        return f"{a} {'x' if sign == '*' and rng.random() < 0.5 else sign} {b}", f"{a}{sign}{b}"

    def _short_count(self, rng: random.Random) -> tuple[str, str]:
        _, _, (part, word) = self._counts.ask(rng)
        question = f"the number of {part} in {word}"
        return question, expression_for(question, word, part)

    def refusal(self, rng: random.Random) -> list[dict]:
        a, big = whole(rng, 3), rng.randint(30, 99)
        if rng.random() < 0.4:  # a power whose product would be too long to write
            base, exponent = rng.choice([(2, rng.randint(5, 30)), (10, rng.randint(5, 20)), (whole(rng, 2), rng.randint(5, 12))])
            question = asked_for(rng, rng.choice(POWERS[:-1]).format(a=base, b=exponent))
            return [_user(as_typed(question, rng)), _assistant([*block(f"{base}**{exponent}"), text(rng.choice(REFUSED))])]
        question, expression = rng.choice([
            (f"What is {a} divided by 0?", f"{a}/0"), (f"{a} / 0", f"{a}/0"), (f"How much is {a}/0?", f"{a}/0"), (f"divide {a} by zero", f"{a}/0"),
            (f"{a}/({big}-{big})", f"{a}/({big}-{big})"), (f"What is {a} to the power of {big}?", f"{a}**{big}"), (f"{a}^{big}", f"{a}**{big}"),
            (f"Calculate {big}**{a}**{big}", f"{big}**{a}**{big}"), (f"What is the square root of {a}?", f"sqrt({a})"), (f"sqrt({a})?", f"sqrt({a})"),
            (f"What is the factorial of {big}?", f"{big}!"), (f"{a} modulo {rng.randint(2, 9)}?", f"{a}%{rng.randint(2, 9)}"), (f"What is the sine of {a}?", f"sin({a})"),
            (f"What is 0 divided by 0?", "0/0"), (f"{a} apples shared among 0 people?", f"{a}/0"), (f"log of {a}?", f"log({a})")])
        if use_calculator(expression) is not None:
            return self.sum(rng)
        return [_user(question), _assistant([*block(expression), text(rng.choice(REFUSED))])]

    def own_answer(self, rng: random.Random) -> dict:
        """A whole answer of the published model's."""
        return rng.choice(self._own)

    def after_ordinary(self, rng: random.Random, messages: list[dict]) -> dict:
        """In the middle of a conversation that was about something else."""
        own = self.own_answer(rng)
        return {"messages": [*own["messages"], _assistant([text(own["text"])]), *messages]}

    def then_ordinary(self, rng: random.Random, messages: list[dict]) -> dict:
        """Something else after a sum: the tool is not for everything from then on."""
        own = self.own_answer(rng)
        return {"messages": [*messages, own["messages"][-1], _assistant([text(own["text"])])]}


def _sum_answer(rng: random.Random, expression: str, unit: str | None) -> str:
    result = use_calculator(expression)
    shown = expression.replace("*", " × ").replace("/", " ÷ ").replace("+", " + ").replace("-", " - ")
    if unit and rng.random() < 0.7:
        return rng.choice(UNIT_ANSWERS).format(r=result, u=unit)
    forms = SUM_ANSWERS if len(expression) < 24 and not expression.startswith("-") and "(-" not in expression else SUM_ANSWERS[2:]
    return rng.choice(forms).format(e=" ".join(shown.split()), r=result)


def _count_answer(rng: random.Random, expression: str, part: str, word: str) -> str:
    result = use_calculator(expression)
    form = rng.choice(ONE_ANSWERS if result == "1" else COUNT_ANSWERS)
    return form.format(r=result, l=part, w=word, t=f"{result} time" if result == "1" else f"{result} times")


def _user(content: str) -> dict:
    return {"role": "user", "content": content}


def _assistant(parts: list[dict]) -> dict:
    return {"role": "assistant", "content": parts}
