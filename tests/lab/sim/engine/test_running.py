"""Tasks on machines: promises, what is used, and ends, with the arithmetic shown.

A machine has 1000 millicores, 64 bytes of memory, and 100 in each disk and network dimension. Tasks take 10 s.
"""

import numpy as np
import pytest

from lab.sim.engine.running import RunningTasks, Starts

CAPACITY = np.array([1000.0, 64, 100, 100, 100, 100])
CPU, MEMORY, READ, WRITE, IN, OUT = range(6)


def machines(count, *, loss=0.0):
    return RunningTasks(np.tile(CAPACITY, (count, 1)), loss=loss)


def task(node, *, cpu=0.0, memory=1.0, write=0.0, reading=0.0, source=None, number=0, seconds=10.0):
    """Return a task that reads from one node, by default its own."""
    local = source is None or source == node
    node_demand = np.array([[cpu, memory, reading if local else 0, write, 0 if local else reading, 0]]).T
    return Starts(
        stage=np.array([0]),
        task=np.array([number]),
        node=np.array([node]),
        source=np.array([node if local else source]),
        rates_row=np.array([-1]),
        node_demand=node_demand,
        elsewhere=np.array([0.0 if local else reading]),
        copies=np.empty((0, 1), dtype=np.intp),
        seconds=np.array([seconds]),
        expected=np.array([seconds]),
    )


def shuffling(node, rates, row, *, number=0, seconds=10.0):
    """Return a task that reads from many nodes, by its row of the rates."""
    local, whole = rates[row, node], rates[row].sum()
    return Starts(
        stage=np.array([0]),
        task=np.array([number]),
        node=np.array([node]),
        source=np.array([rates.shape[1]]),
        rates_row=np.array([row]),
        node_demand=np.array([[0, 1, local, 0, whole - local, 0]]).T,
        elsewhere=np.array([whole - local]),
        copies=np.empty((0, 1), dtype=np.intp),
        seconds=np.array([seconds]),
        expected=np.array([seconds]),
    )


def start(tasks, now, *starts):
    for batch in starts:
        tasks.start(batch, now)
    tasks.share(now)


def ends_until(tasks, until=np.inf):
    """Return when each task ends, by number, going from event to event."""
    ended = {}
    while tasks.next_at <= min(until, 1e9):
        now = tasks.next_at
        ends = tasks.end_due(now)
        if ends is not None:
            ended |= dict(zip(ends.task.tolist(), ends.at.tolist(), strict=True))
        tasks.share(now)
    return ended


def test_tasks_that_fit_end_after_their_durations():
    tasks = machines(1)
    start(tasks, 3.0, task(0, cpu=500, seconds=4), task(0, cpu=500, number=1, seconds=6))
    assert ends_until(tasks) == {0: 7.0, 1: 9.0}


def test_two_tasks_that_both_want_the_whole_network_take_twice_as_long():
    tasks = machines(2)
    start(tasks, 0.0, *(task(1, reading=50, source=0, number=number) for number in (0, 1)))
    assert tasks.next_at == 10.0  # together exactly the network
    tasks = machines(3)
    # from two sources, 100 of 100 each; into one machine, 200 of 100
    start(tasks, 0.0, *(task(2, reading=100, source=source, number=source) for source in (0, 1)))
    assert ends_until(tasks) == {0: 20.0, 1: 20.0}


def test_a_third_that_joins_halfway_slows_down_what_is_left_of_the_others():
    tasks = machines(4)
    start(tasks, 0.0, *(task(3, reading=100, source=source, number=source) for source in (0, 1)))
    start(tasks, 10.0, task(3, reading=100, source=2, number=2))
    # at 10 the two have 5 s left, now at a third: 10 + 15; by then the third has done 15 / 3 = 5, and 5 alone are left
    assert ends_until(tasks) == {0: pytest.approx(25), 1: pytest.approx(25), 2: pytest.approx(30)}


def test_a_remote_read_is_limited_by_the_network_out_of_its_source():
    tasks = machines(3)
    # 0 sends 80 to each of 1 and 2: 160 of 100, so 10 s take 16; each machine's network-in has 80 of 100
    start(tasks, 0.0, *(task(node, reading=80, source=0, number=node) for node in (1, 2)))
    assert ends_until(tasks) == {1: pytest.approx(16), 2: pytest.approx(16)}


def test_what_is_read_locally_leaves_the_network_alone():
    tasks = machines(2)
    start(tasks, 0.0, task(0, reading=100, number=0), task(0, write=100, number=1))
    assert ends_until(tasks) == {0: 10.0, 1: 10.0}
    assert tasks.allocated.sum() == 0


def test_a_term_that_is_done_frees_its_share_while_the_promise_stays():
    tasks = machines(1)
    start(tasks, 0.0, task(0, cpu=500, write=200, number=0))  # writes at a half: cpu done at 10, writing at 20
    start(tasks, 5.0, task(0, cpu=1000, number=1))
    # cpu is 1500 of 1000: the 5 s left of the first take 7.5; from 12.5 on the second has it all, 5 s of 10 to do
    assert ends_until(tasks, 12.5) == {}
    assert tasks.demand[0].tolist() == [1000, 2, 0, 200, 0, 0]
    assert tasks.allocated[0].tolist() == [1500, 2, 0, 200, 0, 0]
    assert tasks.use().tolist() == [1000, 2, 0, 100, 0, 0]
    assert ends_until(tasks) == {1: pytest.approx(17.5), 0: pytest.approx(20)}


def test_contention_that_wastes_goodput_takes_longer_still():
    tasks = machines(1, loss=1.0)
    start(tasks, 0.0, *(task(0, write=100, number=number) for number in (0, 1)))
    # 200 of 100: 100 / (1 + 0.127 x 2) = 79.7 is left for 200: 25.08 s
    assert ends_until(tasks) == {0: pytest.approx(25.08), 1: pytest.approx(25.08)}


def test_a_task_with_memory_only_takes_its_time_by_the_clock():
    tasks = machines(1)
    start(tasks, 0.0, task(0, memory=64, number=0), *(task(0, cpu=1000, memory=0, number=n) for n in (1, 2)))
    assert ends_until(tasks) == {0: 10.0, 1: 20.0, 2: 20.0}


def test_a_shuffle_takes_disk_and_network_of_every_source_and_its_own_network_for_what_is_remote():
    tasks = machines(3)
    tasks.rates = np.array([[30.0, 20, 0], [0, 0, 100]])
    job_demand = tasks.start(shuffling(0, tasks.rates, 0), 0.0)
    assert tasks.allocated[:, MEMORY:].tolist() == [[1, 30, 0, 20, 0], [0, 20, 0, 0, 20], [0, 0, 0, 0, 0]]
    assert job_demand[:, 0].tolist() == [0, 1, 50, 0, 20, 20]
    tasks.start(shuffling(0, tasks.rates, 1, number=1), 0.0)
    assert tasks.allocated[0].tolist() == [0, 2, 30, 0, 120, 0]
    assert tasks.allocated[2].tolist() == [0, 0, 100, 0, 0, 100]
    tasks.share(0.0)
    # network-in of 0 has 120 of 100: both at 5/6
    assert ends_until(tasks) == {0: pytest.approx(12), 1: pytest.approx(12)}
    assert tasks.allocated.sum() == tasks.demand.sum() == 0


def test_use_never_passes_capacity_however_much_is_wanted():
    tasks = machines(2)
    start(tasks, 0.0, *(task(1, cpu=700, write=80, reading=90, source=0, number=n) for n in range(3)))
    assert tasks.demand.sum(axis=0).tolist() == [2100, 3, 270, 240, 270, 270]
    assert tasks.use() == pytest.approx([1000, 3, 100, 100, 100, 100])


def test_reservations_see_where_tasks_run_and_when_they_are_expected_to_end():
    tasks = machines(2)
    start(tasks, 0.0, task(1, reading=50, source=0, seconds=7), task(0, cpu=10, seconds=5))
    running = tasks.for_reservations()
    assert running.node.tolist() == [1, 0]
    assert running.ends_at.tolist() == [7, 5]
    assert running.demand.tolist() == [[0, 1, 0, 0, 50, 0], [10, 1, 0, 0, 0, 0]]
    with pytest.raises(ValueError, match="read-only"):
        running.node[0] = 0


def test_gaps_of_ended_tasks_are_filled():
    tasks = machines(1)
    seconds = [5.0, 1, 4, 1, 3, 1, 2]
    start(tasks, 0.0, *(task(0, number=number, seconds=value) for number, value in enumerate(seconds)))
    assert ends_until(tasks) == dict(enumerate(seconds))
    assert tasks.count == 0


def test_there_is_room_for_any_number_of_tasks():
    tasks = machines(1)
    for number in range(3000):
        tasks.start(task(0, memory=0, number=number, seconds=1.0 + number), 0.0)
    assert len(ends_until(tasks)) == 3000


def test_a_task_where_there_is_no_capacity_never_ends():
    tasks = RunningTasks(np.array([[1000.0, 64, 0, 100, 100, 100]]), loss=0.0)
    start(tasks, 0.0, task(0, reading=10))
    assert tasks.next_at == np.inf


def test_a_node_that_is_gone_takes_its_tasks_with_it_and_leaves_nothing_promised():
    # Two on node 0 write at a half, so their CPU is done at 10 s and their writing at 20 s; another runs on node 1.
    tasks = machines(2)
    writers = [task(0, cpu=100.0, write=100.0, number=number) for number in (0, 1)]
    start(tasks, 0.0, *writers, task(1, cpu=100.0, number=2, seconds=30.0))
    assert tasks.end_due(10.0) is None
    assert tasks.demand[0, CPU] == 0.0
    lost = tasks.lose(0, 12.0)
    assert sorted(lost.task.tolist()) == [0, 1]
    assert tasks.lose(0, 12.0) is None
    assert tasks.allocated[0].tolist() == tasks.demand[0].tolist() == [0.0] * 6
    tasks.share(12.0)
    assert tasks.tasks.tolist() == [2]
    assert tasks.next_at == 30.0
