"""Sums as people ask them: bare ones, in words, with percentages, prices, years, averages and powers.

Every function gives (question, expression, a word for what comes out or None). This module must never answer.
"""

from __future__ import annotations

import random

from app.training.numbers import as_written, decimal, money, term, whole
from app.training.wordings import forms_of, lines_of

SIGNS = {"+": ["+", "+", " plus ", "+", " and "], "-": ["-", "-", " minus ", "−", " less "],
         "*": ["*", "×", "x", " times ", " multiplied by ", "·"], "/": ["/", "÷", " divided by ", "/", " over "]}
POWERS = ["{a} to the power of {b}", "{a}^{b}", "{a}**{b}", "{a} to the power {b}", "{a} to the {b}", "the power {a}^{b}", "{a} raised to {b}",
          "{a} raised to the power of {b}", "{a} multiplied by itself {b} times"]


def _sign(rng: random.Random, operation: str) -> str:
    spoken = rng.choice(SIGNS[operation])
    return spoken if spoken.startswith(" ") or rng.random() < 0.35 else f" {spoken} "


def asked_for(rng: random.Random, text: str) -> str:
    return rng.choice(lines_of("openings")).format(sum=text)


def bare(rng: random.Random):
    """Two to five terms, in a third of them with brackets."""
    count = rng.choice([2, 2, 2, 2, 2, 3, 3, 3, 4, 5])
    operations = [rng.choice("++-**/") for _ in range(count - 1)]
    if rng.random() < 0.4:  # one sign throughout: 3 + 4 + 5
        operations = [operations[0]] * (count - 1)
    style = {operation: _sign(rng, operation) for operation in "+-*/"}
    terms = [term(rng) for _ in range(count)]
    expression, asked = [terms[0][0]], [terms[0][1]]
    for operation, (number, spoken) in zip(operations, terms[1:]):
        asked += [style[operation], spoken]
        expression += [operation, number]
    if count > 2 and rng.random() < 0.6:
        start = rng.randrange(count - 1)
        stop = rng.randint(start + 1, count - 1 if start else count - 2)
        for parts in (asked, expression):
            parts[2 * start] = "(" + parts[2 * start]
            parts[2 * stop] += ")"
    if rng.random() < 0.04:
        asked[0] = expression[0] = f"-{terms[0][0]}"
    return asked_for(rng, "".join(asked)), "".join(expression), None


def chain(rng: random.Random):
    """One step after the other, in words: a plus b, then times c."""
    number, asked = as_written(rng, whole(rng, 3))
    expression = number
    for step in range(rng.choice([2, 2, 3])):
        n = whole(rng, 2)
        words, operation = rng.choice([("plus {n}", "+{n}"), ("minus {n}", "-{n}"), ("times {n}", "*{n}"), ("divided by {n}", "/{n}"),
                                       ("add {n}", "+{n}"), ("take away {n}", "-{n}"), ("multiplied by {n}", "*{n}")])
        if step and operation[0] in "*/" and expression.strip("0123456789,")[-1:] in "+-":
            expression = f"({expression})"
        asked += rng.choice([", then ", " and then ", ", and then "] if step else [" "]) + words.format(n=n)
        expression += operation.format(n=n)
    return asked_for(rng, asked), expression, None


def pair(rng: random.Random):
    """The two-term sums that people ask most."""
    a, b = (whole(rng, rng.choice([2, 3, 3, 4])) for _ in range(2))
    operation = rng.choice("+-**/")
    if operation == "/" and rng.random() < 0.7:
        a *= b
    (a, asked_a), (b, asked_b) = as_written(rng, a), as_written(rng, b)
    return asked_for(rng, f"{asked_a}{_sign(rng, operation)}{asked_b}"), f"{a}{operation}{b}", None


def worded(rng: random.Random):
    a, b = whole(rng, 4), whole(rng, 3)
    (a, asked_a), (b, asked_b) = as_written(rng, a), as_written(rng, b)
    form, expression = rng.choice([
        ("the sum of {a} and {b}", "{a}+{b}"), ("the product of {a} and {b}", "{a}*{b}"), ("the difference between {a} and {b}", "{a}-{b}"),
        ("the quotient of {a} and {b}", "{a}/{b}"), ("{a} added to {b}", "{b}+{a}"), ("{b} subtracted from {a}", "{a}-{b}"),
        ("{b} taken away from {a}", "{a}-{b}"), ("{a} take away {b}", "{a}-{b}"), ("{a} shared by {b}", "{a}/{b}"),
        ("{b} more than {a}", "{a}+{b}"), ("{b} less than {a}", "{a}-{b}"), ("the total of {a} and {b}", "{a}+{b}"),
        ("{a} increased by {b}", "{a}+{b}"), ("{a} decreased by {b}", "{a}-{b}")])
    return asked_for(rng, form.format(a=asked_a, b=asked_b)), expression.format(a=a, b=b), None


def single(rng: random.Random):
    number, asked = term(rng)
    form, expression = rng.choice([
        ("half of {a}", "{n}/2"), ("twice {a}", "2*{n}"), ("double {a}", "2*{n}"), ("triple {a}", "3*{n}"), ("a third of {a}", "{n}/3"),
        ("a quarter of {a}", "{n}/4"), ("three quarters of {a}", "{n}*3/4"), ("two thirds of {a}", "{n}*2/3"), ("a tenth of {a}", "{n}/10"),
        ("{a} squared", "{n}*{n}"), ("the square of {a}", "{n}*{n}"), ("{a} cubed", "{n}*{n}*{n}"), ("ten times {a}", "10*{n}"),
        ("{a} doubled", "2*{n}"), ("{a} halved", "{n}/2"), ("a fifth of {a}", "{n}/5"), ("half {a}", "{n}/2"),
        ("three times {a}", "3*{n}"), ("one and a half times {a}", "1.5*{n}"), ("a dozen times {a}", "12*{n}"), ("a hundredth of {a}", "{n}/100"), ("three fifths of {a}", "{n}*3/5"),
        ("2/3 of {a}", "{n}*2/3"), ("3/4 of {a}", "{n}*3/4"), ("5/8 of {a}", "{n}*5/8"), ("half as much as {a}", "{n}/2"), ("four times {a}", "4*{n}"),
        ("triple {a}", "3*{n}"), ("double {a}", "2*{n}"), ("half of {a}", "{n}/2"), ("a quarter of {a}", "{n}/4")])
    return asked_for(rng, form.format(a=asked)), expression.format(n=number), None


def power(rng: random.Random):
    """Small ones, as a product that can be written without losing count; others are refused (see `refusal`)."""
    base, exponent = rng.choice([(rng.randint(2, 99), 2), (rng.randint(2, 30), 3), (rng.randint(2, 12), 4), (10, rng.randint(2, 4))])
    form = rng.choice(POWERS)
    return asked_for(rng, form.format(a=base, b=exponent)), "*".join([str(base)] * exponent), None


def percent(rng: random.Random):
    p = rng.choice([str(rng.choice([5, 10, 12, 15, 18, 20, 25, 30, 40, 50, 60, 75, 80, 90])), str(rng.randint(1, 99)), decimal(rng, 20)])
    n = rng.choice([as_written(rng, whole(rng, 5))[0], money(rng, 500), decimal(rng)])
    sign = rng.choice(["%", "%", "%", " percent", " per cent", " %"])
    unit = rng.choice(["", "", "$", "€", "£"])
    form, expression = rng.choice(forms_of("percents"))
    values = {"p": p, "n": n, "s": sign, "u": unit}
    return asked_for(rng, form.format(**values)), expression.format(**values), None


def share(rng: random.Random):
    """What percentage one number is of another, or a rise from one to the other."""
    a, b = sorted((whole(rng, 4), whole(rng, 4) + 1))
    form, expression = rng.choice([
        ("What percentage of {b} is {a}?", "{a}*100/{b}"), ("{a} is what percent of {b}?", "{a}*100/{b}"), ("{a} out of {b} in percent?", "{a}*100/{b}"),
        ("I got {a} of {b} points. What percentage is that?", "{a}*100/{b}"), ("What percent is {a} out of {b}", "{a}*100/{b}"),
        ("By how many percent does {a} grow to {b}?", "({b}-{a})*100/{a}"), ("The price rose from {a} to {b}. How many percent is that?", "({b}-{a})*100/{a}")])
    return form.format(a=a, b=b), expression.format(a=a, b=b), "percent"


def average(rng: random.Random):
    numbers = [str(whole(rng, 3)) if rng.random() < 0.8 else decimal(rng, 100) for _ in range(rng.choice([2, 3, 3, 3, 4, 4, 5]))]
    listed = ", ".join(numbers[:-1]) + rng.choice([" and ", ", and ", ", "]) + numbers[-1]
    form = rng.choice(["What is the average of {l}?", "average of {l}", "What is the mean of {l}?", "Find the average: {l}", "the mean of {l}?",
                       "My scores are {l}. What is my average?", "It was {l} degrees on the last days. What is the average temperature?",
                       "calculate the average of {l}", "Average these for me: {l}", "I ran {l} km this week. How far on average?"])
    return form.format(l=listed), f"({'+'.join(numbers)})/{len(numbers)}", None


def total(rng: random.Random):
    """A list to be added up."""
    numbers = [rng.choice([str(whole(rng, 3)), money(rng, 60)]) for _ in range(rng.choice([2, 3, 3, 4, 5]))]
    unit = rng.choice(["", "$", "€", "£"])
    listed = ", ".join(unit + number for number in numbers[:-1]) + rng.choice([" and ", ", and ", ", "]) + unit + numbers[-1]
    form = rng.choice(["Add up {l}.", "What is the total of {l}?", "add {l}", "Sum of {l}?", "I spent {l}. How much is that in all?", "Add {l} together",
                       "My receipts are {l}. What is the sum?", "The items cost {l}. What do I pay in total?", "Can you add {l} please?"])
    return form.format(l=listed), "+".join(numbers), None


def years(rng: random.Random):
    early, late = sorted(rng.sample(range(rng.choice([1066, 1500, 1800, 1900]), 2031), 2))
    form, expression = rng.choice([
        ("How many years are there between {a} and {b}?", "{b}-{a}"), ("How many years from {a} to {b}?", "{b}-{a}"), ("years between {a} and {b}", "{b}-{a}"),
        ("I was born in {a}. How old am I in {b}?", "{b}-{a}"), ("Someone born in {a} dies in {b}. How old did they get?", "{b}-{a}"),
        ("If I was born in {a}, how old will I be in {b}?", "{b}-{a}"), ("born in {a}, how old in {b}", "{b}-{a}"), ("How old is someone born in {a} in {b}?", "{b}-{a}"),
        ("A house was built in {a}. How old was it in {b}?", "{b}-{a}"), ("The war began in {a} and ended in {b}. How long did it last?", "{b}-{a}"),
        ("A bridge was opened in {a}. How many years ago was that in {b}?", "{b}-{a}"), ("It is {b}. How long ago was {a}?", "{b}-{a}"),
        ("My grandmother was born in {a}; how old was she in {b}?", "{b}-{a}"), ("She turned {c} in {b}. When was she born?", "{b}-{c}"),
        ("What year is {c} years after {a}?", "{a}+{c}"), ("What year was {c} years before {b}?", "{b}-{c}"), ("I am {c} in {b}. In what year was I born?", "{b}-{c}")])
    values = {"a": early, "b": late, "c": rng.randint(3, 99)}
    return form.format(**values), expression.format(**values), "years" if expression == "{b}-{a}" else None


KINDS = [(bare, 6), (chain, 2), (pair, 6), (worded, 3), (single, 4), (power, 1), (percent, 5), (share, 1), (average, 2.5), (total, 2), (years, 2.5)]
