"""Whose turn it is in a plan: queues, who is due, the knob. Nodes of cores; each class is a job of its queue."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.waiting import Jobs, QueueGroups
from extender.planner import Carried, Planner, Policy
from extender.planner.fairness.queue_order import QueueOrder
from extender.planner.fairness.turn import Fairness
from tests.service.costs import calls_of, elements_of
from tests.service.planner.scenes import cluster, once, pairs, tasks


def in_queues(*classes, has=(), weight=None, minimum=None, **more):
    """Return classes (queue, count, cores), each of a job of its own; queues have so many cores beside."""
    waiting = tasks(*((row, count, (cores,)) for row, (_, count, cores) in enumerate(classes)), **more)
    queues = 1 + max(queue for queue, _, _ in classes)
    queue = np.array([queue for queue, _, _ in classes] + list(range(queues)))
    held = np.zeros((len(queue), 6))
    held[len(classes) :, 0] = list(has) or [0.0] * queues
    weight = np.ones(queues) if weight is None else np.array(weight, float)
    flat = np.full(queues, -1)
    jobs = Jobs(
        names=[f"job{row}" for row in range(len(queue))],
        queue=queue,
        weight=np.ones(len(queue)),
        allocated=held,
        work=np.ones(len(queue)),
        queue_names=[f"queue{row}" for row in range(queues)],
        queue_weight=weight,
        groups=QueueGroups(weight, np.zeros(queues) if minimum is None else np.array(minimum), flat, np.arange(queues)),
    )
    return replace(waiting, jobs=jobs)


def taken(*cores, size=4.0):
    """Return nodes of which so many cores are taken."""
    return cluster(*[(size,)] * len(cores), allocated=[[used, *[0] * 5] for used in cores])


def by_queue(plan, *queues):
    """Return how many tasks start of each queue, the classes being of these."""
    rows = np.array(queues)[plan.assignments.task_class]
    return np.bincount(rows, minlength=max(queues) + 1).tolist()


def test_freed_room_goes_to_the_queue_that_has_least_by_its_weight():
    # Of 8 cores queue 0 (weight 3) has 5, queue 1 (weight 1) 1: 5/3 > 1, so 1 has the first; then 5/3 < 2.
    waiting = in_queues((0, 9, 1), (1, 9, 1), has=[5, 1], weight=[3, 1])
    assert by_queue(once(taken(3, 4), waiting), 0, 1) == [0, 1]
    assert by_queue(once(taken(3, 3), waiting), 0, 1) == [1, 1]


@pytest.mark.parametrize("age", [0.0, 100.0, 1e4, 1e6])
def test_neither_age_nor_many_classes_change_that(age):
    # Queue 1 has 40 classes, all of them old; weights 3 and 1 of 8 cores are 6 and 2.
    classes = [(0, 9, 1), *[(1, 1, 1)] * 40]
    waiting = replace(in_queues(*classes, weight=[3, 1]), since=np.array([age, *[0.0] * 40]))
    assert by_queue(once(taken(0, 0), waiting, now=age), *[queue for queue, _, _ in classes]) == [6, 2]


def test_a_queue_below_its_minimum_goes_first_whatever_its_weight():
    # Of 8 cores queue 0 has 1 of its minimum of 2, queue 1 none and weight 9.
    waiting = in_queues((0, 9, 1), (1, 9, 1), has=[1, 0], weight=[1, 9], minimum=[0.25, 0.0])
    assert by_queue(once(taken(4, 3), waiting), 0, 1) == [1, 0]
    assert by_queue(once(taken(4, 2), waiting), 0, 1) == [1, 1]


def test_what_the_first_queue_cannot_use_the_next_may_have():
    waiting = in_queues((0, 9, 4), (1, 9, 1), has=[0, 6])
    assert by_queue(once(taken(2, 4), waiting), 0, 1) == [0, 2]


def test_a_queue_passes_its_share_by_one_task_at_most():
    # Halves of 12 cores. Queue 0's tasks take 5: at 5 it is below 6, and has a second; at 10 the rest is queue 1's.
    waiting = in_queues((0, 9, 5), (1, 99, 1))
    found = once(cluster((12,)), waiting)
    assert by_queue(found, 0, 1) == [1, 7]
    one_each = once(cluster((16,)), waiting)
    assert by_queue(one_each, 0, 1) == [2, 6]


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8), st.sampled_from([1.0, 2.0, 3.0])), min_size=2, max_size=6),
    st.lists(st.sampled_from([0.0, 500.0, 990.0]), min_size=6, max_size=6),
    st.lists(st.integers(0, 6), min_size=3, max_size=3),
)
def test_no_queue_starts_anything_while_one_with_less_waits_that_fits(classes, since, has):
    # One node, so that what fits for one task fits anywhere: replay the starts, and look before each.
    queues = 1 + max(queue for queue, _, _ in classes)
    waiting = in_queues(*classes, has=has[:queues])
    waiting = replace(waiting, since=np.array(since[: len(classes)]))
    free, used = 12.0, np.array(has[:queues], float)
    left = [count for _, count, _ in classes]
    plan = once(cluster((12,)), waiting, now=1000.0)
    for row in plan.assignments.task_class.tolist():
        queue, _, cores = classes[row]
        able = {q for (q, _, c), n in zip(classes, left, strict=True) if n and c <= free}
        assert used[queue] <= min(used[other] for other in able) + 1e-9
        free, used[queue], left[row] = free - cores, used[queue] + cores, left[row] - 1


def test_inside_a_queue_the_part_of_the_jobs_that_has_most_is_left_out():
    # Four jobs have 4, 3, 2 and 1 cores; the first has the least work left, but a quarter of the four is left out.
    waiting = tasks(
        *((job, 1, (1,)) for job in range(4)), work=[1, 9, 9, 9], held=[[n, *[0] * 5] for n in (4, 3, 2, 1)]
    )
    policy = Policy(srtf=1000)
    assert pairs(once(cluster((11,), allocated=[[10, *[0] * 5]]), waiting, policy))[0] != (0, 0)
    assert pairs(once(cluster((11,), allocated=[[10, *[0] * 5]]), waiting, replace(policy, fairness=0.0)))[0] == (0, 0)


@pytest.mark.parametrize("queue", [0, 1])
def test_a_job_of_which_nobody_waits_any_more_takes_no_place_among_those_that_are_furthest_below_their_share(queue):
    # Of four jobs the two that have least are in line, and of these job 0 has the least work left. Its one task starts:
    # of the other three jobs 1 and 2 have least, and of these job 2 has the least work left.
    waiting = tasks(
        *((job, count, (1,)) for job, count in enumerate((1, 9, 9, 9, 0))),
        work=[1, 9, 2, 1, 0],
        held=[[n, *[0] * 5] for n in (1, 3, 4, 5, 1)],
    )
    jobs = replace(waiting.jobs, queue=np.array([queue] * 4 + [0]), queue_names=["a", "b"], queue_weight=np.ones(2))
    waiting = replace(waiting, jobs=jobs)
    plan = once(cluster((16,), allocated=[[14, *[0] * 5]]), waiting, Policy(fairness=0.5, srtf=1000))
    assert [row for row, _ in pairs(plan)] == [0, 2]


@pytest.mark.parametrize(("holds", "owed"), [(0, 0.75), (1, 0.5)])
def test_jobs_share_their_queue_with_those_that_wait_for_something_or_have_something(holds, owed):
    # Job 0 has 1 of 4 cores: a quarter of its share if it is alone, half of it if there are two.
    waiting = tasks((0, 1, (1,)), (1, 0, (1,)), held=[[1, *[0] * 5], [holds, *[0] * 5]])
    plan = once(cluster((4,), allocated=[[1, *[0] * 5]]), waiting)
    assert [terms.owed for terms in plan.terms] == [owed]


def test_a_queue_whose_share_is_nothing_has_what_others_leave_and_is_owed_nothing():
    plan = once(cluster((3,)), in_queues((0, 1, 1), (1, 9, 1), weight=[1, 0]))
    assert [(row, terms.owed) for (row, _), terms in zip(pairs(plan), plan.terms, strict=True)] == [
        (0, 1.0),
        (1, -np.inf),
        (1, -np.inf),
    ]


def test_with_more_jobs_than_slots_the_one_that_runs_and_has_least_left_goes_on():
    # Fifty jobs, of which one has a core of two; it has least left to do. Not serving it would serve all in turn.
    held = [[1, *[0] * 5], *[[0] * 6] * 49]
    waiting = tasks(*((job, 1, (1,)) for job in range(50)), work=[1, *[50] * 49], held=held)
    assert pairs(once(cluster((2,), allocated=[[1, *[0] * 5]]), waiting)) == [(0, 0)]


def test_a_class_that_is_due_goes_first_in_its_queue_in_every_second_start():
    # Class 0 has by far the most work left, and is due (120 s, and twice the queue's 101 s of work, have passed).
    waiting = tasks((0, 9, (1,)), (1, 9, (1,)), work=[100, 1])
    waiting = replace(waiting, since=np.array([0.0, 999.0]))
    fresh = replace(waiting, since=np.array([900.0, 999.0]))
    policy = Policy(fairness=0, srtf=1000)
    assert pairs(once(cluster((1,)), fresh, policy, now=1000.0)) == [(1, 0)]
    plan = once(cluster((1,)), waiting, policy, now=1000.0)
    assert pairs(plan) == [(0, 0)]
    assert [terms.starved for terms in plan.terms] == [True]
    assert plan.carried.by_due == {"default"}
    then = once(cluster((1,)), waiting, policy, now=1000.0, carried=plan.carried)
    assert pairs(then) == [(1, 0)]
    assert not then.carried.by_due


def test_of_several_classes_that_are_due_the_first_starts_and_then_every_second_start_is_of_the_next():
    # Classes 0 and 1 are due, the second for longer; the third is new, and has by far the least work left.
    waiting = tasks((0, 9, (1,)), (1, 9, (1,)), (2, 9, (1,)), work=[100, 100, 1])
    waiting = replace(waiting, since=np.array([10.0, 0.0, 999.0]))
    plan = once(cluster((5,)), waiting, Policy(fairness=0, srtf=1000), now=1000.0)
    assert [row for row, _ in pairs(plan)] == [1, 2, 0, 2, 2]


def test_a_due_time_stays_as_it_was_said_until_the_class_starts():
    # 120 s and twice the 50 s of work that its queue had at 130 s; that much more comes later changes nothing.
    waiting = tasks((0, 1, (2,)), (1, 1, (2,)), work=[25, 25])
    planner, full = Planner(), cluster((2,), allocated=[[2, *[0] * 5]])
    first = planner.plan(full, waiting, 130.0)
    assert first.carried.due["class0"].due == pytest.approx(220.0)
    assert first.again_at == pytest.approx(220.0)
    more = replace(waiting, jobs=replace(waiting.jobs, work=np.array([25.0, 5000.0])))
    assert planner.plan(full, more, 200.0).carried.due["class0"].due == pytest.approx(220.0)
    assert once(full, more, now=200.0, carried=Carried()).carried.due["class0"].due > 1000.0, "a restart says it anew"
    waits_anew = replace(more, since=np.array([210.0, 0.0]))
    assert "class0" not in planner.plan(full, waits_anew, 221.0).carried.due


def test_nobody_is_due_merely_because_a_backlog_is_long():
    # A thousand classes of 10 s on one core: 10,000 s of work, so nobody is due after half an hour.
    waiting = tasks(*((0, 1, (1,)) for _ in range(1000)), work=[10_000.0])
    assert [terms.starved for terms in once(cluster((1,)), waiting, now=1800.0).terms] == [False]


def test_a_tree_of_queues_is_offered_room_from_the_top():
    # A team of weight 1 with queues x (weight 3) and y (1), beside a queue of weight 1, on 8 cores: 4 (3 and 1), and 4.
    waiting = in_queues((0, 9, 1), (1, 9, 1), (2, 9, 1))
    groups = QueueGroups(np.array([1.0, 3.0, 1.0, 1.0]), np.zeros(4), np.array([-1, 0, 0, -1]), np.array([1, 2, 3]))
    waiting = replace(waiting, jobs=replace(waiting.jobs, groups=groups))
    assert by_queue(once(cluster((8,)), waiting), 0, 1, 2) == [3, 1, 4]


def in_a_team(*classes, has, minimum=0.0):
    """Return classes of queues 0 and 1, which are below a team, and of 2 beside it; queue 0 has a minimum."""
    waiting = in_queues(*classes, has=has)
    groups = QueueGroups(np.ones(4), np.array([0.0, minimum, 0.0, 0.0]), np.array([-1, 0, 0, -1]), np.array([1, 2, 3]))
    return replace(waiting, jobs=replace(waiting.jobs, groups=groups))


def test_what_the_queues_of_a_team_have_counts_as_the_teams():
    # The team has 3 + 2 of 12 cores and the queue beside it 4, though both of the team's queues have less than that.
    waiting = in_a_team((0, 9, 1), (1, 9, 1), (2, 9, 1), has=[3, 2, 4])
    assert pairs(once(taken(4, 4, 3), waiting)) == [(2, 2)]


@pytest.mark.parametrize("kappa", [0.0, 0.01, 0.2])
def test_a_queue_below_its_minimum_goes_first_though_its_team_has_more_than_others(kappa):
    # Of 12 cores queue 0 has none of its minimum of 3, its team has 6, and queue 2 has 1.
    waiting = in_a_team((0, 9, 1), (2, 9, 1), has=[0, 6, 1], minimum=0.25)
    assert pairs(once(taken(4, 4, 3), waiting, Policy(queue_kappa=kappa))) == [(0, 2)]


def test_what_is_tried_and_taken_back_leaves_the_order_of_queues_as_it_was():
    jobs = in_queues((0, 1, 1), (1, 1, 1), has=[2, 1]).jobs
    order = QueueOrder(jobs, np.array([[0.5], [0.25]]), np.array([[1.0], [1.0]]))
    before, undo = order.keys().copy(), order.checkpoint()
    order.count(1, np.array([0.5]))
    order.save(0, np.array([0.5]))
    assert order.keys().tolist() != before.tolist()
    undo()
    assert order.keys().tolist() == before.tolist()


def test_to_choose_among_few_classes_costs_no_call_for_each_queue():
    waiting = in_queues(*[(queue, 1, 1) for queue in range(200)])
    snapshot = cluster((8,))
    fairness = Fairness(Policy(), waiting, snapshot.layout.total, waiting.demand)
    only = np.zeros(200, np.int64)
    only[7] = 1
    assert fairness.in_line.all()
    assert calls_of(lambda: (fairness.among(only), fairness.in_line)) < 200
    assert fairness.in_line.nonzero()[0].tolist() == [7]


def test_who_is_in_line_is_settled_once_for_many_starts():
    # The knob leaves out one of the four that count: three that have something, and the first that has nothing.
    waiting = in_queues(*[(0, 3, 1) for _ in range(10)])
    fairness = Fairness(Policy(), waiting, cluster((8,)).layout.total, waiting.demand)
    assert fairness.in_line.all()
    before = fairness.changes
    for row in (0, 0, 1, 2):
        fairness.count(row)
    assert fairness.in_line.tolist() == [False] + [True] * 9
    assert fairness.changes == before + 1


def test_a_plan_looks_for_no_queues_to_reserve_room_for_where_nobody_is_due_or_outranks_others():
    waiting = tasks(*((row, 1, (1,)) for row in range(10)))
    with pytest.MonkeyPatch.context() as patched:
        looked_at = elements_of(patched, ["unique"], lambda: once(cluster((4,)), waiting))
    assert looked_at == 1, "the shape of the one node"


def test_a_start_sorts_no_queues_where_all_are_below_one():
    # 40 queues below another, as all that nobody declares: 20 starts, each of which changes whose turn is next.
    waiting = in_queues(*[(queue, 1, 1) for queue in range(40)])
    groups = QueueGroups(np.ones(41), np.zeros(41), np.array([40] * 40 + [-1]), np.arange(40))
    waiting = replace(waiting, jobs=replace(waiting.jobs, groups=groups))
    with pytest.MonkeyPatch.context() as patched:
        assert elements_of(patched, ["lexsort"], lambda: once(cluster((20,)), waiting)) < 20


def test_the_jobs_of_each_queue_are_found_at_once_not_by_a_look_at_all_jobs_for_each(monkeypatch):
    def looked_at(queues):
        waiting = in_queues(*[(queue, 1, 1) for queue in range(queues)])
        return elements_of(monkeypatch, ["flatnonzero"], lambda: once(cluster((1,)), waiting))

    assert looked_at(80) < 3 * looked_at(40)
