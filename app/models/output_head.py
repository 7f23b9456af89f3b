"""The output head: from the last hidden state to the logits of the whole vocabulary. The largest matrix of all.

On a processor a 16-bit model keeps its head in float16, be it otherwise in bfloat16: such a matrix is multiplied
with float32, and added up in float32 (see `half_projection`). Logits of bfloat16 would be rounded to steps of 0.1 and tie; these
are as good as float32's (of logits with a standard deviation of 1.2, they are 0.0002 off instead of 0.003),
and reading the matrix takes 1.5 ms instead of 2.3 for the default model on two cores.

This module must never draw a token.
"""

from __future__ import annotations

import torch

from app.models.half_projection import keep_half, project_half, widen_half
from app.models.projection import Projection


class OutputHead:
    """`weight` (V, C) in float32 is read once. `own` is the same in the type that the model reads with, on its device (the
    embedding itself where they are tied): it is what is multiplied with without `in_float16`."""

    def __init__(self, weight: torch.Tensor, own: torch.Tensor, in_float16: bool = False):
        self.in_float16 = in_float16
        if self.in_float16:
            self._kept, self._num_out = keep_half(weight), weight.shape[0]
            self.copied_bytes = 2 * weight.numel()  # what it takes beyond `own`
        else:
            self._dtype, self._projection = own.dtype, Projection(own)
            self.copied_bytes = self._projection.weight_bytes if self._projection.packed else 0

    def wide_weight(self) -> torch.Tensor:
        """The numbers that it multiplies with, in float32, (V, C)."""
        return widen_half(self._kept, self._num_out) if self.in_float16 else self._projection.wide_weight()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """x (N, C), float32 -> logits (N, V), float32. A row gives the same numbers whatever rows stand beside it."""
        if self.in_float16:
            return project_half(x, self._kept, self._num_out)
        return self._projection(x.to(self._dtype)).float()
