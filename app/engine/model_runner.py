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

READ_CHUNK_TOKENS = 128  # a prompt is read in pieces of at most so many tokens: what others wait between their tokens
HALVED_FROM = (768, 2560)  # positions from which, on a processor, attention takes so long that half as many are read at once


class ModelRunner:
    """One model and how to run it. Belongs to the thread that runs it. `governor` sets its number of threads."""

    def __init__(self, model, governor: ThreadGovernor | None = None):
        self.model = model
        self.governor = governor
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
        num_stored = sum(cache.lengths()) if cache is not None and self.governor is not None else 0
        started = time.perf_counter()
        logits = self.model.forward(batch, **options) if cache is None \
            else self.model.forward(batch, kv_cache=cache, **options)
        if self.governor is not None:
            self.governor.took(batch.numel(), time.perf_counter() - started, num_stored)
        return logits[:, -1, :]

    def chunk_tokens(self, start: int) -> int:
        """How many tokens are read at once from the position `start` on. Nothing else decides it: how busy the engine is
        must not, as other chunks round otherwise."""
        halvings = sum(start >= position for position in HALVED_FROM) if self.device.type == "cpu" else 0
        return READ_CHUNK_TOKENS >> halvings

    def chunk(self, ids: Sequence[int], start: int) -> Sequence[int]:
        """What is read at once of `ids`, the first of which stands at position 0, from `start` on."""
        return ids[start:start + self.chunk_tokens(start)]

    def read(self, ids: Sequence[int], row: KVCache) -> torch.Tensor:
        """Read a whole prompt into an empty cache of one row, in chunks -> logits (1, V) after its last token."""
        assert ids, "there is nothing to read"
        start = 0
        while start < len(ids):
            chunk = self.chunk(ids, start)
            logits = self.forward([chunk], row)
            start += len(chunk)
        return logits
