"""How far a queue, or a job of a queue, may be ahead of another."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.errors import SettingsError
from extender.planner import Policy
from extender.policy.turn import first_of_siblings, loosened, near_the_least, paths_from_top
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


def test_with_kappa_the_job_with_less_work_goes_first_in_whichever_queue_it_is():
    # Each queue has one job. By its own queue's mean each has as much work as the other.
    waiting = in_queues(tasks((0, 5, (1.0,)), (1, 5, (1.0,))), [1.0, 1.0])
    waiting = replace(waiting, jobs=replace(waiting.jobs, work=np.array([9.0, 1.0])))
    policy = Policy(fairness=0.0, queue_kappa=0.2)
    assert [row for row, _ in pairs(once(cluster((10,)), waiting, policy))][:4] == [1, 1, 1, 0]


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


def test_who_is_near_the_least_of_its_family_is_in_and_who_has_nobody_in_the_pool_does_not_count():
    # Families 0 (0.1, 0.3) and 1 (0.5): the least of family 1 that counts is 0.5, as 0.0 is not in the pool.
    keys, family = np.array([0.1, 0.3, 0.5, 0.0]), np.array([0, 0, 1, 1])
    pool = np.array([True, True, True, False])
    assert near_the_least(keys, keys - 0.15, family, pool).tolist() == [True, False, True, False]
    assert near_the_least(keys, keys - 0.2, family, pool).tolist() == [True, True, True, False]


@pytest.mark.parametrize(("kappa", "first"), [(0.0, [0, 1, 1, 0]), (0.2, [0, 0, 0, 1]), (1.0, [0, 0, 0, 0])])
def test_a_job_may_be_kappa_of_the_cluster_ahead_of_another_of_its_queue(kappa, first):
    # Tasks of a tenth, equal weights; those of job 0 pack better. With 0 job 1
    # has two after job 0's first, as 0.099 is less than 0.1; with 0.2 job 0 has three before.
    waiting = tasks((0, 5, (1.0,)), (1, 5, (0.99,)))
    plan = once(cluster((10,)), waiting, Policy(srtf=0.0, fairness=0.0, kappa=kappa))
    assert [row for row, _ in pairs(plan)][:4] == first


def test_the_unit_of_kappa_is_the_dominant_share_or_memory():
    # Job 0's tasks take a fifth of the CPU and a hundredth of the memory: with DRF one makes it a fifth ahead.
    waiting = tasks((0, 4, (2.0, 0.1)), (1, 4, (0.1, 0.1)))
    policy = Policy(srtf=0.0, fairness=0.0, kappa=0.1)
    assert [row for row, _ in pairs(once(cluster((10, 10)), waiting, policy))][:3] == [0, 1, 1]
    assert [row for row, _ in pairs(once(cluster((10, 10)), waiting, replace(policy, sharing="slots")))][:3] == [
        0,
        0,
        0,
    ]


sizes = st.sampled_from([1.0, 2.0, 3.0, 5.0])


@given(
    st.lists(st.tuples(st.integers(1, 8), sizes, sizes, st.integers(0, 1)), min_size=2, max_size=5),
    st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=5, max_size=5),
    st.lists(st.tuples(st.integers(2, 12), st.integers(2, 12)), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.sampled_from([0.0, 0.25]),
    st.sampled_from(["machine", "pair", "bundle"]),
    st.sampled_from([0, 0, 2, 4]),
)
def test_nobody_with_work_that_fits_is_more_than_kappa_and_a_task_behind_another_of_its_queue(
    classes, weights, sizes, kappa, fairness, matching, gang
):
    # The first class may be a gang. Then it goes whole; whether it could have gone before is not for this test.
    waiting = tasks(*((row, count, (cpu, memory)) for row, (count, cpu, memory, _) in enumerate(classes)))
    weight, queue = np.array(weights[: len(classes)]), np.array([queue for *_, queue in classes])
    waiting = replace(
        waiting,
        jobs=replace(waiting.jobs, weight=weight, queue=queue, queue_names=["a", "b"], queue_weight=np.ones(2)),
    )
    alone = np.ones(len(classes), dtype=bool)
    if gang:
        alone[0] = False
        waiting = replace(waiting, gang=np.where(alone, -1, 0), gang_least=np.array([gang]))
    policy = Policy(kappa=kappa, fairness=fairness, matching=matching)
    plan = once(cluster(*sizes), waiting, policy)
    demand, total = waiting.demand[:, :2], np.sum(sizes, axis=0)
    part = np.array([weight[row] / weight[queue == queue[row]].sum() for row in range(len(queue))])
    part /= len(set(queue.tolist()))
    share, free, left = np.zeros((len(classes), 2)), np.array(sizes, dtype=float), waiting.count.copy()
    for row, node in pairs(plan):
        rivals = alone & (left > 0) & (queue == queue[row]) & (demand <= free[node]).all(axis=1)
        dominant = (share / total).max(axis=1)
        # By its weight, nobody that could have had this room has less than the one that gets it, less kappa.
        assert dominant[row] <= (part[row] * dominant / part)[rivals].min(initial=np.inf) + kappa + 1e-9
        share[row] += demand[row]
        free[node] -= demand[row]
        left[row] -= 1


@pytest.mark.parametrize("kappa", [-0.1, 1.1])
def test_a_kappa_of_a_job_beyond_0_to_1_is_refused(kappa):
    with pytest.raises(SettingsError, match=r"kappa: -?\d\.1; accepted: each 0 to 1"):
        Policy(kappa=kappa)


def test_a_kappa_of_the_whole_cluster_or_more_is_refused():
    with pytest.raises(SettingsError, match=r"queue_kappa: 1\.0; accepted: at least 0, below 1"):
        Policy(queue_kappa=1.0)
