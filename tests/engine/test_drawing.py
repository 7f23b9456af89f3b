"""Rows that are drawn for together get what each would draw alone, and leave their generators as that does."""

import random

import pytest
import torch

from app.engine.messages import Reason
from app.engine.scheduler import Scheduler
from app.engine.sequence import ReplyRules, Sequence, draw_together
from tests.engine.scheduling import TOKENIZER, fresh_run, run, submit
from tests.engine.tiny import BOS, EXPRESSION_END, EXPRESSION_START, TinyModel

RULES = ReplyRules.of(TOKENIZER)
SETTINGS = [(0.0, None), (0.7, 20), (0.7, None), (1.0, 20)]


def sequences(seed: int) -> list[Sequence]:
    """Eight with a few kinds of settings, one of which has a forced token."""
    rng = random.Random(seed)
    made = []
    for number in range(8):
        temperature, top_k = rng.choice(SETTINGS)
        made.append(Sequence([BOS, number], RULES, limit=96, temperature=temperature, top_k=top_k, seed=seed + number))
    for token in (EXPRESSION_START, ord("1"), ord("+"), ord("1"), EXPRESSION_END):
        made[3].choose(logits_for(token))
    assert made[3].tools.forced
    return made


def logits_for(token: int) -> torch.Tensor:
    logits = torch.full((1, 265), -50.0)
    logits[0, token] = 50.0
    return logits


@pytest.mark.parametrize("seed", range(20))
def test_together_and_alone_the_same_tokens_are_drawn(seed):
    together, alone = sequences(seed), sequences(seed)
    rng = torch.Generator().manual_seed(seed)
    for _ in range(5):
        rows = list(torch.randn(8, 265, generator=rng).mul(3).round().chunk(8))  # many are equal
        drawn = draw_together(together, rows)
        assert any(token is not None for token in drawn)
        assert drawn[3] is None or not together[3].tools.forced
        for mine, other, row, token in zip(together, alone, rows, drawn):
            if not mine.finished:
                assert mine.choose(row, drawn=token) == other.choose(row)
            assert torch.equal(mine.rng.get_state(), other.rng.get_state())
        if any(each.finished for each in together):
            return


class BrokenModel(TinyModel):
    """Gives no numbers for the rows whose last token is 7."""

    def forward(self, ids, kv_cache=None):
        logits = super().forward(ids, kv_cache)
        logits[ids[:, -1] == 7] = float("nan")
        return logits


def test_a_row_that_cannot_be_drawn_from_fails_alone():
    model = BrokenModel()
    scheduler = Scheduler(model, TOKENIZER, rows=3, context=96)
    heard = [submit(scheduler, name, [BOS, last], temperature=1.0, seed=5, max_tokens=1)
             for name, last in (("a", 1), ("b", 7), ("c", 3))]
    run(scheduler, *heard)
    assert [each.finished.reason for each in heard] == [Reason.LENGTH, Reason.ERROR, Reason.LENGTH]
    assert "not finite" in heard[1].finished.error
    for each in (heard[0], heard[2]):
        assert [(token.id, 0 if token.forced else 1) for token in each.tokens] == fresh_run(model, each.request)
