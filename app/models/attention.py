"""Attention for every family: grouped queries, windows, rows of different lengths.

A query at position p sees itself and the keys before it; with a window w, itself and the w keys before
it. Query head h uses KV head h // (H / G). Scale 1/sqrt(D).

Where the queries stand when T new tokens follow `start` stored ones (T = 3, start = 4, w = 2):

        key        0 1 2 3 | 4 5 6
        query 4    . . x x | x . .
        query 5    . . . x | x x .
        query 6    . . . . | x x x

This module owns no tensor but the last masks. It must never move a row's position: the model does so
once, after its last layer.
"""

from __future__ import annotations

from functools import lru_cache

import torch
import torch.nn.functional as F

from app.models.cache_views import CacheViews

LONG_ROW_TOKENS = 512  # from here on a single 16-bit query on the CPU is better asked of all KV heads at once


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, views: CacheViews | None = None, layer: int = 0,
           window: int | None = None) -> torch.Tensor:
    """q (B, T, H, D), k and v (B, T, G, D) -> (B, T, H, D).

    Without a cache the T tokens are all there is. With one, k and v are first written into `layer` of each
    row at its own position, and the queries see what the row then holds. `window` None means all.
    """
    if views is None:
        return _attend(q, k.transpose(1, 2), v.transpose(1, 2), window)
    pieces = []
    for group in views.groups:
        rows = group.rows
        group.new_keys[layer].copy_(k[rows])
        group.new_values[layer].copy_(v[rows])
        pieces.append(_attend(q[rows], group.keys[layer], group.values[layer], window))
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, window: int | None) -> torch.Tensor:
    """Rows of one length: q (B, T, H, D), the last T of S positions; k and v (B, G, S, D) -> (B, T, H, D)."""
    num_new, num_stored = q.shape[1], k.shape[2]
    if window is not None and num_stored - num_new > window:  # keys before the first query's window are seen by none
        first = num_stored - num_new - window
        k, v, num_stored = k[:, :, first:], v[:, :, first:], num_new + window
    if num_new == 1:
        return _attend_with_one(q, k, v)
    mask = None
    if num_stored > num_new or (window is not None and num_stored - 1 > window):
        mask = _mask(num_new, num_stored, window, q.dtype, q.device)
    y = F.scaled_dot_product_attention(q.transpose(1, 2), k, v, attn_mask=mask, is_causal=mask is None,
                                       enable_gqa=q.shape[2] != k.shape[1])
    return y.transpose(1, 2)


def _attend_with_one(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """A single query a row, q (B, 1, H, D), that sees all keys (B, G, S, D): no mask is needed.

    The H/G queries of a KV head stand as the rows of one small matrix, instead of repeating its keys.
    """
    num_rows, _, num_heads, head_dim = q.shape
    num_kv_heads = k.shape[1]
    per_head = num_heads // num_kv_heads
    q = q.view(num_rows, num_kv_heads, per_head, head_dim)
    slow_kernel = q.dtype != torch.float32 and not q.is_cuda
    if slow_kernel and num_kv_heads > 1 and k.shape[2] >= LONG_ROW_TOKENS:
        return _attend_all_heads_at_once(q, k, v)
    if slow_kernel and per_head == 1:
        q = q.repeat(1, 1, 2, 1)  # PyTorch's 16-bit CPU kernel is three times as fast for two queries as for one
        return F.scaled_dot_product_attention(q, k, v)[:, :, :1].reshape(num_rows, 1, num_heads, head_dim)
    return F.scaled_dot_product_attention(q, k, v).reshape(num_rows, 1, num_heads, head_dim)


def _attend_all_heads_at_once(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The same for q (B, G, H/G, D), as one head of size G·D: its keys lie side by side in memory.

    Each query is widened with zeros where the other KV heads lie, which add nothing to its scores, and of
    each result only the part of its own KV head is taken:

        KV head     0 0 1 1 2 2
        query of 0  x x . . . .
        query of 1  . . x x . .
        query of 2  . . . . x x
    """
    num_rows, num_kv_heads, per_head, head_dim = q.shape
    own = torch.arange(num_kv_heads, device=q.device)
    wide = q.new_zeros(num_rows, num_kv_heads, per_head, num_kv_heads, head_dim)
    wide[:, own, :, own] = q.transpose(0, 1)
    k, v = (each.transpose(1, 2).flatten(2)[:, None] for each in (k, v))  # (B, 1, S, G·D)
    y = F.scaled_dot_product_attention(wide.view(num_rows, 1, -1, num_kv_heads * head_dim), k, v, scale=head_dim**-0.5)
    y = y.view(num_rows, num_kv_heads, per_head, num_kv_heads, head_dim)[:, own, :, own]  # (G, B, H/G, D)
    return y.transpose(0, 1).reshape(num_rows, 1, -1, head_dim)


@lru_cache(maxsize=2)  # the layers of one forward ask for the same: one mask for full layers, one for windows
def _mask(num_new: int, num_stored: int, window: int | None, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """What is added to the scores (T, S): 0 where the query sees the key, else -inf."""
    with torch.inference_mode(False):  # it outlives this call, and may be met where gradients are wanted
        query = torch.arange(num_stored - num_new, num_stored, device=device)[:, None]
        key = torch.arange(num_stored, device=device)[None]
        seen = key <= query
        if window is not None:
            seen &= key >= query - window
        return torch.zeros(num_new, num_stored, dtype=dtype, device=device).masked_fill_(~seen, float("-inf"))
