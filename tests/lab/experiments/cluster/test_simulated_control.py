"""Dovetail in the simulator as on a cluster: through pods, the ledger, and the backlog and plan input of `control`."""

import numpy as np
import pytest

from extender.settings import parse
from lab.experiments.cluster.run import ClusterSetup, settings_of, simulate
from lab.experiments.cluster.simulated_control import SimulatedControl
from lab.experiments.cluster.workload import QUICK
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.workloads.workload import BLOCKS, Job, Workload
from tests.lab.experiments.small_cluster import MACHINES, MAP_AND_REDUCE, stage

EVENTS = SimulationSettings(heartbeat_seconds=0.0)


def control(**sections):
    base = {"apiVersion": "dovetail.dev/v1alpha1", "kind": "DovetailConfiguration"}
    return SimulatedControl(parse({**base, "control": {"schedulers": ["default-scheduler"]}, **sections}), MACHINES)


def simulated(jobs, scheduler):
    return run(jobs, MACHINES, scheduler, seed=1, settings=EVENTS, follow=scheduler.begin)


def test_maps_go_to_their_blocks_and_the_reduce_follows_them():
    outcome = simulated(MAP_AND_REDUCE, control())
    assert outcome.tasks.node[:2].tolist() == [0, 1]
    assert outcome.tasks.started.tolist() == [0, 0, 20]
    assert outcome.makespan == 25.0


def test_what_is_read_from_afar_counts_at_its_source_as_it_does_on_a_cluster():
    """Machine 0 has the only copy of eight blocks and runs four of their maps, by its CPU.

    Each reads 20: a fifth of the disk. The four leave room for one more to be read from afar: the others wait.
    """
    copies = np.zeros((8, 1), dtype=np.intp)
    jobs = Workload("far", [Job("j", 0.0, [stage("map", [10.0] * 8, reading=20.0, source=BLOCKS, copies=copies)])])
    outcome = simulated(jobs, control())
    begun = outcome.tasks.started == 0
    assert (outcome.tasks.node[begun] == 0).sum() == 4
    assert begun.sum() == 5
    assert outcome.fullness.over_allocated.max() == 0.0


def test_jobs_wait_for_locality_as_settings_say():
    copies = np.zeros((5, 1), dtype=np.intp)
    jobs = Workload("near", [Job("j", 0.0, [stage("map", [10.0] * 5, reading=10.0, source=BLOCKS, copies=copies)])])
    assert simulated(jobs, control()).tasks.started.max() == 0.0  # the fifth goes elsewhere at once
    waits = simulated(jobs, control(locality={"waitSeconds": [4]}))
    assert waits.tasks.started.max() == pytest.approx(4.0)


def test_what_runs_counts_in_its_queues_share():
    """Three machines of 4,000 millicores, tasks of 1,000: twelve places, six for each queue.

    The first queue has all of them when the second comes, and eight tasks more. At 10 s eight places come free: the
    second queue gets six. If nobody knew what ran, it would get four.
    """
    large = Job("a", 0.0, [stage("map", [10.0] * 8 + [20.0] * 4 + [10.0] * 8)], queue="one")
    late = Job("b", 5.0, [stage("map", [30.0] * 12)], queue="two")
    outcome = simulated(Workload("queues", [large, late]), control(queues=[{"name": "one"}, {"name": "two"}]))
    begun = outcome.tasks.started == 10.0
    assert np.bincount(outcome.tasks.stage[begun]).tolist() == [2, 6]


def test_a_whole_workload_runs_to_its_end_and_again_in_the_same_way():
    setup = ClusterSetup.of(QUICK, 1)
    first, again = (
        simulate(setup, SimulatedControl(settings_of(setup), setup.machines), "simulated") for _ in range(2)
    )
    assert np.isfinite(first.tasks.ended).all()
    assert first.locality > 0.5
    assert first.tasks.ended.tolist() == again.tasks.ended.tolist()


def test_a_plan_before_the_world_has_begun_is_refused():
    with pytest.raises(RuntimeError, match="begin comes first"):
        run(MAP_AND_REDUCE, MACHINES, control(), seed=1, settings=EVENTS)
