from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from extender.cluster.waiting import Blocks, Running, Shuffle
from extender.planner import Carried, Policy
from extender.planner.plan import Reservation
from tests.service.costs import elements_of
from tests.service.planner.scenes import (
    cluster,
    left_in,
    left_out,
    load_of,
    once,
    pairs,
    real_scenes,
    reserved_nodes,
    tasks,
)


def with_priority(waiting, *priority):
    return replace(waiting, priority=np.array(priority))


@pytest.mark.parametrize("matching", ["machine", "pair"])
def test_a_higher_priority_goes_before_fairness_alignment_and_remaining_work(matching):
    # Job 0 has half of the cluster, much work left and the worse fit: without priorities job 1 takes the four CPUs.
    waiting = tasks((0, 9, (1,)), (1, 9, (2,)), work=[100, 1], held=[[4, *[0] * 5], [0] * 6])
    snapshot = cluster((8,), allocated=[[4, *[0] * 5]])
    policy = Policy(matching=matching, fairness=0.9)
    assert pairs(once(snapshot, waiting, policy)) == [(1, 0)] * 2
    assert pairs(once(snapshot, with_priority(waiting, 10, 0), policy)) == [(0, 0)] * 4


def test_a_higher_priority_goes_before_barriers_and_starvation():
    # The second class is the last before a barrier, and starved.
    waiting = replace(tasks((0, 1, (4,)), (1, 1, (4,), 0, None, 0.95)), since=np.array([999.0, 0.0]))
    assert pairs(once(cluster((4,)), waiting, now=1000.0)) == [(1, 0)]
    assert pairs(once(cluster((4,)), with_priority(waiting, 1, 0), now=1000.0)) == [(0, 0)]


def test_lower_priorities_fill_what_is_left():
    # 10 CPUs: two of 4 by the first; the 2 that are left are for the second, which is half as urgent as the third.
    waiting = with_priority(tasks((0, 5, (4,)), (1, 5, (1,)), (2, 5, (2,))), 100, 5, 10)
    assert pairs(once(cluster((10,)), waiting)) == [(0, 0), (0, 0), (2, 0)]


def test_a_node_reserved_for_a_higher_priority_is_not_for_lower_ones_but_a_lower_ones_is_for_higher():
    running = Running(np.array([0]), np.array([50.0]), np.array([[3.0, *[0] * 5]]))
    waiting = tasks((0, 1, (4,)), (1, 1, (1,)), running=running)
    snapshot = cluster((4,), allocated=[[3, *[0] * 5]])
    assert not pairs(once(snapshot, with_priority(waiting, 1, 0), now=1000.0))
    assert pairs(once(snapshot, with_priority(waiting, 0, 1), now=1000.0)) == [(1, 0)]


def running_on(nodes, cpu, ends_at):
    """Return tasks that run, one on each node, each with so much CPU until then."""
    return Running(np.arange(nodes), np.full(nodes, ends_at), np.array([[cpu, *[0] * 5]] * nodes))


@pytest.mark.parametrize("gang", [False, True])
def test_what_comes_free_adds_up_for_a_higher_priority_though_lower_ones_fit_into_it(gang):
    # On each of two nodes 1 of 4 is free. The first class needs a whole node, or both; the second takes what is free.
    waiting = tasks((0, 2 if gang else 1, (4,)), (1, 2, (1,)), running=running_on(2, 3.0, 50.0))
    waiting = replace(waiting, duration=np.array([10.0, 100.0]))
    if gang:
        waiting = replace(waiting, gang=np.array([0, -1]), gang_least=np.array([2]))
    snapshot = cluster((4,), (4,), allocated=[[3, *[0] * 5]] * 2)
    alike, ranked = (once(snapshot, it, now=0.0) for it in (waiting, with_priority(waiting, 1, 0)))
    assert pairs(alike) == [(1, 0), (1, 1)]
    assert pairs(ranked) == ([] if gang else [(1, 1)])


def test_a_queue_may_have_more_than_its_part_for_a_higher_priority():
    # The first queue has three quarters by pods of a lower priority; its gang of a higher one outranks both queues.
    waiting = tasks((0, 2, (4,)), (1, 2, (1,)), running=running_on(2, 3.0, 50.0), held=[[6, *[0] * 5], [0] * 6])
    waiting = replace(waiting, gang=np.array([0, -1]), gang_least=np.array([2]))
    queues = {"queue": np.array([0, 1]), "queue_names": ["a", "b"], "queue_weight": np.ones(2)}
    waiting = replace(waiting, jobs=replace(waiting.jobs, **queues))
    snapshot = cluster((4,), (4,), allocated=[[3, *[0] * 5]] * 2)
    assert pairs(once(snapshot, with_priority(waiting, 1, 0), now=0.0)) == []


def test_who_is_due_in_a_level_comes_before_who_merely_outranks_others():
    # A gang that needs both nodes is due; room is reserved for a small task of its level; a lower priority waits.
    waiting = tasks((0, 2, (4,)), (1, 9, (1,)), (2, 1, (4,)), running=running_on(2, 4.0, 1050.0))
    waiting = replace(waiting, gang=np.array([0, -1, -1]), gang_least=np.array([2]))
    waiting = replace(waiting, since=np.array([0.0, 999.0, 999.0]))
    snapshot = cluster((4,), (4,), allocated=[[4, *[0] * 5]] * 2)
    carried = Carried(reserved={"class1": Reservation((("class1", "n0", 1),), 2000.0)}, planned_at=999.0)
    plan = once(snapshot, with_priority(waiting, 1, 1, 0), now=1000.0, carried=carried)
    assert reserved_nodes(plan) == {"class0": ["n0", "n1"]}


def test_between_queues_of_one_level_nobody_has_more_than_its_part_because_a_lower_one_waits():
    # The first queue has three quarters; its gang would have more. The second queue waits in the same level.
    waiting = tasks(
        (0, 2, (4,)), (1, 2, (1,)), (1, 1, (4,)), running=running_on(2, 3.0, 50.0), held=[[6, *[0] * 5], [0] * 6]
    )
    waiting = replace(waiting, gang=np.array([0, -1, -1]), gang_least=np.array([2]))
    queues = {"queue": np.array([0, 1]), "queue_names": ["a", "b"], "queue_weight": np.ones(2)}
    waiting = replace(waiting, jobs=replace(waiting.jobs, **queues))
    snapshot = cluster((4,), (4,), allocated=[[3, *[0] * 5]] * 2)
    assert pairs(once(snapshot, with_priority(waiting, 1, 1, 0), now=0.0)) == [(1, 0), (1, 1)]


def test_fairness_is_among_those_of_one_level():
    # Of priority 1 wait jobs 1 and 2, and 1 has more than its share: 2 goes, though job 0 is the furthest below its.
    waiting = tasks((0, 9, (1,)), (1, 9, (2,)), (2, 9, (2,)), held=[[0] * 6, [6, *[0] * 5], [1, *[0] * 5]])
    plan = once(cluster((9,), allocated=[[7, *[0] * 5]]), with_priority(waiting, 0, 1, 1), Policy(fairness=0.9))
    assert pairs(plan) == [(2, 0)]


def test_a_disk_is_not_kept_for_shuffles_of_a_lower_priority():
    # A tenth of 100 is kept for the shuffle where it goes as first; the reader wants all of the disk.
    shuffle = Shuffle(np.array([0]), np.array([8.0]))
    waiting = tasks((0, 1, (1,), 100), (1, 1, (9,), 8, shuffle))
    snapshot = cluster((9, 4, 100, 10, 100, 100), allocated=[[5, *[0] * 5]])
    assert not pairs(once(snapshot, waiting))
    assert not pairs(once(snapshot, with_priority(waiting, 0, 1)))
    assert pairs(once(snapshot, with_priority(waiting, 1, 0))) == [(0, 0)]


def test_a_lower_priority_waits_for_its_blocks_even_if_a_higher_one_had_to_read_from_elsewhere():
    # n0 has the most room and no block; n1 holds those of both classes, but no room for both of the first.
    first, second = (Blocks(np.array([[1]] * count), np.ones(count, bool), 2) for count in (2, 1))
    waiting = with_priority(tasks((0, 2, (2, 1), 5, first), (1, 1, (1, 1), 5, second)), 1, 0)
    plan = once(cluster((9, 9, 50, 50, 50, 50), (3, 3, 50, 50, 50, 50)), waiting)
    assert sorted(pairs(plan)) == [(0, 0), (0, 1), (1, 1)]


def test_one_priority_for_all_is_as_none():
    waiting = tasks((0, 3, (2, 1)), (1, 3, (1, 2)), (1, 3, (3, 1)))
    snapshot = cluster((9, 6), (5, 9))
    assert pairs(once(snapshot, with_priority(waiting, 7, 7, 7))) == pairs(once(snapshot, waiting))


@settings(max_examples=250, deadline=None)
@given(real_scenes())
def test_no_task_has_room_that_would_let_one_of_a_higher_priority_start(scene):
    snapshot, waiting, policy = scene
    policy = replace(policy, headroom=0.0)
    if waiting.priority is None:
        return
    plan = once(snapshot, waiting, policy, now=1000.0)
    reserved = [snapshot.layout.rows[node] for of in plan.carried.reserved.values() for node in of.nodes]
    waits = (left_in(waiting, plan) > 0) & ~left_out(waiting, plan) & [inputs is None for inputs in waiting.inputs]
    if waiting.gang is not None:
        waits &= waiting.gang < 0  # a gang goes with the lowest of its classes
    for row in np.flatnonzero(waits):
        free = snapshot.layout.capacity - load_of(snapshot, waiting, without_lower(plan, waiting, row))
        demand = waiting.demand[row].copy()
        demand[2] += waiting.reading[row]
        may = np.ones(len(free), bool) if waiting.barred is None else ~waiting.barred[row]
        may[reserved] = False
        assert not ((free >= demand) | (demand <= 0)).all(axis=1)[may].any(), waiting.names[row]


def without_lower(plan, waiting, row):
    """Return the plan without what is of a lower priority than this class."""
    stays = waiting.priority[plan.assignments.task_class] >= waiting.priority[row]
    a = plan.assignments
    return replace(plan, assignments=type(a)(a.task_class[stays], a.node[stays], a.task[stays], a.source[stays]))


def test_a_level_of_priority_copies_no_list_of_all_classes(monkeypatch):
    # 100 classes on 100 levels. One copy of what is left at each would be 10,000 elements; there were nine.
    count = 100
    waiting = with_priority(tasks(*[(row, 1, (1,)) for row in range(count)]), *range(count))
    waiting = replace(waiting, running=Running(np.zeros(1, np.intp), np.array([9.0]), np.ones((1, 6))))
    assert elements_of(monkeypatch, ["array"], lambda: once(cluster((30,)), waiting)) < 10 * count


def test_a_reservation_is_found_by_its_name_without_a_search_at_each_level():
    class Names(list):
        def index(self, name):
            raise AssertionError(f"all classes are searched for {name}")

    # Nothing has room for the first, which outranks two more.
    waiting = with_priority(tasks((0, 1, (4,)), (1, 1, (4,)), (2, 1, (4,))), 20, 10, 0)
    running = Running(np.zeros(1, np.intp), np.array([9.0]), np.array([[2.0, *[0.0] * 5]]))
    waiting = replace(waiting, names=Names(waiting.names), running=running)
    plan = once(cluster((4,), allocated=[[2, *[0] * 5]]), waiting)
    assert reserved_nodes(plan) == {"class0": ["n0"]}
