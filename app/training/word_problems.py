"""Small stories that end in a sum: shopping, sharing, distances, time, measures.

This module must never word an answer.
"""

from __future__ import annotations

import random
import re

from app.engine.calculator import use_calculator
from app.training.numbers import as_written, decimal, money, spelled, whole
from app.training.wordings import forms_of

NAMES = ("Anna|Tom|Maria|Ben|Lena|Omar|Yuki|Priya|Carlos|Fatima|Noah|Emma|Ivan|Mei|Sara|Luca|Nina|Paul|Aisha|Jonas|Ruth|Leo|Clara|Max|my brother|my aunt|"
         "the baker|our teacher|the neighbour|my uncle|a farmer|a tailor").split("|")
THINGS = ("apples|pears|eggs|books|pens|pencils|marbles|stickers|cookies|tickets|chairs|bottles|oranges|cards|coins|stamps|candles|cups|plates|"
          "balloons|flowers|bricks|shirts|socks|lemons|muffins|sandwiches|toys|buttons|bananas|postcards|batteries|nails|tiles|bags of rice|pots|"
          "tulips|tomatoes|letters|photos|spoons|keys|lamps|seeds|fish|shells|ribbons|pillows|hats|drums").split("|")
BOXES = "boxes|bags|packs|crates|baskets|rows|shelves|trays|cartons|jars|buckets|sacks|drawers|piles".split("|")

PREFIXES = ["", "", "", "", "", "", "My teacher asked: ", "Homework question. ", "Can you help me? ", "Hi! ", "hey, ", "I have a question: ", "Puzzle: ",
            "Please help: ", "My daughter asks this. ", "I am stuck. ", "Here is a problem. ", "Quick one: ", "Good morning. "]


DRAWS = 40  # of numbers, for a story in which they go well together


def story(rng: random.Random):
    """(question, expression, a word for what comes out or None).

    Slots of a form: {a} {b} {c} are whole numbers, {f} one to be divided, {h} {g} small ones, {u} below 60, {m} {k} {l}
    money, {d} {e} decimals, {p} a percentage, {y} {z} years; {n} {o} are names, {t} {s} things, {x} boxes.
    """
    form, formula, unit = rng.choice(forms_of("stories"))
    question = re.sub(r"\[([^]]*)\]", lambda choice: rng.choice(choice[1].split("/")), form)
    values, shown = _fitting(rng, formula)
    text = question.format(**shown)
    if question.startswith("{"):
        text = text[:1].upper() + text[1:]
    return rng.choice(PREFIXES) + text, formula.format(**values), values.get(unit, unit) or None


def _fitting(rng: random.Random, formula: str) -> tuple[dict[str, str], dict[str, str]]:
    """Numbers whose result is above nothing and, but for one story in eight, has no more than two decimals."""
    must_be_even = rng.random() < 0.88
    for _ in range(DRAWS):
        values, shown = _drawn(rng, formula)
        result = use_calculator(formula.format(**values))
        if result is None or float(result) <= 0:
            continue
        if not must_be_even or len(result.partition(".")[2]) <= 2:
            break
    return values, shown


def _drawn(rng: random.Random, formula: str) -> tuple[dict[str, str], dict[str, str]]:
    """A value for each slot, as it is calculated with and as it is asked."""
    h, g = rng.randint(2, 12), rng.randint(2, 20)
    y, z = sorted(rng.sample(range(1500, 2030), 2))
    is_cash = "{c}-" in formula or "{c}/" in formula
    cash = rng.choice([10, 20, 20, 35, 50, 50, 100, 100, 200, 500])
    prices = [money(rng, cash * 0.4) if is_cash else money(rng, most) for most in (100, 30, 30)]
    (n, o), (t, s) = rng.sample(NAMES, 2), rng.sample(THINGS, 2)
    values = {"h": str(h), "g": str(g), "u": str(rng.randint(1, 59)), "m": prices[0], "k": prices[1], "l": prices[2],
              "d": decimal(rng, 60), "e": decimal(rng, 10), "y": str(y), "z": str(z), "n": n, "o": o, "t": t, "s": s,
              "p": rng.choice([*"5 8 10 12 15 18 20 25 30 35 40 50 3 7 12.5".split(), str(rng.randint(1, 99))]),
              "x": rng.choice(BOXES)}
    shown = dict(values)
    wholes = {name: whole(rng, rng.choice([2, 2, 3, 3, 4])) for name in "abc"} | {"f": h * rng.randint(2, 90)}
    if is_cash:
        wholes["c"] = cash
    for name, number in wholes.items():
        values[name], shown[name] = as_written(rng, number)
    if rng.random() < 0.3:
        sign = rng.choice("$$€£")
        shown |= {name: sign + values[name] for name in "mkl"}
    for name in "hg":
        if rng.random() < 0.2:
            shown[name] = spelled(int(values[name]))
    return values, shown
