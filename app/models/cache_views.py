"""What one forward writes into a cache and reads from it, cut out for all layers at once.

Cutting a tensor costs more than writing one token's key into it, and every layer wants the same cuts: they
are made once a forward. Rows that lie side by side and begin at the same position form a group, which is
attended to in one go; any others go one by one.

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

# PyTorch's kernel takes 512 keys at a time, and the last ones as they come. Filled up to these numbers with masked keys,
# they give the same bits in longer company; up to 256, for example, they do not on every processor.
LAST_KEYS = (128, 384, 512)
MOST_PADDING = 1.5  # how many keys a group's rows are attended to, of those that each would need by itself


class Group(NamedTuple):
    """`count` rows of the batch from `first` on, with views of the cache, one a layer. Each row sees its first
    `ends[row]` positions; all of them where `ends` is empty."""
    first: int
    count: int
    ends: list[int]
    keys: list[Tensor]    # (B, G, S, D) everything up to and including the new tokens
    values: list[Tensor]


class Cut(NamedTuple):
    """Where the new tokens' keys and values go: as they are, (B, T, G, D), if all rows begin at one position, else line
    by line. `groups` show them then, too."""
    new_keys: list[Tensor]    # one view a layer: (B, T, G, D), or with `lines` the whole (rows·G·S, D)
    new_values: list[Tensor]
    lines: Tensor | None      # (B·T·G,)
    groups: list[Group]


NO_CACHE = Cut([], [], None, [])


def cut(kv_cache, starts: list[int], num_new: int) -> Cut:
    """The views of `kv_cache` for T new tokens in each row, which begin at `starts[row]`.

    `starts` is what `kv_cache.positions_for(num_new)` gave: it has checked that they fit.
    """
    alike = _alike(kv_cache, starts)
    if len(alike) == 1:
        lines, places = None, [stored[:, :, starts[0]:starts[0] + num_new] for stored in kv_cache.span(0, len(starts))]
    else:
        lines, places = kv_cache.lines_of(starts, num_new), kv_cache.all_lines()
    ends = [start + num_new for start in starts]
    if num_new == 1 and kv_cache.dtype != torch.float32 and kv_cache.k_cache.device.type == "cpu":
        groups = _filled_up(kv_cache, ends)
    else:
        groups = [_group(kv_cache, first, count, ends[first]) for first, count in alike]
    return Cut(*(list(each.unbind(0)) for each in places), lines, groups)


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


def _filled_up(kv_cache, ends: list[int]) -> list[Group]:
    """Rows side by side, each seen up to the end of a block, as long as that makes not too much of the short ones."""
    needed = [_num_filled_up(end) for end in ends]
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


def _num_filled_up(num_keys: int) -> int:
    whole = (num_keys - 1) // 512 * 512
    return whole + next(last for last in LAST_KEYS if whole + last >= num_keys)


def _group(kv_cache, first: int, count: int, num_seen: int, ends: list[int] | None = None) -> Group:
    spans = kv_cache.span(first, count)
    return Group(first, count, ends or [], *(list(stored[:, :, :num_seen].transpose(2, 3).unbind(0)) for stored in spans))
