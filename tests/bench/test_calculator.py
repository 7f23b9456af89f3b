"""The evaluation itself, with models that say what a test tells them to."""

import math

import pytest
import torch

from tests.bench.calculator import Figures, Share, says_any, table
from tests.bench.calculator_items import Item, Turn, items_of
from tests.bench.calculator_replies import Answer, Sampling, answer_all, nats_per_token
from tests.scripted import ByteTokenizer, ScriptedModel

SUM = Item("sums", (Turn("What is 12 + 30?", "12 + 30", "42"),))
ORDINARY = Item("ordinary", (Turn("What is the capital of France?"),), expect=("Paris",))
REFUSAL = Item("refusals", (Turn("What is 5 / 0?", "5 / 0"),))
BLOCK = "It is <|python_start|>12+30<|python_end|>{}."


def figures_of(item, *replies, max_tokens=160):
    answers, = answer_all(ScriptedModel(*replies), ByteTokenizer(), [item], Sampling(max_tokens=max_tokens))
    figures = Figures()
    figures.judge(item, answers)
    return figures


@pytest.mark.parametrize(("item", "reply", "hits"), [
    (SUM, BLOCK.format("42"), {"sums": 1, "malformed": 0, "without_end": 0}),
    (SUM, BLOCK.format("43"), {"sums": 0, "malformed": 0}),
    (SUM, BLOCK.format("what you see"), {"sums": 0}),
    (SUM, "42", {"sums": 1}),
    (SUM, "<|python_start|>12 plus 30<|python_end|>It is 42.", {"sums": 1, "malformed": 1}),
    (SUM, "<|python_start|>12+30", {"sums": 0, "without_end": 1}),
    (ORDINARY, "Paris.", {"false_calls": 0}),
    (ORDINARY, BLOCK.format("Paris"), {"false_calls": 1}),
    (REFUSAL, "<|python_start|>5/0<|python_end|>I cannot work this out.", {"invents_nothing": 1}),
    (REFUSAL, "<|python_start|>5/0<|python_end|>It is 0.", {"invents_nothing": 0}),
])
def test_a_reply_is_counted_under_what_it_did(item, reply, hits):
    figures = figures_of(item, reply)
    assert {name: getattr(figures, name).hits for name in hits} == hits
    assert all(getattr(figures, name).of == 1 for name in hits)


def test_what_was_wrong_is_kept_to_be_looked_at():
    wrong, = figures_of(SUM, BLOCK.format("43")).wrong
    assert wrong == {"kind": "sums", "faults": ["not right"], "question": "What is 12 + 30?", "right": "42",
                     "text": "It is 43.", "calls": [["12+30", "42"]]}


def test_a_reply_that_is_cut_is_counted():
    assert figures_of(ORDINARY, "Paris, and much more", max_tokens=5).cut == Share(1, 1)


def test_every_turn_of_every_conversation_is_answered_in_order_with_few_rows():
    items = items_of("two_turns", 7)
    model = ScriptedModel("First.", "<|python_start|>1+1<|python_end|>2")
    answers = answer_all(model, ByteTokenizer(), items, Sampling(), rows=3)
    assert [[answer.text for answer in own] for own in answers] == [["First.", "2"]] * 7
    first, second = answers[0]
    assert second.prompt_ids[:len(first.prompt_ids) + len(first.ids)] == first.prompt_ids + first.ids
    assert second.conclusion == "2" and second.calls[0].result == "2"


class Sure:
    """Gives every token but the one of the given id the probability 1/4 of four, and that one hardly any."""

    def get_device(self):
        return torch.device("cpu")

    def forward(self, ids):
        logits = torch.full((*ids.shape, 5), 0.0)
        logits[:, :, 4] = -100.0
        return logits


def test_the_nats_of_an_answer_are_those_of_the_tokens_that_were_sampled():
    answer = Answer((0, 1), (2, 4, 3), (1, 0, 1), "", "", (), "stop")  # the 4 was put in
    assert nats_per_token(Sure(), answer) == pytest.approx(math.log(4))


def test_the_same_answers_lose_nothing_and_others_what_they_cost():
    def answer(*ids):
        return Answer((0,), ids, (1,) * len(ids), "", "", (), "stop")

    figures = Figures()
    figures.compare([answer(1, 2), answer(1, 4)], [answer(1, 2), answer(1, 2)], Sure())
    assert figures.same_answers == Share(1, 2)
    assert figures.nats_lost == pytest.approx(100 / 2 / 2)


def test_a_key_word_is_a_whole_word():
    assert says_any("It's paris!", ("Paris",))
    assert says_any("Plants take in CO2.", ("carbon dioxide", "CO2"))
    assert not says_any("Automatic", ("Au",))


def test_the_table_has_a_column_for_each_model():
    lines = table({"with the adapter": Figures(sums=Share(9, 10)), "as published": Figures()})
    assert "with the adapter" in lines[0] and "as published" in lines[0]
    assert "90.0 % (9 of 10)" in lines[2] and lines[2].endswith("–")
