"""The key-value cache: one slab of rows, allocated once.

For every layer and every token already seen, attention needs that token's key and value. They depend
on nothing that comes later, so they are computed once and kept here: reading a prompt fills a row, and
every written token adds one position to it.

This module owns the two tensors and the length of each row. It must never know which conversation a
row belongs to (retention does), nor compute attention (the model does).

Letters used for shapes throughout the project:

    B rows   T new positions   S stored positions   H query heads   G KV heads   D head size   V vocabulary

One layer of the slab, with three rows of lengths 5, 0 and 3 (x in use, . reserved):

                 position 0 1 2 3 4 5 6 7
        row 0             x x x x x . . .     cache_seqlens[0] = 5
        row 1             . . . . . . . .     cache_seqlens[1] = 0
        row 2             x x x . . . . .     cache_seqlens[2] = 3

Whatever lies at or beyond a row's length is never read as it is, so a freed row cannot leak into a later reply:
attention stops at the length, or goes on to the end of a block of which the rest was zeroed first, and is masked.

Beside the slab the cache notes which token stands at each position (4 bytes, not counted as memory of keys
and values): a nanochat model mixes the previous token's embedding into each new one, and at the start of a
chunk that token is known only from here. The note is cut, copied and reused with its row, so it cannot
disagree with the keys and values.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch


class CacheFullError(ValueError):
    """A write would go past the end of a row. Raised before anything is written."""


class KVCache:
    """Keys and values of `batch_size` rows of at most `seq_len` positions each.

    `k_cache` and `v_cache` have shape (layers, B, S, G, D); `num_heads` is the number of KV heads (G),
    which grouped-query attention makes smaller than the number of query heads. `cache_seqlens` (B,)
    int32 holds how many positions of each row are in use; rows may differ.
    """

    def __init__(self, batch_size: int, num_heads: int, seq_len: int, head_dim: int, num_layers: int,
                 device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32):
        # In memory a head's positions lie side by side, which attention reads nearly twice as fast when rows are long.
        shape = (num_layers, batch_size, num_heads, seq_len, head_dim)
        self.k_cache = torch.zeros(shape, device=device, dtype=dtype).transpose(2, 3)  # (layers, B, S, G, D)
        self.v_cache = torch.zeros(shape, device=device, dtype=dtype).transpose(2, 3)  # (layers, B, S, G, D)
        self.cache_seqlens = torch.zeros(batch_size, dtype=torch.int32, device=device)  # (B,)
        self.token_ids = torch.zeros(batch_size, seq_len, dtype=torch.int32, device=device)  # (B, S)
        # From a row's length to here, all that is stored is 0: nothing stood there since, or it was zeroed.
        self._clear_to = torch.zeros(batch_size, dtype=torch.int32)  # (B,)

    @classmethod
    def for_model(cls, model, batch_size: int, seq_len: int) -> KVCache:
        """A cache of the shape and type that `model` writes.

        The type is the model's `cache_dtype` if it names one, else that of its parameters, else float32
        (keys and values of another type than the model computes in would be rounded twice, nanochat#795).
        """
        config = model.config
        dtype = getattr(model, "cache_dtype", None)
        if dtype is None:
            parameters = getattr(model, "parameters", None)
            first = next(iter(parameters()), None) if callable(parameters) else None
            dtype = first.dtype if first is not None else torch.float32
        return cls(batch_size, config.n_kv_head, seq_len, config.n_embd // config.n_head, config.n_layer,
                   device=model.get_device(), dtype=dtype)

    # --- shape and size

    @property
    def num_layers(self) -> int:
        return self.k_cache.shape[0]

    @property
    def batch_size(self) -> int:
        return self.cache_seqlens.shape[0]

    @property
    def seq_len(self) -> int:
        return self.k_cache.shape[2]

    @property
    def dtype(self) -> torch.dtype:
        return self.k_cache.dtype

    @property
    def bytes_per_token(self) -> int:
        """2 (keys and values) x layers x KV heads x head size x bytes per element."""
        layers, _, _, num_heads, head_dim = self.k_cache.shape
        return 2 * layers * num_heads * head_dim * self.k_cache.element_size()

    @property
    def bytes_reserved(self) -> int:
        return self.batch_size * self.seq_len * self.bytes_per_token

    @property
    def bytes_used(self) -> int:
        return sum(self.lengths()) * self.bytes_per_token

    def lengths(self) -> list[int]:
        """Positions in use, one number a row."""
        return self.cache_seqlens.tolist()

    # --- what a model's forward uses

    def get_pos(self) -> int:
        """Positions in use in the first row (of all rows, where they are equal)."""
        return int(self.cache_seqlens[0])

    def get_layer_cache(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of one layer, each (B, S, G, D), to be written in place."""
        return self.k_cache[layer], self.v_cache[layer]

    def row(self, layer: int, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of one row in one layer, each (S, G, D), to be written in place."""
        return self.k_cache[layer, index], self.v_cache[layer, index]

    def rows_together(self, first: int) -> int:
        """How many rows from `first` on lie side by side in memory, so that they can be had as one tensor."""
        return self.batch_size - first

    def span(self, first: int, count: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of `count` rows from `first` on in all layers, each (layers, count, S, G, D), to be
        written in place. At most `rows_together(first)` of them."""
        return self.k_cache[:, first:first + count], self.v_cache[:, first:first + count]

    def all_lines(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values with those of one head at one position as a line, each (layers, rows·G·S, D), to be written in
        place."""
        return self.k_cache.transpose(2, 3).flatten(1, 3), self.v_cache.transpose(2, 3).flatten(1, 3)

    def lines_of(self, starts: list[int], num_new: int) -> torch.Tensor:
        """Which of `all_lines` hold `num_new` tokens of each row from `starts[row]` on, (B·T·G,), heads side by side."""
        num_positions, num_heads = self.k_cache.shape[2:4]
        return torch.tensor([(row * num_heads + head) * num_positions + position
                             for row, start in zip(self.row_numbers(), starts) for position in range(start, start + num_new)
                             for head in range(num_heads)], device=self.k_cache.device)

    def row_numbers(self) -> Sequence[int]:
        return range(self.batch_size)

    def clear_beyond(self, index: int, length: int, end: int) -> None:
        """See to it that what the row stores from `length` up to `end` is 0, or comes from the row's own new tokens."""
        start = max(length, int(self._clear_to[index]))
        if start < end:
            for stored in self.span(index):
                stored[:, :, start:end] = 0
            self._clear_to[index] = end

    def row_ids(self, index: int) -> torch.Tensor:
        """The ids of one row's tokens, (S,), to be written in place."""
        return self.token_ids[index]

    def record(self, ids: torch.Tensor, starts: list[int]) -> None:
        """Note the new tokens, ids (B, T), that begin at `starts[row]` in each row. Optional for a model
        that never asks for `previous_ids`."""
        for index, start in enumerate(starts):
            self.row_ids(index)[start:start + ids.shape[1]] = ids[index]

    def previous_ids(self, starts: list[int]) -> torch.Tensor:
        """The recorded token before `starts[row]` of each row, (B,) int32; of no meaning where that is 0."""
        return torch.stack([self.row_ids(index)[max(start - 1, 0)] for index, start in enumerate(starts)])

    def positions_for(self, num_new: int) -> list[int]:
        """Where the next `num_new` tokens of each row begin, after checking that they fit in all of them."""
        starts = self.lengths()
        longest = max(starts)
        if longest + num_new > self.seq_len:
            raise CacheFullError(f"{num_new} more tokens after {longest} do not fit in a cache of {self.seq_len} positions")
        return starts

    def advance(self, num_new: int) -> None:
        """Count `num_new` more positions in every row: once a forward, after the last layer has written."""
        self.positions_for(num_new)
        self.cache_seqlens += num_new

    # --- rows

    def reset(self) -> None:
        """Empty every row. The memory stays reserved."""
        self.cache_seqlens.zero_()
        self._clear_to.zero_()

    def cut(self, row: int, length: int) -> None:
        """Forget all of a row from position `length` on."""
        used = int(self.cache_seqlens[row])
        assert 0 <= length <= used, f"cannot cut row {row} of {used} positions to {length}"
        self.cache_seqlens[row] = length
        self._clear_to[row] = 0

    def copy_row(self, source: int, target: int) -> None:
        """Make `target` hold what `source` holds; each goes on by itself from there."""
        length = int(self.cache_seqlens[source])
        self.k_cache[:, target, :length] = self.k_cache[:, source, :length]
        self.v_cache[:, target, :length] = self.v_cache[:, source, :length]
        self.token_ids[target, :length] = self.token_ids[source, :length]
        self.cache_seqlens[target] = length
        self._clear_to[target] = 0

    def prefill(self, other: KVCache) -> None:
        """Copy the single row of `other`, which has read a prompt, into every row of this empty cache."""
        assert not any(self.lengths()), f"a cache of lengths {self.lengths()} cannot be prefilled again"
        assert other.batch_size == 1, f"the prompt's cache must have one row, not {other.batch_size}"
        layers, _, _, num_heads, head_dim = self.k_cache.shape
        assert (layers, num_heads, head_dim) == (other.k_cache.shape[0], *other.k_cache.shape[3:]), \
            f"cache shapes differ: {tuple(self.k_cache.shape)} and {tuple(other.k_cache.shape)}"
        assert self.dtype == other.dtype, f"cache types differ: {self.dtype} and {other.dtype}"
        length = other.get_pos()
        if length > self.seq_len:
            raise CacheFullError(f"a prompt of {length} tokens does not fit in a cache of {self.seq_len} positions")
        self.k_cache[:, :, :length] = other.k_cache[:, :, :length]
        self.v_cache[:, :, :length] = other.v_cache[:, :, :length]
        self.token_ids[:, :length] = other.token_ids[:, :length]
        self.cache_seqlens.fill_(length)

    def select(self, rows: Sequence[int]) -> KVCache:
        """The named rows as a cache of their own, over the same memory: what a forward of those rows is given."""
        first, count = rows[0], len(rows)
        if list(rows) == list(range(first, first + count)):
            view = object.__new__(KVCache)
            view.k_cache = self.k_cache[:, first:first + count]
            view.v_cache = self.v_cache[:, first:first + count]
            view.cache_seqlens = self.cache_seqlens[first:first + count]
            view.token_ids = self.token_ids[first:first + count]
            view._clear_to = self._clear_to[first:first + count]
            return view
        return _ScatteredRows(self, rows)


class _ScatteredRows(KVCache):
    """Rows that do not lie side by side, behind the interface of a cache.

    `row` gives true views. `get_layer_cache` cannot: it gives copies, and `advance` carries what was
    written into them home. Models of this project use `row`; the copies serve any other model.
    """

    def __init__(self, cache: KVCache, rows: Sequence[int]):
        assert len(set(rows)) == len(rows), f"a row was named twice: {rows}"
        self._cache, self._rows = cache, list(rows)
        self._gathered: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.k_cache, self.v_cache = cache.k_cache, cache.v_cache
        self.cache_seqlens = cache.cache_seqlens[self._rows]  # (B,) a copy, kept equal by advance

    def rows_together(self, first):
        count = 1
        while self._rows[first:first + count + 1] == [self._rows[first] + each for each in range(count + 1)]:
            count += 1
        return count

    def span(self, first, count=1):
        assert count <= self.rows_together(first), f"{count} rows from {first} on do not lie side by side in {self._rows}"
        return self._cache.span(self._rows[first], count)

    def row_numbers(self):
        return self._rows

    def clear_beyond(self, index, length, end):
        self._cache.clear_beyond(self._rows[index], length, end)

    def row(self, layer, index):
        return self._cache.row(layer, self._rows[index])

    def row_ids(self, index):
        return self._cache.row_ids(self._rows[index])

    def get_layer_cache(self, layer):
        if layer not in self._gathered:
            keys, values = self._cache.get_layer_cache(layer)
            self._gathered[layer] = keys[self._rows], values[self._rows]
        return self._gathered[layer]

    def advance(self, num_new):
        starts = self.positions_for(num_new)
        for layer, gathered in self._gathered.items():
            for index, start in enumerate(starts):
                for home, copy in zip(self.row(layer, index), gathered):
                    home[start:start + num_new] = copy[index, start:start + num_new]
        self._gathered.clear()
        self.cache_seqlens += num_new
        self._cache.cache_seqlens[self._rows] += num_new

    def reset(self):
        raise NotImplementedError("rows are emptied in the cache that owns them")

    cut = copy_row = prefill = select = reset
