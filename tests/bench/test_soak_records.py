"""Answers of a soak are compared with fresh ones: what counts as another answer."""

from pathlib import Path

import pytest
import torch

from app.engine import Engine
from app.models.llama import Llama
from tests.bench.soak_records import Record, Records
from tests.models.tiny_llama import random_weights, tiny_config
from tests.scripted import ByteTokenizer

PROMPT = tuple(b"What does the sea say?")
CONFIG = tiny_config(vocab_size=265)


def model_of(weights) -> Llama:
    return Llama(CONFIG, weights.__getitem__)


@torch.inference_mode()
def greedy(model, count: int) -> list[int]:
    return [column[0] for column, _ in Engine(model, ByteTokenizer()).generate(PROMPT, max_tokens=count, temperature=0.0)]


@pytest.fixture
def records(tmp_path):
    return Records(Path(tmp_path) / "unused.db")


def test_the_same_answer_or_its_beginning_is_no_fault_and_another_one_is(records):
    model = model_of(random_weights(CONFIG))
    ids = greedy(model, 8)
    before = ((False, PROMPT),)
    for made in (ids, ids[:3], []):
        records.made[Record(before, tuple(made), len(PROMPT))] += 1
    assert records.compare(model, ByteTokenizer()) == []
    other = (ids[3] + 1) % 256
    records.made[Record(before, (*ids[:3], other, *ids[4:]), len(PROMPT))] += 1
    assert records.compare(model, ByteTokenizer()) == ["an answer of 8 tokens to 22 differs from a fresh one from 3 on"]
    assert records.near_ties == 0


def test_of_two_tokens_that_are_equally_likely_either_may_be_taken(records):
    weights = random_weights(CONFIG)
    first = greedy(model_of(weights), 1)[0]
    twin = next(id for id in range(256) if id not in (first, *PROMPT))
    weights["token_embd.weight"][twin] = weights["token_embd.weight"][first]
    model = model_of(weights)
    taken = greedy(model, 1)[0]
    assert taken in (first, twin)
    records.made[Record(((False, PROMPT),), (first + twin - taken,), len(PROMPT))] += 1
    assert records.compare(model, ByteTokenizer()) == []
    assert records.near_ties == 1
