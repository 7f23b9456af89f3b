"""Work that threads divide: every task is done once, and nobody is waited for who has not begun."""

import os
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import torch
from numba import njit

from app.models.machine_code import pause
from app.models.work_sharing import Team, begin_phase, end_phase, finish_task, open_phase, take_task

PHASES, TASKS = 40, 13


@njit(nogil=True)
def count_tasks(words, phase, is_caller, counts, order):
    for each in range(counts.shape[0]):
        begin_phase(words, phase + each, is_caller)
        while True:
            task = take_task(words, phase + each, counts.shape[1])
            if task < 0:
                break
            for before in range(counts.shape[0]):  # every task of an earlier phase is done, none of a later one begun
                done = counts[before].sum()
                if before < each and done < counts.shape[1] or before > each and done > 0:
                    order[0] += 1
            counts[each, task] += 1
            finish_task(words)
        end_phase(words, counts.shape[1], is_caller)


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_every_task_is_done_once_and_one_phase_after_the_other(threads, number):
    threads(number)
    team = Team()
    for _ in range(60):
        counts, order = np.zeros((PHASES, TASKS), np.int64), np.zeros(1, np.int64)
        team.run(count_tasks, PHASES, counts, order)
        assert (counts == 1).all() and order[0] == 0


def test_helpers_that_do_not_come_are_not_waited_for(threads, monkeypatch):
    threads(3)
    monkeypatch.setattr("app.models.work_sharing._Helper._work", lambda self: None)
    counts, order = np.zeros((PHASES, TASKS), np.int64), np.zeros(1, np.int64)
    Team().run(count_tasks, PHASES, counts, order)
    assert (counts == 1).all()


def test_who_comes_from_an_older_phase_takes_nothing():
    words = np.zeros(32, np.int64)
    address = words.ctypes.data
    open_phase(address, 7)
    assert take_task(address, 7, 2) == 0
    open_phase(address, 8)
    assert take_task(address, 7, 2) == -1
    assert [take_task(address, 8, 2) for _ in range(3)] == [0, 1, -1]


def test_two_threads_that_call_at_once_get_their_own_work_done(threads):
    threads(2)
    team, wrong = Team(), []

    def call():
        torch.set_num_threads(2)  # is counted for each thread by itself
        for _ in range(30):
            counts, order = np.zeros((PHASES, TASKS), np.int64), np.zeros(1, np.int64)
            team.run(count_tasks, PHASES, counts, order)
            wrong.extend([1] * int((counts != 1).sum() + order[0]))

    callers = [threading.Thread(target=call) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def helpers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "glasschat-helper"]


def test_a_team_keeps_its_helpers_and_they_keep_nothing(threads):
    threads(3)
    team = Team()
    counts = np.zeros((PHASES, TASKS), np.int64)
    team.run(count_tasks, PHASES, counts, np.zeros(1, np.int64))
    before = helpers()
    for _ in range(20):
        team.run(count_tasks, PHASES, counts, np.zeros(1, np.int64))
    assert helpers() == before
    kept = weakref.ref(counts)
    del counts
    deadline = time.monotonic() + 10
    while kept() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert kept() is None


def test_where_the_system_gives_no_more_threads_the_caller_does_it_alone(threads, monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    threads(3)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    counts = np.zeros((PHASES, TASKS), np.int64)
    Team().run(count_tasks, PHASES, counts, np.zeros(1, np.int64))
    assert (counts == 1).all()


@njit(nogil=True)
def fail_beside_a_slow_helper(words, phase, is_caller, is_taken, may_go_on):
    begin_phase(words, phase, is_caller)
    if is_caller:
        while is_taken[0] == 0:
            pause()
        raise ValueError("given up")
    if take_task(words, phase, 1) == 0:
        is_taken[0] = 1
        while may_go_on[0] == 0:
            pause()
        finish_task(words)


def test_after_a_failure_a_helper_that_is_still_at_work_disturbs_no_later_computation(threads):
    threads(2)
    team, is_taken, may_go_on = Team(), np.zeros(1, np.int64), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="given up"):
        team.run(fail_beside_a_slow_helper, 1, is_taken, may_go_on)
    for each in range(40):
        if each == 20:
            may_go_on[0] = 1
        counts, order = np.zeros((PHASES, TASKS), np.int64), np.zeros(1, np.int64)
        team.run(count_tasks, PHASES, counts, order)
        assert (counts == 1).all() and order[0] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not split here")
def test_a_process_that_split_off_has_a_team_of_its_own(threads):
    threads(2)
    run = ("import os, numpy, torch; from tests.models.test_work_sharing import count_tasks, PHASES, TASKS;"
           "from app.models.work_sharing import team; torch.set_num_threads(2)\n"
           "def works():\n"
           "    counts = numpy.zeros((PHASES, TASKS), numpy.int64)\n"
           "    team().run(count_tasks, PHASES, counts, numpy.zeros(1, numpy.int64))\n"
           "    return bool((counts == 1).all()) and len(team()._helpers) == 1\n"
           "assert works()\n"
           "team()._in_use.acquire()\n"  # as if another thread were within
           "child = os.fork()\n"
           "if child == 0: os._exit(0 if works() else 1)\n"
           "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))")
    result = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, timeout=60)
    assert result.stdout == "0\n", result.stderr
