"""The sweep of contention: what is compared with what, and that it runs."""

import numpy as np
import pytest

from extender.cluster.resources import NETWORK_IN_INDEX
from lab.experiments.graphene.contention import CAP, LOADS, LOSSES, Contention, ContentionRun, perform
from lab.experiments.graphene.many import JobsRun
from lab.sim.engine import clock
from lab.sim.engine.clock import SimulationSettings
from lab.sim.schedulers.policies import policy
from lab.sim.workloads.workload import Job, Machines, Stage, Workload


def test_each_cell_is_compared_with_the_same_without_overbooking():
    part = Contention(2, [10, 11])
    outcomes = {
        run: JobsRun(np.full(2, 100.0 * run.load + (run.seed - 9) * (run.overbook > 0)), 200.0, (), 100.0)
        for run in part.runs()
    }
    section = part.section(outcomes)
    # At load 1: 101 and 102 s instead of 100; at load 2: 201 and 202 instead of 200.
    means = [figure.ours.mean for figure in section.figures]
    assert means == pytest.approx([1.5] * len(LOSSES) + [0.75] * len(LOSSES))
    assert section.listings[0].lines[0] == ("1", "0", "1.5", "1.0 to 2.0", "0.0", "0.0 to 0.0")
    assert len(section.listings[0].lines) == len(LOADS) * len(LOSSES)


def test_it_runs_where_contention_wastes_what_is_published():
    assert len(perform(ContentionRun(11, 2, 2.0, 1.0, CAP), lambda _done, _total: None).seconds) == 2


@pytest.mark.parametrize(("name", "makespan", "over"), [("tetris", 20.0, 0.0), ("tetris-overbook", 12.0, 1.0)])
def test_the_simulator_lets_links_be_overbooked_and_measures_it(name, makespan, over):
    # Two tasks of 10 s that each read over .6 of a link: one after the other, or both in 12 s (Graphene, 5).
    demand = np.array([1.0, 1.0, 0.0, 0.0, 6.0, 0.0])
    stage = Stage("s", demand, 1.0, 10.0, np.full(2, 10.0))
    outcome = clock.run(
        Workload("two", [Job("j", 0.0, [stage])]),
        Machines("one", np.full((1, 6), 10.0)),
        policy(name, 0),
        seed=0,
        settings=SimulationSettings(heartbeat_seconds=0.0),
    )
    assert outcome.makespan == pytest.approx(makespan)
    assert outcome.fullness.over_allocated[NETWORK_IN_INDEX] == pytest.approx(over)
