"""How people type: small letters, slips of the finger, no mark at the end, a sentence before or after.

This module must never change a number or what stands in quotes.
"""

from __future__ import annotations

import random
import re

SUFFIXES = [" Thanks!", " thanks", " Please be exact.", " I always forget.", " I need it for school.", " pls", " Just the number please.", " Can you help?",
            " I am not sure.", " Thank you.", " Be quick!", " Explain briefly."]
PREFIXES = ["Hello! ", "Hi, ", "hey ", "Ok. ", "Thanks. ", "Now tell me: ", "And one more. ", "Good. ", "please ", "Please, ", "so, ", "My boss asks: "]


def as_typed(question: str, rng: random.Random, keep: str = "") -> str:
    """The question as somebody might type it. `keep` is a part that must stay as it is, such as a word to count in."""
    if rng.random() < 0.07:
        question = _slip(question, rng, keep)
    if rng.random() < 0.10 and not keep:
        question = question.lower()
    if rng.random() < 0.10 and len(question) > 12:
        question = question.rstrip("?. ")
    if rng.random() < 0.05:
        question += rng.choice(SUFFIXES)
    if rng.random() < 0.05:
        question = rng.choice(PREFIXES) + question
    return question


def _slip(question: str, rng: random.Random, keep: str) -> str:
    """Two neighbouring letters of a longer word change places, or one is left out."""
    words = [match for match in re.finditer(r"\b[a-z]{4,}\b", question) if match.group() not in keep]
    if not words or "'" in question or '"' in question:
        return question
    word = rng.choice(words)
    at = word.start() + rng.randrange(1, len(word.group()) - 1)
    swapped = question[at + 1] + question[at] if rng.random() < 0.6 else question[at]
    return question[:at] + swapped + question[at + 2:]
