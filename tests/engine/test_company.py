"""Whoever is served beside you does not change your reply: alone, among others, joining late, in another row."""

import random

import pytest
import torch

from app.engine.messages import Finished, Request
from app.engine.scheduler import Scheduler
from app.models.half_projection import can_multiply_half
from app.models.nanochat_architecture import ARCHITECTURES
from tests.bench import company
from tests.engine.tiny import PlainTokenizer
from tests.models.tiny_llama import tiny_llama
from tests.models.tiny_nanochat import tiny_nanochat

CONTEXT = 320


class EndlessTokenizer(PlainTokenizer):
    """Of a family in which nothing ends a reply but its length."""
    end_token_ids = frozenset({-1})


def requests(seed: int, count: int) -> list[Request]:
    rng = random.Random(seed)
    return [Request(f"r{i}", f"c{i}", tuple(rng.randrange(250) for _ in range(rng.choice([1, 3, 20, 127, 128, 150]))),
                    temperature=rng.choice([0.0, 0.7, 1.0]), top_k=rng.choice([None, 20]),
                    max_tokens=rng.randrange(20, 150), seed=i) for i in range(count)]


def serve(model, asked: list[Request], rows: int, rng: random.Random | None = None) -> dict[str, tuple[int, ...]]:
    """The ids of every reply; with `rng` the requests come in at random moments, else all at once."""
    scheduler, replies, waiting = Scheduler(model, PlainTokenizer(), rows=rows, context=CONTEXT), {}, list(asked)

    def hear(event):
        if isinstance(event, Finished):
            replies[event.reply] = event.ids

    for _ in range(20_000):
        while waiting and (rng is None or rng.random() < 0.2):
            scheduler.submit(waiting.pop(0), hear)
        if not waiting and not scheduler.busy:
            return replies
        scheduler.step()
    raise AssertionError("20,000 steps were not enough")


needs_halves = pytest.mark.skipif(not can_multiply_half("cpu"), reason="this processor does not convert numbers of 16 bits")
MODELS = [pytest.param(lambda: tiny_llama(vocab_size=265, sequence_len=CONTEXT), id="llama"),
          pytest.param(lambda: tiny_llama(torch.bfloat16, vocab_size=265, sequence_len=CONTEXT), id="llama, bfloat16",
                       marks=needs_halves)] + [
    pytest.param(lambda architecture=architecture: tiny_nanochat(architecture, vocab_size=265, sequence_len=CONTEXT), id=architecture.date)
    for architecture in ARCHITECTURES]


@pytest.mark.parametrize("make_model", MODELS)
def test_a_reply_is_the_same_alone_and_in_any_company(make_model):
    model, asked = make_model(), requests(7, 12)
    alone = {}
    for request in asked:
        alone |= serve(model, [request], rows=1)
    assert sum(map(len, alone.values())) > 300
    assert serve(model, asked, rows=8) == alone
    for seed in range(3):
        company = random.Random(seed).sample(asked, len(asked))
        assert serve(model, company, rows=random.Random(seed).randrange(2, 9), rng=random.Random(seed)) == alone


def test_two_thousand_tokens_are_the_same_alone_among_seven_others_joining_late_and_in_other_rows():
    context = 700
    rng, found = random.Random(11), company.Found()
    asked = [Request(f"r{each}", f"c{each}", tuple(rng.randrange(250) for _ in range(rng.choice([2, 90, 300]))),
                     temperature=rng.choice([0.0, 0.8, 1.0]), top_k=rng.choice([None, 20]), max_tokens=250, seed=each)
             for each in range(company.PEOPLE)]
    model = tiny_llama(vocab_size=265, sequence_len=context, n_layer=2)
    company.compare(model, EndlessTokenizer(), asked, context, rng, found)
    assert found.differing == []
    assert found.tokens == 8 * 250 and found.other_rows >= 8
