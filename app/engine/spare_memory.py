"""How much memory a device has to spare, and giving back what is no longer used.

This module must never hold a tensor.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path

import torch

CGROUPS = ((Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),  # a container's own limit
           (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")))


def free_bytes(device: torch.device) -> int | None:
    """Memory that can still be had on `device`; None where the system does not say."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if device.type == "mps":
        return torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    known = [free for free in (_free_of_machine(), _free_of_container()) if free is not None]
    return min(known) if known else None


def _free_of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _free_of_container() -> int | None:
    """What counts as used there includes files that could be let go of: the true room is not less than this."""
    for limit, used in CGROUPS:
        try:
            return max(0, int(limit.read_text()) - int(used.read_text()))
        except (OSError, ValueError):  # none, or "max"
            continue
    return None


def give_back(device: torch.device) -> None:
    """Tensors that nobody holds any longer: their memory goes back to the system, not into a pool for later."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
    elif sys.platform == "linux":
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except (OSError, AttributeError):  # another C library than glibc, which has no such pool
            pass
