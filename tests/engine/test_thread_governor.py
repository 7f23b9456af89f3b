"""Fewer threads when something else wants a core, and more again when it does not."""

import random

import pytest

from app.engine.thread_governor import REST, ThreadGovernor


class Machine:
    """Seconds of a forward by threads: quiet, or with another program on one of `cores` cores."""

    def __init__(self, cores: int):
        self.cores, self.busy, self.threads, self.rng = cores, False, cores, random.Random(0)

    def forward_s(self, num_tokens: int) -> float:
        alone = num_tokens**0.5 * (0.004 + 0.04 / self.threads)
        waits = 5.0 if self.busy and self.threads == self.cores else 1.0
        return alone * waits * self.rng.uniform(0.95, 1.1)

    def run(self, governor: ThreadGovernor, forwards: int, tokens=(1,)) -> float:
        """-> seconds of all."""
        total_s = 0.0
        for _ in range(forwards):
            num_tokens = self.rng.choice(tokens)
            seconds = self.forward_s(num_tokens)
            total_s += seconds
            governor.took(num_tokens, seconds)
        return total_s


@pytest.fixture(params=[2, 4, 12])
def machine(request):
    return Machine(request.param)


def governor_of(machine):
    return ThreadGovernor(machine.cores, set_threads=lambda threads: setattr(machine, "threads", threads))


def test_a_quiet_machine_keeps_all_its_threads(machine):
    governor, seen = governor_of(machine), set()
    for _ in range(1000):
        machine.run(governor, 1, tokens=(1, 8, 128))
        seen.add(machine.threads)
    assert seen == {machine.cores}


@pytest.mark.parametrize("busy", [False, True])
def test_before_the_first_text_it_finds_out_whether_the_machine_is_busy(machine, busy):
    machine.busy, seconds, tried = busy, 0.0, []

    def run():
        nonlocal seconds
        tried.append(machine.threads)
        seconds += machine.forward_s(32) + machine.forward_s(1)

    governor = governor_of(machine)
    governor.begin(run, clock=lambda: seconds)
    assert tried[:2] == [1, 1] and tried == sorted(tried) and tried[-1] == machine.cores  # the first run warms up
    assert machine.threads == governor.threads
    assert machine.threads < machine.cores if busy else machine.threads == machine.cores
    machine.run(governor, 3 * REST)
    assert machine.threads < machine.cores if busy else machine.threads == machine.cores


def test_a_long_text_on_a_quiet_machine_is_not_taken_for_company(machine):
    """What looks back at more takes longer, and that is no reason for fewer threads."""
    governor, seen = governor_of(machine), set()
    for _ in range(20):
        for stored in range(0, 4096, 64):
            seconds = machine.forward_s(64) * (1 + stored / 1500)
            governor.took(64, seconds, stored)
            seen.add(machine.threads)
    assert seen == {machine.cores}


def test_company_takes_threads_away_and_its_end_brings_them_back(machine):
    governor = governor_of(machine)
    machine.run(governor, 200)
    machine.busy = True
    held_up_s = 200 * machine.forward_s(1)
    assert machine.run(governor, 200) < 0.7 * held_up_s and machine.threads < machine.cores
    machine.busy = False
    machine.run(governor, 5 * REST)
    assert machine.threads == machine.cores


def test_one_slow_forward_changes_nothing(machine):
    governor = governor_of(machine)
    machine.run(governor, 100)
    governor.took(1, 5.0)
    machine.run(governor, 100)
    assert machine.threads == machine.cores


def test_when_fewer_threads_are_no_help_all_are_kept():
    machine = Machine(4)
    governor = governor_of(machine)
    machine.run(governor, 100)
    spent = {4: 0, 3: 0, 2: 0, 1: 0}
    for _ in range(600):
        spent[machine.threads] += 1
        governor.took(1, 3 * machine.forward_s(1))  # slow whatever the threads: a throttled processor
    assert spent[4] > 0.85 * 600


def test_one_thread_stays_one_thread():
    machine = Machine(1)
    governor = governor_of(machine)
    machine.run(governor, 300)
    assert governor.threads == machine.threads == 1
