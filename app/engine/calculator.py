"""The calculator that the model may use: sums, and counting a part in a text.

A sum is read in three steps. The lexer cuts the expression into numbers, texts and signs, and refuses
everything it does not know. Python's own grammar then finds the order of the signs, but it is shown
placeholders (`v0 + v1 * v2`), so that Python never reads a number or a text that a model wrote. The walker
goes through that tree and computes with exact fractions.

This module must never evaluate code (no `eval`), use signals (the engine is not in the main thread, where
alone they work, nanochat#670), or compute a number before knowing that its size is bearable.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction

MAX_LENGTH = 512          # characters of an expression
MAX_DEPTH = 50            # brackets in brackets, and signs before a number
MAX_DIGITS = 100          # of a number that is written, or of the result
MAX_BITS = 1024           # of numerators and denominators on the way
DEADLINE_S = 3.0
SIGNIFICANT_DIGITS = 12   # of a quotient that does not end

SIGNS = {"+": "+", "-": "-", "*": "*", "/": "/", "×": "*", "÷": "/", "−": "-"}
REFUSED_SIGNS = {
    "**": "powers are not allowed",
    "^": "powers are not allowed",
    "//": "division without a remainder is not allowed",
    "%": "modulo and percent are not allowed",
    ",": "a comma is allowed only between groups of three digits",
}
ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t"}
INCOMPLETE = "this is not a complete sum"

NUMBER_LIKE = re.compile(r"\.?[0-9][0-9A-Za-z_.,]*")
NUMBER = re.compile(r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)(?:\.(?P<part>[0-9]*))?")
EXPONENT = re.compile(r"[0-9.]+[eE]")
WORD = re.compile(r"\w+")


class CalculatorError(ValueError):
    """An expression was refused; the text is the reason, in words for a person. `sentence` is that text with
    `{slots}` and `figures` what is in them, so that it can be said in another language."""

    def __init__(self, sentence: str, **figures):
        super().__init__(sentence.format(**figures))
        self.sentence, self.figures = sentence, figures


def use_calculator(expression: str) -> str | None:
    """The result as it is put into the conversation, or None where `evaluate` refuses."""
    try:
        return evaluate(expression)
    except CalculatorError:
        return None


def evaluate(expression: str, clock: Callable[[], float] = time.monotonic) -> str:
    """Work out a sum such as `1,234 × (2 + .5)` or `'strawberry'.count('r')`.

    Gives a number in digits: whole numbers and decimals that end are exact, others are rounded to 12
    significant digits. Raises CalculatorError for everything else. Safe in any thread.
    """
    deadline = clock() + DEADLINE_S
    expression = expression.strip()
    if not expression:
        raise CalculatorError("there is nothing to work out")
    if len(expression) > MAX_LENGTH:
        raise CalculatorError("too large: more than {limit} characters", limit=MAX_LENGTH)
    if "\n" in expression or "\r" in expression:
        raise CalculatorError("a sum is written on one line")
    source, values = _read(expression)
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError:
        raise CalculatorError(INCOMPLETE) from None
    except (MemoryError, RecursionError):
        raise CalculatorError("too large: too deeply nested") from None
    return _written(_Walker(values, deadline, clock).number(tree))


# --- the lexer

def _read(expression: str) -> tuple[str, dict[str, Fraction | str]]:
    """The expression with a placeholder for each number and text, and what the placeholders stand for."""
    source: list[str] = []
    values: dict[str, Fraction | str] = {}
    position = depth = 0
    while position < len(expression):
        if expression[position].isspace():
            position += 1
            continue
        before = source[-1] if source else ""
        after_value = before in values or before == ")"
        token, value, position = _next_token(expression, position)
        if token == "(":
            depth += 1
            if depth > MAX_DEPTH:
                raise CalculatorError("too large: more than {limit} brackets in one another", limit=MAX_DEPTH)
        elif token == ")":
            depth -= 1
        elif token == "+" and not after_value:
            raise CalculatorError("a plus needs a number before it")
        elif token == ".count" and not isinstance(values.get(before), str):
            raise CalculatorError("only in a text can something be counted")
        if after_value and (value is not None or token == "("):
            raise CalculatorError("a sign is missing between two numbers")
        if value is not None:
            token = f"v{len(values)}"
            values[token] = value
        source.append(token)
    return " ".join(source), values


def _next_token(expression: str, start: int) -> tuple[str, Fraction | str | None, int]:
    """The token that begins at `start`: its text, its value if it is a number or a text, and where it ends."""
    character = expression[start]
    if character in "'\"":
        text, end = _text(expression, start)
        return expression[start:end], text, end
    if match := NUMBER_LIKE.match(expression, start):
        return match.group(), _number(match.group()), match.end()
    for sign, reason in REFUSED_SIGNS.items():
        if expression.startswith(sign, start):
            raise CalculatorError(reason)
    if character in SIGNS or character in "()":
        return SIGNS.get(character, character), None, start + 1
    if expression.startswith(".count", start) and not WORD.match(expression, start + len(".count")):
        return ".count", None, start + len(".count")
    if character == ".":
        raise CalculatorError("a point belongs to a number")
    if (match := WORD.match(expression, start)) and not character.isnumeric():
        raise CalculatorError("names are not allowed: {name}", name=match.group())
    if character.isnumeric():
        raise CalculatorError("only the digits 0 to 9 are allowed")
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    raise CalculatorError("this sign is not allowed: {sign}", sign=shown)


def _number(written: str) -> Fraction:
    match = NUMBER.fullmatch(written)
    if match is None:
        if EXPONENT.match(written):
            raise CalculatorError("exponents are not allowed")
        if "," in written:
            raise CalculatorError(REFUSED_SIGNS[","])
        raise CalculatorError("this is not a number: {written}", written=written)
    whole, part = match["whole"].replace(",", ""), match["part"] or ""
    if len(whole) > 1 and whole[0] == "0":
        raise CalculatorError("leading zeros are not allowed")
    if len(whole) + len(part) > MAX_DIGITS:
        raise CalculatorError("too large: a number of more than {limit} digits", limit=MAX_DIGITS)
    return Fraction(int(whole + part), 10 ** len(part))


def _text(expression: str, start: int) -> tuple[str, int]:
    """The text between the quotation mark at `start` and the next one of its kind, and where that ends."""
    quote, position, characters = expression[start], start + 1, []
    while position < len(expression):
        character = expression[position]
        if character == quote:
            return "".join(characters), position + 1
        if character == "\\":
            position += 1
            escaped = expression[position:position + 1]
            if escaped not in ESCAPES:
                raise CalculatorError("this escape is not allowed: {escape}", escape="\\" + escaped)
            character = ESCAPES[escaped]
        characters.append(character)
        position += 1
    raise CalculatorError("a quotation mark is not closed")


# --- the walker

class _Walker:
    """Computes a tree of placeholders, signs and counts; anything else in it is refused."""

    def __init__(self, values: dict[str, Fraction | str], deadline: float, clock: Callable[[], float]):
        self.values, self.deadline, self.clock = values, deadline, clock

    def number(self, node: ast.expr, signs: int = 0) -> Fraction:
        if self.clock() > self.deadline:
            raise CalculatorError("it took longer than {limit} seconds", limit=int(DEADLINE_S))
        if isinstance(node, ast.BinOp):
            return self._chain(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if signs == MAX_DEPTH:
                raise CalculatorError("too large: more than {limit} signs before a number", limit=MAX_DEPTH)
            return -self.number(node.operand, signs + 1)
        if isinstance(node, ast.Call):
            return self._count(node)
        if isinstance(node, ast.Name):
            value = self.values[node.id]
            if isinstance(value, str):
                raise CalculatorError("a text can only be counted in: 'text'.count('part')")
            return value
        raise CalculatorError(INCOMPLETE)

    def _chain(self, node: ast.expr) -> Fraction:
        """a + b - c ..., from the left. A loop, since a long sum leans to the left as deep as it is long."""
        steps = []
        while isinstance(node, ast.BinOp):
            steps.append((node.op, node.right))
            node = node.left
        result = self.number(node)
        for operator, right in reversed(steps):
            result = _apply(operator, result, self.number(right))
        return result

    def _count(self, call: ast.Call) -> Fraction:
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=text), attr="count"), args=[ast.Name(id=part)], keywords=[]):
                whole, sought = self.values[text], self.values[part]
            case _:
                raise CalculatorError("counting is written 'text'.count('part')")
        if not isinstance(whole, str) or not isinstance(sought, str):
            raise CalculatorError("only a text can be counted")
        if not sought:
            raise CalculatorError("an empty part cannot be counted")
        return Fraction(whole.count(sought))


def _apply(operator: ast.operator, left: Fraction, right: Fraction) -> Fraction:
    """One step, after making sure from the sizes of both sides that its result stays bearable."""
    if isinstance(operator, ast.Div) and right == 0:
        raise CalculatorError("division by zero")
    bits = [number.bit_length() for side in (left, right) for number in (side.numerator, side.denominator)]
    left_top, left_bottom, right_top, right_bottom = bits
    if isinstance(operator, ast.Mult):
        largest = max(left_top + right_top, left_bottom + right_bottom)
    elif isinstance(operator, ast.Div):
        largest = max(left_top + right_bottom, left_bottom + right_top)
    else:
        largest = max(left_top + right_bottom, right_top + left_bottom) + 1
    if largest > MAX_BITS:
        raise CalculatorError("too large: a number on the way has too many digits")
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
    raise CalculatorError(INCOMPLETE)


# --- writing the result

def _written(value: Fraction) -> str:
    if abs(value) >= 10 ** MAX_DIGITS:
        raise CalculatorError("too large: a result of more than {limit} digits", limit=MAX_DIGITS)
    whole_digits = len(str(abs(int(value))))
    places = _decimal_places(value.denominator)
    if places is None or whole_digits + places > MAX_DIGITS:
        precision = max(SIGNIFICANT_DIGITS, whole_digits)
    else:
        precision = whole_digits + places
    context = Context(prec=precision)
    quotient = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    written = f"{quotient:f}"
    if len(written) > MAX_DIGITS + len("-0."):
        raise CalculatorError("too small to be written")
    if "." in written:
        written = written.rstrip("0").rstrip(".")
    return written


def _decimal_places(denominator: int) -> int | None:
    """How many digits stand after the point of a number with this denominator; None if they never end."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None
