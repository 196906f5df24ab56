"""Queries on executors: what tasks, moves and waves cost, and what the rules make of it."""

import numpy as np
import pytest

from lab.experiments.graphene.rules import CONTENDERS, fair, fifo, fluid_bound, least_work, ours
from lab.sim.dag.executors import Executors
from lab.sim.dag.tpch import Arrival, Query


def query(*stages, name="q", executors=2):
    """Return a query of (tasks, parents, seconds of a fresh task, of a first, of any other)."""
    seconds = np.array([[np.full(executors, wave) for wave in waves] for _, _, *waves in stages], dtype=float)
    return Query(
        name, tuple(tasks for tasks, *_ in stages), tuple(tuple(parents) for _, parents, *_ in stages), seconds
    )


def times(rule, *arrivals, executors=2, stays=True):
    run = Executors([Arrival(each, at) for each, at in arrivals], executors)
    return run.run(rule, stays=stays).tolist(), run.moves


def test_a_move_a_fresh_task_a_first_one_and_others_cost_what_the_trace_says():
    # One executor: 2 s to come, 5 s fresh, twice 1 s; then the first of the next stage, 3 s, and another, 1 s.
    one = query((3, [], 5, 3, 1), (2, [0], 5, 3, 1), executors=1)
    assert times(fifo, (one, 10.0), executors=1) == ([2 + 5 + 1 + 1 + 3 + 1], 1)


def test_a_stage_waits_for_all_tasks_of_its_parents():
    # Two executors come at 2: tasks end at 5 and 5, then one of 3 s more; only then the next stage may begin.
    one = query((3, [], 3, 3, 3), (1, [0], 4, 4, 4))
    assert times(fifo, (one, 0.0))[0] == [2 + 3 + 3 + 4]


def test_more_executors_of_a_query_change_what_its_tasks_take():
    one = query((2, [], 3, 3, 3))
    one.seconds[..., 1] = 7.0
    # The first executor is alone when it begins, the second is not.
    assert times(fifo, (one, 0.0))[0] == [2 + 7]


def test_the_first_is_served_first_or_the_one_with_the_least_work():
    long, short = query((4, [], 10, 10, 10), executors=1), query((1, [], 1, 1, 1), executors=1)
    arrivals = (query((1, [], 5, 5, 5), executors=1), 0.0), (long, 1.0), (short, 2.0)
    assert times(fifo, *arrivals, executors=1)[0] == [7, 7 + 2 + 40 - 1, 7 + 42 + 3 - 2]
    for rule in (least_work, ours):
        assert times(rule, *arrivals, executors=1)[0] == [7, 7 + 3 + 2 + 40 - 1, 7 + 3 - 2]


def test_a_fair_rule_gives_each_query_one_of_two_executors():
    long = query((10, [], 1, 1, 1))
    assert times(fair, (long, 0.0), (long, 0.0)) == ([12, 12], 2)


def test_ours_moves_a_second_executor_only_where_enough_waits_for_it():
    # 15 moves of 2 s: with 29 s waiting beside the first, the second stays away; with 31 s it comes.
    for tasks, moves in ((30, 1), (32, 2)):
        assert times(ours, (query((tasks, [], 1, 1, 1)), 0.0), stays=False)[1] == moves


def test_ours_waits_for_a_stage_that_opens_soon_and_not_for_a_later_one():
    # Two executors come at 2 and run 40 s and a little more. Where that is 0.5 s, the first waits, and each runs a task
    # of the last stage, 0.1 s. Where it is 3 s, the first goes to the query that waits, and the second runs both.
    def seconds(more):
        last = (2, [0, 1], 0.1, 0.1, 0.1)
        short = query((1, [], 40, 40, 40), (1, [], 40 + more, 40 + more, 40 + more), last)
        return times(ours, (short, 0.0), (query((100, [], 5, 5, 5)), 1.0), stays=False)[0][0]

    assert seconds(0.5) == pytest.approx(2 + 40.5 + 0.1)
    assert seconds(3.0) == pytest.approx(2 + 43 + 0.1 + 0.1)


def test_no_rule_passes_the_fluid_bound():
    random = np.random.default_rng(3)
    arrivals = []
    for number in range(12):
        rest = random.uniform(0.1, 4)
        stages = [(int(random.integers(1, 9)), [row - 1] if row else [], rest + 2, rest + 1, rest) for row in range(3)]
        arrivals.append(Arrival(query(*stages), 3.0 * number))
    bound = fluid_bound(Executors(arrivals, 2))
    for contender in CONTENDERS.values():
        seconds = Executors(arrivals, 2).run(contender.rule, stays=contender.stays)
        assert np.isfinite(seconds).all()
        assert seconds.mean() > bound


def test_the_fluid_bound_serves_the_least_remaining_work_on_all_executors():
    # 10 s and 2 s of work on two executors: the second comes at 1 and goes first.
    bound = fluid_bound(Executors([Arrival(query((10, [], 9, 9, 1)), 0.0), Arrival(query((2, [], 9, 9, 1)), 1.0)], 2))
    assert bound == pytest.approx((6 + 1) / 2)
