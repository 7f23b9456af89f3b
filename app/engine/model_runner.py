"""Runs a model: ids in, the logits of the last position out.

The one place where a forward is called. A model need only have the methods of the contract; what it
offers beyond them (logits of the last position alone) is found out here.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence

import torch

from app.engine.kv_cache import KVCache
from app.engine.thread_governor import ThreadGovernor

READ_CHUNK_TOKENS = 128  # a prompt is read in pieces of this many tokens: what others wait between their tokens


class ModelRunner:
    """One model and how to run it. Belongs to the thread that runs it. `governor` sets its number of threads."""

    def __init__(self, model, governor: ThreadGovernor | None = None):
        self.model = model
        self._governor = governor
        self.device = model.get_device()
        self._last_only = "last_only" in inspect.signature(model.forward).parameters

    @property
    def max_context(self) -> int:
        """How many tokens the model can hold: what it was loaded for, else what it was trained on."""
        return getattr(self.model, "max_context", None) or self.model.config.sequence_len

    def forward(self, ids: Sequence[Sequence[int]], cache: KVCache | None = None) -> torch.Tensor:
        """B equally long lists of T ids -> logits (B, V) after the last of each."""
        batch = torch.tensor(ids, dtype=torch.long, device=self.device)  # (B, T)
        options = {"last_only": True} if self._last_only else {}
        started = time.perf_counter()
        logits = self.model.forward(batch, **options) if cache is None \
            else self.model.forward(batch, kv_cache=cache, **options)
        if self._governor is not None:
            self._governor.took(batch.numel(), time.perf_counter() - started)
        return logits[:, -1, :]

    def read(self, ids: Sequence[int], row: KVCache, chunk_tokens: int = READ_CHUNK_TOKENS) -> torch.Tensor:
        """Read a whole prompt into a cache of one row, in chunks -> logits (1, V) after its last token."""
        assert ids, "there is nothing to read"
        for start in range(0, len(ids), chunk_tokens):
            logits = self.forward([ids[start:start + chunk_tokens]], row)
        return logits
