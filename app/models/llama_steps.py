"""Llama's layers in one piece of machine code.

What `llama_layers` does with some thousand operations of PyTorch, each of which is waited for, is done here by threads
that divide six phases of each layer among them (see `work_sharing`). N = B·T tokens, T of each row, wherever in their
texts the rows are:

    heads     norm(x) times a panel of qkv                        a task is some panels
    stored    keys, rotated, and values into the cache            a row's KV head
    attended  queries, rotated, to all that is stored there       a row's KV head and a few of its new tokens
    x +=      attended times a panel of attention_out             some panels
    gated     norm(x) times a panel of up and one of gate         some pairs of panels
    x +=      gated times a panel of mlp_down                     some panels

Everything is float32 but the weights (float16, see `half_projection`) and what the cache holds. A token's numbers do not
depend on which others are computed with it, of its own row or of others, nor on the number of threads: a text that is read
at once, in pieces, or token by token leaves the same bits in the cache (as long as they are numbers: an infinite value
spoils the tokens before it that are read in one task with it).

This module must never move a row's position. Shape letters as in app/engine/kv_cache.py; L layers, C the model's width,
M that of the MLP, P panels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from app.models.half_projection import PANELS_A_TASK, multiply_panel, put_panel, share_product, widen_half
from app.models.machine_code import compiled, uncounted_floats, uncounted_patterns
from app.models.product_loops import COLUMNS
from app.models.row_arithmetic import KEYS_A_BLOCK, LOG2_E, attend, gate_up, norm, padded, rotate, store
from app.models.work_sharing import begin_phase, end_phase, finish_task, take_task, team

MOST_ROWS = 16     # more single tokens at once are faster in the model's own type, where the processor multiplies in it
PHASES = 6         # of a layer
TOKENS_A_TASK = 8  # whose queries see the same block of keys while it is at hand


class StepWeights(NamedTuple):
    """One layer: the norms are multiplied by sqrt(C), projections are copies as `half_projection` keeps them. Or all
    layers, one behind the other, with L before each shape."""
    attention_norm: np.ndarray  # (C,) float32
    qkv: np.ndarray             # (P, C, COLUMNS)
    attention_out: np.ndarray   # (P, H·D, COLUMNS)
    mlp_norm: np.ndarray        # (C,) float32
    up_gate: np.ndarray         # (P, C, COLUMNS), panels of up and of gate in turn
    mlp_down: np.ndarray        # (P, M, COLUMNS)


def interleave(up: np.ndarray, gate: np.ndarray) -> np.ndarray:
    """Two copies (P, in, COLUMNS) -> (2P, in, COLUMNS), their panels in turn."""
    return np.stack([up, gate], axis=1).reshape(-1, *up.shape[1:])


class LlamaSteps:
    """The layers of one model and the norm after the last, which is multiplied by sqrt(C), too. `cos` and `sin` are
    (positions, D/2), float32."""

    def __init__(self, layers: list[StepWeights], last_norm: torch.Tensor, config, cos: torch.Tensor, sin: torch.Tensor):
        self._weights = StepWeights(*(np.stack(parts) for parts in zip(*layers)))
        self._last_norm, self._config = last_norm.numpy(), config
        self._eps = np.float32(config.n_embd * config.norm_eps)
        self._cos, self._sin = cos.numpy(), sin.numpy()

    def run(self, x: torch.Tensor, starts: list[int], keys: torch.Tensor, values: torch.Tensor, rows: Sequence[int],
            last_only: bool = False, first: int = 0, end: int | None = None) -> torch.Tensor:
        """x (B·T, C), float32, through the layers from `first` up to `end` -> what comes out, (B·T, C), or (B, C) of each
        row's last token with `last_only` after the model's last layer. x is written over.

        Its tokens stand from `starts[each]` on in the row `rows[each]` of the cache, whose `keys` and `values` are (layers,
        rows, S, G, D) in a type of 16 bits, with each head's positions side by side; they are written there.
        """
        config, weights = self._config, StepWeights(*(part[first:end] for part in self._weights))
        keys, values = keys[first:end], values[first:end]
        num_new = x.shape[0] // len(starts)
        leaves_last = last_only and num_new > 1 and end in (None, self._config.n_layer)
        assert keys.stride() == values.stride() and keys.stride(2) == config.head_dim and keys.stride(4) == 1
        assert (keys.shape[0], *keys.shape[3:]) == (len(weights.qkv), config.n_kv_head, config.head_dim), \
            f"a cache of shape {tuple(keys.shape)} is none of this model's"
        assert max(rows) < keys.shape[1] and max(starts) + num_new <= min(keys.shape[2], len(self._cos)), \
            f"{num_new} tokens from {starts} in the rows {rows} do not fit in a cache of shape {tuple(keys.shape)}"
        assert x.dtype == torch.float32 and x.is_contiguous(), f"x must be contiguous float32, not {x.dtype}"
        strides = np.array([keys.stride(0), keys.stride(1), keys.stride(3)], dtype=np.int64)
        num_tokens, num_heads = x.shape[0], config.n_head + 2 * config.n_kv_head

        def scratch(size: int) -> np.ndarray:  # PyTorch's begin with a line of the processor's cache, and tasks then do
            return torch.empty(num_tokens, size, dtype=torch.float32, device="cpu").numpy()

        team().run(_steps, PHASES * len(weights.qkv), x.numpy(), *weights, self._eps, _patterns(keys), _patterns(values), strides,
                   np.array(rows, dtype=np.int64), np.array(starts, dtype=np.int64),
                   keys.dtype == torch.float16, self._cos, self._sin, config.n_head, config.n_kv_head, leaves_last,
                   scratch(config.n_embd), scratch(num_heads * config.head_dim), scratch(config.n_head * config.head_dim),
                   scratch(config.n_mlp))
        return x[:len(starts)] if leaves_last else x

    def normed(self, x: torch.Tensor) -> torch.Tensor:
        """What left the last layer, (N, C) -> what the head is given."""
        result = torch.empty_like(x)
        norm(x.numpy(), self._last_norm, self._eps, result.numpy())
        return result

    def wide_layer(self, layer: int) -> list[torch.Tensor]:
        """A layer's numbers in float32, as `llama_layers.LayerWeights` has them: projections (out, in), gate below up."""
        config, weights = self._config, StepWeights(*(part[layer] for part in self._weights))
        up, gate = (widen_half(weights.up_gate[which::2], config.n_mlp) for which in range(2))
        num_heads = config.n_head + 2 * config.n_kv_head
        return [torch.from_numpy(weights.attention_norm), widen_half(weights.qkv, num_heads * config.head_dim),
                widen_half(weights.attention_out, config.n_embd), torch.from_numpy(weights.mlp_norm), torch.cat([up, gate]),
                widen_half(weights.mlp_down, config.n_embd)]


def _patterns(stored: torch.Tensor) -> np.ndarray:
    """A view of a cache as the patterns of its numbers, from its first to its last, uint16."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(stored.shape, stored.stride()))
    return stored.view(torch.int16).as_strided((extent,), (1,)).numpy().view(np.uint16)


@compiled
def _steps(words, phase, is_caller, x, attention_norm, qkv, attention_out, mlp_norm, up_gate, mlp_down, eps, keys, values,
           strides, rows, starts, is_float16, cos, sin, num_heads, num_kv_heads, leaves_last, normed, heads, attended, gated):
    num_rows, first = starts.shape[0], 0  # of a row's new tokens, the first that is more than keys and values to this layer
    x, normed, heads, attended, gated = (uncounted_floats(x), uncounted_floats(normed), uncounted_floats(heads),
                                         uncounted_floats(attended), uncounted_floats(gated))
    qkv, attention_out, up_gate, mlp_down = (uncounted_patterns(qkv), uncounted_patterns(attention_out),
                                             uncounted_patterns(up_gate), uncounted_patterns(mlp_down))
    keys, values, cos, sin = uncounted_patterns(keys), uncounted_patterns(values), uncounted_floats(cos), uncounted_floats(sin)
    for layer in range(qkv.shape[0]):
        if is_caller:
            norm(x, attention_norm[layer], eps, normed)
        share_product(words, phase, is_caller, normed, qkv[layer], heads, False)
        at = layer * strides[0] + rows * strides[1]  # of each row in the cache
        _share_storing(words, phase + 1, is_caller, heads, num_heads, num_kv_heads, keys, values, at, strides[2], starts,
                       is_float16, cos, sin)
        if leaves_last and layer + 1 == qkv.shape[0]:
            first = x.shape[0] // num_rows - 1
            if is_caller:
                keep_last(x, num_rows)
            x, normed, attended, gated = x[:num_rows], normed[:num_rows], attended[:num_rows], gated[:num_rows]
        _share_attention(words, phase + 2, is_caller, heads, num_heads, num_kv_heads, first, keys, values, at, strides[2],
                         starts, is_float16, cos, sin, attended)
        share_product(words, phase + 3, is_caller, attended, attention_out[layer], x, True)
        if is_caller:
            norm(x, mlp_norm[layer], eps, normed)
        _share_gate(words, phase + 4, is_caller, normed, up_gate[layer], gated)
        share_product(words, phase + 5, is_caller, gated, mlp_down[layer], x, True)
        phase += PHASES


@compiled
def keep_last(x, num_rows):
    """The last token of each row, to the beginning of x (N, C)."""
    num_new = x.shape[0] // num_rows
    for row in range(num_rows):
        for each in range(x.shape[1]):
            x[row, each] = x[row * num_new + num_new - 1, each]


@compiled
def _share_storing(words, phase, is_caller, heads, num_heads, num_kv_heads, keys, values, at, head_stride, starts, is_float16,
                   cos, sin):
    """heads (N, (H + 2G)·D): keys, rotated, and values of each token into the cache."""
    begin_phase(words, phase, is_caller)
    head_dim, num_new, num_tasks = 2 * cos.shape[1], heads.shape[0] // starts.shape[0], starts.shape[0] * num_kv_heads
    key = np.empty(head_dim, np.float32)
    while True:
        task = take_task(words, phase, num_tasks)
        if task < 0:
            break
        row, head = task // num_kv_heads, task % num_kv_heads
        first_key, first_value = (num_heads + head) * head_dim, (num_heads + num_kv_heads + head) * head_dim
        for new in range(num_new):
            token, position = row * num_new + new, starts[row] + new
            place = at[row] + head * head_stride + position * head_dim
            rotate(heads[token, first_key:], cos[position], sin[position], key)
            store(key, keys[place:], is_float16)
            store(heads[token, first_value:first_value + head_dim], values[place:], is_float16)
        finish_task(words)
    end_phase(words, num_tasks, is_caller)


@compiled
def _share_attention(words, phase, is_caller, heads, num_heads, num_kv_heads, first_new, keys, values, at, head_stride, starts,
                     is_float16, cos, sin, attended):
    """The queries of heads (N, (H + 2G)·D), rotated, to what their rows store -> attended (N, H·D); or only those of each
    row's new tokens from `first_new` on."""
    begin_phase(words, phase, is_caller)
    head_dim, num_new, per_head = 2 * cos.shape[1], heads.shape[0] // starts.shape[0], num_heads // num_kv_heads
    num_asking = num_new - first_new
    num_pieces = -(-num_asking // TOKENS_A_TASK)
    num_tasks = starts.shape[0] * num_kv_heads * num_pieces
    num_queries, columns = TOKENS_A_TASK * per_head, padded(head_dim)
    scale = LOG2_E / np.float32(math.sqrt(head_dim))
    block, seen = np.zeros((KEYS_A_BLOCK, columns), np.float32), np.empty((num_queries, KEYS_A_BLOCK), np.float32)
    keys_across, q = np.zeros((head_dim, KEYS_A_BLOCK), np.float32), np.empty((num_queries, head_dim), np.float32)
    ends = np.empty(num_queries, np.int64)
    y, sums = np.empty((num_queries, columns), np.float32), np.empty((num_queries, columns), np.float32)
    largest, total = np.empty(num_queries, np.float32), np.empty(num_queries, np.float32)
    while True:
        task = take_task(words, phase, num_tasks)
        if task < 0:
            break
        row, head = task // (num_kv_heads * num_pieces), task // num_pieces % num_kv_heads
        first = (num_pieces - 1 - task % num_pieces) * TOKENS_A_TASK  # those that see most are taken first
        count = min(TOKENS_A_TASK, num_asking - first)
        for query in range(count * per_head):
            new, each = first_new + first + query // per_head, head * per_head + query % per_head
            position = starts[row] + new
            rotate(heads[row * num_new + new, each * head_dim:], cos[position], sin[position], q[query])
            for d in range(head_dim):
                q[query, d] *= scale
            ends[query] = position + 1
        place = at[row] + head * head_stride
        attend(q, ends[:count * per_head], keys[place:], values[place:], head_dim, is_float16, keys_across, block, seen,
               sums, largest, total, y)
        for query in range(count * per_head):
            token, to = row * num_asking + first + query // per_head, (head * per_head + query % per_head) * head_dim
            for d in range(head_dim):
                attended[token, to + d] = y[query, d]
        finish_task(words)
    end_phase(words, num_tasks, is_caller)


@compiled
def _share_gate(words, phase, is_caller, x, up_gate, gated):
    """x (N, C) -> gated (N, M): up(x) · silu(gate(x))."""
    begin_phase(words, phase, is_caller)
    num_pairs = up_gate.shape[0] // 2
    num_tasks = -(-num_pairs // PANELS_A_TASK)
    up, gate = np.empty((x.shape[0], COLUMNS), np.float32), np.empty((x.shape[0], COLUMNS), np.float32)
    while True:
        task = take_task(words, phase, num_tasks)
        if task < 0:
            break
        for pair in range(task * PANELS_A_TASK, min(num_pairs, (task + 1) * PANELS_A_TASK)):
            multiply_panel(x, up_gate, 2 * pair, up)
            multiply_panel(x, up_gate, 2 * pair + 1, gate)
            gate_up(up, gate)
            put_panel(up, gated, pair, False)
        finish_task(words)
    end_phase(words, num_tasks, is_caller)
