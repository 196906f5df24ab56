"""Who goes before others, whatever the score."""

from dataclasses import replace

import numpy as np

from extender.cluster.waiting import Running
from extender.planner import Policy
from extender.planner.fairness.precedence import before_others
from tests.service.planner.scenes import cluster, once, pairs, tasks

TOTAL = np.array([100.0, *[0.0] * 5])


def test_the_last_of_a_stage_go_before_small_jobs_and_these_before_long_chains_the_longest_first():
    # Class 5 is the last of its stage, class 4 small; of 100 s the chains of classes 1, 2 and 0 take 60, 50 and 40.
    waiting = tasks(*((job, 1, (1,)) for job in range(6)), work=[9, 9, 9, 9, 1, 9])
    path = np.array([40.0, 60.0, 50.0, 3.0, 2.0, 1.0])
    waiting = replace(waiting, jobs=replace(waiting.jobs, path=path), left_seconds=100.0)
    before = before_others(Policy(), waiting, np.arange(6) == 5, TOTAL)
    assert np.argsort(-before).tolist() == [5, 4, 1, 2, 0, 3]
    assert before[4] == 0
    assert np.diff(np.sort(before)).min() >= 1e6  # more than any two scores differ


def test_a_thin_job_of_long_tasks_goes_before_wide_ones_that_no_chain_is_known_of():
    waiting = tasks((0, 9, (1,)), (1, 1, (1,)), work=[9, 1])
    waiting = replace(waiting, duration=np.array([30.0, 30.0]), left_seconds=100.0)
    assert waiting.jobs.path is None
    policy, last = Policy(small=0.0), np.zeros(2, dtype=np.bool_)
    before = before_others(policy, waiting, last, TOTAL)
    assert before[1] > before[0]
    assert not before_others(policy, replace(waiting, left_seconds=np.inf), last, TOTAL).any()


def test_one_long_task_does_not_wait_for_small_jobs_to_the_end_but_where_such_tasks_have_a_tenth_of_the_cluster():
    # 300 s of work are left. Class 1 is one task of 300 s, on a hundredth of the cluster; class 0 is small beside it.
    waiting = tasks((0, 1, (1,)), (1, 1, (1,)), (2, 90, (1,)), work=[0.1, 3, 297])
    waiting = replace(waiting, duration=np.array([10.0, 300.0, 330.0]), left_seconds=300.0)
    last = np.zeros(3, dtype=np.bool_)
    assert np.argsort(-before_others(Policy(), waiting, last, TOTAL)).tolist() == [1, 0, 2]
    paper = before_others(Policy(tail=np.inf), waiting, last, TOTAL)
    assert not paper.any()

    def beside(cores, seconds):
        held = np.array([[cores, 0, 0, 0, 0, 0]], float)
        running = Running(np.zeros(1, np.intp), np.full(1, 1e4), held, np.array([seconds], float))
        return before_others(Policy(), replace(waiting, running=running), last, TOTAL)[1] > 0

    assert beside(9, 300)
    assert not beside(9.1, 300)
    assert beside(90, 299)
    assert beside(90, np.inf)  # a service: it does not end


def test_beside_a_job_of_very_much_work_the_least_work_goes_first_still():
    # The last of 100 jobs is said to take decades; beside it the others are small. There is room for one task.
    waiting = tasks(*((job, 1, (1,)) for job in range(100)), work=[*range(99, 0, -1), 1e12])
    waiting = replace(waiting, duration=np.array([10.0] * 99 + [1e12]), left_seconds=1e12)
    for policy in (Policy(), Policy(tail=np.inf)):
        assert pairs(once(cluster((1,)), waiting, policy)) == [(98, 0)]
