"""A projection's weight in float16, multiplied with rows of float32.

Few rows at a time cost what it costs to read the weight. That is more exact than bfloat16: float16 keeps three more bits
of a weight of ordinary size, and the rows are not rounded at all. Where the processor multiplies in bfloat16, it is a
second copy, for few rows; a long prompt is read faster with `projection` there.

The outputs are laid out in panels, so that the innermost loop reads a weight from its beginning to its end:

    weight (out, in)                panels (ceil(out / 24), in, 24)
    w00 w01 w02 ..                  panel 0:   w00 w10 .. w(23)0   w01 w11 .. w(23)1   ..
    w10 w11 w12 ..                  panel 1:   w(24)0 ..

Each output is one sum, from the first input to the last. So a row gives the same numbers, bit for bit, whatever rows
stand beside it and whichever thread computes it.

This module must never decide when a copy is used.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from app.models.errors import ModelError
from app.models.machine_code import compiled, is_fast_here, uncounted_floats, uncounted_patterns
from app.models.product_loops import COLUMNS, multiply_halves
from app.models.work_sharing import begin_phase, end_phase, finish_task, take_task, team

PANELS_A_TASK = 2  # two panels are whole lines of the processor's cache, mostly, which no two threads should write


def keep_half(weight: Tensor) -> np.ndarray:
    """weight (out, in) -> the copy, (panels, in, COLUMNS) uint16; the last panel is filled up with 0.

    Raises ModelError for a number that is too large for float16."""
    num_out, num_in = weight.shape
    filled = torch.zeros(-(-num_out // COLUMNS) * COLUMNS, num_in, dtype=torch.float16, device="cpu")
    filled[:num_out] = weight.detach()
    if not bool(filled.isfinite().all()) and bool(weight.isfinite().all()):
        raise ModelError("The model has weights beyond 65,504, the largest number of float16: choose --dtype float32.")
    return filled.view(-1, COLUMNS, num_in).transpose(1, 2).contiguous().numpy().view(np.uint16)


def widen_half(copy: np.ndarray, num_out: int) -> Tensor:
    """The copy's numbers, (out, in), float32."""
    panels = torch.from_numpy(copy.view(np.float16))
    return panels.transpose(1, 2).reshape(-1, panels.shape[1])[:num_out].float()


def project_half(x: Tensor, copy: np.ndarray, num_out: int) -> Tensor:
    """x (N, in), float32 -> (N, out), float32."""
    assert x.dtype == torch.float32, f"rows must be float32, not {x.dtype}"
    y = torch.empty(x.shape[0], num_out, dtype=torch.float32, device="cpu")
    team().run(_project, 1, x.contiguous().numpy(), copy, y.numpy())
    return y


@compiled
def _project(words, phase, is_caller, x, copy, y):
    share_product(words, phase, is_caller, uncounted_floats(x), uncounted_patterns(copy), uncounted_floats(y), False)


@compiled
def share_product(words, phase, is_caller, x, copy, y, is_added):
    """One phase of a team: x (N, in) times a copy is put into y (N, out), or added to it. The arrays are uncounted."""
    begin_phase(words, phase, is_caller)
    num_tasks = -(-copy.shape[0] // PANELS_A_TASK)
    sums = np.empty((x.shape[0], COLUMNS), np.float32)
    while True:
        task = take_task(words, phase, num_tasks)
        if task < 0:
            break
        for panel in range(task * PANELS_A_TASK, min(copy.shape[0], (task + 1) * PANELS_A_TASK)):
            multiply_panel(x, copy, panel, sums)
            put_panel(sums, y, panel, is_added)
        finish_task(words)
    end_phase(words, num_tasks, is_caller)


@compiled
def put_panel(sums, y, panel, is_added):
    first = panel * COLUMNS
    for row in range(y.shape[0]):
        for column in range(min(COLUMNS, y.shape[1] - first)):
            y[row, first + column] = sums[row, column] + (y[row, first + column] if is_added else np.float32(0))


@compiled
def multiply_panel(x, copy, panel, sums):
    """x (N, in) times one panel of a copy (panels, in, COLUMNS) -> sums (N, COLUMNS), written over."""
    num_rows, size = x.shape
    matrix = copy.ctypes.data + panel * size * COLUMNS * 2
    multiply_halves(num_rows, x.ctypes.data, size, matrix, size, sums.ctypes.data)


@lru_cache
def can_multiply_half(device_type: str) -> bool:
    """Whether the loops above are fast there: on a processor that converts numbers of 16 bits itself."""
    return device_type == "cpu" and is_fast_here()
