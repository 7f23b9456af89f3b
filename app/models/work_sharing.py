"""Several threads on one computation, without any of them being waited for that has not begun.

A computation is a row of phases; a phase is a number of tasks that can be done in any order. The thread that calls
opens a phase, and whoever is there takes one task after the other until none is left; only tasks that somebody has
taken are waited for. A helper that the system has not woken yet, or that has lost its core to another program between two
tasks, is not missed: what it did not take, the others do. Which thread does a task changes no number.

    phase 7:   tasks  0 1 2 3 4 5 6 7          taken in this order, by whoever is free
    caller            x   x x   x   x
    helper              x     x   x            came late, and helped from there on

The two words that the threads agree by, each in a line of the processor's cache of its own:

    taking   phase · 2^24 + the next task      a task is taken by replacing it with one more; who comes from an older
    done     tasks of this phase that are done   phase finds another number there, and takes nothing

This module must never know what is computed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch

from app.models.machine_code import atomic_add, atomic_load, atomic_replace, atomic_store, compiled, pause

_TASK_BITS = 24
_DONE = 64  # bytes after `taking`


@compiled
def open_phase(words, phase):
    """The caller: let the tasks of a phase be taken. All of the last one are done."""
    atomic_store(words + _DONE, 0)
    atomic_store(words, phase << _TASK_BITS)


@compiled
def await_phase(words, phase):
    """A helper: wait until this phase, or a later one, is open."""
    while atomic_load(words) >> _TASK_BITS < phase:
        pause()


@compiled
def begin_phase(words, phase, is_caller):
    """From here on this thread may take the phase's tasks."""
    if is_caller:
        open_phase(words, phase)
    else:
        await_phase(words, phase)


@compiled
def take_task(words, phase, num_tasks):
    """The number of a task that is now this thread's to do, or -1 when there is none left."""
    while True:
        taking = atomic_load(words)
        task = taking & ((1 << _TASK_BITS) - 1)
        if taking >> _TASK_BITS != phase or task >= num_tasks:
            return -1
        if atomic_replace(words, taking, taking + 1):
            return task


@compiled
def finish_task(words):
    """What was taken is done."""
    atomic_add(words + _DONE, 1)


@compiled
def end_phase(words, num_tasks, is_caller):
    """The caller waits until all tasks are done; a helper goes on, to where it waits for the next phase."""
    while is_caller and atomic_load(words + _DONE) < num_tasks:
        pause()


class Team:
    """The threads of this process that share work. One computation at a time."""

    def __init__(self):
        self._helpers: list[_Helper] = []
        self._in_use = threading.Lock()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._words, self._next_phase = np.zeros(3 * 8, dtype=np.int64), 1
        address = self._words.ctypes.data
        self._address = address + -address % 64

    def run(self, function: Callable, num_phases: int, *arguments) -> None:
        """Call the compiled `function(words, first_phase, is_caller, *arguments)` on as many threads as PyTorch would
        take here. It goes through its phases in order with the functions above, and must not fail between taking a task
        and finishing it. Arrays are its own until this returns; what a helper that comes too late still looks at, it has
        in its own hands."""
        with self._in_use:
            first, self._next_phase = self._next_phase, self._next_phase + num_phases + 1
            wanted = torch.get_num_threads() - 1
            try:
                self._hire(wanted)
                for helper in self._helpers[:wanted]:
                    helper.ask(_Call(function, (self._address, first, False, *arguments), self._words))
                function(self._address, first, True, *arguments)
            except BaseException:
                open_phase(self._address, first + num_phases)
                self._begin_anew()  # a helper may still be at a task, and count it as done later
                raise
            open_phase(self._address, first + num_phases)  # it is over: whoever is late finds nothing to take

    def _hire(self, wanted: int) -> None:
        while len(self._helpers) < wanted:
            try:
                self._helpers.append(_Helper())
            except RuntimeError:  # the system gives no more threads: those that there are do it
                return


class _Call(NamedTuple):
    function: Callable
    arguments: tuple
    words: np.ndarray  # what their address points to must be there for as long as a late helper may look


class _Helper:
    """A thread that sleeps until it is asked."""

    def __init__(self):
        self._call: _Call | None = None
        self._asleep = threading.Lock()
        self._asleep.acquire()
        threading.Thread(target=self._work, name="glasschat-helper", daemon=True).start()

    def ask(self, call: _Call) -> None:
        self._call = call
        try:
            self._asleep.release()
        except RuntimeError:
            pass  # asked already, and not awake yet: it will find this call instead of the last

    def _work(self) -> None:
        while True:
            self._asleep.acquire()
            call, self._call = self._call, None
            if call is not None:
                with suppress(Exception):  # if it cannot be compiled, the caller is told of it
                    call.function(*call.arguments)
            del call  # its arrays would be kept for as long as this thread sleeps


@lru_cache(maxsize=1)
def team() -> Team:
    return Team()


os.register_at_fork(after_in_child=team.cache_clear)  # threads stay with the parent
