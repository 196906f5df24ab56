"""Figures of a run: two machines and three pods, small enough to add up by hand."""

import numpy as np
import pytest

from extender.cluster.resources import DIMENSIONS
from lab.demo.figures import course, figures, job_ends
from lab.demo.room import Times
from lab.demo.workload import STANDARD, DemoNode, DemoPod, DemoWorkload

READER = dict.fromkeys(DIMENSIONS, 0.0) | {"cpu": 1000.0, "memory": 8e9, "disk-read": 150e6}
WORKLOAD = DemoWorkload(
    (DemoNode("a", STANDARD), DemoNode("b", STANDARD)),
    (
        DemoPod("x", "one", "disk", READER, 3.0),
        DemoPod("y", "one", "disk", READER, 3.0),
        DemoPod("z", "two", "disk", READER, 6.0),
    ),
)
SHARED = Times(np.array([0.0, 0, 2]), np.array([4.5, 4.5, 8]), np.array([0, 0, 1]))
"""x and y read 300 of 200 MB/s on a, so at 2/3 speed their 3 s take 4.5 s; z runs alone on b from 2 to 8 s."""


def test_a_course_adds_up_what_runs_between_two_moments():
    went = course(WORKLOAD, SHARED)
    assert went.at.tolist() == [0, 2, 4.5, 8]
    assert went.running.tolist() == [2, 3, 1]
    assert went.working == pytest.approx([4 / 3, 7 / 3, 1])
    # disk-read, of 400 MB/s in all: allocated 300, 450, 150; used 200, 350, 150
    assert went.allocated[:, 2] == pytest.approx([0.75, 1.125, 0.375])
    assert went.used[:, 2] == pytest.approx([0.5, 0.875, 0.375])
    # memory is held in full: 16, 24, 8 of 64 GB; CPU is used at the pods' speed: 4/3, 7/3, 1 of 24 cores
    assert went.used[:, 1] == pytest.approx([0.25, 0.375, 0.125])
    assert went.used[:, 0] == pytest.approx([4 / 72, 7 / 72, 1 / 24])


def test_over_allocation_is_seen_per_node_and_only_in_its_dimension():
    went = course(WORKLOAD, SHARED)
    assert went.over("disk").tolist() == [0.5, 0.5, 0]
    assert went.worst("disk") == 1.5
    assert went.over("network").tolist() == [0, 0, 0]


def test_a_node_that_is_exactly_full_is_not_over_allocated():
    full = READER | {"disk-read": 100e6}
    pair = DemoWorkload(WORKLOAD.machines, tuple(DemoPod(name, "one", "disk", full, 1.0) for name in "xy"))
    went = course(pair, Times(np.zeros(2), np.ones(2), np.zeros(2, dtype=np.intp)))
    assert went.worst("disk") == 1
    assert went.over("disk").tolist() == [0]


def test_figures_sum_up_the_run():
    found = figures(WORKLOAD, SHARED, course(WORKLOAD, SHARED))
    assert found.makespan == 8
    assert found.pod_mean == pytest.approx((4.5 + 4.5 + 8) / 3)
    assert job_ends(WORKLOAD, SHARED).tolist() == [4.5, 8]
    assert found.job_mean == 6.25
    assert (found.running_mean, found.running_peak) == (2, 3)  # until the last start, at 2 s
    assert found.slowdown_mean == pytest.approx((1.5 + 1.5 + 1) / 3)
    assert found.slowdown_worst == pytest.approx(1.5)
    assert found.over_part == {"disk": 0.5, "network": 0}
