"""The judge of the calculator's evaluation: which written answers count as right."""

from decimal import Decimal

import pytest

from tests.bench.calculator_judge import invents_number, is_right, numbers


@pytest.mark.parametrize(("text", "found"), [
    ("123 × 456 is 56,088.", [123, 456, 56088]),
    ("You pay $1,234.50, I think.", [Decimal("1234.5")]),
    ("It is -25 degrees, or −25.", [-25, -25]),
    ("33 minus 58 is minus 25.", [33, 58, -25]),
    ("10-3 = 7", [10, 3, 7]),
    ("Version v2 has .5", [2, Decimal("0.5")]),
    ("There are three r's in it.", [3]),
    ("One moment. There is one q.", [1]),
    ("The word has no z.", [0]),
    ("No, it appears twice.", [2]),
    ("Twenty-one", []),
    ("1,2,3", [1, 2, 3]),
])
def test_the_numbers_of_a_text_are_found(text, found):
    assert numbers(text) == found


@pytest.mark.parametrize("text", [
    "123 × 456 is 56,088.", "56088", "The result is 56088.0.", "It comes to **56,088**!",
    "56088 is the product of 123 and 456.", "First I thought 5128, but it is 56088."])
def test_an_answer_that_ends_on_the_right_number_is_right(text):
    assert is_right(text, "56088", [Decimal(123), Decimal(456)])


@pytest.mark.parametrize("text", [
    "", "I cannot say.", "123 × 456 is 5128.", "It is 56088, no, 56089.", "It is 560880.", "It is 56,08.",
    "It is about 56000.", "It is -56088.", "123 times 456."])
def test_another_number_or_none_is_wrong(text):
    assert not is_right(text, "56088", [Decimal(123), Decimal(456)])


def test_money_may_have_zeros_and_a_currency_but_is_not_rounded():
    assert is_right("The tip is $9.60.", "9.6", [Decimal(64), Decimal(15)])
    assert is_right("It is 41.834 km.", "41.834")
    assert not is_right("It is 41.83 km.", "41.834")


def test_numbers_that_were_given_may_be_repeated_after_the_answer():
    given = [Decimal(20), Decimal(150)]
    assert is_right("30, because that is 20 percent of 150.", "30", given)
    assert not is_right("20 percent of 150.", "30", given)


def test_a_count_may_be_a_word():
    assert is_right("There are three r's in “strawberry”.", "3")
    assert is_right('There is one q in "quartz".', "1")
    assert is_right("“cat” has no e.", "0")
    assert not is_right("There are two r's.", "3")


@pytest.mark.parametrize("text", [
    "I cannot work this out: one cannot divide by zero.", "5 divided by 0 is undefined.", "5/0 has no answer.",
    "What is 5 divided by 0? Nobody can say."])
def test_a_refusal_invents_nothing(text):
    assert not invents_number(text, [Decimal(5), Decimal(0)])


@pytest.mark.parametrize("text", [
    "5 divided by 0 is 0.", "5 / 0 = 5", "The answer is zero.", "That makes 12500.", "It is approximately 5."])
def test_a_number_for_what_has_none_is_invented(text):
    assert invents_number(text, [Decimal(5), Decimal(0)])
