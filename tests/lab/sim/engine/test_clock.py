"""Whole runs: hand-computed schedules, what a scheduler is told, what it may not do, and a slow second opinion.

Machines have 4000 millicores, 64 bytes of memory, and 100 in each disk and network dimension unless a test says so.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from extender.cluster.waiting import Blocks, Shuffle
from extender.errors import DovetailError
from extender.planner import Assignments, Plan, Planner, Policy
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import BLOCKS, LOCAL, SHUFFLE, Job, Machines, Stage, Workload

CAPACITY = np.array([4000.0, 64, 100, 100, 100, 100])
CPU, MEMORY, READ, WRITE, IN, OUT = range(6)
EVENTS = SimulationSettings(heartbeat_seconds=0.0)


def machines(count=1, **others):
    return Machines("some", np.tile(CAPACITY, (count, 1)), **others)


def stage(name, durations, *, cpu=1000.0, memory=8.0, write=0.0, reading=0.0, source=LOCAL, parents=()):
    demand = np.array([cpu, memory, 0, write, 0, 0])
    expected = float(np.mean(durations))
    return Stage(name, demand, reading, expected, np.array(durations, dtype=np.float64), parents, source)


def workload(*jobs):
    return Workload("test", jobs)


def plan(*assignments):
    rows = np.array(assignments, dtype=np.intp).reshape(-1, 4)
    return Plan(Assignments(*rows.T))


@dataclass
class Greedy:
    """Starts whatever has memory and CPU, first class on first machine first; blocks from the first copy."""

    dimensions: tuple[int, ...] = (CPU, MEMORY)
    most: int = 10**9
    told: list = field(default_factory=list)
    ran: list = field(default_factory=list)

    def plan(self, snapshot, waiting, now):
        self.told.append((now, snapshot, waiting))
        self.ran.append((waiting.running.node.tolist(), waiting.running.ends_at.tolist()))
        free = (snapshot.layout.capacity - snapshot.allocated)[:, self.dimensions]
        chosen = []
        for row in np.flatnonzero(waiting.count):
            inputs = waiting.inputs[row]
            tasks = np.flatnonzero(inputs.waiting) if isinstance(inputs, Blocks) else np.full(waiting.count[row], -1)
            demand = waiting.demand[row, self.dimensions]
            for task in tasks:
                fits = np.flatnonzero((free >= demand).all(axis=1))
                if not len(fits) or len(chosen) == self.most:
                    break
                free[fits[0]] -= demand
                chosen.append((row, fits[0], task, inputs.copies[task].min() if task >= 0 else -1))
        return plan(*chosen)


@dataclass
class Script:
    """Returns these plans one after the other, then none."""

    plans: list

    def plan(self, snapshot, waiting, now):
        return self.plans.pop(0) if self.plans else plan()


def replay(given, count=1, *, scheduler=None, settings=EVENTS, seed=1, **others):
    return run(given, machines(count, **others), scheduler or Greedy(), seed=seed, settings=settings)


# ---- hand-computed schedules ----


def test_tasks_run_four_at_a_time_where_four_fit():
    outcome = replay(workload(Job("a", 5.0, [stage("only", [3.0] * 6)])))
    assert outcome.tasks.started.tolist() == [5] * 4 + [8] * 2
    assert outcome.tasks.ended.tolist() == [8] * 4 + [11] * 2
    assert outcome.makespan == 6.0
    assert outcome.jobs[0].seconds == 6.0


def test_a_stage_begins_when_all_its_parents_have_ended():
    stages = [stage("left", [2.0, 5.0]), stage("right", [3.0]), stage("join", [1.0], parents=(0, 1))]
    outcome = replay(workload(Job("a", 0.0, stages)))
    assert outcome.tasks.started.tolist() == [0, 0, 0, 5]
    assert outcome.makespan == 6.0


def one_to_one(name, durations, *of, parents=(), **others):
    return replace(stage(name, durations, parents=tuple(sorted({*of, *parents})), **others), one_to_one=of)


def test_a_task_that_waits_one_to_one_starts_when_its_own_task_has_ended():
    stages = [stage("map", [5.0, 1.0]), one_to_one("sort", [1.0, 2.0], 0), stage("join", [1.0], parents=(1,))]
    outcome = replay(workload(Job("a", 0.0, stages)))
    assert outcome.tasks.started.tolist() == [0, 0, 5, 1, 6]
    assert outcome.bounds.makespan == 7.0  # by the pairs: as stages one after the other it would be 8
    assert outcome.makespan == 7.0


def test_a_task_that_waits_for_a_task_and_for_a_stage_starts_after_both():
    stages = [stage("map", [5.0, 1.0]), stage("side", [3.0]), one_to_one("sort", [1.0, 1.0], 0, parents=(1,))]
    assert replay(workload(Job("a", 0.0, stages))).tasks.started.tolist() == [0, 0, 0, 5, 3]


def test_a_task_waits_for_its_tasks_of_two_stages():
    stages = [stage("left", [5.0, 1.0]), stage("right", [2.0, 4.0]), one_to_one("both", [1.0, 1.0], 0, 1)]
    assert replay(workload(Job("a", 0.0, stages))).tasks.started.tolist() == [0, 0, 0, 0, 5, 4]


def test_one_to_one_tasks_run_to_the_end_where_little_runs_at_once():
    maps = stage("map", [2.0] * 9)
    chain = [maps, one_to_one("sort", [1.0] * 9, 0), one_to_one("zip", [3.0] * 9, 1)]
    outcome = replay(workload(Job("a", 0.0, chain), Job("b", 1.0, chain)))
    started, ended = outcome.tasks.started.reshape(2, 3, 9), outcome.tasks.ended.reshape(2, 3, 9)
    assert (started[:, 1:] >= ended[:, :-1]).all()


@pytest.mark.parametrize(
    ("child", "said"),
    [
        (replace(stage("s", [1.0]), one_to_one=(0,)), "accepted: its parents"),
        (one_to_one("s", [1.0, 1.0], 0), "has 2 tasks, and p, for which it waits one to one, 1"),
        (one_to_one("s", [1.0], 0, reading=10.0, source=SHUFFLE), "accepted: where it is no gang"),
        (replace(one_to_one("s", [1.0], 0), gang=True), "accepted: where it is no gang"),
    ],
)
def test_tasks_that_cannot_wait_one_to_one_are_refused(child, said):
    with pytest.raises(DovetailError, match=said):
        replay(workload(Job("a", 0.0, [stage("p", [1.0]), child])))


def test_with_a_heartbeat_ends_are_exact_but_known_later():
    given = workload(Job("a", 0.4, [stage("first", [1.2]), stage("second", [1.0], parents=(0,))]))
    outcome = replay(given, settings=SimulationSettings(heartbeat_seconds=1.0))
    # seen at 1, ends at 2.2, known at 3
    assert outcome.tasks.started.tolist() == [1, 3]
    assert outcome.tasks.ended.tolist() == [2.2, 4.0]
    assert outcome.makespan == pytest.approx(3.6)


def test_a_heartbeat_that_is_shorter_than_any_moment_is_none():
    given = workload(Job("a", 0.4, [stage("first", [1.2])]))
    outcome = replay(given, settings=SimulationSettings(heartbeat_seconds=5e-324))
    assert outcome.tasks.ended.tolist() == replay(given).tasks.ended.tolist()


@pytest.mark.parametrize(
    ("arrives_at", "heartbeat"), [(1760000556.0000012, 0.1), (990000000644.4001, 0.1), (990000000644.4001, 1e-5)]
)
def test_a_heartbeat_is_not_before_what_it_sees_however_far_time_has_gone(arrives_at, heartbeat):
    # Seconds since 1970: 17,600,005,560 heartbeats of 0.1 s are 1.2 microseconds less than the first arrival.
    given = workload(Job("a", arrives_at, (stage("s", [2.0]),)))
    outcome = replay(given, settings=SimulationSettings(heartbeat))
    assert 2.0 <= outcome.makespan <= 2.101


def test_rates_change_at_heartbeats_only():
    writers = Job("a", 0.0, [stage("one", [1.5], write=100.0)]), Job("b", 0.0, [stage("two", [2.5], write=100.0)])
    exact = replay(workload(*writers))
    # both at a half: the first ends at 3, the second has done 1.5 by then and ends at 4
    assert exact.tasks.ended.tolist() == [3.0, 4.0]
    slow = replay(workload(*writers), settings=SimulationSettings(heartbeat_seconds=2.0))
    # the second goes on at a half until 4: it has done 2 by then
    assert slow.tasks.ended.tolist() == [3.0, 4.5]


def test_an_idle_gap_is_skipped():
    scheduler = Greedy()
    jobs = Job("a", 0.0, [stage("only", [1.0])]), Job("b", 1e6, [stage("only", [1.0])])
    outcome = replay(workload(*jobs), scheduler=scheduler, settings=SimulationSettings(heartbeat_seconds=1.0))
    assert [now for now, *_ in scheduler.told] == [0.0, 1e6]
    assert outcome.makespan == 1e6 + 1
    assert outcome.series.at[-1] >= 1e5
    assert outcome.series.running.max() == 1


def test_a_block_is_read_from_its_source_and_a_shuffle_from_where_the_parents_ran():
    stages = [
        stage("map", [10.0, 10.0], reading=60.0, source=BLOCKS),
        stage("reduce", [10.0], reading=80.0, source=SHUFFLE, parents=(0,)),
    ]
    # the two maps read on one machine from the other: 120 of 100 of its network-in, 10 s take 12
    scheduler = Script([plan((0, 0, 0, 1), (0, 0, 1, 1)), plan((0, 1, -1, -1))])
    outcome = replay(workload(Job("a", 0.0, stages)), 2, scheduler=scheduler, copies=2)
    assert outcome.tasks.ended.tolist() == [12.0, 12.0, 22.0]
    assert outcome.locality == 0.0
    assert outcome.tasks.source.tolist() == [1, 1, -1]


def test_in_one_bin_what_is_read_is_part_of_the_demand():
    stages = [
        stage("map", [10.0], reading=60.0, source=BLOCKS),
        stage("reduce", [10.0, 10.0], reading=60.0, source=SHUFFLE, parents=(0,)),
    ]
    scheduler = Greedy()
    outcome = replay(workload(Job("a", 0.0, stages)), scheduler=scheduler, aggregate=True)
    (_, _, first), (_, _, second), *_ = scheduler.told
    assert first.demand.tolist() == [[1000, 8, 60, 0, 0, 0]]
    assert second.demand.tolist() == [[1000, 8, 60, 0, 60, 60]]
    assert first.reading.tolist() == second.reading.tolist() == [0]
    assert [first.inputs[0], second.inputs[0]] == [None, None]
    assert outcome.tasks.ended.tolist() == [10.0, 22.0, 22.0]  # two that take 120 of 100 in three dimensions


# ---- what a scheduler is told ----


def test_classes_come_in_the_order_of_queue_job_and_stage_once_they_are_open():
    stages = [stage("z", [1.0]), stage("a", [1.0]), stage("last", [1.0], parents=(0,))]
    scheduler = Greedy()
    replay(
        workload(
            Job("second", 0.0, stages, queue="b"),
            Job("first", 0.0, stages, queue="b"),
            Job("zz", 0.0, stages, queue="a"),
        ),
        4,
        scheduler=scheduler,
    )
    _, _, waiting = scheduler.told[0]
    assert list(waiting.names) == ["zz/z", "zz/a", "first/z", "first/a", "second/z", "second/a"]
    assert waiting.job.tolist() == [0, 0, 1, 1, 2, 2]
    assert list(waiting.jobs.names) == ["zz", "first", "second"]
    assert (list(waiting.jobs.queue_names), waiting.jobs.queue.tolist()) == (["a", "b"], [0, 1, 1])


def test_a_scheduler_is_told_what_waits_runs_is_done_and_is_left_to_do():
    stages = [stage("only", [4.0, 2.0, 2.0, 2.0]), stage("after", [1.0], parents=(0,))]
    scheduler = Greedy(most=2)
    replay(workload(Job("a", 0.0, stages)), scheduler=scheduler)
    (_, _, before), (now, snapshot, after), *_ = scheduler.told
    # the work of a task: 2.5 s expected x (1000 / 4000 + 8 / 64) = 0.9375, of the last 1 s x 0.375
    assert before.jobs.work.tolist() == [4 * 0.9375 + 0.375]
    assert now == 2.0
    assert (after.count.tolist(), after.since.tolist(), after.finished.tolist()) == ([2], [0.0], [0.25])
    assert after.jobs.work.tolist() == [3 * 0.9375 + 0.375]
    assert after.jobs.allocated.tolist() == [[1000, 8, 0, 0, 0, 0]]
    assert snapshot.allocated.tolist() == [[1000, 8, 0, 0, 0, 0]]
    assert scheduler.ran[:2] == [([], []), ([0], [2.5])]
    assert snapshot.layout.names == ("m0000",)


def test_since_is_when_a_class_last_had_a_task_started():
    scheduler = Greedy(most=1)
    replay(workload(Job("a", 0.0, [stage("only", [2.0, 3.0, 4.0], cpu=2000.0)])), scheduler=scheduler)
    assert [(now, waiting.since.tolist()) for now, _, waiting in scheduler.told] == [(0, [0]), (2, [0]), (5, [2])]


def test_what_a_job_holds_counts_at_its_sources_as_well():
    given = workload(
        Job("a", 0.0, [stage("map", [9.0], reading=50.0, source=BLOCKS)]), Job("b", 1.0, [stage("only", [1.0])])
    )
    scheduler = Greedy()
    replay(given, 2, scheduler=Remote(scheduler), copies=1)
    _, snapshot, waiting = scheduler.told[-1]
    assert waiting.jobs.allocated[0].tolist() == [1000, 8, 50, 0, 50, 50]
    assert snapshot.allocated.sum(axis=0).tolist() == [1000, 8, 50, 0, 50, 50]


@dataclass
class Remote:
    """Starts the one task that waits on a machine that does not hold its block."""

    notes: Greedy

    def plan(self, snapshot, waiting, now):
        self.notes.told.append((now, snapshot, waiting))
        row = int(np.flatnonzero(waiting.count)[0])
        if not isinstance(waiting.inputs[row], Blocks):
            return plan((row, 0, -1, -1))
        source = int(waiting.inputs[row].copies[0, 0])
        return plan((row, 1 - source, 0, source))


def test_blocks_and_shuffles_are_told_as_they_are():
    stages = [
        stage("map", [1.0] * 5, reading=10.0, source=BLOCKS),
        stage("reduce", [1.0], reading=20.0, source=SHUFFLE, parents=(0,)),
    ]
    scheduler = Greedy()
    replay(workload(Job("a", 0.0, stages)), 2, scheduler=scheduler, copies=2)
    blocks, spread = (waiting.inputs[0] for _, _, waiting in scheduler.told)
    assert isinstance(blocks, Blocks)
    assert isinstance(spread, Shuffle)
    assert np.sort(blocks.copies, axis=1).tolist() == [[0, 1]] * 5
    # four of the maps ran on the first machine, one on the second
    assert (spread.nodes.tolist(), spread.rates.tolist()) == ([0, 1], [16, 4])


def test_a_scheduler_is_told_whose_output_is_shuffled_where_disks_have_a_limit():
    stages = [stage("map", [1.0]), stage("flat", [1.0]), stage("reduce", [1.0], source=SHUFFLE, parents=(0,))]
    scheduler = Greedy()
    given = workload(Job("a", 0.0, [replace(one, reading=20.0) for one in stages]))
    replay(given, 2, scheduler=scheduler)
    assert [told.shuffled.tolist() for _, _, told in scheduler.told] == [[True, False], [False]]
    unlimited = Machines("some", np.where(np.arange(6) < READ, CAPACITY, np.inf)[np.newaxis])
    scheduler = Greedy()
    run(given, unlimited, scheduler, seed=1, settings=EVENTS)
    assert [told.shuffled for _, _, told in scheduler.told] == [None, None]


def test_nothing_that_a_scheduler_is_told_can_be_written_to_but_copies():
    scheduler = Greedy()
    stages = [stage("map", [1.0] * 5, reading=10.0, source=BLOCKS)]
    replay(workload(Job("a", 0.0, stages)), 2, scheduler=scheduler)
    _, snapshot, waiting = scheduler.told[0]
    blocks = waiting.inputs[0]
    for array in (
        snapshot.allocated,
        snapshot.layout.capacity,
        waiting.demand,
        waiting.job,
        blocks.copies,
        blocks.waiting,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_scheduler_is_not_asked_when_nothing_waits_or_has_changed():
    scheduler = Greedy()
    replay(workload(Job("a", 0.0, [stage("only", [9.0], cpu=4000.0), stage("too", [1.0])])), scheduler=scheduler)
    assert [now for now, *_ in scheduler.told] == [0.0, 9.0]


# ---- what a scheduler may not do ----


@pytest.mark.parametrize(
    ("plans", "complaint"),
    [
        ([plan((7, 0, -1, -1))], "names class 7; there are 2"),
        ([plan((0, 3, -1, -1))], "names node 3; there are 2"),
        ([plan((0, -1, -1, -1))], "names node -1"),
        ([plan(*[(0, 0, -1, -1)] * 3)], "a/big: the scheduler starts 3 tasks of 2 that wait"),
        ([plan(*[(0, 0, -1, -1)] * 2)], "a/big: the scheduler starts it on m0000, whose memory is promised to others"),
        ([plan((1, 0, 0, 0), (1, 1, 0, 0))], "a/reads, task 0: the scheduler starts it twice"),
        ([plan((1, 0, 0, 0)), plan((1, 0, 0, 0))], "a/reads, task 0: that task does not wait"),
        ([plan((1, 0, 2, 0))], "a/reads, task 2: there is no such task"),
        ([plan((1, 0, -1, 0))], "a/reads, task -1: there is no such task"),
        ([plan((1, 0, 0, 7))], "a/reads, task 0: the source that the scheduler names has no copy"),
        ([], "a/big waits, nothing runs or is to arrive, .* a task of it demands cpu 1 core, memory 40 B"),
    ],
)
def test_what_cannot_be_is_refused_by_name(plans, complaint):
    stages = [stage("big", [1.0, 1.0], memory=40.0), stage("reads", [1.0, 2.0], reading=5.0, source=BLOCKS)]
    with pytest.raises(DovetailError, match=complaint):
        replay(workload(Job("a", 0.0, stages)), 2, scheduler=Script(plans), copies=2)


SLOW, FAST = np.array([4000.0, 64, 50, 100, 100, 100]), CAPACITY


def planned(job, *capacities):
    return run(workload(job), Machines("two", np.array(capacities)), Planner(Policy()), seed=1, settings=EVENTS)


def test_that_its_input_cannot_come_is_said_of_a_task_that_waits_for_ever():
    # The block is on a machine that sends nothing, and the task goes to the other.
    silent = np.array([0.0, 64, 50, 100, 100, 0])
    reads = replace(stage("s", [1.0], reading=80.0, source=BLOCKS), copies=np.array([[0]]))
    with pytest.raises(DovetailError, match=r"reads 80 B/s; a planner starts it only where its input can come that f"):
        planned(Job("a", 0.0, [reads]), silent, FAST)


def test_a_task_that_reads_faster_than_the_disk_of_its_block_reads_as_fast_as_that_and_takes_longer():
    reads = replace(stage("s", [1.0, 1.0], reading=80.0, source=BLOCKS), copies=np.array([[0], [0]]))
    outcome = planned(Job("a", 0.0, [reads]), SLOW, FAST)
    assert outcome.tasks.started.tolist() == [0.0, 1.6]  # of the disk there is nothing left beside the first
    assert outcome.tasks.seconds.tolist() == [1.0, 1.0]
    assert outcome.tasks.ended.tolist() == pytest.approx([80 / 50, 2 * 80 / 50])


def test_a_task_that_reads_faster_than_its_block_is_sent_reads_as_fast_as_that():
    # The block is on a machine without CPU that sends 50 bytes a second.
    storage = np.array([0.0, 64, 100, 100, 100, 50])
    reads = replace(stage("s", [1.0], reading=80.0, source=BLOCKS), copies=np.array([[0]]))
    assert planned(Job("a", 0.0, [reads]), storage, FAST).makespan == pytest.approx(80 / 50)


def test_a_shuffle_that_reads_faster_than_the_disk_of_its_source_reads_as_fast_as_that():
    # The parent may run on the slow machine alone: the other has no memory for it.
    job = Job(
        "a", 0.0, [stage("map", [1.0], memory=64.0), stage("red", [1.0], reading=80.0, source=SHUFFLE, parents=(0,))]
    )
    outcome = planned(job, SLOW, np.array([4000.0, 32, 100, 100, 100, 100]))
    assert outcome.tasks.ended.tolist() == pytest.approx([1.0, 1.0 + 80 / 50])


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (stage("s", [1.0], memory=65.0), "j/s fits no machine: it demands cpu 1000, memory 65, too much memory"),
        (stage("s", [1.0], reading=101.0), "too much disk-read"),
        (stage("s", [1.0], reading=10.0, source="moon"), "reads from 'moon'; accepted: local, blocks, shuffle"),
        (stage("s", [1.0], reading=10.0, source=SHUFFLE), "has no parents to read from"),
        (stage("s", [1.0], parents=(0,)), "has parents"),
        (stage("s", [0.0]), "more than 0 seconds"),
    ],
)
def test_what_could_never_run_is_refused_before_anything_runs(wrong, complaint):
    scheduler = Greedy()
    with pytest.raises(DovetailError, match=complaint):
        replay(workload(Job("a", 0.0, [stage("s", [1.0])]), Job("j", 9.0, [wrong])), scheduler=scheduler)
    assert scheduler.told == []


def test_no_two_jobs_have_one_name():
    with pytest.raises(DovetailError, match="two are named 'a'"):
        replay(workload(Job("a", 0.0, [stage("s", [1.0])]), Job("a", 1.0, [stage("s", [1.0])])))


def test_names_that_are_joined_alike_are_not_taken_for_one():
    jobs = [Job("a", 0.0, [stage("b/c", [1.0])]), Job("a/b", 0.0, [stage("c", [1.0]), stage("d", [1.0])])]
    given = workload(*jobs, Job("a/b/c", 0.0, [stage("e", [1.0])]))
    assert table_of(given, machines(1)).names == ["'a'/'b/c'", "'a/b'/'c'", "a/b/d", "a/b/c/e"]
    assert [job.name for job in replay(given).jobs] == ["a", "a/b", "a/b/c"]


def test_a_task_that_makes_no_progress_is_an_error_not_an_endless_run():
    mixed = Machines("mixed", np.array([CAPACITY, [4000.0, 64, 0, 0, 0, 0]]), copies=1)
    given = workload(Job("a", 0.0, [stage("writes", [1.0], write=5.0)]))
    with pytest.raises(DovetailError, match="makes progress"):
        run(given, mixed, Script([plan((0, 1, -1, -1))]), seed=1, settings=EVENTS)


@pytest.mark.parametrize("seconds", [-1, np.inf, np.nan])
def test_settings_are_checked(seconds):
    with pytest.raises(DovetailError, match=f"heartbeat: {seconds} seconds; accepted: a number, 0 or more"):
        SimulationSettings(heartbeat_seconds=seconds)
    with pytest.raises(DovetailError, match=f"loss: {seconds}; accepted: a number, 0 or more"):
        SimulationSettings(loss=seconds)


# ---- what holds in every run ----


def random_workload(seed, jobs=12):
    random = np.random.default_rng(seed)
    made = []
    for number in range(jobs):
        stages = []
        for place in range(int(random.integers(1, 5))):
            parents = tuple(np.flatnonzero(random.random(place) < 0.5).tolist())
            source = str(random.choice([BLOCKS, LOCAL, SHUFFLE] if parents else [BLOCKS, LOCAL]))
            made_of = {
                "cpu": float(random.integers(0, 2500)),
                "memory": float(random.integers(1, 24)),
                "write": float(random.choice([0, 5, 60])),
                "reading": float(random.choice([0, 7, 90])),
            }
            durations = random.uniform(1, 20, int(random.integers(1, 8)))
            stages.append(stage(f"s{place}", durations, source=source, parents=parents, **made_of))
        made.append(Job(f"j{number:02}", float(random.uniform(0, 60)), stages, queue=f"q{number % 3}"))
    return workload(*sorted(made, key=lambda job: job.arrives_at))


@pytest.mark.parametrize("heartbeat", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(6))
def test_every_task_starts_and_ends_once_after_its_parents_and_gives_back_what_it_was_promised(seed, heartbeat):
    given, scheduler = random_workload(seed), Greedy((MEMORY,))
    outcome = replay(given, 4, scheduler=scheduler, settings=SimulationSettings(heartbeat_seconds=heartbeat), seed=seed)
    tasks = outcome.tasks
    assert len(tasks.stage) == given.tasks
    assert np.isfinite(tasks.started).all()
    assert (tasks.ended >= tasks.started + tasks.seconds - 1e-5).all()
    before = 0
    for job, fared in zip(given.jobs, outcome.jobs, strict=True):
        for part in job.stages:
            own = tasks.started[tasks.stage == before]
            assert len(own) == part.tasks
            assert own.min() >= job.arrives_at
            for parent in part.parents:
                first_of_job = before - job.stages.index(part)
                assert own.min() >= tasks.ended[tasks.stage == first_of_job + parent].max()
            before += 1
        mine = np.isin(tasks.stage, np.arange(before - len(job.stages), before))
        assert (fared.name, fared.tasks, fared.ended) == (job.name, mine.sum(), tasks.ended[mine].max())
    for _, snapshot, waiting in scheduler.told:
        assert snapshot.allocated[:, MEMORY].max() <= 64
        assert waiting.jobs.allocated.sum(axis=0) == pytest.approx(snapshot.allocated.sum(axis=0))
    assert outcome.series.used.max() <= 1 + 1e-9
    assert outcome.speed.events == 2 * given.tasks == 2 * outcome.speed.decisions


def test_the_same_seed_gives_the_same_bytes_and_another_places_other_blocks():
    given = random_workload(3)
    first, again, other = (replay(given, 4, seed=seed) for seed in (1, 1, 2))
    assert first.tasks.ended.tobytes() == again.tasks.ended.tobytes()
    assert first.to_dict() | {"speed": None} == again.to_dict() | {"speed": None}
    assert first.tasks.source.tolist() != other.tasks.source.tolist()


def test_the_order_in_which_jobs_are_listed_changes_nothing_where_blocks_are_everywhere():
    given = random_workload(5)
    other = workload(*given.jobs[::-1])
    first, second = (replay(jobs, 3, copies=3) for jobs in (given, other))
    assert {job.name: job.ended for job in first.jobs} == {job.name: job.ended for job in second.jobs}


def test_progress_is_told_from_nothing_to_all():
    told = []
    given = random_workload(1)
    run(given, machines(4), Greedy(), seed=1, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert told[-1] == (given.tasks, given.tasks)


def test_an_empty_workload_comes_to_nothing():
    outcome = replay(workload())
    assert (outcome.makespan, list(outcome.jobs), outcome.speed.events) == (0.0, [], 0)


# ---- a second opinion ----


def slowly(given, outcome, told, capacity, loss):
    """Return when the tasks of an outcome end, given where and when they started: one by one, straight from eq. 5."""
    stages = [part for job in given.jobs for part in job.stages]
    spreads = {name: waiting.inputs[row] for _, _, waiting in told for row, name in enumerate(waiting.names)}
    names = [f"{job.name}/{part.name}" for job in given.jobs for part in job.stages]
    tasks = []
    for index, number in enumerate(outcome.tasks.stage.tolist()):
        part, node, source = stages[number], int(outcome.tasks.node[index]), int(outcome.tasks.source[index])
        uses = [[(node, CPU, part.demand[CPU])], [(node, WRITE, part.demand[WRITE])], []]
        if part.reading and part.source == SHUFFLE:
            spread = spreads[names[number]]
            for other, rate in zip(spread.nodes.tolist(), spread.rates.tolist(), strict=True):
                uses[2] += [(other, READ, rate)] + [(other, OUT, rate), (node, IN, rate)] * (other != node)
        elif part.reading:
            uses[2] += [(source, READ, part.reading)]
            uses[2] += [(source, OUT, part.reading), (node, IN, part.reading)] * (source != node)
        uses = [[use for use in term if use[2] > 0] for term in uses]
        left = [outcome.tasks.seconds[index]] * len(uses)
        tasks.append({"start": outcome.tasks.started[index], "uses": uses, "left": left, "end": None})
    now = 0.0
    while any(task["end"] is None for task in tasks):
        going = [task for task in tasks if task["start"] <= now + 1e-9 and task["end"] is None]
        wanted = np.zeros_like(capacity)
        for task in going:
            for term, left in zip(task["uses"], task["left"], strict=True):
                for node, column, amount in term if left > 0 else ():
                    wanted[node, column] += amount
        rates = []
        for task in going:
            for place, term in enumerate(task["uses"]):
                rate = 1.0
                for node, column, _ in term:
                    over = wanted[node, column] / capacity[node, column]
                    seeks = max(0.016 / 0.0287, 1 / (1 + loss * 0.127 * over))
                    incast = max(0.5, 1 / (1 + loss * 0.5 * max(over - 1.2, 0)))
                    goodput = {READ: seeks, WRITE: seeks, IN: incast}.get(column, 1.0)
                    rate = min(rate, goodput / over if over > 0 else 1.0)
                rates.append((task, place, rate))
        arrivals = [task["start"] for task in tasks if task["start"] > now + 1e-9]
        next_ends = [now + task["left"][place] / rate for task, place, rate in rates if task["left"][place] > 0]
        then = min(arrivals + next_ends)
        for task, place, rate in rates:
            task["left"][place] -= rate * (then - now)
            if task["left"][place] < 1e-9:
                task["left"][place] = 0.0
        now = then
        for task in going:
            if not any(task["left"]):
                task["end"] = now
    return np.array([task["end"] for task in tasks])


@pytest.mark.parametrize("loss", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(8))
def test_a_slow_task_by_task_account_comes_to_the_same_ends(seed, loss):
    given, scheduler = random_workload(seed), Greedy((MEMORY,))
    outcome = replay(
        given, 3, scheduler=scheduler, settings=SimulationSettings(heartbeat_seconds=0.0, loss=loss), copies=2
    )
    assert outcome.task_seconds > 1.2 * outcome.ideal_task_seconds  # there was contention
    expected = slowly(given, outcome, scheduler.told, np.tile(CAPACITY, (3, 1)), loss)
    assert outcome.tasks.ended == pytest.approx(expected, abs=1e-4)
