"""What one forward writes into a cache and reads from it, cut out for all layers at once.

Cutting a tensor costs more than writing one token's key into it, and every layer wants the same cuts: they
are made once a forward. Rows that lie side by side and begin at the same position are one place to write to and
one group to attend to; any others go one by one.

        row 0   x x x x x | n .        lengths 5, 5, 2 and one new token:
        row 1   x x x x x | n .        rows 0 and 1 are a group, row 2 is another
        row 2   x x | n . . . .

In 16-bit types on a processor, rows that write a single token are attended to together whatever their lengths:
each up to the end of a block of positions, and what a shorter row does not have is masked. As every row is cut
at whole blocks, alone too, PyTorch's kernel adds up the same numbers in the same order, and whoever stands
beside a row changes no bit of what comes out (tests/models/test_attention.py).

This module must never move a row's position, nor compute.
"""

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 64  # positions; a length that is no multiple of it makes the kernel add up the last ones otherwise
MOST_PADDING = 1.5  # what a group's rows are attended to, of what each would need by itself


class Place(NamedTuple):
    """`count` rows of the batch from `first` on, at one position: where the new tokens go, one view a layer."""
    first: int
    count: int
    keys: list[Tensor]    # (B, T, G, D)
    values: list[Tensor]


class Group(NamedTuple):
    """`count` rows of the batch from `first` on, with views of the cache, one a layer. Each row sees its first
    `ends[row]` positions; all of them where `ends` is empty."""
    first: int
    count: int
    ends: list[int]
    keys: list[Tensor]    # (B, G, S, D) everything up to and including the new tokens
    values: list[Tensor]


class Cut(NamedTuple):
    """What is written to comes first: a group's views show what the places were given."""
    places: list[Place]
    groups: list[Group]


def cut(kv_cache, starts: list[int], num_new: int) -> Cut:
    """The views of `kv_cache` for T new tokens in each row, which begin at `starts[row]`.

    `starts` is what `kv_cache.positions_for(num_new)` gave: it has checked that they fit.
    """
    places, alike = [], _alike(kv_cache, starts)
    for first, count in alike:
        start = starts[first]
        spans = kv_cache.span(first, count)  # (layers, B, S, G, D), twice
        places.append(Place(first, count, *(list(stored[:, :, start:start + num_new].unbind(0)) for stored in spans)))
    ends = [start + num_new for start in starts]
    if num_new == 1 and kv_cache.dtype != torch.float32 and kv_cache.k_cache.device.type == "cpu":
        return Cut(places, _blocks(kv_cache, ends))
    return Cut(places, [_group(kv_cache, first, count, ends[first]) for first, count in alike])


def _alike(kv_cache, starts: list[int]) -> list[tuple[int, int]]:
    """The first and the number of rows that lie side by side and begin at one position."""
    found, first = [], 0
    while first < len(starts):
        count, together = 1, kv_cache.rows_together(first)
        while count < together and starts[first + count] == starts[first]:
            count += 1
        found.append((first, count))
        first += count
    return found


def _blocks(kv_cache, ends: list[int]) -> list[Group]:
    """Rows side by side, each seen up to the end of a block, as long as that makes not too much of the short ones."""
    needed = [-(-end // BLOCK) * BLOCK for end in ends]
    groups, first = [], 0
    while first < len(ends):
        if needed[first] > kv_cache.seq_len:  # the cache ends within a block: such a row goes by itself, as long as it is
            groups.append(_group(kv_cache, first, 1, ends[first]))
            first += 1
            continue
        count, together = 1, kv_cache.rows_together(first)
        while count < together and needed[first + count] <= kv_cache.seq_len:
            wanted = needed[first:first + count + 1]
            if max(wanted) * len(wanted) > MOST_PADDING * sum(wanted):
                break
            count += 1
        num_seen = max(needed[first:first + count])
        for index in range(first, first + count):
            kv_cache.clear_beyond(index, ends[index], num_seen)
        groups.append(_group(kv_cache, first, count, num_seen, ends[first:first + count]))
        first += count
    return groups


def _group(kv_cache, first: int, count: int, num_seen: int, ends: list[int] | None = None) -> Group:
    spans = kv_cache.span(first, count)
    return Group(first, count, ends or [], *(list(stored[:, :, :num_seen].transpose(2, 3).unbind(0)) for stored in spans))
