"""Attention for every family: grouped queries, windows, rows of different lengths.

A query at position p sees itself and the keys before it; with a window w, itself and the w keys before
it. Query head h uses KV head h // (H / G). Scale 1/sqrt(D).

Where the queries stand when T new tokens follow `start` stored ones (T = 3, start = 4, w = 2):

        key        0 1 2 3 | 4 5 6
        query 4    . . x x | x . .
        query 5    . . . x | x x .
        query 6    . . . . | x x x
"""

from __future__ import annotations

import torch
import torch.nn.functional as F


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, kv_cache=None, layer: int = 0,
           starts: list[int] | None = None, window: int | None = None) -> torch.Tensor:
    """q (B, T, H, D), k and v (B, T, G, D) -> (B, T, H, D).

    Without a cache the T tokens are all there is. With one, k and v are first written into `layer` of
    each row at its own `starts[row]`, and the queries see what the row then holds. The position is not
    advanced here: the model does so once, after its last layer. `window` None means all.
    """
    if kv_cache is None:
        return torch.stack([_attend_row(q[b], k[b], v[b], 0, window) for b in range(q.shape[0])])
    num_new = q.shape[1]
    rows = []
    for b, start in enumerate(starts):
        keys, values = kv_cache.row(layer, b)  # (S, G, D)
        end = start + num_new
        keys[start:end] = k[b]
        values[start:end] = v[b]
        rows.append(_attend_row(q[b], keys[:end], values[:end], start, window))
    return rows[0].unsqueeze(0) if len(rows) == 1 else torch.stack(rows)


def _attend_row(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, start: int, window: int | None) -> torch.Tensor:
    """One row: q (T, H, D) at positions start.., k and v (S, G, D) with S = start + T -> (T, H, D)."""
    num_new, num_heads, head_dim = q.shape
    if window is not None and start > window:  # keys before the first query's window are seen by none
        first = start - window
        k, v, start = k[first:], v[first:], window
    num_stored, num_kv_heads = k.shape[0], k.shape[1]
    if num_new == 1:
        # A single query sees all keys, so no mask is needed, and the H/G queries of a KV head can stand
        # as rows of one small matrix instead of repeating that head's keys.
        grouped = q.view(1, num_kv_heads, num_heads // num_kv_heads, head_dim)
        if num_heads == num_kv_heads and q.dtype != torch.float32 and not q.is_cuda:
            grouped = grouped.repeat(1, 1, 2, 1)  # PyTorch's 16-bit CPU kernel is three times as fast for two queries as for one
        y = F.scaled_dot_product_attention(grouped, k.transpose(0, 1)[None], v.transpose(0, 1)[None])
        return y[:, :, :num_heads // num_kv_heads].reshape(1, num_heads, head_dim)
    mask = None
    if start > 0 or (window is not None and num_stored - 1 > window):
        query = torch.arange(start, start + num_new, device=q.device)[:, None]
        key = torch.arange(num_stored, device=q.device)[None]
        mask = key <= query  # (T, S)
        if window is not None:
            mask &= key >= query - window
    y = F.scaled_dot_product_attention(q.transpose(0, 1)[None], k.transpose(0, 1)[None], v.transpose(0, 1)[None],
                                       attn_mask=mask, is_causal=mask is None, enable_gqa=num_heads != num_kv_heads)
    return y[0].transpose(0, 1)  # (T, H, D)
