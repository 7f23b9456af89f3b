"""The calculator: a table of cases, and the properties that no table can show."""

import json
import operator
import re
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from app.engine.calculator import CalculatorError, evaluate, use_calculator

CASES = json.loads(Path(__file__).with_name("calculator_cases.json").read_text(encoding="utf-8"))


def put_together(case) -> str:
    if isinstance(case, str):
        return case
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in case)


def parameters(kind):
    pairs = [(put_together(expression), put_together(expected)) for expression, expected in CASES[kind]]
    return pytest.mark.parametrize("expression, expected", pairs, ids=[repr(pair[0][:40]) for pair in pairs])


@parameters("good")
def test_a_sum_is_worked_out(expression, expected):
    assert evaluate(expression) == expected
    assert use_calculator(expression) == expected


@parameters("refused")
def test_anything_else_is_refused_with_a_reason(expression, expected):
    with pytest.raises(CalculatorError) as refusal:
        evaluate(expression)
    assert str(refusal.value).startswith(expected)
    assert use_calculator(expression) is None


def test_a_quotation_mark_ends_a_text_only_if_it_is_of_the_kind_that_began_it():
    assert evaluate("""'"'.count('"')""") == "1"
    assert evaluate('''"'".count("'")''') == "1"


# --- exactness

class Sum:
    """A random sum as text, beside its value computed with fractions alone."""

    def __init__(self, text: str, value: Fraction):
        self.text, self.value = text, value

    def __repr__(self):
        return self.text


numbers = st.decimals(min_value=0, max_value=10**9, places=3).map(lambda number: Sum(f"{number:f}", Fraction(number)))


def joined(pairs_of):
    signs = {"+": operator.add, "-": operator.sub, "−": operator.sub, "*": operator.mul, "×": operator.mul,
             "/": operator.truediv, "÷": operator.truediv}

    def join(left, sign, right):
        if signs[sign] is operator.truediv and right.value == 0:
            sign = "+"
        return Sum(f"({left.text}{sign}{right.text})", signs[sign](left.value, right.value))

    return st.builds(join, pairs_of, st.sampled_from(sorted(signs)), pairs_of)


@given(st.recursive(numbers, joined, max_leaves=6))
def test_a_result_is_the_exact_value_or_its_12_digits(summed):
    result = Fraction(evaluate(summed.text))
    assert abs(result - summed.value) <= abs(summed.value) * Fraction(5, 10**12)


@given(st.integers(-10**20, 10**20), st.integers(-10**20, 10**20))
def test_whole_numbers_are_added_and_multiplied_exactly(left, right):
    assert evaluate(f"({left}) + ({right})") == str(left + right)
    assert evaluate(f"({left}) * ({right})") == str(left * right)


@given(st.integers(0, 10**15))
def test_thousands_commas_change_nothing(number):
    assert evaluate(f"{number:,}") == str(number)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-10**9, max_value=10**9, places=6))
def test_a_decimal_comes_back_as_it_is(number):
    assert Decimal(evaluate(f"{number:f}")) == number


plain_text = st.text(st.characters(exclude_characters="'\\\n\r"), max_size=50)


@given(plain_text, plain_text.filter(bool))
def test_counting_agrees_with_python_for_any_text(text, part):
    assert evaluate(f"'{text}'.count('{part}')") == str(text.count(part))


@given(st.text(max_size=60) | st.text(alphabet="0123456789.,+-*/()'\"abc count×÷−", max_size=60))
def test_any_input_gives_a_number_or_a_refusal(expression):
    result = use_calculator(expression)
    assert result is None or re.fullmatch(r"-?[0-9]+([.][0-9]+)?", result)


# --- time and threads

class SlowClock:
    """Each look at it takes a second."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


def test_a_sum_that_takes_longer_than_3_seconds_is_given_up():
    assert evaluate("1+2", clock=SlowClock()) == "3"
    with pytest.raises(CalculatorError, match="it took longer than 3 seconds"):
        evaluate("1+2+3+4", clock=SlowClock())


def test_it_works_off_the_main_thread_and_leaves_signals_alone():
    before = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    expressions = [f"{number} * 7" for number in range(200)]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda sum_: (evaluate(sum_), threading.current_thread()), expressions))
    assert [result for result, _ in results] == [str(number * 7) for number in range(200)]
    assert threading.main_thread() not in {thread for _, thread in results}
    assert (signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)) == before
