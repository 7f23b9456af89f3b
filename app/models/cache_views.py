"""What one forward writes into a cache and reads from it, cut out for all layers at once.

Cutting a tensor costs more than writing one token's key into it, and every layer wants the same cuts: they
are made once a forward. Rows that lie side by side and begin at the same position form a group, which is
attended to in one go; any others go one by one.

        row 0   x x x x x | n .        lengths 5, 5, 2 and one new token:
        row 1   x x x x x | n .        rows 0 and 1 are a group, row 2 is another
        row 2   x x | n . . . .

This module must never move a row's position, nor compute.
"""

from typing import NamedTuple

from torch import Tensor


class Group(NamedTuple):
    """`count` rows of the batch from `first` on, at one position, with views of the cache, one a layer."""
    first: int
    count: int
    new_keys: list[Tensor]    # (B, T, G, D) where the new tokens' go
    new_values: list[Tensor]
    keys: list[Tensor]        # (B, G, S, D) everything up to and including the new tokens
    values: list[Tensor]


def cut(kv_cache, starts: list[int], num_new: int) -> list[Group]:
    """The views of `kv_cache` for T new tokens in each row, which begin at `starts[row]`.

    `starts` is what `kv_cache.positions_for(num_new)` gave: it has checked that they fit.
    """
    groups, first = [], 0
    while first < len(starts):
        count = 1
        if kv_cache.rows_lie_together:
            while first + count < len(starts) and starts[first + count] == starts[first]:
                count += 1
        start, end = starts[first], starts[first] + num_new
        keys, values = kv_cache.span(first, count)  # (layers, B, S, G, D)
        new = [list(stored[:, :, start:end].unbind(0)) for stored in (keys, values)]
        old = [list(stored[:, :, :end].transpose(2, 3).unbind(0)) for stored in (keys, values)]
        groups.append(Group(first, count, *new, *old))
        first += count
    return groups
