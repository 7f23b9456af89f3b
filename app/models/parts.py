"""A forward in parts: it stops after some of the layers, so that others need not wait for all of it.

While a long text is read, those who are being written to wait for their next token. Reading fewer tokens at once
makes that shorter, and reading slower; stopping between two layers costs nothing and changes no number.

This module must never compute.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

PARTS = 10

Result = TypeVar("Result")


def outcome(generator: Generator[None, None, Result]) -> Result:
    """What it returns, without a stop."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            return end.value


def spans_of(num_layers: int, parts: int) -> list[tuple[int, int]]:
    """The first layer of each part and the one after its last: as many parts as there can be, of nearly equal size."""
    parts = min(parts, num_layers)
    edges = [num_layers * part // parts for part in range(parts + 1)]
    return list(zip(edges, edges[1:]))
