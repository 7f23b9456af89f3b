"""Attention for every family: grouped queries, windows, rows of different lengths.

A query at position p sees itself and the keys before it; with a window w, itself and the w keys before
it. Query head h uses KV head h // (H / G). Scale 1/sqrt(D).

Where the queries stand when T new tokens follow `start` stored ones (T = 3, start = 4, w = 2):

        key        0 1 2 3 | 4 5 6
        query 4    . . x x | x . .
        query 5    . . . x | x x .
        query 6    . . . . | x x x

All but `attend` and `masks_for` is written so that TorchScript understands it (see llama_layers.py). This
module owns no tensor but the last masks. It must never move a row's position: the model does so once,
after its last layer.
"""

from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from app.models.cache_views import NO_CACHE, Cut, Group


def attend(q: Tensor, k: Tensor, v: Tensor, cut: Cut | None = None, layer: int = 0, window: int | None = None) -> Tensor:
    """q (B, T, H, D), k and v (B, T, G, D) -> (B, T, H, D).

    Without `cut`, the views of a cache, the T tokens are all there is. With it, k and v are first written
    into `layer` of each row at its own position, and the queries see what the row then holds. `window` None
    means all.
    """
    cut = cut or NO_CACHE
    return attend_groups(q, k, v, cut, masks_for(cut.groups, q.shape[1], q.dtype, q.device, window), layer, window)


def masks_for(groups: list[Group], num_new: int, dtype: torch.dtype, device: torch.device,
              window: int | None = None) -> list[Tensor | None]:
    """The mask (T, S) of each group, or of the whole where there are none, (B, 1, 1, S) where single queries see more
    or less of S keys; None where none is needed.

    One query sees all keys that it is given, where nothing was added to them; the first tokens of a row see each other
    as `is_causal` says.
    """
    lengths = [group.keys[0].shape[2] for group in groups] or [num_new]
    if num_new == 1:
        return [_ends_mask(group, dtype) for group in groups] or [None]
    if window is not None:
        lengths = [min(length, num_new + window) for length in lengths]
    return [None if length == num_new and (window is None or length <= window + 1)
            else _mask(num_new, length, window, dtype, device) for length in lengths]


def _ends_mask(group: Group, dtype: torch.dtype) -> Tensor | None:
    """0 before a row's end and -inf from there on, (B, 1, 1, S); None where all see all."""
    if not group.ends:
        return None
    num_seen = group.keys[0].shape[2]
    beyond = torch.arange(num_seen)[None] >= torch.tensor(group.ends)[:, None]
    return torch.zeros(group.count, num_seen, dtype=dtype).masked_fill_(beyond, float("-inf"))[:, None, None]


@lru_cache(maxsize=2)  # the layers of one forward ask for the same: one mask for full layers, one for windows
def _mask(num_new: int, num_stored: int, window: int | None, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What is added to the scores (T, S): 0 where the query sees the key, else -inf."""
    with torch.inference_mode(False):  # it outlives this call, and may be met where gradients are wanted
        query = torch.arange(num_stored - num_new, num_stored, device=device)[:, None]
        key = torch.arange(num_stored, device=device)[None]
        seen = key <= query
        if window is not None:
            seen &= key >= query - window
        return torch.zeros(num_new, num_stored, dtype=dtype, device=device).masked_fill_(~seen, float("-inf"))


def attend_groups(q: Tensor, k: Tensor, v: Tensor, cut: Cut, masks: list[Tensor | None], layer: int,
                  window: int | None) -> Tensor:
    """`attend`, given the masks."""
    is_single = q.shape[1] == 1
    queries = _stack_heads(q, k.shape[2]) if is_single else q
    pieces: list[Tensor] = []
    lines = cut.lines
    if lines is not None:
        cut.new_keys[layer].index_copy_(0, lines, k.reshape(-1, k.shape[3]))
        cut.new_values[layer].index_copy_(0, lines, v.reshape(-1, v.shape[3]))
    elif len(cut.groups) > 0:
        cut.new_keys[layer].copy_(k)
        cut.new_values[layer].copy_(v)
    if len(cut.groups) == 0:
        pieces.append(_attend_rows(queries, k.transpose(1, 2), v.transpose(1, 2), masks[0], window, is_single))
    for index, group in enumerate(cut.groups):
        first, last = group.first, group.first + group.count
        keys, values = group.keys[layer], group.values[layer]
        if window is not None and len(group.ends) > 0:
            for row, end in enumerate(group.ends):  # their windows begin at different positions
                pieces.append(_attend_rows(queries[first + row:first + row + 1], keys[row:row + 1, :, :end],
                                           values[row:row + 1, :, :end], None, window, is_single))
        else:
            mask = masks[index] if not is_single or len(group.ends) > 0 else None  # the last of many new ones sees all
            pieces.append(_attend_rows(queries[first:last], keys, values, mask, window, is_single))
    y = pieces[0] if len(pieces) == 1 else torch.cat(pieces)
    if is_single:
        y = y[:, :, :q.shape[2] // k.shape[2]]  # without what was added to the queries
    return y.reshape(q.shape)


def _stack_heads(q: Tensor, num_kv_heads: int) -> Tensor:
    """Single queries (B, 1, H, D) -> (B, G, H/G, D): those of a KV head as the rows of one small matrix, instead of
    repeating its keys. PyTorch's 16-bit CPU kernel is faster for four queries than for three, and far faster than for
    one: there H/G is filled up."""
    num_rows, num_heads, head_dim = q.shape[0], q.shape[2], q.shape[3]
    per_head = num_heads // num_kv_heads
    q = q.view(num_rows, num_kv_heads, per_head, head_dim)
    missing = -per_head % 4
    if missing > 0 and q.dtype != torch.float32 and q.device.type == "cpu":
        q = F.pad(q, [0, 0, 0, missing])
    return q


def _attend_rows(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, window: int | None, is_single: bool) -> Tensor:
    """Rows of one length: q (B, T, H, D), the last T of S positions; k and v (B, G, S, D) -> (B, T, H, D). With
    `is_single`, q and what comes out are as `_stack_heads` gives them, and the mask is of (B, 1, 1, S)."""
    num_new, num_stored = 1 if is_single else q.shape[1], k.shape[2]
    if window is not None and num_stored - num_new > window:  # keys before the first query's window are seen by none
        first = num_stored - num_new - window
        k, v = k[:, :, first:], v[:, :, first:]
    if is_single:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    if mask is not None and k.shape[2] >= 512 and q.dtype != torch.float32 and q.device.type == "cpu":
        # From so many keys on, PyTorch's 16-bit CPU kernel is the slower way for a piece of a text.
        return _attend_to_many(q, k, v, mask, window)
    y = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=mask, is_causal=mask is None,
                                       enable_gqa=q.shape[2] != k.shape[1])
    return y.transpose(1, 2)


def _attend_to_many(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, window: int | None) -> Tensor:
    """The formula written out: the queries that share a KV head stand in one matrix, so that its keys are laid out once
    for all of them. The same sums on any number of threads.

    Scores and their softmax are float32 where the queries are few. Where they are many, the 16-bit product takes half
    the time of the other, and rounds less than all else that is 16-bit here: with SmolLM2-135M behind 1,500 tokens the
    KL divergence from float32 is 0.0003 nats either way.
    """
    num_rows, num_new, num_heads, head_dim = q.shape
    num_kv_heads, num_stored = k.shape[1], k.shape[2]
    per_head = num_heads // num_kv_heads
    stacked = q.reshape(num_rows, num_new, num_kv_heads, per_head, head_dim).permute(0, 2, 3, 1, 4)
    stacked = stacked.reshape(num_rows * num_kv_heads, per_head * num_new, head_dim)
    keys = k.reshape(num_rows * num_kv_heads, num_stored, head_dim)
    first = num_stored - num_new if window is None else 0  # without a window, all see what stood there before
    if per_head * num_new <= 32:
        scores = torch.bmm(stacked.float() * head_dim**-0.5, keys.float().transpose(1, 2))
        scores.view(-1, num_new, num_stored)[:, :, first:].add_(mask[:, first:])
        weights = scores.softmax(dim=-1).to(v.dtype)
    else:
        weights = _many_weights(stacked * head_dim**-0.5, keys, mask[:, first:])
    y = torch.bmm(weights, v.reshape(num_rows * num_kv_heads, num_stored, head_dim))
    y = y[:, :per_head * num_new].reshape(num_rows, num_kv_heads, per_head, num_new, head_dim).permute(0, 3, 1, 2, 4)
    return y.reshape(num_rows, num_new, num_heads, head_dim)


def _many_weights(q: Tensor, k: Tensor, mask: Tensor) -> Tensor:
    """q (N, R, D), scaled; k (N, S, D); mask (T, of S the last) -> softmax of the scores (N, R', S), R' the next
    multiple of 64. Keys on the left, queries filled up: the product reads the keys as they lie, and the softmax, which
    then runs down the columns, takes them by whole registers."""
    num_queries, num_new = q.shape[1], mask.shape[0]
    scores = torch.bmm(k, F.pad(q, [0, 0, 0, -num_queries % 64]).transpose(1, 2))  # (N, S, R')
    masked = scores[:, scores.shape[1] - mask.shape[1]:, :num_queries]
    masked.unflatten(2, [num_queries // num_new, num_new]).add_(mask.t()[:, None])
    return scores.softmax(dim=1).transpose(1, 2)
