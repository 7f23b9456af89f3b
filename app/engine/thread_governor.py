"""How many processor threads a forward uses, found out while running.

All threads of a forward meet a hundred times a token and more, and each time the last one at work is waited for. On a
quiet machine more threads are faster. When something else wants a core (a browser that draws, a compiler),
one of them is often not running when it is waited for, and every meeting costs a time slice of the
system: measured on two cores beside one busy program, two threads wrote 10 tokens a second, one thread 34;
on the quiet machine it was 55 and 44. So when forwards take much longer than they have, fewer threads are
tried, and from time to time more again.

        threads   4 ──slow──► 3 ──slow──► 2 ──slow──► 1        (each step only if it proves faster)
                  ◄──────── now and then, if faster ◄──

In bfloat16 and float16 the numbers that are computed do not depend on it (compared bit for bit). In float32
some do, and there the promise is that a seed repeats a reply exactly: it is not used. A governor belongs to
the engine thread, as PyTorch counts threads for each thread by itself. It must never run a model.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from statistics import median

import torch

SLOW = 1.6          # times the fastest that was seen: something is in the way
TRIAL = 3           # forwards by which another number of threads is judged
CLEARLY = 0.9       # of the time: so much faster must it be
REST = 40           # forwards between two trials


class ThreadGovernor:
    """Tell it of every forward with `took`; it sets the number of threads for the next."""

    def __init__(self, threads: int | None = None, set_threads: Callable[[int], None] = torch.set_num_threads):
        most = threads or torch.get_num_threads()
        self._ladder = sorted({most, max(1, most - 1), max(1, most // 2), 1}, reverse=True)
        self._set_threads = set_threads
        self._rung = 0
        self._fastest_s: dict[tuple[int, int], float] = {}  # of the forwards of a size
        self._recent: deque[tuple[tuple[int, int], float]] = deque(maxlen=TRIAL)  # size and seconds on this rung
        self._rest = REST
        self._compared: tuple[int, float] | None = None  # during a trial: the rung it may return to, and its slowness

    @classmethod
    def for_model(cls, model) -> ThreadGovernor | None:
        """One where it may be used, for the calling thread."""
        is_16_bit = getattr(model, "cache_dtype", None) in (torch.bfloat16, torch.float16)
        return cls() if is_16_bit and model.get_device().type == "cpu" else None

    @property
    def threads(self) -> int:
        return self._ladder[self._rung]

    def begin(self, run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> None:
        """Before anybody waits: `run`, a few forwards, is timed with each number of threads, from the fewest on, and the
        most that are not slow are begun with. On a machine that is busy already, no text then has to find that out."""
        taken_s: dict[int, float] = {}
        for rung in reversed(range(len(self._ladder))):
            self._go_to(rung)
            if not taken_s:
                run()  # kernels are chosen and memory is mapped: with few threads, as these wait for nobody
            started = clock()
            run()
            taken_s[rung] = clock() - started
        self._go_to(min(rung for rung, seconds in taken_s.items() if seconds <= SLOW * min(taken_s.values())))

    def took(self, num_tokens: int, seconds: float, num_stored: int = 0) -> None:
        """A forward of so many tokens, which looked back at so many others, took so long."""
        size = (num_tokens, int(2 * math.log2(1 + num_stored / 256)))  # what looks back at more may well take longer
        known = self._fastest_s.get(size)
        if known is None or seconds < known:
            self._fastest_s[size] = seconds
        self._recent.append((size, seconds))
        self._rest = max(0, self._rest - 1)
        if len(self._recent) < TRIAL:
            return
        if self._compared is not None:
            self._end_trial()
        elif self._rest == 0 and self._rung > 0:
            self._try(self._rung - 1)
        elif self._rest == 0 and self._slowness() > SLOW and self._rung + 1 < len(self._ladder):
            self._try(self._rung + 1)

    def _slowness(self) -> float:
        """How many times longer than the fastest of their size the last forwards took."""
        return median(seconds / self._fastest_s[size] for size, seconds in self._recent)

    def _try(self, rung: int) -> None:
        self._compared = (self._rung, self._slowness())
        self._go_to(rung)

    def _end_trial(self) -> None:
        (before, slowness), self._compared = self._compared, None
        self._rest = REST
        if self._slowness() > CLEARLY * slowness:
            self._go_to(before)
        elif self._rung > before and self._slowness() > SLOW:
            self._rest = 0  # better, and still slow: go on down

    def _go_to(self, rung: int) -> None:
        self._rung = rung
        self._recent.clear()
        self._set_threads(self.threads)
