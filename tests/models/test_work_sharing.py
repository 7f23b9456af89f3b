"""Work that threads divide: every task is done once, and nobody is waited for who has not begun."""

import threading

import numpy as np
import pytest
import torch
from numba import njit

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


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


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


def test_a_team_keeps_its_helpers(threads):
    threads(3)
    team = Team()
    counts = np.zeros((PHASES, TASKS), np.int64)
    team.run(count_tasks, PHASES, counts, np.zeros(1, np.int64))
    before = threading.active_count()
    for _ in range(20):
        team.run(count_tasks, PHASES, counts, np.zeros(1, np.int64))
    assert threading.active_count() == before
