"""How likely a token was, and what else the model might have written in its place.

Told is the model's own opinion: the softmax of its logits at temperature 1, over the whole vocabulary, before
temperature, top-k and whatever may not stand there. What is drawn follows from the settings, too: at
temperature 0 the likeliest token always comes, however likely it was.

This module looks at logits that were drawn from already. It must never draw, change them, or touch a generator.

It runs once a step, for all rows that write in one go: an operation of its own for each row and step would wake the
computing threads a dozen times more than the model does, which costs a third of the speed where other threads want
the processor. The best of 49,152 are found by way of the best of each piece of 64: the four best stand in the four
pieces with the best tops.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

RUNNERS_UP = 3
PIECE = 64


class Chances(NamedTuple):
    """`chance` of the token that was taken, from 0 to 1, and the likeliest others as (id, chance), the best first."""
    chance: float
    runners_up: tuple[tuple[int, float], ...]


class Likeliest:
    """Of logits (B, V), for each row the likeliest tokens, and how likely any other is."""

    def __init__(self, logits: torch.Tensor):
        self._logits = logits.float()
        self._scale = torch.logsumexp(self._logits, dim=-1).tolist()  # (B,): a chance is exp(logit - scale)
        values, ids = _best(self._logits, min(RUNNERS_UP + 1, logits.shape[-1]))
        self._values, self._ids = values.tolist(), ids.tolist()  # (B, 4) each, the best first

    def chances(self, row: int, token: int) -> Chances:
        """Of `token`, taken in that row, and the likeliest others: three, or as many as the vocabulary has."""
        best = dict(zip(self._ids[row], self._values[row], strict=True))
        taken = best.pop(token) if token in best else self._logits[row, token].item()
        others = tuple((id, self._chance(row, value)) for id, value in best.items())
        return Chances(self._chance(row, taken), others[:RUNNERS_UP])

    def _chance(self, row: int, logit: float) -> float:
        return math.exp(min(logit - self._scale[row], 0.0))


def chances_of(logits: torch.Tensor, token: int) -> Chances:
    """The same for logits (1, V) alone."""
    return Likeliest(logits).chances(0, token)


def _best(logits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` greatest of each row of (B, V) and their places, (B, count) each, the best first: what topk gives,
    where none are equal."""
    rows, pieces = logits.shape[0], logits.shape[1] // PIECE
    if pieces < 4 * count:
        return torch.topk(logits, count)
    rest = pieces * PIECE
    table = logits[:, :rest].unflatten(1, (pieces, PIECE))  # (B, pieces, 64)
    chosen = torch.topk(table.amax(dim=-1), count).indices  # (B, count)
    candidates = table.gather(1, chosen.unsqueeze(-1).expand(rows, count, PIECE)).flatten(1)
    places = (chosen.unsqueeze(-1) * PIECE + torch.arange(PIECE, device=logits.device)).flatten(1)
    if rest < logits.shape[1]:
        left_over = torch.arange(rest, logits.shape[1], device=logits.device).expand(rows, -1)
        candidates, places = torch.cat((candidates, logits[:, rest:]), 1), torch.cat((places, left_over), 1)
    values, at = torch.topk(candidates, count)
    return values, places.gather(1, at)
