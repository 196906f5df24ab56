"""The Tetris paper's own examples, through the simulator and the planner that the cluster runs."""

import numpy as np
import pytest

from extender.planner import Planner, Policy
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.schedulers.drf import Drf
from lab.sim.workloads.workload import Job, Machines, Stage, Workload

T = 100.0
EVENT_DRIVEN = SimulationSettings(heartbeat_seconds=0.0)
PAPER = {"tail": np.inf, "starved_after": np.inf}
"""Without what Tetris does not have."""
GIB, GBPS = 2.0**30, 1e9 / 8


def stage(name, tasks, *, cpu=0.0, memory=0.0, network=0.0, parents=()):
    """Return a stage; disk-write stands for the network, as on a single machine nothing that is read is remote."""
    demand = np.array([cpu * 1000, memory * GIB, 0.0, network * GBPS, 0.0, 0.0])
    return Stage(name, demand, 0.0, T, np.full(tasks, T), parents)


def figure_1():
    """Return jobs A, B, C of figure 1: maps, a barrier, then three reduces of 1 Gbps each."""
    reduces = {"network": 1.0, "parents": (0,)}
    maps = (("A", 18, 1, 2), ("B", 6, 3, 1), ("C", 6, 3, 1))
    jobs = [
        Job(name, 0.0, [stage("map", count, cpu=cpu, memory=gib), stage("reduce", 3, **reduces)])
        for name, count, cpu, gib in maps
    ]
    return Workload("figure 1", jobs)


def machines(count, cpu, gib, gbps=0.0):
    capacity = np.array([cpu * 1000, gib * GIB, 0.0, gbps * GBPS, 0.0, 0.0])
    return Machines("example", np.tile(capacity, (count, 1)), copies=1)


def job_times(outcome):
    return {job.name: job.seconds / T for job in outcome.jobs}


@pytest.mark.parametrize("matching", ["machine", "pair", "bundle"])
def test_figure_1_packing_ends_the_three_jobs_at_2t_3t_and_4t(matching):
    # All maps of one job fill 18 cores or 36 GB for one t; its 3 reduces then fill 3 Gbps beside the next job's maps.
    outcome = run(figure_1(), machines(1, 18, 36, 3), Planner(Policy(matching=matching)), seed=0, settings=EVENT_DRIVEN)
    assert sorted(job_times(outcome).values()) == pytest.approx([2, 3, 4])


def test_figure_1_drf_ends_every_job_at_6t():
    # 6 maps of A, 2 of B, 2 of C at a time (a third each): 3t. Then DRF, which sees CPU and memory, starts all 9
    # reduces at once on 3 Gbps: each gets a third of its rate and takes 3t.
    outcome = run(figure_1(), machines(1, 18, 36, 3), Drf(0), seed=0, settings=EVENT_DRIVEN)
    assert job_times(outcome) == pytest.approx({"A": 6, "B": 6, "C": 6})


def section_3_3():
    """Return six tasks of 2 cores and 3 GB, and two of 1 core and 2 GB."""
    return Workload(
        "section 3.3",
        [
            Job("large", 0.0, [stage("only", 6, cpu=2, memory=3)]),
            Job("small", 0.0, [stage("only", 2, cpu=1, memory=2)]),
        ],
    )


def test_section_3_3_packing_alone_runs_the_large_job_first():
    # On a machine of 2 cores and 4 GB: 2/2 + 3/4 = 1.75 against 1/2 + 2/4 = 1. Three rounds of two, then the small job.
    outcome = run(section_3_3(), machines(2, 2, 4), Planner(Policy(srtf=0, **PAPER)), seed=0, settings=EVENT_DRIVEN)
    assert job_times(outcome) == pytest.approx({"large": 3, "small": 4})


def test_section_3_3_with_remaining_work_the_small_job_goes_first_and_the_mean_falls():
    # Work: 6 x (2/4 + 3/8) = 5.25 and 2 x (1/4 + 2/8) = 1 (x t); eps = 1.375 / 3.125 = .44:
    # 1.75 - .44 x 5.25 = -.56 against 1 - .44 = .56. Both small tasks share a machine; 1 + 2 + 2 + 1 large ones follow.
    outcome = run(section_3_3(), machines(2, 2, 4), Planner(Policy(**PAPER)), seed=0, settings=EVENT_DRIVEN)
    assert job_times(outcome) == pytest.approx({"large": 4, "small": 1})
