from pathlib import Path

import numpy as np

from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX
from lab.experiments.delay.parts import parts
from lab.experiments.delay.runs import DelayContender, DelayOutcome, DelayRun, perform
from lab.experiments.delay.scales import FULL, QUICK
from lab.experiments.delay.scans import BLOCK_BYTES, Scans, SlotCluster

ALL = [DIMENSIONS.index(name) for name in ("cpu", "memory")]


def test_a_machine_has_room_for_as_many_scans_as_it_has_slots():
    cluster = SlotCluster(nodes=8, slots=4, racks=2)
    machines = cluster.machines()
    stage = Scans((3,)).workload(1, machines).jobs[0].stages[0]
    assert (machines.capacity[0, ALL] // stage.demand[ALL]).tolist() == [4, 4]
    assert machines.capacity[0, DISK_READ_INDEX] == 4 * stage.reading
    assert machines.racks.tolist() == [0] * 4 + [1] * 4
    assert abs(stage.reading * stage.duration - BLOCK_BYTES) < stage.duration


def test_cpu_heavy_scans_read_the_same_bytes_more_slowly():
    machines = SlotCluster(4, 4).machines()
    stage = Scans((3,), slower=4.0).workload(1, machines).jobs[0].stages[0]
    assert abs(stage.reading * stage.duration - BLOCK_BYTES) < stage.duration
    assert stage.duration == 48.0


def test_jobs_of_one_data_set_read_the_same_blocks():
    machines = SlotCluster(10, 4).machines()
    one, other = (job.stages[0].copies for job in Scans((5, 5), shared=True).workload(1, machines).jobs)
    assert np.array_equal(one, other)


def test_a_run_counts_where_every_map_read():
    outcome = perform(
        DelayRun(Scans((4, 4), at_once=2), SlotCluster(10, 2), DelayContender("naive"), seed=1), lambda *_: None
    )
    assert outcome.maps_all.tolist() == [4, 4]
    assert outcome.maps.tolist() == [4, 4]
    assert (outcome.on_node <= outcome.maps).all()
    assert outcome.local() == 100 * outcome.on_node.sum() / 8


def test_different_runs_of_the_experiment_have_different_names():
    for scale in (FULL, QUICK):
        runs = {run for part in parts(scale, range(2), Path()) for run in part.runs()}
        assert len({run.name for run in runs}) == len(runs)
        assert max(len(run.name) for run in runs) < 200


def test_locality_of_some_jobs_counts_theirs_only():
    outcome = DelayOutcome(1.0, np.ones(2), *(np.array(it) for it in ([2, 8], [2, 8], [1, 8], [2, 8])))
    assert outcome.local() == 90.0
    assert outcome.local(np.array([True, False])) == 50.0
    assert outcome.rack_local() == 100.0
