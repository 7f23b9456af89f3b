"""Checkpoints of all four dates against what nanochat's own code of that date computed from them."""

import json
from pathlib import Path

import pytest
import torch

from app.engine import Engine, KVCache
from app.models import checkpoint
from tests.models.tiny_nanochat import add, logits_of

FIXTURES = Path(__file__).parent.parent / "fixtures" / "nanochat"
DATES = ["2025-10", "2026-01", "2026-03", "2026-07"]


@pytest.fixture(scope="module", params=DATES)
def era(request):
    folder = FIXTURES / f"era-{request.param}"
    golden = json.loads((folder / "golden.json").read_text())
    return request.param, folder, golden, *checkpoint.load(folder)


def test_the_date_is_told_from_the_tensors(era):
    date, folder, *_ = era
    assert checkpoint.find(folder).architecture.date == date


def test_a_conversation_is_rendered_as_nanochat_renders_it(era):
    _, _, golden, _, tokenizer = era
    assert tokenizer.render_conversation(golden["conversation"]) == (golden["rendered_ids"], golden["rendered_mask"])
    assert tokenizer.render_for_completion(golden["conversation"]) == golden["prompt_ids"]


def test_logits_are_nanochats(era):
    _, _, golden, model, _ = era
    logits = logits_of(model, golden["prompt_ids"])
    middle = len(golden["prompt_ids"]) // 2
    torch.testing.assert_close(logits[-1], torch.tensor(golden["last_logits"]), rtol=0, atol=1e-3)
    torch.testing.assert_close(logits[middle, :8], torch.tensor(golden["mid_logits_8"]), rtol=0, atol=1e-3)


def test_the_reference_writes_what_nanochat_writes_without_a_cache(era):
    _, _, golden, model, _ = era
    assert list(model.generate(golden["prompt_ids"], 24, temperature=0)) == golden["naive_greedy"]


@pytest.mark.parametrize("chunk", [1_000, 128, 100])
def test_the_model_on_a_cache_writes_the_same(era, chunk):
    _, _, golden, model, _ = era
    prompt, cache, written = golden["prompt_ids"], KVCache.for_model(model, 1, 448), []
    for start in range(0, len(prompt), chunk):
        logits = add(model, cache, prompt[start:start + chunk])
    for _ in range(24):
        written.append(int(logits[0, -1].argmax()))
        logits = add(model, cache, [written[-1]])
    assert written == golden["naive_greedy"]


def test_the_engine_writes_the_same_in_every_row(era):
    _, _, golden, model, tokenizer = era
    columns = list(Engine(model, tokenizer).generate(golden["prompt_ids"], num_samples=3, max_tokens=24, temperature=0))
    for sample in range(3):
        assert [column[sample] for column, _ in columns] == golden["naive_greedy"]
