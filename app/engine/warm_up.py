"""The first forwards of a model, before anybody waits for one: they are slow, as kernels are chosen and memory is mapped.

They also tell with how many threads to begin, and how fast the model is here. This module must never serve a reply.
"""

from __future__ import annotations

import time

from app.engine.kv_cache import KVCache
from app.engine.model_runner import ModelRunner
from app.engine.race_estimate import pace_of_running
from app.engine.race_messages import Pace

LONGEST_TOKENS = 64


def warm_up(runner: ModelRunner, tokenizer, context: int) -> Pace:
    """Read and write a little in a cache of its own -> how fast a race would go, as far as that tells."""
    row = KVCache.for_model(runner.model, 1, min(LONGEST_TOKENS, context))
    token = tokenizer.get_bos_token_id()
    half = row.seq_len // 2

    def run() -> tuple[float, float]:
        row.reset()
        return _time_forward(runner, [token] * half, row), _time_forward(runner, [token], row)

    if runner.governor is not None:
        runner.governor.begin(run)
    else:
        run()
        run()
    reading_s, writing_s = run()
    return pace_of_running(reading_s, half, writing_s, row.k_cache.element_size())


def _time_forward(runner: ModelRunner, ids: list[int], row: KVCache) -> float:
    began = time.perf_counter()
    runner.forward([ids], row)[0, 0].item()  # a device that computes by itself is waited for
    return time.perf_counter() - began
