from dataclasses import dataclass, field, replace

import numpy as np

from extender.planner import Assignments, Plan, Planner, Policy
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.inputs import place_blocks
from lab.sim.schedulers.heartbeats import Heartbeats
from lab.sim.schedulers.random_source import RandomSource
from lab.sim.schedulers.single_queue import SingleQueue
from lab.sim.workloads.workload import BLOCKS, Job, Machines, Stage, Workload
from tests.lab.sim.small import MB, Class, blocks, cluster, machine, row, started, waiting, where


@dataclass
class Sees:
    """Notes which machines have a CPU free, and plans as a planner does."""

    inner: Planner = field(default_factory=lambda: Planner(Policy()))
    seen: list = field(default_factory=list)

    def plan(self, snapshot, waits, now):
        free = (snapshot.layout.capacity - snapshot.allocated)[:, 0] > 0
        self.seen.append((now, np.flatnonzero(free).tolist()))
        return self.inner.plan(snapshot, waits, now)


def test_every_machine_is_seen_once_in_a_period_and_one_at_a_time():
    sees = Sees()
    beats = Heartbeats(sees, seconds=4.0, seed=1)
    snapshot, waits = cluster(*[machine(1, 1)] * 4), waiting(Class(9, row(cpu=1)))
    now, asked = 0.0, []
    for _ in range(4):
        plan = beats.plan(snapshot, waits, now)
        asked.append(now)
        now = plan.again_at
    assert asked == [0.0, 1.0, 2.0, 3.0]
    assert sorted(node for _, nodes in sees.seen for node in nodes) == [0, 1, 2, 3]


def test_between_reports_nothing_is_planned_but_the_next_report_of_room_is_asked_for():
    sees = Sees()
    beats = Heartbeats(sees, seconds=4.0, seed=1)
    full = cluster(*[machine(1, 1)] * 4, allocated=[machine(1, 1)] * 3 + [row()])
    plan = beats.plan(full, waiting(Class(1, row(cpu=1))), 0.5)
    assert sees.seen == []
    assert plan.again_at in (1.0, 2.0, 3.0, 4.0)
    assert started(beats.plan(full, waiting(Class(1, row(cpu=1))), plan.again_at), 1) == [1]
    assert sees.seen == [(plan.again_at, [3])]


def test_who_is_passed_over_waits_until_the_next_report_of_any_machine_and_not_until_the_same_reports_again():
    # Four machines, a report each second; only one has room, and it is far from the block. It takes the task after two
    # seconds of waiting, of which each of its reports, four seconds apart, counts one: at its third.
    planner = Planner(Policy(locality_waits=(2.0,)))
    beats = Heartbeats(planner, seconds=4.0, seed=1)
    snapshot = cluster(*[machine(1, 1)] * 4, allocated=[row()] + [machine(1, 1)] * 3)
    waits = waiting(Class(1, row(cpu=1), inputs=blocks(4, [3])))
    first = beats.plan(snapshot, waits, 0.5).again_at
    now, starts = first, []
    while not starts:
        plan = beats.plan(snapshot, waits, now)
        starts = where(plan, 0)
        assert starts or plan.again_at > now
        begun, now = now, plan.again_at
    assert starts == [0]
    assert begun == first + 8.0


def test_a_report_that_ends_a_wait_is_asked_for_though_something_happens_before_it():
    planner = Planner(Policy(locality_waits=(9.0,)))
    beats = Heartbeats(planner, seconds=4.0, seed=1)
    snapshot = cluster(*[machine(1, 1)] * 4, allocated=[row()] + [machine(1, 1)] * 3)
    waits = waiting(Class(1, row(cpu=1), inputs=blocks(4, [3])))
    reports = beats.plan(snapshot, waits, 0.5).again_at
    assert beats.plan(snapshot, waits, reports).again_at == reports + 1.0
    assert beats.plan(snapshot, waits, reports + 0.5).again_at == reports + 1.0
    assert beats.plan(snapshot, waits, reports + 1.0).again_at == reports + 4.0
    assert planner.carried.locality["job0"].seconds == 1.0


def test_in_one_line_the_first_job_goes_first_and_a_later_one_takes_what_it_cannot_use():
    ordered = SingleQueue(Planner(Policy()))
    waits = waiting(Class(1, row(cpu=2), job=0), Class(2, row(cpu=1), job=1))
    assert started(ordered.plan(cluster(machine(2, 1)), waits, 0.0), 2) == [1, 0]
    assert started(ordered.plan(cluster(machine(1, 1)), waits, 1.0), 2) == [0, 1]


def test_who_reads_from_elsewhere_reads_from_a_copy_in_its_rack():
    waits = waiting(Class(1, row(cpu=1), reading=5.0, inputs=blocks(4, [0, 3])))
    near = replace(waits, topology=np.array([[0, 1, 1, 1]]))
    full = [machine(1, 1)[:2].tolist() + [0] * 4] * 4
    full[2] = [0.0] * 6
    snapshot = cluster(*[machine(1, 1)] * 4, allocated=full)
    plan = RandomSource(Planner(Policy()), seed=3).plan(snapshot, near, 0.0)
    assert where(plan, 0) == [2]
    assert plan.assignments.source.tolist() == [3]


def room_on(count, *nodes):
    """Return a cluster of so many machines, of which these have a CPU free."""
    full = [machine(1, 1)[:2].tolist() + [0] * 4] * count
    for node in nodes:
        full[node] = [0.0] * 6
    return cluster(*[machine(1, 1)] * count, allocated=full)


def test_who_reads_from_elsewhere_reads_the_first_block_that_waits():
    # nothing is near m3; m0 is the first machine with a block, but of the last one
    waits = waiting(Class(2, row(cpu=1), inputs=blocks(4, [1, 2], [0, 1])))
    plan = RandomSource(Planner(Policy()), seed=3).plan(room_on(4, 3), waits, 0.0)
    assert plan.assignments.task.tolist() == [0]
    assert plan.assignments.source[0] in (1, 2)


def test_who_reads_from_elsewhere_leaves_what_starts_beside_its_block():
    # m3 has the first block itself: what starts on m2 reads the second
    waits = waiting(Class(3, row(cpu=1), inputs=blocks(4, [3, 1], [1, -1], [0, -1])))
    chosen = RandomSource(Planner(Policy()), seed=3).plan(room_on(4, 2, 3), waits, 0.0).assignments
    found = {node: (task, source) for node, task, source in zip(chosen.node, chosen.task, chosen.source, strict=True)}
    assert found == {3: (0, 3), 2: (1, 1)}


def test_who_starts_on_the_rack_of_a_block_reads_one_of_that_rack():
    # the first block is on no machine of m3's rack; who may not go beyond the rack reads the second from m2
    waits = waiting(Class(2, row(cpu=1), inputs=blocks(4, [0, 1], [1, 2])))
    waits = replace(waits, topology=np.array([[0, 0, 1, 1]]))
    chosen = (
        RandomSource(Planner(Policy(locality_waits=(0.0, 9.0))), seed=3).plan(room_on(4, 3), waits, 0.0).assignments
    )
    assert (chosen.task.tolist(), chosen.source.tolist()) == ([1], [2])


@dataclass
class Fixed:
    """Plans one thing."""

    assignments: Assignments

    def plan(self, snapshot, waits, now):
        return Plan(self.assignments)


def test_no_block_is_read_twice_where_two_racks_want_the_same_one():
    # m2 was to read the second block, and reads the first; m3 was to, which has no other on its rack
    waits = waiting(Class(2, row(cpu=1), inputs=blocks(4, [0, 1], [0, -1])))
    waits = replace(waits, topology=np.array([[0, 1, 0, 1]]))
    planned = Assignments(*(np.array(column) for column in ([0, 0], [2, 3], [1, 0], [0, 1])))
    chosen = RandomSource(Fixed(planned), seed=3).plan(room_on(4, 2, 3), waits, 0.0).assignments
    assert chosen.task.tolist() == [0, 1]
    assert chosen.source.tolist() == [0, 0]


def scan(name, copies, seconds=10.0, arrives=0.0):
    count = len(copies)
    stage = Stage(
        name="map",
        demand=row(cpu=1),
        reading=1 * MB,
        duration=seconds,
        durations=np.full(count, seconds),
        source=BLOCKS,
        copies=np.array(copies),
    )
    return Job(name, arrives, (stage,))


def test_the_engine_plans_again_when_a_wait_ends_though_nothing_happens():
    # job0 has m0 until 100; job1's block is on m0: it takes m1 at its arrival at 5 s + 7 s of waiting
    jobs = [scan("job0", [[0, -1]], 100.0), scan("job1", [[0, -1]], 10.0, arrives=5.0)]
    machines = Machines("two", np.array([machine(1, 1)] * 2))
    outcome = run(
        Workload("two", jobs),
        machines,
        Planner(Policy(locality_waits=(7.0,))),
        seed=1,
        settings=SimulationSettings(heartbeat_seconds=0.0),
    )
    assert outcome.tasks.started.tolist() == [0.0, 12.0]
    assert outcome.tasks.node.tolist() == [0, 1]
    assert outcome.locality == 0.5


def test_no_more_jobs_than_wanted_are_there_at_once():
    jobs = [scan(f"job{number}", [[0, 1]]) for number in range(4)]
    machines = Machines("two", np.array([machine(2, 1)] * 2))
    outcome = run(
        Workload("two", jobs, at_once=2),
        machines,
        Planner(Policy()),
        seed=1,
        settings=SimulationSettings(heartbeat_seconds=0.0),
    )
    assert outcome.tasks.started.tolist() == [0.0, 0.0, 10.0, 10.0]


def test_blocks_are_put_as_hdfs_does_one_here_and_two_on_one_other_rack():
    racks = np.array([0, 0, 0, 1, 1, 1])
    machines = Machines("six", np.array([machine(1, 1)] * 6), racks=racks)
    copies = place_blocks(np.random.default_rng(1), 50, machines)
    rack = racks[copies]
    assert (rack[:, 0] != rack[:, 1]).all()
    assert (rack[:, 1] == rack[:, 2]).all()
    assert (copies[:, 1] != copies[:, 2]).all()
