"""Copies of final outputs: where they go and what they take, with the arithmetic shown.

A machine has 1000 millicores, 64 bytes of memory, and 100 in each disk and network dimension. Tasks take 10 s.
"""

from dataclasses import replace

import numpy as np
import pytest

from extender.errors import DovetailError
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.outputs import OutputCopies
from lab.sim.engine.running import RunningTasks, Starts
from lab.sim.engine.use.profiles import profiles_of
from lab.sim.engine.use.tasks import UsedTasks
from lab.sim.schedulers.bound import aggregate
from lab.sim.schedulers.policies import policy
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import LOCAL, SHUFFLE, Job, Machines, Stage, Workload

CAPACITY = np.array([1000.0, 64, 100, 100, 100, 100])
CPU, MEMORY, READ, WRITE, IN, OUT = range(6)
NONE = 4
TASKS = 200


def machines(count=4, **others):
    return Machines("test", np.tile(CAPACITY, (count, 1)), **others)


def stage(name="write", tasks=1, write=20.0, **others):
    return Stage(name, np.array([0, 1, 0, write, 0, 0]), 0.0, 10.0, np.full(tasks, 10.0), **others)


def workload(*stages, copies=3):
    return Workload("test", [Job("job", 0.0, stages or (stage(tasks=TASKS),))], output_copies=copies)


def copies(cluster, node, *, seed=1):
    """Return where the outputs of the tasks go that run on these nodes, a row for each task."""
    drawn = OutputCopies(table_of(workload(), cluster), cluster, np.random.default_rng(seed))
    return drawn.of(np.zeros(len(node), dtype=np.intp), np.arange(len(node)), node).T


def starts(node, copies, write=20.0):
    """Return a task on this node, whose output is copied to these machines."""
    return Starts(
        stage=np.array([0]),
        task=np.array([0]),
        node=np.array([node]),
        source=np.array([node]),
        rates_row=np.array([-1]),
        node_demand=np.array([[0, 1, 0, write, 0, 0]]).T,
        elsewhere=np.zeros(1),
        copies=np.array([copies]).T,
        seconds=np.array([10.0]),
        expected=np.array([10.0]),
    )


def both(cluster=NONE, loss=0.0):
    """Return the plain running tasks, and those of a run in which use is not the promise."""
    capacity = np.tile(CAPACITY, (cluster, 1))
    profiles = profiles_of(table_of(workload(), machines()))
    return RunningTasks(capacity, loss=loss, copies=2), UsedTasks(capacity, profiles, loss=loss, copies=2)


def test_copies_are_on_distinct_machines_other_than_the_tasks_own_and_use_all_of_them():
    node = np.arange(TASKS) % 5
    chosen = copies(machines(5), node)
    assert all(len({own, *others}) == 3 for own, others in zip(node.tolist(), chosen.tolist(), strict=True))
    assert set(np.unique(chosen[:, 0])) == set(np.unique(chosen[:, 1])) == set(range(5))


def test_the_same_task_on_the_same_machine_copies_to_the_same_machines_and_another_seed_to_others():
    node = np.zeros(TASKS, dtype=np.intp)
    chosen = copies(machines(9), node)
    assert chosen.tolist() == copies(machines(9), node).tolist()
    assert chosen.tolist() != copies(machines(9), node, seed=2).tolist()


def test_with_racks_both_copies_are_on_one_other_rack():
    racks = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    node = np.arange(TASKS) % 8
    chosen = copies(machines(8, racks=racks), node)
    assert (racks[chosen[:, 0]] != racks[node]).all()
    assert (racks[chosen[:, 0]] == racks[chosen[:, 1]]).all()
    assert (chosen[:, 0] != chosen[:, 1]).all()
    assert set(chosen[:, 0].tolist()) == set(chosen[:, 1].tolist()) == set(range(8))


def test_a_rack_of_one_machine_holds_one_copy():
    chosen = copies(machines(3, racks=np.array([0, 0, 1])), np.zeros(TASKS, dtype=np.intp))
    assert {tuple(row) for row in chosen.tolist()} == {(2, 3)}  # 3 stands for none


def test_a_machine_without_a_disk_holds_no_copy():
    cluster = machines(4)
    cluster.capacity[2, WRITE] = 0
    assert 2 not in copies(cluster, np.arange(TASKS) % 4)


@pytest.mark.parametrize("tasks", both())
def test_a_copy_takes_network_out_of_the_sender_and_network_in_and_disk_of_the_receiver(tasks):
    tasks.start(starts(0, [2, 1]), 0.0)
    tasks.share(0.0)
    assert tasks.allocated[:, WRITE].tolist() == [20, 20, 20, 0]
    assert tasks.allocated[:, IN].tolist() == [0, 20, 20, 0]
    assert tasks.allocated[:, OUT].tolist() == [20, 0, 20, 0]
    assert tasks.demand.tolist() == tasks.allocated.tolist()
    assert tasks.use()[[WRITE, IN, OUT]].tolist() == [60, 40, 40]
    ended = tasks.end_due(10.0)
    assert ended.job_demand[:, 0].tolist() == [0, 1, 0, 60, 40, 40]
    assert not tasks.allocated.any()


@pytest.mark.parametrize("slow", [(1, WRITE), (1, IN), (2, OUT), (2, WRITE), (0, OUT)])
@pytest.mark.parametrize("kind", [0, 1])
def test_the_slowest_machine_of_the_pipeline_sets_the_pace_of_the_task(slow, kind):
    # It writes 20 bytes a second, and the slow one takes 5 of them: 4 times as long, 40 s.
    tasks = both()[kind]
    tasks.capacity[slow] = 5.0
    tasks.start(starts(0, [2, 1]), 0.0)
    tasks.share(0.0)
    assert tasks.use()[[WRITE, IN, OUT]].tolist() == [15, 10, 10]
    while (ended := tasks.end_due(now := tasks.next_at)) is None:
        tasks.share(now)
    assert ended.at.tolist() == [40.0]


@pytest.mark.parametrize("tasks", both())
def test_a_task_without_copies_takes_its_own_disk_only(tasks):
    tasks.start(starts(0, [NONE, NONE]), 0.0)
    tasks.share(0.0)
    assert tasks.allocated[:, [WRITE, IN, OUT]].sum(axis=0).tolist() == [20, 0, 0]


def test_what_a_done_term_took_of_other_machines_is_free_before_the_task_ends():
    # CPU is over-allocated twice, so computing takes 20 s; writing is done at 10 s.
    tasks = both()[0]
    one = starts(0, [2, 1])
    one.node_demand[CPU] = 2000
    tasks.start(one, 0.0)
    tasks.share(0.0)
    assert tasks.end_due(10.0) is None
    assert tasks.demand[:, [WRITE, IN, OUT]].tolist() == [[0, 0, 0]] * 4
    assert tasks.allocated[1, WRITE] == 20
    assert tasks.end_due(20.0) is not None
    assert not tasks.allocated.any()
    assert not tasks.demand.any()


def test_only_stages_that_no_other_follows_are_copied():
    first, last = stage("map"), stage("reduce", parents=(0,))
    assert table_of(workload(first, last), machines()).copied.tolist() == [False, True]
    assert table_of(workload(first, last, copies=1), machines()).copied.tolist() == [False, False]


def test_a_scheduler_sees_that_a_task_sends_its_output_and_its_work_counts_every_copy():
    table = table_of(workload(stage()), machines())
    plain = table_of(workload(stage(), copies=1), machines())
    assert table.seen[0].tolist() == [0, 1, 0, 20, 0, 20]
    assert table.everywhere[0].tolist() == [0, 1, 0, 60, 40, 40]
    # Of the cluster's 400 in each: writing 20 / 400 before, now 60 / 400 + 2 x 40 / 400; for 10 s.
    assert table.work[0] - plain.work[0] == pytest.approx(10 * (40 + 40 + 40) / 400)


def test_the_one_bin_of_the_bound_has_to_write_the_copies_too():
    table = table_of(workload(stage()), aggregate(machines()))
    assert table.demand[0].tolist() == [0, 1, 0, 60, 40, 40]
    assert not table.copied.any()


def test_there_are_no_more_copies_than_machines():
    assert table_of(workload(stage()), machines(2)).everywhere[0].tolist() == [0, 1, 0, 40, 20, 20]
    assert table_of(workload(stage()), machines(1)).everywhere[0].tolist() == [0, 1, 0, 20, 0, 0]
    with pytest.raises(DovetailError, match="output_copies: 0; accepted: 1 or more"):
        table_of(workload(copies=0), machines())


def test_a_stage_that_writes_faster_than_a_machine_can_send_is_refused_by_name():
    cluster = machines()
    cluster.capacity[:, OUT] = 10
    with pytest.raises(DovetailError, match=r"job/write fits no machine.*network-out"):
        table_of(workload(), cluster)


@pytest.mark.parametrize("name", ["first-fit", "drf", "tetris"])
def test_a_run_writes_every_copy_of_every_final_output_whatever_the_policy(name):
    # 12 maps write 20 a second for 10 s, once; 12 reduces read 20 and write 10 for 10 s, three times each.
    reduce = replace(stage("reduce", 12, 10.0, parents=(0,), source=SHUFFLE), reading=20.0)
    jobs = workload(stage("map", 12, source=LOCAL), reduce)
    outcome = run(
        jobs, machines(), policy(name, 1), seed=3, settings=SimulationSettings(0.0, sample_seconds=0.01, points=100_000)
    )
    written = outcome.series.used[:, WRITE].sum() * 400 * np.diff(outcome.series.at)[0]
    assert written == pytest.approx(12 * 10 * 20 + 3 * 12 * 10 * 10, rel=0.01)
