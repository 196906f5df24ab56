"""How far a queue may be ahead of another."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.errors import SettingsError
from extender.planner import Policy
from extender.policy.turn import first_of_siblings, loosened, paths_from_top
from tests.service.planner.scenes import cluster, once, pairs, tasks

KAPPAS = (0.0, 0.1, 0.3)


def in_queues(waiting, weights):
    """Return the same with each job in a queue of its own."""
    jobs = replace(
        waiting.jobs,
        queue=np.arange(len(weights)),
        queue_names=[f"q{row}" for row in range(len(weights))],
        queue_weight=np.array(weights),
    )
    return replace(waiting, jobs=jobs)


def test_kappa_takes_its_part_by_weight_off_what_a_queue_has_but_puts_nobody_before_those_below_their_minimum():
    # 0.5 / 1 - 0.2 / 1, 0.2 / 2 - 0.2 / 2, below its minimum, and what would be below 0 is 0.
    keys, weight = np.array([0.5, 0.1, -0.5, 0.05]), np.array([1.0, 2.0, 1.0, 1.0])
    assert loosened(keys, weight, kappa=0.2) == pytest.approx([0.3, 0.0, -0.5, 0.0])


def test_queues_of_different_parents_are_compared_by_their_parents():
    # Groups: team 0 with queues 1 and 2, team 3 with queue 4. Team 0 has 0.5 and team 3 0.3: 0.1 is not enough for team
    # 0, 0.2 is; then inside it queue 1, 0.4 ahead of queue 2, is not within 0.2.
    parent, leaf = np.array([-1, 0, 0, -1, 3]), np.array([1, 2, 4])
    keys, weight = np.array([0.5, 0.45, 0.05, 0.3, 0.3]), np.ones(5)
    paths, everybody, queues = paths_from_top(parent, leaf), np.ones(3, dtype=bool), np.arange(3)
    for kappa, first in ((0.1, [False, False, True]), (0.2, [False, True, True]), (0.4, [True, True, True])):
        loose = loosened(keys, weight, kappa=kappa)
        assert first_of_siblings(keys, loose, parent, paths, queues, everybody).tolist() == first
    # Who has nobody in the pool does not count.
    pool = np.array([True, False, False])
    assert first_of_siblings(keys, keys, parent, paths, queues, pool).tolist() == [True, False, False]


def test_by_default_queues_take_turns_and_with_kappa_the_score_decides_for_as_long():
    # Tasks of a tenth; those of queue 0 pack better. With 0.2 it starts three before queue 1 has one: 0.2 ahead, and
    # then one task.
    waiting = in_queues(tasks((0, 5, (1.0,)), (1, 5, (0.99,))), [1.0, 1.0])
    policy = Policy(srtf=0.0, fairness=0.0)
    assert sorted(row for row, _ in pairs(once(cluster((10,)), waiting, policy))[:2]) == [0, 1]
    loose = replace(policy, queue_kappa=0.2)
    assert [row for row, _ in pairs(once(cluster((10,)), waiting, loose))][:4] == [0, 0, 0, 1]


@given(
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from([1.0, 2.0, 3.0])), min_size=2, max_size=4),
    st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=4, max_size=4),
    st.sampled_from(KAPPAS),
    st.integers(1, 3),
)
def test_a_queue_is_never_more_than_kappa_and_one_task_ahead_of_one_that_waits(classes, weights, kappa, nodes):
    # Every task is as large, so what fits for one fits for all; they differ in work, which the score goes by.
    waiting = tasks(*((row, count, (1.0,)) for row, (count, _) in enumerate(classes)), work=[w for _, w in classes])
    weight = np.array(weights[: len(classes)])
    plan = once(cluster(*[(10,)] * nodes), in_queues(waiting, weight), Policy(queue_kappa=kappa))
    held, left, task = np.zeros(len(classes)), waiting.count.copy(), 0.1 / nodes
    assert len(plan.assignments) == min(left.sum(), 10 * nodes)
    for queue, _ in pairs(plan):
        least = (held / weight)[left > 0].min()
        held[queue] += task
        left[queue] -= 1
        assert held[queue] <= least * weight[queue] + kappa + task + 1e-9


def test_a_kappa_of_the_whole_cluster_or_more_is_refused():
    with pytest.raises(SettingsError, match=r"queue_kappa: 1\.0; accepted: at least 0, below 1"):
        Policy(queue_kappa=1.0)
