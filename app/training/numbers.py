"""Numbers as people write them.

This module must never word a question.
"""

from __future__ import annotations

import random

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen").split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def spelled(number: int) -> str:
    """A whole number below 1,000 in words."""
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")
    rest = f" and {spelled(number % 100)}" if number % 100 else ""
    return f"{ONES[number // 100]} hundred{rest}"


def whole(rng: random.Random, most_digits: int = 4) -> int:
    """Of one digit as often as of two or three, of more now and then."""
    digits = rng.choice([digits for digits in (1, 1, 2, 2, 2, 3, 3, 4, 5, 6) if digits <= most_digits])
    return rng.randint(2 if digits == 1 else 10**(digits - 1), 10**digits - 1)


def decimal(rng: random.Random, most: int = 1000) -> str:
    places = rng.choice([1, 1, 2, 2, 2, 3])
    return f"{rng.uniform(0.1, rng.choice([1, 10, 100, most])):.{places}f}"


def money(rng: random.Random, most: int = 100) -> str:
    amount = rng.uniform(0.2, most)
    return rng.choice([f"{amount:.2f}", f"{amount:.2f}", f"{round(amount * 4) / 4:.2f}", str(int(amount) + 1)])


def as_written(rng: random.Random, number: int) -> tuple[str, str]:
    """A whole number (as it is calculated with, as it is asked for): with commas in both, or in words in the question."""
    if number > 999 and rng.random() < 0.4:
        return f"{number:,}", f"{number:,}"
    if number < 1000 and rng.random() < (0.12 if number < 100 else 0.05):
        return str(number), spelled(number)
    return str(number), str(number)


def term(rng: random.Random) -> tuple[str, str]:
    """A number in a sum, (as it is calculated with, as it is asked for)."""
    if rng.random() < 0.18:
        text = decimal(rng)
        return text, text
    return as_written(rng, whole(rng, 6))
