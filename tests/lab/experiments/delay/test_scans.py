from pathlib import Path

import numpy as np

from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX
from lab.experiments.delay.parts import parts
from lab.experiments.delay.scales import FULL, QUICK
from lab.experiments.delay.scans import BLOCK_BYTES, Cluster, Scans
from lab.experiments.delay.trials import Measured, Trial, Who, perform

ALL = [DIMENSIONS.index(name) for name in ("cpu", "memory")]


def test_a_machine_has_room_for_as_many_scans_as_it_has_slots():
    cluster = Cluster(nodes=8, slots=4, racks=2)
    machines = cluster.machines()
    stage = Scans((3,)).workload(1, machines).jobs[0].stages[0]
    assert (machines.capacity[0, ALL] // stage.demand[ALL]).tolist() == [4, 4]
    assert machines.capacity[0, DISK_READ_INDEX] == 4 * stage.reading
    assert machines.racks.tolist() == [0] * 4 + [1] * 4
    assert abs(stage.reading * stage.duration - BLOCK_BYTES) < stage.duration


def test_cpu_heavy_scans_read_the_same_bytes_more_slowly():
    machines = Cluster(4, 4).machines()
    stage = Scans((3,), slower=4.0).workload(1, machines).jobs[0].stages[0]
    assert abs(stage.reading * stage.duration - BLOCK_BYTES) < stage.duration
    assert stage.duration == 48.0


def test_jobs_of_one_data_set_read_the_same_blocks():
    machines = Cluster(10, 4).machines()
    one, other = (job.stages[0].copies for job in Scans((5, 5), shared=True).workload(1, machines).jobs)
    assert np.array_equal(one, other)


def test_a_trial_counts_where_every_map_read():
    found = perform(Trial(Scans((4, 4), at_once=2), Cluster(10, 2), Who("naive"), seed=1), lambda *_: None)
    assert found.maps_all.tolist() == [4, 4]
    assert found.maps.tolist() == [4, 4]
    assert (found.on_node <= found.maps).all()
    assert found.local() == 100 * found.on_node.sum() / 8


def test_different_runs_of_the_experiment_have_different_names():
    for scale in (FULL, QUICK):
        trials = {trial for part in parts(scale, range(2), Path()) for trial in part.trials()}
        assert len({trial.name for trial in trials}) == len(trials)
        assert max(len(trial.name) for trial in trials) < 200


def test_locality_of_some_jobs_counts_theirs_only():
    found = Measured(1.0, np.ones(2), *(np.array(it) for it in ([2, 8], [2, 8], [1, 8], [2, 8])), 0.0)
    assert found.local() == 90.0
    assert found.local(np.array([True, False])) == 50.0
    assert found.rack_local(np.array([True, False])) == 100.0
