"""Waves: what a task takes by what its machine ran before, and by how many machines its job has."""

import numpy as np

from lab.sim.engine.machine_waves import waves_on
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.waves import curve_of, least_seconds
from lab.sim.workloads.workload import Job, Machines, Stage, Workload

CAPACITY = np.ones((2, 6))
WAVES = (curve_of({1: 5, 2: 7}), curve_of({1: 3, 2: 4}), curve_of({1: 1, 2: 2}))


def stage(name, *, waves=WAVES):
    return Stage(name, np.zeros(6), 0.0, 1.0, np.ones(9), waves=waves)


def kept(*stages_of_a, move_seconds=2.0):
    """Return what keeps waves in mind, of jobs a and b; stages of a come first, one of b is the last."""
    jobs = Job("a", 0.0, stages_of_a), Job("b", 0.0, [stage("s")])
    machines = Machines("two", CAPACITY, move_seconds=np.full(2, move_seconds))
    return waves_on(table_of(Workload("test", jobs), machines), machines)


def starts(waves, *pairs):
    """Start tasks of these (stage, machine), and return their seconds."""
    stage, node = np.array(pairs, dtype=np.intp).T
    return waves.seconds(stage, np.zeros(len(pairs), dtype=np.intp), node).tolist()


def test_starts_of_one_moment_count_one_after_the_other():
    # 2 s to come and 5 s fresh, alone; then the second machine comes, and they are two.
    assert starts(kept(stage("s")), (0, 0), (0, 1)) == [2 + 5, 2 + 7]


def test_a_machine_that_goes_to_another_job_leaves_the_first_with_one_less():
    waves = kept(stage("s"))
    starts(waves, (0, 0), (0, 1))
    # The first goes to b, where it is alone and fresh. a has one left: one of the rest takes 1 s, not 2.
    assert starts(waves, (1, 0), (0, 1)) == [2 + 5, 1]


def test_a_task_of_another_stage_is_a_first_one_each_time():
    waves = kept(stage("s"), stage("t"))
    assert starts(waves, (0, 0), (1, 0), (1, 0), (0, 0)) == [2 + 5, 3, 1, 3]


def test_a_machine_that_comes_back_is_fresh_again():
    assert starts(kept(stage("s")), (0, 0), (1, 0), (0, 0)) == [2 + 5, 2 + 5, 2 + 5]


def test_a_stage_without_waves_has_its_own_seconds_and_pays_for_moves():
    assert starts(kept(stage("s", waves=None)), (0, 0), (0, 0)) == [2 + 1, 1]


def test_nothing_is_kept_in_mind_where_nothing_depends_on_it():
    machines = Machines("two", CAPACITY, move_seconds=np.zeros(2))
    plain = Workload("test", [Job("a", 0.0, [stage("s", waves=None)])])
    assert waves_on(table_of(plain, machines), machines) is None


def test_the_least_is_at_a_count_or_at_an_end_of_the_range():
    # On 1 to 3 machines 4, 2, 3 s; at 3 it is on the line from 2 to 4 machines.
    waves = (curve_of({1: 9}), curve_of({1: 9}), curve_of({1: 4, 2: 2, 4: 4, 8: 1}))
    assert [least_seconds(waves, machines) for machines in (1, 3, 6, 8)] == [4, 2, 2, 1]
