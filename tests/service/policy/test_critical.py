import numpy as np

from extender.policy.critical import chain_seconds, critical, small, urgent


def test_a_job_is_critical_if_its_own_chain_is_long_beside_all_that_is_left():
    chain = np.array([10.0, 25.0, 26.0])
    assert critical(chain, 100.0, tail=0.25).tolist() == [False, True, True]
    assert not critical(chain, 100.0, tail=np.inf).any()


def test_a_job_of_few_long_tasks_is_a_chain_and_one_of_many_is_none():
    path, longest = np.array([60.0, 0, 0]), np.array([40.0, 40, 40])
    work = np.array([30.0, 2, 2.1])  # for 40 s a twentieth of the cluster does 2 s of its work
    assert chain_seconds(path, longest, work).tolist() == [60, 40, 0]


def test_the_smallest_jobs_that_together_are_a_part_of_all_work_are_small():
    work = np.array([50.0, 4.0, 30.0, 6.0, 10.0])  # 4, 6, 10: 4, 10, 20 of 100
    assert small(work, part=0.1).tolist() == [False, True, False, True, False]
    assert not small(work, part=0.0).any()
    assert small(np.empty(0), part=0.5).tolist() == []


def test_the_longest_jobs_that_take_as_long_as_all_that_is_left_are_urgent_up_to_a_tenth_of_the_cluster():
    longest = np.array([100.0, 200.0, 99.0, 150.0, 300.0, 0.0])
    work = np.array([5.0, 10.0, 1.0, 3.0, 33.0, 0.0])  # .05, .05, .01, .02 and .11 of the cluster; the last is a chain
    assert urgent(longest, work, 100.0, taken=0.0).tolist() == [False, True, False, True, False, False]
    assert urgent(longest, work, 100.0, taken=0.04).tolist() == [False, True, False, False, False, False]
    assert not urgent(longest, work, 100.0, taken=0.06).any()
