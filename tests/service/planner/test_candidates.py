from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from extender.cluster.waiting import Running
from extender.planner import Policy
from extender.planner.candidates import Candidates, at_the_head
from tests.service.planner.scenes import cluster, once, pairs, real_scenes, reserved_nodes, tasks


def with_behind(waiting, *behind, **more):
    return replace(waiting, behind=np.array(behind), **more)


def order(plan):
    return plan.assignments.task_class.tolist()


def test_nodes_are_looked_at_when_a_matching_comes_there_and_who_is_out_by_then_stays_out():
    asked = []

    def fits(places):
        asked.append(len(places))
        return np.ones((2, len(places)), dtype=bool), np.zeros((2, len(places)), dtype=bool)

    candidates = Candidates(np.array([3, 7]), np.arange(1000), fits)
    nodes = candidates.in_order(np.arange(1000.0))
    assert next(nodes) == 999
    assert asked[0] < 1000
    candidates.leave_out(7)
    assert len(list(nodes)) == 999
    assert sum(asked) == 1000
    assert [candidates.at(node)[0].tolist() for node in (999, 0)] == [[3], [3]]


def test_of_each_line_the_first_that_is_able_is_at_the_head():
    job, behind = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 1, 3, 2])
    assert at_the_head(job, behind, np.array([False, True, True, True, True])).tolist() == [0, 1, 1, 0, 1]


@pytest.mark.parametrize("matching", ["machine", "pair"])
def test_in_a_fifo_queue_the_earlier_job_goes_first_on_every_node_where_it_fits(matching):
    # The second job aligns better everywhere.
    waiting = tasks((0, 3, (1,)), (0, 3, (2,)))
    snapshot = cluster((4,), (2,))
    assert order(once(snapshot, waiting, Policy(matching=matching)))[0] == 1
    plan = once(snapshot, with_behind(waiting, 0, 1), Policy(matching=matching))
    assert order(plan)[:3] == [0, 0, 0]
    assert order(plan)[3:] == [1]


@pytest.mark.parametrize("matching", ["machine", "pair"])
def test_where_the_earlier_job_does_not_fit_later_ones_fill(matching):
    waiting = with_behind(tasks((0, 3, (4,)), (0, 9, (1,))), 0, 1)
    plan = once(cluster((3,), (5,)), waiting, Policy(matching=matching))
    assert sorted(pairs(plan)) == [(0, 1), (1, 0), (1, 0), (1, 0), (1, 1)]


def test_neither_a_barrier_nor_a_chain_of_stages_lets_a_job_pass_those_before_it():
    waiting = with_behind(tasks((0, 1, (4,)), (0, 1, (4,), 0, None, 0.95)), 0, 1)
    assert pairs(once(cluster((4,)), waiting)) == [(0, 0)]
    jobs = replace(waiting.jobs, path=np.array([50.0]))
    assert pairs(once(cluster((4,)), replace(waiting, jobs=jobs, left_seconds=100.0))) == [(0, 0)]


def test_a_later_job_competes_with_other_queues_as_if_it_were_the_first():
    # Queue 0 is FIFO, and its first job fits nowhere. Its second aligns better (4 of 4) than queue 1's job (3 of 4).
    waiting = with_behind(tasks((0, 1, (9,)), (0, 1, (4,)), (1, 1, (3,))), 0, 1, 0)
    assert pairs(once(cluster((4,)), waiting, Policy(srtf=0))) == [(1, 0)]


def test_a_barrier_still_decides_between_queues():
    waiting = with_behind(tasks((0, 1, (4,)), (0, 1, (4,)), (1, 1, (1,), 0, None, 0.95)), 0, 1, 0)
    assert order(once(cluster((5,)), waiting)) == [2, 0]


def test_only_the_head_of_a_fifo_queue_can_starve():
    # The later job has waited as long; one node comes free for the first at 50 s, and is reserved for it alone.
    running = Running(np.array([0, 1]), np.array([50.0, 90.0]), np.array([[3.0, *[0] * 5]] * 2))
    waiting = with_behind(tasks((0, 1, (4,)), (0, 1, (4,)), running=running), 0, 1)
    snapshot = cluster((4,), (4,), allocated=[[3, *[0] * 5]] * 2)
    plan = once(snapshot, waiting, Policy(reservable=1.0), now=1000.0)
    assert reserved_nodes(plan) == {"class0": ["n0"]}


def test_a_starved_later_job_does_not_go_before_the_head():
    waiting = with_behind(tasks((0, 2, (2,)), (0, 1, (2,))), 0, 1, since=np.array([990.0, 0.0]))
    assert order(once(cluster((4,)), waiting, now=1000.0)) == [0, 0]


@settings(max_examples=250, deadline=None)
@given(real_scenes())
def test_nothing_goes_to_a_node_where_an_earlier_job_of_its_queue_fits(scene):
    snapshot, waiting, policy = scene
    if waiting.behind is None:
        return
    # Without reading, what fits is a matter of one node; gangs may be left out as a whole.
    number = len(waiting.count)
    waiting = replace(waiting, inputs=[None] * number, reading=np.zeros(number), gang=None, gang_least=None)
    priority = np.zeros(number) if waiting.priority is None else waiting.priority
    free, left = snapshot.layout.capacity.copy(), waiting.count.copy()
    for row, node in pairs(once(snapshot, waiting, policy, now=1000.0)):
        before = (waiting.job == waiting.job[row]) & (waiting.behind < waiting.behind[row]) & (left > 0)
        before &= priority >= priority[row]
        if waiting.barred is not None:
            before &= ~waiting.barred[:, node]
        for earlier in np.flatnonzero(before):
            asks = waiting.demand[earlier] > 0
            assert not (free[node] >= waiting.demand[earlier])[asks].all(), (row, node, earlier)
        free[node] -= waiting.demand[row]
        left[row] -= 1
