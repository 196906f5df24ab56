from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from extender.cluster.waiting import Blocks, Running
from extender.planner import Carried, Planner, Policy
from extender.planner.gangs import Gangs
from tests.service.costs import elements_of
from tests.service.planner.scenes import cluster, left_out, load_of, once, pairs, real_scenes, reserved_nodes, tasks

KEEN = Policy(fairness=0)


def with_gangs(waiting, gang, least, **more):
    return replace(waiting, gang=np.array(gang), gang_least=np.array(least), **more)


def started(plan, classes):
    return np.bincount(plan.assignments.task_class, minlength=classes).tolist()


@pytest.mark.parametrize("matching", ["machine", "pair"])
def test_a_gang_that_does_not_fit_leaves_its_room_to_others_in_the_same_plan(matching):
    # 4 CPUs: the gang goes first (little work is left), but needs 5.
    waiting = with_gangs(tasks((0, 9, (1,)), (1, 9, (1,)), work=[1, 100]), [0, -1], [5])
    policy = Policy(matching=matching)
    assert started(once(cluster((4,)), waiting, policy), 2) == [0, 4]
    assert started(once(cluster((5,)), waiting, policy), 2) == [5, 0]


def test_a_gang_goes_with_more_than_its_least_where_there_is_room():
    waiting = with_gangs(tasks((0, 4, (1,))), [0], [2])
    assert started(once(cluster((3,)), waiting), 1) == [3]


def test_a_gang_whose_turn_it_is_goes_whole_also_where_a_plan_is_asked_for_fewer_tasks():
    # Little work of the gang is left, so it goes first; then there is no room for the other.
    waiting = with_gangs(tasks((0, 3, (1,)), (1, 1, (2,)), work=[1, 100]), [0, -1], [3])
    assert started(Planner(KEEN).plan(cluster((4,)), waiting, 0.0, most=1), 2) == [3, 0]


def test_a_gang_that_starts_in_its_turn_does_not_end_the_limit_of_a_plan_for_others():
    # The gang is due and goes first. One task more is asked for at most, and seven would fit.
    waiting = with_gangs(tasks((0, 3, (1,)), (1, 9, (1,))), [0, -1], [3], since=np.array([0.0, 900.0]))
    assert started(Planner(KEEN).plan(cluster((10,)), waiting, 1000.0, most=4), 2) == [3, 1]


def test_a_gang_counts_over_its_classes():
    # One leader of 2 and three workers of 1.
    waiting = with_gangs(tasks((0, 1, (2,)), (0, 3, (1,))), [0, 0], [4])
    assert started(once(cluster((4,)), waiting), 2) == [0, 0]
    assert started(once(cluster((5,)), waiting), 2) == [1, 3]


@pytest.mark.parametrize("fairness", [0.0, 0.9])
def test_of_two_gangs_that_fit_one_at_a_time_one_goes(fairness):
    # 8 CPUs, two gangs of 5: matched together one gets 5 and one 3; in fair turns both get 4.
    waiting = with_gangs(tasks((0, 5, (1,)), (1, 5, (1,))), [0, 1], [5, 5])
    plan = once(cluster((4,), (4,)), waiting, Policy(fairness=fairness))
    assert sorted(started(plan, 2)) == [0, 5]


def test_what_nobody_else_can_use_is_offered_to_gangs_that_were_left_out():
    # 8 CPUs, in fair turns: gangs of 4 get 2 each. Two of them stay for a second round, and fill the cluster.
    waiting = with_gangs(tasks(*[(job, 4, (1,)) for job in range(4)]), [0, 1, 2, 3], [4] * 4)
    assert sorted(started(once(cluster((4,), (4,)), waiting, Policy(fairness=0.9)), 4)) == [0, 0, 4, 4]
    # Gangs of 3 on 8: two go, and the 2 CPUs that are left go to what is left of them.
    waiting = replace(waiting, gang_least=np.array([3] * 4))
    assert sum(started(once(cluster((4,), (4,)), waiting, Policy(fairness=0.9)), 4)) == 8


def test_a_gang_that_was_left_out_and_goes_after_all_has_more_than_its_least_where_there_is_room():
    # 4 CPUs, in fair turns: four of five gangs of 3 get 1 each, then two of them 2. By itself one has its 3, and 1.
    waiting = with_gangs(tasks(*[(job, 4, (1,)) for job in range(5)]), range(5), [3] * 5)
    assert sorted(started(once(cluster((4,)), waiting, Policy(fairness=0.9)), 5)) == [0, 0, 0, 0, 4]


def test_of_gangs_that_were_left_out_the_first_of_a_fifo_queue_is_tried_first():
    waiting = with_gangs(tasks((0, 4, (1,)), (0, 4, (1,)), (0, 4, (1,))), [0, 1, 1], [4, 4])
    assert Gangs(waiting).in_line([1, 0]) == [1, 0]
    assert Gangs(replace(waiting, behind=np.array([1, 3, 2]))).in_line([1, 0]) == [0, 1]


def test_a_gang_of_which_enough_runs_is_as_single_tasks():
    waiting = with_gangs(tasks((0, 9, (1,))), [0], [0])
    assert started(once(cluster((2,)), waiting), 1) == [2]


def test_gangs_whose_tasks_do_not_all_wait_yet_hold_up_nobody():
    waiting = with_gangs(tasks((0, 2, (1,)), (1, 9, (1,)), work=[1, 100]), [0, -1], [3])
    plan = once(cluster((4,)), waiting, explain=True)
    assert started(plan, 2) == [0, 4]
    assert plan.held[0].kind == "gang"
    assert plan.held[0].text == "its gang of 3 is not complete: only 2 wait"


def test_a_gang_that_does_not_fit_now_says_so():
    plan = once(cluster((3,), allocated=[(1,)]), with_gangs(tasks((0, 3, (1,))), [0], [3]), explain=True)
    assert plan.held[0].kind == "gang"
    assert plan.held[0].text == "its gang of 3 does not fit in one plan"


@pytest.mark.parametrize("classes", [[(0, 3, (2,))], [(0, 1, (2,)), (0, 2, (2,))]])
def test_a_gang_that_would_not_fit_if_all_nodes_were_empty_is_too_large(classes):
    # Each node of 3 holds one task of 2, whatever classes the tasks are of. The last two do not allow them.
    gangs = with_gangs(tasks(*classes), [0] * len(classes), [3])
    gangs = replace(gangs, barred=np.array([[False, False, True, True]] * len(classes)))
    plan = once(cluster(*[(3,)] * 4), gangs, explain=True)
    said = "its gang of 3 is too large: empty, the nodes that allow it hold 2"
    assert {(held.kind, held.text) for held in plan.held.values()} == {("too-large", said)}


def test_a_starved_gang_goes_before_singles_but_takes_no_more_than_its_least():
    # The singles have less work left, so they would take all 4 CPUs.
    waiting = with_gangs(tasks((0, 9, (1,)), (1, 9, (1,)), work=[100, 1]), [0, -1], [3])
    policy = Policy(srtf=1000, fairness=0)
    fresh = replace(waiting, since=np.array([900.0, 900.0]))
    assert started(once(cluster((4,)), fresh, policy, now=1000.0), 2) == [0, 4]
    starved = replace(waiting, since=np.array([0.0, 900.0]))
    assert started(once(cluster((4,)), starved, policy, now=1000.0), 2) == [3, 1]


def test_of_starved_gangs_the_one_that_waited_longest_goes_first_and_one_that_does_not_fit_holds_up_nobody():
    waiting = tasks((0, 5, (1,)), (1, 3, (1,)), (2, 3, (1,)), (3, 9, (1,)))
    waiting = with_gangs(waiting, [0, 1, 2, -1], [5, 3, 3], since=np.array([0.0, 300.0, 200.0, 999.0]))
    plan = once(cluster((4,)), waiting, now=1000.0)
    assert started(plan, 4) == [0, 0, 3, 0]
    assert list(reserved_nodes(plan)) == ["class1"]  # the CPU that is left is kept for the next gang


def test_a_starved_gang_that_is_more_than_its_queues_part_has_its_turn_like_any_other():
    # All 4 CPUs: twice what its queue may have while the other wants a task that fits nowhere.
    waiting = with_gangs(tasks((0, 1, (9,)), (1, 4, (1,))), [-1, 0], [4], since=np.array([900.0, 0.0]))
    jobs = replace(
        waiting.jobs, queue=np.array([0, 1]), queue_names=["other", "its own"], queue_weight=np.array([0.5, 0.5])
    )
    assert started(once(cluster((4,)), replace(waiting, jobs=jobs), now=1000.0), 2) == [0, 4]


def test_what_a_gang_that_has_begun_still_lacks_goes_first_however_much_its_queue_has():
    # 2 of 5 CPUs are the gang's, which lacks the 3 others: they alone are more than its queue's half.
    waiting = with_gangs(tasks((0, 4, (1,)), (1, 3, (1,)), held=[[0] * 6, [2, *[0] * 5]]), [-1, 0], [3])
    jobs = replace(
        waiting.jobs, queue=np.array([0, 1]), queue_names=["other", "its own"], queue_weight=np.array([0.5, 0.5])
    )
    snapshot = cluster((5,), allocated=[[2, *[0] * 5]])

    def starts(since):
        return started(once(snapshot, replace(waiting, jobs=jobs, since=np.array([900.0, since])), now=1000.0), 2)

    assert starts(0.0) == [3, 0]
    assert starts(-np.inf) == [0, 3]


def test_a_starved_gang_does_not_go_before_its_fifo_queues_head():
    waiting = with_gangs(tasks((0, 2, (1,)), (0, 3, (1,))), [-1, 0], [3], since=np.array([999.0, 0.0]))
    assert started(once(cluster((4,)), waiting, now=1000.0), 2) == [1, 3]
    in_line = replace(waiting, behind=np.array([0, 1]))
    assert started(once(cluster((4,)), in_line, now=1000.0), 2) == [2, 0]
    assert started(once(cluster((5,)), in_line, now=1000.0), 2) == [2, 3]


def test_room_is_reserved_for_all_of_a_due_gang_or_for_none_of_it():
    # One of 4 CPUs is in use on n1, by a task that ends at 1050 s, or by what never ends.
    snapshot = cluster((4,), (4,), allocated=[[0] * 6, [1, *[0] * 5]])
    ends = Running(np.array([1]), np.array([1050.0]), np.array([[1.0, *[0] * 5]]))
    never = Running(np.empty(0, np.intp), np.empty(0), np.empty((0, 6)))
    waiting = tasks((0, 2, (4,)), (1, 9, (1,)), running=ends)
    waiting = with_gangs(waiting, [0, -1], [2], since=np.array([0.0, 999.0]))
    waiting = replace(waiting, duration=np.array([10.0, 100.0]))
    plan = once(snapshot, waiting, now=1000.0)
    assert not pairs(plan)
    assert reserved_nodes(plan) == {"class0": ["n0", "n1"]}
    assert started(once(cluster((4,), (4,)), waiting, now=1050.0, carried=plan.carried), 2) == [2, 0]
    hopeless = once(snapshot, replace(waiting, running=never), now=1000.0)
    assert not hopeless.carried.reserved
    assert started(hopeless, 2) == [0, 7]
    short = once(snapshot, replace(waiting, count=np.array([1, 9])), now=1000.0)
    assert not short.carried.reserved, "one of two is not there"
    assert started(short, 2) == [0, 7]


def test_a_gang_is_planned_with_the_lowest_of_its_priorities():
    # The leader outranks the single task, its workers do not.
    waiting = with_gangs(tasks((0, 1, (2,)), (0, 2, (1,)), (1, 1, (3,))), [0, 0, -1], [3], priority=np.array([9, 0, 5]))
    assert started(once(cluster((4,)), waiting), 3) == [0, 0, 1]
    assert started(once(cluster((7,)), waiting), 3) == [1, 2, 1]


def test_a_gang_of_a_higher_priority_is_not_left_out_for_one_of_a_lower():
    waiting = with_gangs(tasks((0, 3, (1,)), (1, 9, (1,))), [0, 1], [3, 4], priority=np.array([1, 2]))
    assert started(once(cluster((6,)), waiting), 2) == [0, 6]
    assert started(once(cluster((3,)), waiting), 2) == [3, 0]


def test_a_gang_that_was_tried_and_left_out_leaves_no_trace():
    # Blocks, shuffles' disks and shares: as if its tasks did not wait. Each alone would fit, both do not.
    blocks = Blocks(np.array([[0], [1], [1], [0]]), np.ones(4, bool), 2)
    both = tasks((0, 4, (3, 1), 5, blocks), (0, 4, (3, 1), 5, blocks), (1, 4, (1, 1), 2))
    both = with_gangs(both, [0, 1, -1], [4, 3])
    snapshot = cluster((6, 8, 30, 30, 30, 30), (6, 8, 30, 30, 30, 30))
    planner = Planner()
    plan = planner.plan(snapshot, both, 0.0)
    one = replace(both, count=np.where([True, False, True], both.count, 0))
    if started(plan, 3)[0] == 0:
        one = replace(both, count=np.where([False, True, True], both.count, 0))
    alone = once(snapshot, one, planner.policy)
    assert started(plan, 3)[:2] in ([4, 0], [0, 3], [0, 4])
    assert pairs(plan) == pairs(alone)
    assert plan.assignments.task.tolist() == alone.assignments.task.tolist()


def test_an_impossible_gang_changes_nothing_for_others():
    waiting = tasks((0, 4, (2, 1)), (0, 2, (1, 2)), (1, 3, (1, 2)))
    snapshot = cluster((4, 6), (5, 5))
    without = replace(waiting, count=np.array([0, 2, 3]))
    plan = once(snapshot, with_gangs(waiting, [0, -1, -1], [9]), KEEN)
    assert pairs(plan) == pairs(once(snapshot, without, KEEN))


@settings(max_examples=400, deadline=None)
@given(real_scenes())
def test_a_plan_starts_a_gang_whole_or_not_at_all(scene):
    snapshot, waiting, policy = scene
    plan = once(snapshot, waiting, policy, now=1000.0, explain=True)
    out = left_out(waiting, plan)
    if waiting.gang is not None:
        out &= waiting.gang_least[waiting.gang] > 1
    assert not np.isin(plan.assignments.task_class, np.flatnonzero(out)).any()
    assert (load_of(snapshot, waiting, plan) <= snapshot.layout.capacity).all()
    left = waiting.count - np.bincount(plan.assignments.task_class, minlength=len(waiting.count))
    assert sorted(plan.held) == np.flatnonzero(left).tolist()


@settings(max_examples=150, deadline=None)
@given(real_scenes())
def test_a_gang_that_would_fit_by_itself_goes_on_a_cluster_where_nobody_else_waits(scene):
    snapshot, waiting, policy = scene
    if waiting.gang is None or not (waiting.gang == 0).any():
        return
    only = replace(waiting, count=np.where(waiting.gang == 0, waiting.count, 0), priority=None)
    free_for_all = once(snapshot, replace(only, gang=None), policy, carried=Carried())
    if len(free_for_all.assignments) >= waiting.gang_least[0]:
        assert len(once(snapshot, only, policy).assignments) >= waiting.gang_least[0]


@pytest.mark.parametrize("since", [0.0, 999.0])
def test_a_plan_looks_at_the_classes_of_a_gang_for_it_and_not_at_all_classes(monkeypatch, since):
    # 100 gangs, each a class: looking at all for each would be 10,000. Room is for 30 of them; all are due, or none is.
    count = 100
    waiting = with_gangs(tasks(*[(row, 2, (1,)) for row in range(count)], since=since), range(count), [2] * count)
    plan = lambda: once(cluster((60,)), waiting, now=1000.0, explain=True)  # noqa: E731 - only made to be counted
    assert elements_of(monkeypatch, ["array", "isin"], plan) < 30 * count
