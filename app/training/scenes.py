"""Scenes: a few facts and several questions about them, of which each needs another expression.

The facts being the same, it is the question alone that tells what to calculate. This module must never word an answer.
"""

from __future__ import annotations

import random
import re

from app.training.word_problems import PREFIXES, chosen, drawn, fits, fitting
from app.training.wordings import scenes

MOST_QUESTIONS = 4


def scene_question(rng: random.Random) -> tuple[str, str, str | None]:
    """(the facts and one question, its expression, a word for what comes out or None). Slots as in word_problems.py."""
    facts, questions = rng.choice(scenes())
    question, formula, unit = rng.choice(questions)
    values, shown = fitting(rng, formula)
    text = _filled(f"{facts} {question}", shown, rng)
    return rng.choice(PREFIXES) + text, formula.format(**values), values.get(unit, unit) or None


def scene_talk(rng: random.Random) -> list[tuple[str, str, str | None]]:
    """Two and more questions, one after the other, as `scene_question` gives them: the facts stand in the first."""
    while True:
        facts, questions = rng.choice(scenes())
        values, shown = drawn(rng, " ".join(formula for _, formula, _ in questions))
        possible = [asked for asked in questions if fits(asked[1].format(**values), is_even=rng.random() < 0.9)]
        if len(possible) < 2:
            continue
        asked = rng.sample(possible, min(len(possible), rng.randint(2, MOST_QUESTIONS)))
        texts = [f"{facts} {asked[0][0]}", *(question for question, _, _ in asked[1:])]
        return [(_filled(text, shown, rng), formula.format(**values), values.get(unit, unit) or None)
                for text, (_, formula, unit) in zip(texts, asked)]


def _filled(form: str, shown: dict[str, str], rng: random.Random) -> str:
    """With a capital where a sentence begins with a name."""
    text = chosen(form, rng).format(**shown)
    return re.sub(r"(?:^|(?<=[.?!] ))[a-z]", lambda letter: letter[0].upper(), text)
