"""Tasks that use other than they were promised, with the arithmetic shown.

A machine has 1000 millicores, 64 bytes of memory, and 100 in each disk and network dimension. Tasks take 10 s.
"""

from dataclasses import replace

import numpy as np
import pytest

from lab.sim.engine.running import RunningTasks, Starts
from lab.sim.engine.use.profiles import Profiles
from lab.sim.engine.use.tasks import UsedTasks

CAPACITY = np.array([1000.0, 64, 100, 100, 100, 100])
CPU, MEMORY, READ, WRITE, IN, OUT = range(6)
TASKS = 8


def profiles(*stages):
    """Return profiles of stages, each as (until, {dimension: parts})."""
    most = max(len(until) for until, _ in stages)
    until, parts = np.ones((len(stages), most)), np.ones((len(stages), most, 6))
    for row, (ends, use) in enumerate(stages):
        until[row, : len(ends)] = ends
        for column, levels in use.items():
            parts[row, : len(levels), column] = levels
            parts[row, len(levels) :, column] = levels[-1]
    return Profiles(until, parts, np.ones(TASKS))


PLAIN = profiles(((1.0,), {}))


def machines(count=1, of=PLAIN, **others):
    return UsedTasks(np.tile(CAPACITY, (count, 1)), of, loss=0.0, **others)


def task(number=0, *, stage=0, node=0, cpu=0.0, memory=1.0, reading=0.0, source=None):
    local = source is None or source == node
    node_demand = np.array([[cpu, memory, reading if local else 0, 0, 0 if local else reading, 0]]).T
    return Starts(
        stage=np.array([stage]),
        task=np.array([number]),
        node=np.array([node]),
        source=np.array([node if local else source]),
        rates_row=np.array([-1]),
        node_demand=node_demand,
        elsewhere=np.array([0.0 if local else reading]),
        copies=np.empty((0, 1), dtype=np.intp),
        seconds=np.array([10.0]),
        expected=np.array([10.0]),
    )


def ends(tasks):
    """Return when each task ends, by number, going from event to event."""
    ended = {}
    while tasks.count:
        now = tasks.next_at
        assert now < np.inf
        over = tasks.end_due(now)
        if over is not None:
            ended |= dict(zip(over.task.tolist(), over.at.tolist(), strict=True))
        tasks.share(now)
    return ended


def test_what_is_not_used_slows_nobody_down():
    # Two tasks were promised all of the CPU and use half of it.
    tasks = machines(of=profiles(((1.0,), {CPU: [0.5]})))
    for number in range(2):
        tasks.start(task(number, cpu=1000), 0.0)
    tasks.share(0.0)
    assert tasks.use_on[0, CPU] == 1000
    assert tasks.allocated[0, CPU] == 2000
    assert ends(tasks) == pytest.approx({0: 10, 1: 10})


def test_phases_slow_tasks_down_only_where_they_want_more_than_there_is():
    # 5 s at a fifth of the CPU each; then both want all of it, and the other 5 s of work take 10.
    tasks = machines(of=profiles(((0.5, 1.0), {CPU: [0.2, 1.0]})))
    for number in range(2):
        tasks.start(task(number, cpu=1000), 0.0)
    tasks.share(0.0)
    assert tasks.next_at == 5
    assert ends(tasks) == pytest.approx({0: 15, 1: 15})


def test_a_task_may_use_more_than_it_was_promised():
    tasks = machines(of=profiles(((1.0,), {CPU: [1.5], MEMORY: [1.09]})))
    tasks.start(task(cpu=1000, memory=50), 0.0)
    tasks.share(0.0)
    assert tasks.use_on[0, :2].tolist() == pytest.approx([1000, 54.5])
    assert ends(tasks) == pytest.approx({0: 15})


def test_an_opportunistic_task_gets_what_regular_ones_leave_and_is_allocated_nothing():
    # 400 of its 1000 for 10 s: 4 s of work; then all: it ends after 6 s more.
    tasks = machines()
    tasks.start(task(0, cpu=600), 0.0)
    tasks.start(task(1, cpu=1000), 0.0, opportunistic=True)
    tasks.share(0.0)
    assert tasks.allocated[0, CPU] == 600
    assert tasks.use_on[0, CPU] == 1000
    assert ends(tasks) == pytest.approx({0: 10, 1: 16})


def test_a_promoted_task_is_allocated_what_it_demands_and_shares_as_others_do():
    tasks = machines()
    tasks.start(task(0, cpu=1000), 0.0)
    tasks.start(task(1, cpu=1000), 0.0, opportunistic=True)
    tasks.share(0.0)
    assert tasks.running.rate[0].tolist() == [1, 0]
    tasks.promote(np.array([1]))
    tasks.share(0.0)
    assert tasks.allocated[0, CPU] == 2000
    assert tasks.running.rate[0].tolist() == [0.5, 0.5]


def test_memory_past_capacity_names_the_opportunistic_and_a_promoted_task_keeps_its_rank():
    tasks = machines()
    tasks.start(task(0, memory=60), 0.0)
    tasks.start(task(1, memory=10), 0.0, opportunistic=True)
    tasks.promote(np.array([1]))
    tasks.share(0.0)
    assert tasks.over_memory().tolist() == [1]
    gone = tasks.take_away(np.array([1]), 0.0)
    tasks.share(0.0)
    assert gone.task.tolist() == [1]
    assert tasks.allocated[0, MEMORY] == 60
    assert tasks.over_memory().tolist() == []


def test_what_is_read_from_elsewhere_follows_the_disk_of_its_source():
    # It reads at half its rate: 20 of the 40 that were promised at both ends.
    tasks = machines(2, of=profiles(((1.0,), {READ: [0.5], IN: [0.5]})))
    tasks.start(task(node=1, reading=40, source=0), 0.0)
    tasks.share(0.0)
    assert tasks.allocated[0, [READ, OUT]].tolist() == [40, 40]
    assert tasks.use_on[0, [READ, OUT]].tolist() == [20, 20]
    assert tasks.use_on[1, IN] == 20


def test_without_profiles_and_opportunistic_tasks_all_ends_are_those_of_the_plain_engine():
    random = np.random.default_rng(4)
    plain, used = (
        RunningTasks(np.tile(CAPACITY, (3, 1)), loss=0.5),
        UsedTasks(np.tile(CAPACITY, (3, 1)), PLAIN, loss=0.5),
    )
    for number in range(TASKS):
        node, source = random.integers(3, size=2).tolist()
        start = task(number, node=node, cpu=random.integers(900), reading=random.integers(90), source=source)
        for tasks in (plain, used):
            tasks.start(start, 0.0)
    for tasks in (plain, used):
        tasks.share(0.0)
    assert used.use() == pytest.approx(plain.use())
    assert ends(used) == pytest.approx(ends(plain))


def test_regular_tasks_wait_for_cpu_where_they_get_less_than_they_want_and_only_they_count():
    # Two regular tasks want 1600 of 1000 and get 0.625. On the other node only the opportunistic one waits.
    tasks = machines(2)
    for number, node in ((0, 0), (1, 0), (2, 1)):
        tasks.start(task(number, node=node, cpu=800), 0.0)
    tasks.start(task(3, node=1, cpu=800), 0.0, opportunistic=True)
    tasks.share(0.0)
    assert tasks.waits.tolist() == pytest.approx([0.375, 0.0])


def test_by_weight_an_opportunistic_task_takes_its_part_of_a_cpu_that_is_short():
    # A regular task of a core weighs 1, the other a quarter: 200 of 1000. It wants 500, so the regular one waits for a
    # fifth of the time.
    tasks = machines(cpu_weight=0.25)
    tasks.start(task(0, cpu=1000), 0.0)
    tasks.start(task(1, cpu=500), 0.0, opportunistic=True)
    tasks.share(0.0)
    assert tasks.waits.tolist() == pytest.approx([0.2])
    assert tasks.use_on[0, CPU] == pytest.approx(1000)
    assert tasks.running.rate[0].tolist() == pytest.approx([0.8, 0.4])


def test_who_wants_no_cpu_now_weighs_nothing():
    tasks = machines(of=profiles(((1.0,), {}), ((1.0,), {CPU: [0.0]})), cpu_weight=0.25)
    tasks.start(task(0, cpu=1000), 0.0)
    tasks.start(task(1, stage=1, cpu=500), 0.0, opportunistic=True)
    tasks.share(0.0)
    assert tasks.waits.tolist() == [0.0]


def test_a_tracker_counts_what_is_used_and_what_a_young_task_is_still_allowed():
    # Promised 1000 of the CPU, it uses 400, and is allowed (1000 - 400) x (1 - 6 / 30) more at 6 s.
    tasks = machines(of=profiles(((1.0,), {CPU: [0.4], MEMORY: [0.5]})), measure=True)
    tasks.start(task(cpu=1000, memory=10), 0.0)
    tasks.share(0.0)
    assert tasks.counted()[0, [CPU, MEMORY]].tolist() == [1000, 10]
    tasks.end_due(6.0)
    np.testing.assert_allclose(tasks.counted()[0, [CPU, MEMORY]], [400 + 480, 5 + 4])
    np.testing.assert_allclose(tasks.for_reservations().demand[0, [CPU, MEMORY]], [880, 9])
    assert tasks.allocated[0, CPU] == 1000


def test_a_tracker_counts_who_uses_more_than_was_promised():
    tasks = machines(of=profiles(((1.0,), {CPU: [1.5]})), measure=True)
    tasks.start(task(cpu=400), 0.0)
    tasks.share(0.0)
    assert tasks.counted()[0, CPU] == 600


def test_a_tracker_counts_the_most_memory_that_a_task_has_had():
    # 40 s: 8 of memory for 20 s, then 2; of those, none is given back.
    tasks = machines(of=profiles(((0.5, 1.0), {MEMORY: [0.8, 0.2]})), measure=True)
    tasks.start(replace(task(cpu=100, memory=10), seconds=np.array([40.0])), 0.0)
    tasks.share(0.0)
    for now in (20.0, 35.0):
        tasks.end_due(now)
        tasks.share(now)
    assert tasks.use_on[0, MEMORY] == 2
    assert tasks.counted()[0, MEMORY] == 8


def test_a_tracker_counts_at_the_source_what_is_read_from_there():
    tasks = machines(2, of=profiles(((1.0,), {READ: [0.5], IN: [0.5]})), measure=True)
    tasks.start(replace(task(reading=60, source=1), seconds=np.array([40.0])), 0.0)
    tasks.share(0.0)
    tasks.end_due(35.0)
    np.testing.assert_allclose(tasks.counted()[:, [READ, IN, OUT]], [[0, 30, 0], [30, 0, 30]])


def test_the_peak_of_a_task_is_what_it_used_while_it_was_short_of_nothing():
    # Each wants 800 of 1000: together they get 500 each. The short one ends; the other uses 800 from then on.
    tasks = machines(measure=True)
    tasks.start(replace(task(0, cpu=800), seconds=np.array([0.5])), 0.0)
    tasks.start(task(1, cpu=800), 0.0)
    tasks.share(0.0)
    peaks = {}
    while tasks.count:
        now = tasks.next_at
        over = tasks.end_due(now)
        if over is not None:
            peaks |= dict(zip(over.task.tolist(), over.peak[[CPU, MEMORY]].T.tolist(), strict=True))
        tasks.share(now)
    assert peaks == {0: [0, 1], 1: [800, 1]}


def test_a_held_task_of_a_gang_shows_no_peak_and_a_tracker_counts_all_that_it_was_promised():
    # It is held for 40 s, longer than any task is young, then works for 10 s with half of its promise.
    tasks = machines(of=profiles(((1.0,), {CPU: [0.5], MEMORY: [0.5]})), measure=True)
    tasks.start(task(cpu=1000, memory=10), 0.0)
    tasks.hold(np.array([0]))
    tasks.share(0.0)
    tasks.end_due(40.0)
    assert tasks.running.peak[:, 0].tolist() == [0] * 6
    assert tasks.counted()[0, [CPU, MEMORY]].tolist() == [1000, 10]
    tasks.begin(np.array([0]), 40.0)
    tasks.share(40.0)
    assert tasks.counted()[0, [CPU, MEMORY]].tolist() == [500, 5]
    over = tasks.end_due(50.0)
    assert over.peak[[CPU, MEMORY], 0].tolist() == [500, 5]
