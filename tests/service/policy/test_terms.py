import numpy as np
from numpy.testing import assert_allclose

from extender.policy.barrier import last_before_barrier
from extender.policy.locality import remote_factor
from extender.policy.remaining import remaining_work, work_by_resource


def test_the_work_of_a_task_is_its_seconds_times_its_parts_of_the_cluster():
    demand = np.array([[2.0, 4.0], [1.0, 0.0]])
    work = work_by_resource(demand, np.array([10.0, 30.0]), np.array([8.0, 16.0]))
    assert_allclose(work, [[10 * 0.25, 10 * 0.25], [30 * 0.125, 0.0]])


def test_what_the_cluster_has_none_of_or_does_not_limit_is_no_work():
    work = work_by_resource(np.array([[1.0, 1.0, 1.0]]), np.ones(1), np.array([4.0, 0.0, np.inf]))
    assert_allclose(work, [[0.25, 0.0, 0.0]])


def test_the_remaining_work_of_a_job_is_that_of_all_its_tasks_that_have_not_ended():
    work = remaining_work(np.array([5.0, 1.0, 2.0]), np.array([3, 4, 0]), np.array([0, 0, 1]), 3)
    assert_allclose(work, [19.0, 0.0, 0.0])


def test_the_last_tenth_of_a_stage_goes_first_and_at_one_nobody_does():
    finished, wanted = np.array([0.0, 0.89, 0.9, 1.0]), np.full(4, 0.1)
    assert last_before_barrier(finished, wanted, barrier=0.9).tolist() == [False, False, True, True]
    assert not last_before_barrier(finished, wanted, barrier=1.0).any()


def test_the_last_tenth_of_a_stage_goes_first_only_where_the_cluster_holds_all_of_it_at_once():
    finished, wanted = np.full(3, 0.9), np.array([0.99, 1.0, 1.01])
    assert last_before_barrier(finished, wanted, barrier=0.9).tolist() == [True, True, False]


def test_a_remote_placement_costs_its_penalty():
    assert_allclose(remote_factor(np.array([False, True]), penalty=0.1), [1.0, 0.9])
