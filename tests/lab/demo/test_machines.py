"""Pods on a machine that they share: the arithmetic of slowing down, by hand.

The machine has 8000 millicores, 32 bytes, and 100 in each disk and network dimension.
"""

from itertools import pairwise

import numpy as np
import pytest

from lab.demo.machines import DemoMachines, parts, rates

CAPACITY = np.array([8000.0, 32, 100, 100, 100, 100])
READER = np.array([1000.0, 1, 60, 0, 0, 0])
SENDER = np.array([1000.0, 1, 0, 0, 0, 50])


def test_pods_that_fit_run_at_full_speed():
    machines = DemoMachines(CAPACITY[None])
    machines.start(0, 0, READER, 4.0, 0.0)
    machines.start(0, 1, SENDER, 6.0, 0.0)
    assert machines.next_end == 4.0
    assert machines.end_due(4.0) == [0]
    assert machines.next_end == 6.0
    assert machines.end_due(6.0) == [1]
    assert machines.next_end == np.inf


def test_pods_that_over_allocate_slow_down_in_proportion_and_speed_up_again():
    machines = DemoMachines(CAPACITY[None])
    machines.start(0, 0, READER, 5.0, 0.0)
    machines.start(0, 1, READER, 10.0, 0.0)
    # 60 + 60 = 120 of 100: both at 100/120 = 5/6, so 5 s of work take 6 s
    assert machines.next_end == pytest.approx(6.0)
    assert machines.end_due(6.0) == [0]
    # the other has done 5 of 10 and runs alone at full speed
    assert machines.next_end == pytest.approx(11.0)


def test_a_pod_that_comes_later_slows_down_only_what_is_left():
    machines = DemoMachines(CAPACITY[None])
    machines.start(0, 0, READER, 5.0, 0.0)
    machines.start(0, 1, READER, 99.0, 2.0)
    # 2 s at full speed, then 3 s of work at 5/6: 2 + 3.6
    assert machines.next_end == pytest.approx(5.6)


def test_only_pods_that_want_the_scarce_dimension_slow_down():
    allocated = READER * 4 + SENDER  # disk-read 240 of 100
    part = parts(allocated, CAPACITY)
    assert part.tolist() == [1, 1, pytest.approx(100 / 240), 1, 1, 1]
    assert rates(np.array([READER, SENDER]), np.array([part, part])).tolist() == [pytest.approx(100 / 240), 1]


def test_the_scarcest_dimension_decides():
    part = parts(np.array([0, 0, 200.0, 400, 100, 50]), CAPACITY)
    both = np.array([[0, 0, 1.0, 1, 1, 1]])
    assert rates(both, part[None]).tolist() == [0.25]


def test_cpu_and_memory_slow_nothing_down_and_no_capacity_divides_by_nothing():
    assert parts(np.array([16000.0, 64, 0, 0, 0, 0]), CAPACITY).tolist() == [1] * 6
    assert parts(np.zeros(6), np.zeros(6)).tolist() == [1] * 6


def test_machines_do_not_disturb_each_other():
    machines = DemoMachines(np.array([CAPACITY, CAPACITY]))
    machines.start(0, 0, READER, 5.0, 0.0)
    machines.start(1, 1, READER, 5.0, 0.0)
    assert sorted(machines.end_due(5.0)) == [0, 1]


def test_no_work_is_lost_or_made_up_however_pods_come_and_go():
    random = np.random.default_rng(3)
    machines, work = DemoMachines(CAPACITY[None]), random.uniform(1, 5, 20)
    starts, ends = np.sort(random.uniform(0, 10, 20)), np.full(20, np.nan)
    waiting, now = list(range(20)), 0.0
    while np.isnan(ends).any():
        arrival = starts[waiting[0]] if waiting else np.inf
        now = min(arrival, machines.next_end)
        ends[machines.end_due(now)] = now
        if now == arrival:
            machines.start(0, waiting.pop(0), READER, work[len(starts) - len(waiting) - 1], now)
    at = np.unique(np.concatenate((starts, ends)))
    done = np.zeros(20)
    for begun, over in pairwise(at):
        there = (starts <= begun) & (ends > begun)
        done[there] += (over - begun) * min(1, 100 / (60 * max(there.sum(), 1)))
    assert done == pytest.approx(work, abs=1e-5)
