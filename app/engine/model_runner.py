"""Runs a model: ids in, the logits of the last position out.

The one place where a forward is called. A model need only have the methods of the contract; what it
offers beyond them (logits of the last position alone, a forward in parts) is found out here.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Generator, Sequence

import torch

from app.engine.kv_cache import KVCache
from app.engine.thread_governor import ThreadGovernor

READ_CHUNK_TOKENS = 128  # a prompt is read in pieces of at most so many tokens
READ_S = 0.15  # what those who are being written to wait, at most, for something longer to be computed
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
        return self.begin(ids, cache).advance()

    def begin(self, ids: Sequence[Sequence[int]], cache: KVCache | None = None) -> BegunForward:
        """The same forward, to be made part by part."""
        options = ({"last_only": True} if self._last_only else {}) | ({} if cache is None else {"kv_cache": cache})
        num_stored = sum(cache.lengths()) if cache is not None and self.governor is not None else 0
        return BegunForward(self, torch.tensor(ids, dtype=torch.long, device=self.device), options, num_stored)

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


class BegunForward:
    """A forward that others may come between. Until its logits are there, or it is given up, its rows are its own."""

    def __init__(self, runner: ModelRunner, batch: torch.Tensor, options: dict, num_stored: int):
        self.num_tokens = batch.shape[1]
        self.seconds = self.part_seconds = 0.0  # that it has taken, without what came between, and its last part of it
        self._runner, self._batch, self._options, self._num_stored = runner, batch, options, num_stored
        self._parts: Generator[None, None, torch.Tensor] | None = None  # once it is known whether somebody waits

    def advance(self, until: float = math.inf) -> torch.Tensor | None:
        """Compute on, one part at least, and no further than the clock (`time.perf_counter`) is likely to stand at `until`
        afterwards -> logits (B, V) after the last token of each row, or None as long as there is more to do."""
        if self._parts is None:
            self._parts = self._make_parts(is_awaited=until < math.inf)
        while True:
            logits = self._part()
            if logits is not None:
                if self._runner.governor is not None:
                    self._runner.governor.took(self._batch.numel(), self.seconds, self._num_stored)
                return logits[:, -1, :]
            if time.perf_counter() + self.part_seconds > until:
                return None

    def _make_parts(self, is_awaited: bool) -> Generator[None, None, torch.Tensor]:
        """The forward, which stops wherever the model can if others wait: for 20 tokens all the stops take 6 % longer."""
        model = self._runner.model
        if is_awaited and hasattr(model, "forward_in_parts"):
            return (yield from model.forward_in_parts(self._batch, **self._options))
        return model.forward(self._batch, **self._options)

    def _part(self) -> torch.Tensor | None:
        started, logits = time.perf_counter(), None
        try:
            next(self._parts)
        except StopIteration as end:
            logits = end.value
        self.part_seconds = time.perf_counter() - started
        self.seconds += self.part_seconds
        return logits
