"""Who could not start on empty nodes counts for nobody else. Nodes of cores; each class is a job of its queue."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

from extender.cluster.waiting import Blocks, Running
from extender.planner import Policy
from extender.planner.gangs import Gangs
from extender.planner.misfits import without_misfits
from tests.service.costs import calls_of
from tests.service.planner.fairness.test_turn import in_queues, taken
from tests.service.planner.scenes import cluster, once, pairs, real_scenes, reserved_nodes, tasks

LATE = 1000.0
_NOTHING_RUNS = Running(np.zeros(0, np.intp), np.zeros(0), np.zeros((0, 6)))


def with_one_more(waiting, cores, count=1):
    """Return what waits, and after it a class of a job of its own, in the same queue, that is due."""
    more = tasks((0, count, (cores,)))
    jobs = replace(
        waiting.jobs,
        names=[*waiting.jobs.names, "more"],
        queue=np.append(waiting.jobs.queue, 0),
        weight=np.append(waiting.jobs.weight, 1.0),
        allocated=np.vstack((waiting.jobs.allocated, np.zeros(6))),
        work=np.append(waiting.jobs.work, 1e6),
    )
    last = {"priority": 10, "behind": 0, "gang": -1, "shuffled": False}
    given_too = {
        name: np.append(array, value) for name, value in last.items() if (array := getattr(waiting, name)) is not None
    }
    if waiting.barred is not None:
        given_too["barred"] = np.vstack((waiting.barred, np.zeros(waiting.barred.shape[1], bool)))
    return replace(
        waiting,
        names=[*waiting.names, "more"],
        job=np.append(waiting.job, len(waiting.jobs.names)),
        count=np.append(waiting.count, count),
        demand=np.vstack((waiting.demand, more.demand)),
        reading=np.append(waiting.reading, 0.0),
        inputs=[*waiting.inputs, None],
        duration=np.append(waiting.duration, 1e6),
        since=np.append(waiting.since, -1e9),
        finished=np.append(waiting.finished, 0.0),
        jobs=jobs,
        **given_too,
    )


@settings(max_examples=20, deadline=None)
@given(real_scenes())
def test_a_plan_is_as_if_it_were_not_there(scene):
    snapshot, waiting, policy = scene
    assume(0 < snapshot.layout.capacity[:, 0].sum() < 99)
    waiting = replace(waiting, running=_NOTHING_RUNS)
    plan = once(snapshot, waiting, policy, now=LATE)
    beside = once(snapshot, with_one_more(waiting, 99), policy, now=LATE)
    assert (pairs(beside), beside.carried) == (pairs(plan), plan.carried)


def test_it_still_says_why_it_waits():
    plan = once(cluster((4,)), with_one_more(tasks((0, 1, (1,))), 9), explain=True)
    assert {row: why.kind for row, why in plan.held.items()} == {1: "too-large"}


def test_its_work_does_not_make_others_due_late():
    # Due after 120 s and twice the queue's 10 s of work; the misfit's million seconds do not count.
    plan = once(taken(4), with_one_more(tasks((0, 1, (4,)), work=[10.0]), 9), now=LATE)
    assert plan.carried.due["class0"].due == 120 + 2 * 10


def test_work_of_its_job_counts_as_far_as_its_tasks_fit():
    # Of the job's two classes one is a misfit, with nine of the twelve parts of the work that waits.
    waiting = tasks((0, 1, (3,)), (0, 1, (9,)), work=[1200.0])
    plan = once(taken(3, size=3.0), waiting, now=LATE)
    assert plan.carried.due["class0"].due == 120 + 2 * 300
    # With tasks three times as long as the misfit's the other has as much work: 3 * 30 and 9 * 10 core-seconds.
    longer = replace(waiting, duration=np.array([30.0, 10.0]), jobs=replace(waiting.jobs, work=np.array([600.0])))
    plan = once(taken(3, size=3.0), longer, now=LATE)
    assert plan.carried.due["class0"].due == 120 + 2 * 300


def test_behind_it_in_a_fifo_queue_others_are_due():
    waiting = replace(tasks((0, 1, (9,)), (0, 1, (4,))), behind=np.array([0, 1]))
    assert list(once(taken(4), waiting, now=LATE).carried.due) == ["class1"]


def test_who_could_read_its_input_nowhere_is_one():
    # Its input is on n0, whose disk gives 2, and n1 reads from there no faster.
    blocks = Blocks(np.array([[0]]), np.ones(1, bool), 2)
    snapshot = cluster((4, 9, 2, 9, 9, 9), (4, 9, 9, 9, 9, 9), allocated=[[4, *[0] * 5]] * 2)
    for reading, due in ((3.0, ["class1"]), (2.0, ["class0"])):
        waiting = replace(tasks((0, 1, (1,), reading, blocks), (0, 1, (4,))), behind=np.array([0, 1]))
        assert list(once(snapshot, waiting, now=LATE).carried.due) == due


def test_its_queue_has_no_part_of_the_cluster_for_it():
    # Queue 1 has all 8 cores, and nobody else could use any: it keeps room for its large pod, which is due.
    running = Running(np.array([0, 1]), np.full(2, LATE + 50), np.array([[4.0, *[0] * 5]] * 2))
    waiting = in_queues((0, 1, 9), (1, 1, 4), (1, 9, 1), has=[0, 8], running=running)
    plan = once(taken(4, 4), replace(waiting, since=np.array([0.0, 0.0, 999.0])), now=LATE)
    assert reserved_nodes(plan) == {"class1": ["n0"]}


def test_it_does_not_take_the_place_of_others_below_the_fairness_knob():
    # Jobs have 3, 2 and 1 cores, and the first the least work left. With f = 0.9 the one that has least goes.
    held = [[cores, *[0] * 5] for cores in (3, 2, 1)]
    waiting = with_one_more(tasks(*((job, 1, (1,)) for job in range(3)), work=[1, 9, 9], held=held), 9)
    waiting = replace(waiting, since=np.full(4, LATE))
    plan = once(cluster((7,), allocated=[[6, *[0] * 5]]), waiting, Policy(fairness=0.9, srtf=1000), now=LATE)
    assert pairs(plan) == [(2, 0)]


def test_a_gang_that_all_nodes_together_do_not_hold_is_one():
    waiting = with_one_more(tasks((0, 1, (4,)), work=[10.0]), 4, count=3)
    gang = replace(waiting, gang=np.array([-1, 0]), gang_least=np.array([3]))
    assert list(once(taken(4, 4), gang, now=LATE).carried.due) == ["class0"]
    smaller = replace(gang, gang_least=np.array([2]))
    assert list(once(taken(4, 4), smaller, now=LATE).carried.due) == ["class0", "more"]


def test_two_classes_of_one_shape_do_not_both_have_all_places():
    # Each node holds one task; the gang has two classes of two.
    waiting = tasks((0, 2, (4,)), (0, 2, (4,)))
    gang = replace(waiting, gang=np.array([0, 0]), gang_least=np.array([3]))
    assert list(once(taken(4, 4), gang, now=LATE).carried.due) == []
    assert list(once(taken(4, 4, 4), gang, now=LATE).carried.due) == ["class0", "class1"]


def test_what_only_the_smaller_of_the_nodes_allows_is_none():
    # By CPU and memory n1 is the largest; n0 alone has the memory. The second class may use neither n0 nor n1.
    snapshot = cluster((4, 8), (9, 4), (1, 1))
    waiting = tasks((0, 1, (1, 8)), (1, 1, (4, 1)), since=0.0)
    waiting = replace(waiting, barred=np.array([[False] * 3, [True, True, False]]))
    full = replace(snapshot, allocated=np.array([[4, 8, *[0] * 4], [9, 4, *[0] * 4], [1, 1, *[0] * 4]], float))
    assert list(once(full, waiting, now=LATE).carried.due) == ["class0"]


def test_what_daemons_take_is_not_there_on_an_empty_node():
    snapshot = cluster((4,), allocated=[[1, *[0] * 5]])
    beside = replace(snapshot, empty=snapshot.layout.capacity - snapshot.allocated)
    assert list(once(beside, tasks((0, 1, (4,))), now=LATE).carried.due) == []
    assert list(once(snapshot, tasks((0, 1, (4,))), now=LATE).carried.due) == ["class0"]


def misfits_of(capacity, demand, barred, gang, least):
    """Return which classes and gangs are misfits, longhand: one class, node and resource after the other."""
    places = [
        [
            0
            if shut
            else math.floor(min((has / asks for has, asks in zip(node, task, strict=True) if asks), default=9))
            for node, shut in zip(capacity, row, strict=True)
        ]
        for task, row in zip(demand, barred, strict=True)
    ]
    out = {row for row, each in enumerate(places) if not any(each)}
    for one, number in enumerate(least):
        members = [row for row, of in enumerate(gang) if of == one]
        shapes = Counter((*demand[row].tolist(), *barred[row].tolist()) for row in members)
        room = {(*demand[row].tolist(), *barred[row].tolist()): sum(places[row]) for row in members}
        if number > 1 and sum(min(3 * count, room[shape]) for shape, count in shapes.items()) < number:
            out.update(members)
    return out


@pytest.mark.parametrize("seed", range(40))
def test_of_many_nodes_those_are_the_same_that_each_node_says_by_itself(seed):
    # 200 nodes, of which few have what some ask for: most classes fit on the sample, some elsewhere, some nowhere.
    random = np.random.default_rng(seed)
    capacity = random.choice([1.0, 2.0, 4.0], (200, 3))
    capacity[random.integers(200, size=4), random.integers(3, size=4)] = 9.0
    demand = random.choice([0.0, 1.0, 2.0, 4.0, 5.0, 9.0], (12, 3))
    barred = random.random((12, 200)) < random.choice([0.0, 0.5, 0.99], (12, 1))
    demand[6:9], barred[6:9] = demand[:3], barred[:3]  # classes of one shape share its places
    gang, least = random.integers(-1, 2, 12), random.integers(1, 20, 2)
    waiting = tasks(*((0, 3, tuple(task)) for task in demand))
    waiting = replace(waiting, barred=barred, gang=gang, gang_least=least)
    empty = np.hstack((capacity, np.full((200, 3), np.inf)))
    total = np.append(capacity.sum(axis=0), [0.0] * 3)
    left = without_misfits(waiting, Gangs(waiting), empty, total, np.zeros(12, bool))
    assert {*np.flatnonzero(left.count == 0).tolist()} == misfits_of(capacity, demand, barred, gang, least)


def test_to_find_them_costs_as_many_calls_for_a_hundred_classes_and_gangs_as_for_ten():
    # None of the even classes fits; the odd ones are gangs of two that start.
    def calls(number):
        waiting = tasks(*((0, 2, (1.0 + 9 * (row % 2 == 0),)) for row in range(number)))
        waiting = replace(waiting, gang=np.arange(number), gang_least=np.where(np.arange(number) % 2, 2, 1))
        snapshot, gangs = cluster(*[(4,)] * 100), Gangs(waiting)
        unreadable, total = np.zeros(number, bool), snapshot.layout.total
        return calls_of(lambda: without_misfits(waiting, gangs, snapshot.empty, total, unreadable))

    assert calls(100) == calls(10)
