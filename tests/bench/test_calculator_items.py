"""The data of the calculator's evaluation: as many as promised, none twice, and every answer right."""

from decimal import Decimal

import pytest

from app.engine import use_calculator
from tests.bench.calculator_items import KINDS, items_of
from tests.bench.calculator_judge import numbers

TURNS = [(item, place) for kind in KINDS for item in items_of(kind) for place in range(len(item.turns))]
SOLVED = [(item, place) for item, place in TURNS if item.turns[place].answer is not None]


def test_there_are_as_many_questions_as_the_figures_speak_of():
    assert len(items_of("sums")) + len(items_of("counts")) >= 320
    assert len(items_of("counts")) >= 100
    assert len(items_of("ordinary")) >= 210
    assert sum(any(map(str.isdigit, item.turns[0].question)) for item in items_of("ordinary")) >= 70
    assert sum(bool(item.expect) for item in items_of("ordinary")) >= 55
    assert len(items_of("two_turns")) >= 50
    assert len(items_of("refusals")) == 20


def test_no_question_stands_there_twice():
    seen = ["\n".join(turn.question.casefold() for turn in item.turns) for kind in KINDS for item in items_of(kind)]
    assert sorted(set(seen)) == sorted(seen)


@pytest.mark.parametrize("kind", ["sums", "counts"])
def test_every_sum_and_count_has_an_answer(kind):
    assert all(turn.answer is not None for item in items_of(kind) for turn in item.turns)


def test_every_answer_is_the_calculators():
    wrong = [(turn, use_calculator(turn.expression)) for turn in (item.turns[place] for item, place in SOLVED)
             if use_calculator(turn.expression) != turn.answer]
    assert wrong == []


def test_counted_texts_stand_in_the_question():
    for item in items_of("counts"):
        text, part = item.turns[0].expression.removesuffix('")').split('".count("')
        question = item.turns[0].question.replace("’", "'")
        assert text.strip('"').casefold() in question.casefold(), question
        assert part.casefold() in question.casefold(), question
        assert text.casefold().count(part.casefold()) == text.count(part), f"capitals make it unclear: {question}"


def test_what_the_calculator_refuses_is_refused():
    assert [item for item in items_of("refusals") if use_calculator(item.turns[0].expression) is not None] == []


def test_no_answer_is_a_number_of_its_question():
    for item, place in SOLVED:
        turn = item.turns[place]
        assert Decimal(turn.answer) not in numbers(turn.question) + numbers(turn.expression), turn


def test_the_given_numbers_are_those_of_question_sum_and_earlier_turns():
    item = next(item for item in items_of("two_turns") if item.turns[1].question == "and twice that?")
    assert item.given(0) == {Decimal(35), Decimal(48)}
    assert item.given(1) >= {Decimal(35), Decimal(48), Decimal(83), Decimal(2)}


def test_a_slice_is_spread_over_the_whole():
    part, whole = items_of("sums", 10), items_of("sums")
    assert len(part) == 10 and part[0] == whole[0] and whole.index(part[-1]) > len(whole) * 0.8
