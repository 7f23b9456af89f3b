"""nanochat on a GPU. Skipped where there is none; `tests/bench/nanochat_gpu.py` does the same and measures."""

import json

import pytest
import torch

from app.engine import Engine, KVCache
from app.models import checkpoint
from tests.models.test_nanochat_fixtures import DATES, FIXTURES
from tests.models.tiny_nanochat import random_ids, same

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device here")


@pytest.mark.parametrize("date", DATES)
def test_a_gpu_computes_nanochats_logits_and_writes_its_tokens(date):
    folder = FIXTURES / f"era-{date}"
    golden = json.loads((folder / "golden.json").read_text())
    model, tokenizer = checkpoint.load(folder, "cuda")
    with torch.inference_mode():
        logits = model.forward(torch.tensor([golden["prompt_ids"]], device="cuda"), last_only=True)
    same(logits[0, -1].cpu(), torch.tensor(golden["last_logits"]), 1e-3)
    columns = Engine(model, tokenizer).generate(golden["prompt_ids"], max_tokens=24, temperature=0)
    assert [column[0] for column, _ in columns] == golden["naive_greedy"]


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-3), (torch.bfloat16, 0.5), (torch.float16, 0.1)],
                         ids=str)
@pytest.mark.parametrize("date", DATES)
def test_a_gpu_adds_to_rows_of_different_lengths_exactly(date, dtype, tolerance):
    model, _ = checkpoint.load(FIXTURES / f"era-{date}", "cuda", dtype)
    cache = KVCache.for_model(model, 2, 448)
    rows = [random_ids(model, 300, seed=1), random_ids(model, 40, seed=2)]
    new = [random_ids(model, 5, seed=3), random_ids(model, 5, seed=4)]
    with torch.inference_mode():
        for index, ids in enumerate(rows):
            model.forward(torch.tensor([ids], device="cuda"), cache.select([index]))
        together = model.forward(torch.tensor(new, device="cuda"), cache)
        for index in range(2):
            whole = model.forward(torch.tensor([rows[index] + new[index]], device="cuda"))
            same(together[index], whole[0, -5:], tolerance)
