"""PyTorch on a single thread for a while.

Its helpers are woken for every larger operation, and go on looking for more for milliseconds afterwards, on a core that
somebody else could use: the model's own threads (`models/work_sharing`), or another program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """What the calling thread computes within is computed by it alone. (So does any thread that uses PyTorch for the first
    time meanwhile.)"""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
