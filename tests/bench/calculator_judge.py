"""Whether a written answer is right, told from its text alone. It never sees which model wrote it.

What is judged is what a person reads as the answer: the prose after the last calculator block, or all of it
where there is none. The block itself does not count: an answer that does not say the result is not right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

FIGURE = re.compile(r"(?P<sign>(?<![\w)\]])[-−]\s?|\b(?:minus|negative) )?[$€£]?"
                    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<![\w.])\.\d+)", re.IGNORECASE)
WORDS = {word: number for number, word in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty".split())} | {"once": 1, "twice": 2, "thrice": 3}
# "one" and "once" are numbers only where something is counted: not in "one moment" or "which one".
COUNTED = r"(?:is|are|has|have|contains|appears|occurs|only|just|exactly)"
WORD = re.compile(rf"(?<=\b)(?:(?P<none>{COUNTED} no)|{COUNTED} (?P<one>one|once)|"
                  rf"(?P<word>{'|'.join(word for word in WORDS if word not in ('one', 'once'))}))\b(?!-)", re.IGNORECASE)
# "5 divided by 0" states nothing yet; "… is 5" does.
STATED = re.compile(r"(?:\b(?:is|are|equals?|equal to|gives?|gets?|makes?|answer:|result:|=)|=|≈)\W{0,4}"
                    rf"(?:(?:about|approximately|exactly|simply|just|also)\s)?(?P<number>[-−]?[$€£]?(?:\d[\d,.]*|{'|'.join(WORDS)})\b)"
                    r"(?!\s*(?:[-+*/×÷^−]|divided|over\b|to the|times|multiplied|raised))", re.IGNORECASE)


def numbers(text: str) -> list[Decimal]:
    """The numbers that a text states, in order: 1,234.50, -3, $5, "minus 25", "three", "has no" (0)."""
    found = []
    for match in FIGURE.finditer(text):
        sign = match["sign"] or ""
        is_subtraction = sign.lower().startswith("minus") and re.search(r"\d\s*$", text[:match.start()])
        value = Decimal(match["digits"].replace(",", ""))
        found.append((match.start(), -value if sign and not is_subtraction else value))
    for match in WORD.finditer(text):
        found.append((match.start(), Decimal(0 if match["none"] else WORDS[(match["one"] or match["word"]).lower()])))
    return [value for _, value in sorted(found)]


def is_right(text: str, answer: str, given: Iterable[Decimal] = ()) -> bool:
    """Whether `text` concludes with `answer`.

    `given` are the numbers that the asker has said or that stand in the sum: repeating one states nothing.
    Of all other numbers the last is the conclusion, and it has to be the answer, digit for digit: commas,
    a currency and zeros after the point may differ, rounding may not.
    """
    right = Decimal(answer)
    given = set(given) - {right}
    stated = [number for number in numbers(text) if number not in given]
    return bool(stated) and stated[-1] == right


def invents_number(text: str, given: Iterable[Decimal] = ()) -> bool:
    """Whether `text` states a result for what has none: any number that was not given, or "… is 0"."""
    given = set(given)
    return any(number not in given for number in numbers(text)) or STATED.search(text) is not None
