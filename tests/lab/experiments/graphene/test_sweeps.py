"""Sweeps over many jobs: what is changed, and against what."""

import numpy as np
import pytest

from extender.planner import Policy
from lab.experiments.graphene.jobs import TEZ, drawn
from lab.experiments.graphene.many import JobsRun
from lab.experiments.graphene.sweeps import (
    ERRORS,
    OF_LOAD,
    PENALTY,
    QUEUE_KAPPA,
    VALUES,
    SweepRun,
    Sweeps,
    expected_wrongly,
    perform,
    reading_blocks,
)
from lab.sim.workloads.workload import BLOCKS


def test_errors_change_what_is_expected_by_up_to_that_part_and_not_what_tasks_take():
    right = drawn(3, 6, 2.0)
    wrong = expected_wrongly(right, 0.5, 3)
    factors = []
    for one, two in zip(right.jobs, wrong.jobs, strict=True):
        for told, truth in zip(two.stages, one.stages, strict=True):
            assert told.durations is truth.durations
            factors.append(told.duration / truth.duration)
    assert min(factors) >= 0.5
    assert max(factors) <= 1.5
    assert np.std(factors) == pytest.approx(1 / np.sqrt(12), rel=0.2)  # evenly over a width of 1


def test_only_stages_without_parents_read_blocks():
    jobs = reading_blocks(drawn(3, 3, 2.0)).jobs
    assert all((stage.source == BLOCKS) == (not stage.parents) for job in jobs for stage in job.stages)


def test_defaults_are_among_the_values_and_each_is_compared_with_its_own():
    part = Sweeps(2, [10])
    outcomes = {
        run: JobsRun(np.array([100.0, 100.0 + _later(run)]), 200.0, (0.8, 0.9, 0.95), 100.0) for run in part.runs()
    }
    section = part.section(outcomes)
    # 105 instead of 100 s in the mean.
    assert section.figures[0].ours.mean == pytest.approx(5.0)
    assert [line[2:] for line in section.listings[0].lines if line[:2] == ("errors, dovetail", "0.5")] == [
        ("5.0", "5.0", "0.0")
    ]
    assert Policy().remote_penalty in VALUES[PENALTY]
    # Two queues: 120 instead of 100 s in the mean. At a load of 2 ours takes 100 s, Tez 125.
    assert section.listings[1].lines[0] == ("0", "20.0", "20.0", "0.80", "0.90", "0.95")
    assert section.listings[1].lines[1][1] == "0.0"
    assert [line for line in section.listings[2].lines if line[0] == "2"] == [("2", "20.0", "20.0", "0.0", "0.0")]


def _later(run):
    """By how much later than by default the second job of a run ends."""
    if run.what == ERRORS and run.value == 0.5:
        return 10.0
    if run.what == QUEUE_KAPPA and run.value == 0.0:
        return 40.0
    return 50.0 if run.what == OF_LOAD and run.value == 2.0 and run.contender == TEZ else 0.0


@pytest.mark.parametrize("what", VALUES)
def test_every_sweep_runs(what):
    assert len(perform(SweepRun(11, 2, what, VALUES[what][-1]), lambda _done, _total: None).seconds) == 2
