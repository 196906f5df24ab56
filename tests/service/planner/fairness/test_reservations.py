"""Room that is reserved: for whom, how much, for how long. Nodes of cores, one class a job."""

from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.waiting import Blocks, Running, Shuffle
from extender.planner import Carried, Planner, Policy
from extender.planner.plan import DueTime, Lapse, Reservation
from tests.service.planner.fairness.test_turn import in_queues, taken
from tests.service.planner.scenes import cluster, once, pairs, reserved_nodes, tasks

LATE = 1000.0


def ends(*tasks_of, at=1050.0):
    """Return what runs: (node, cores) each."""
    return Running(
        np.array([node for node, _ in tasks_of], np.intp),
        np.full(len(tasks_of), at),
        np.array([[cores, *[0] * 5] for _, cores in tasks_of], float).reshape(len(tasks_of), 6),
    )


def due_and_small(cores=4, running=None):
    """Return a class of one queue that is due and wants so many cores, and one of small tasks that is new."""
    waiting = tasks((0, 1, (cores,)), (1, 99, (1,)), running=running or ends((0, 3), (1, 3)))
    return replace(waiting, since=np.array([0.0, 999.0]))


def test_only_as_much_is_kept_as_the_claimant_needs():
    # A node of 16 with 12 in use, which end: the claimant needs 8, so of the 4 that are free none is for others; of 10
    # free, 2 are.
    waiting = due_and_small(8, ends((0, 12)))
    plan = once(taken(12, size=16.0), waiting, now=LATE)
    assert pairs(plan) == []
    assert plan.kept_idle == pytest.approx(4 / 16)
    other = replace(waiting, count=np.array([1, 99]), running=ends((0, 6)))
    busy = once(taken(6, size=13.0), replace(other, since=np.array([0.0, 999.0])), now=LATE)
    assert reserved_nodes(busy) == {"class0": ["n0"]}
    assert pairs(busy) == []  # 13 - 6 = 7 free, 8 needed
    roomy = once(taken(6, 0, size=13.0), replace(other, count=np.array([2, 99])), now=LATE)
    assert (0, 1) in pairs(roomy)


def test_what_a_reserved_node_has_beyond_is_for_anybody():
    # 8 of 16 are reserved on n0, where 9 are free by now, but n1 is where the claimant can start.
    carried = Carried(reserved={"class0": Reservation((("class0", "n0", 1),), 2000.0)}, planned_at=LATE)
    waiting = replace(due_and_small(8, ends((0, 10))), since=np.array([0.0, 999.0]))
    plan = once(taken(10, size=16.0), waiting, now=LATE, carried=carried)
    assert pairs(plan) == []
    freed = once(taken(7, size=16.0), waiting, now=LATE, carried=carried)
    assert pairs(freed) == [(0, 0), (1, 0)]


@pytest.mark.parametrize(
    ("cores", "running"),
    [(5, ends((0, 3), (1, 3))), (4, ends((0, 2.9), (1, 2.9)))],
    ids=["larger than any node", "kept off by what never ends"],
)
def test_nothing_is_kept_for_what_cannot_start(cores, running):
    plan = once(taken(3, 3), due_and_small(cores, running), now=LATE)
    assert not plan.carried.reserved
    assert len(plan.assignments) == 2


@pytest.mark.parametrize("cores", [5, 9], ids=["larger than any node", "larger than the cluster"])
def test_who_cannot_have_room_kept_does_not_stand_before_another_that_is_due(cores):
    # Both are due. Class 0 fits on no node by what ends; room is kept for class 1, and its small tasks stay off.
    waiting = tasks((0, 1, (cores,)), (1, 1, (4,)), (2, 99, (1,)), running=ends((0, 3), (1, 3)))
    waiting = replace(waiting, since=np.array([0.0, 1.0, 999.0]))
    plan = once(taken(3, 3), waiting, now=LATE)
    assert list(reserved_nodes(plan)) == ["class1"]


@pytest.mark.parametrize("gang", [False, True], ids=["alone", "of one gang"])
def test_however_many_wait_for_what_never_comes_do_not_stand_before_another_that_is_due(gang):
    # On n0, where alone the first 20 may run, 3 of 4 cores never come free. Those of n1 do, for the last that is due.
    waiting = tasks(*[(0, 1, (2,))] * 20, (1, 1, (4,)), (2, 99, (1,)), running=ends((1, 3)))
    many = np.arange(22) < 20
    waiting = replace(waiting, barred=np.stack((~many, many), axis=1), since=np.append(np.zeros(21), 999.0))
    if gang:
        waiting = replace(waiting, gang=np.where(many, 0, -1), gang_least=np.array([2]))
    assert list(reserved_nodes(once(taken(3, 3), waiting, now=LATE))) == ["class20"]


@pytest.mark.parametrize("now", [1.0, LATE], ids=["not due", "due"])
def test_however_many_queues_wait_for_what_never_comes_do_not_stand_before_another(now):
    # As above, each of the first 20 in a queue of its own.
    queues = [(queue, 1, 2) for queue in range(20)]
    waiting = in_queues(*queues, (20, 1, 4), weight=[0.01] * 20 + [1.0], running=ends((1, 4)))
    many = np.arange(21) < 20
    waiting = replace(waiting, barred=np.stack((~many, many), axis=1))
    assert list(reserved_nodes(once(taken(3, 4), waiting, now=now))) == ["class20"]


def test_all_that_is_kept_is_at_most_a_part_of_the_cluster_but_for_one_claimant():
    # Two due classes of 4 of 40 cores each, in two queues: a tenth each. With 5 % one has a node, with 20 % both.
    waiting = in_queues((0, 1, 4), (1, 1, 4), running=ends(*((node, 3) for node in range(10))))
    snapshot = taken(*[3] * 10)
    assert len(once(snapshot, waiting, Policy(reservable=0.05), now=LATE).carried.reserved) == 1
    assert len(once(snapshot, waiting, Policy(reservable=0.2), now=LATE).carried.reserved) == 2


def test_a_queue_below_its_part_of_which_nothing_fits_has_room_reserved_at_once():
    # Queue 0 has nothing of its half of 8 cores and wants 4; queue 1 has 6.
    waiting = in_queues((0, 1, 4), (1, 9, 1), has=[0, 6], running=ends((0, 3), (1, 3)))
    planner = Planner()
    first = planner.plan(taken(3, 3), waiting, 0.0)
    assert pairs(first) == [(1, 0), (1, 1)], "room that is free before that is for anybody"
    assert not first.carried.reserved, "nobody knows yet when those end"
    full = replace(waiting, running=ends((0, 4), (1, 4)))
    assert reserved_nodes(planner.plan(taken(4, 4), full, 1.0)) == {"class0": ["n0"]}
    assert pairs(planner.plan(taken(2, 4), full, 2.0)) == []
    assert pairs(planner.plan(taken(0, 4), full, 3.0)) == [(0, 0)]


def test_of_classes_that_need_the_same_room_is_kept_at_once_for_the_first_by_the_score_not_the_oldest():
    # Queue 0 has nothing of its half of 8 cores. Its older class has nine times the work of the newer.
    waiting = in_queues((0, 9, 4), (0, 1, 4), (1, 9, 4), has=[0, 8], running=ends((0, 4), (1, 4)))
    work = np.array([9.0, 1.0, 1.0, 0.0, 0.0])
    waiting = replace(waiting, since=np.array([0.0, 0.5, 0.0]), jobs=replace(waiting.jobs, work=work))
    assert list(reserved_nodes(once(taken(4, 4), waiting, now=1.0))) == ["class1"]
    barred = np.array([[False, False], [True, False], [False, False]])
    assert list(reserved_nodes(once(taken(4, 4), replace(waiting, barred=barred), now=1.0))) == ["class0"]
    # In a FIFO queue the oldest is first; that another queue is one makes no difference.
    for behind, first in (([0, 1, 0], "class0"), ([0, 0, 1], "class1")):
        plan = once(taken(4, 4), replace(waiting, behind=np.array(behind)), now=1.0)
        assert list(reserved_nodes(plan)) == [first]
    gang = replace(waiting, count=np.array([9, 2, 9]), gang=np.array([-1, 0, -1]), gang_least=np.array([2]))
    assert list(reserved_nodes(once(taken(4, 4), gang, now=1.0))) == ["class0"]
    in_vain = replace(waiting, since=np.array([0.0, np.inf, 0.0]))
    assert list(reserved_nodes(once(taken(4, 4), in_vain, now=1.0))) == ["class0"]
    lapsed = Carried(lapsed={"class1": Lapse(9.0, 60.0)}, planned_at=0.0)
    assert list(reserved_nodes(once(taken(4, 4), waiting, now=1.0, carried=lapsed))) == ["class0"]


@pytest.mark.parametrize("short", [0, 9])
def test_among_these_the_fairness_knob_has_its_say_also_after_backfilling(short):
    # Class 0 has by far the least work left, but its job has a core, and that of class 1 none. Beside them a gang that
    # is due has room reserved, which short tasks of its queue use meanwhile.
    waiting = in_queues(
        *((0, 1, 4), (0, 1, 4), (1, 2, 4), (1, short, 1), (2, 0, 1)),
        has=[0, 0, 13],
        weight=[4, 8, 0.01],
        running=ends((0, 3), (1, 3), (2, 4), (3, 4)),
    )
    waiting.jobs.allocated[0, 0] = 1.0
    work = np.array([1.0, 9.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    waiting = replace(waiting, jobs=replace(waiting.jobs, work=work), gang=np.array([-1, -1, 0, -1, -1]))
    waiting = replace(waiting, gang_least=np.array([2]), since=np.array([998.0, 998.0, 0.0, 998.0, 998.0]))
    plan = once(taken(3, 3, 4, 4), waiting, Policy(fairness=0.5, srtf=1000, reservable=1.0), now=LATE)
    assert [row for row, _ in pairs(plan)] == [3] * min(short, 2)
    assert reserved_nodes(plan) == {"class2": ["n0", "n1"], "class1": ["n2"]}


def test_who_cannot_have_room_kept_does_not_stand_before_another_of_a_queue_below_its_part():
    # Of 12 cores queue 0 has nothing of its 6. No node of 4 holds class 0; room is kept for class 1.
    waiting = in_queues((0, 1, 5), (0, 1, 4), (1, 9, 1), has=[0, 12], running=ends((0, 4), (1, 4), (2, 4)))
    assert list(reserved_nodes(once(taken(4, 4, 4), waiting, now=1.0))) == ["class1"]


@pytest.mark.parametrize("now", [1.0, LATE], ids=["not due", "due"])
def test_a_queue_has_one_reservation_at_a_time(now):
    # Queue 0 may have 6 of the 12 cores; its two of 4 come one after the other.
    waiting = in_queues(
        (0, 1, 4), (0, 1, 4), (1, 99, 1), has=[0, 12], running=ends(*((n, 4) for n in range(3)), at=1050)
    )
    waiting = replace(waiting, since=np.array([0.0, now - 1, now]))
    planner = Planner(Policy(reservable=1.0))
    for later in (0, 1):
        assert reserved_nodes(planner.plan(taken(4, 4, 4), waiting, now + later)) == {"class0": ["n0"]}


def test_nothing_is_reserved_for_a_queue_of_which_something_still_fits():
    # Of 8 cores queue 0 has none and wants 4 at once or 1 at a time; a plan of one start leaves it room for more.
    waiting = in_queues((0, 1, 4), (0, 9, 1), (1, 9, 1), has=[0, 6], running=ends((0, 3), (1, 3)))
    plan = Planner().plan(taken(3, 3), waiting, 1.0, most=1)
    assert [row for row, _ in pairs(plan)] == [1]
    assert not plan.carried.reserved


@pytest.mark.parametrize("again_at", [1.0, 2.0])
def test_nor_for_one_whose_last_reservation_came_to_nothing_until_it_may_have_another(again_at):
    waiting = in_queues((0, 1, 4), (1, 9, 1), has=[0, 8], running=ends((0, 4), (1, 4)))
    carried = Carried(lapsed={"class0": Lapse(again_at, 60.0)}, planned_at=0.0)
    assert bool(once(taken(4, 4), waiting, now=1.0, carried=carried).carried.reserved) is (again_at == 1.0)


def test_nor_for_one_whose_turns_were_in_vain():
    # Since when it has waited is then said to be never.
    waiting = in_queues((0, 1, 4), (1, 9, 1), has=[0, 8], running=ends((0, 4), (1, 4)))
    plan = once(taken(4, 4), replace(waiting, since=np.array([np.inf, 0.0])), now=1.0)
    assert not plan.carried.reserved


def test_a_gang_of_a_queue_below_its_part_has_room_reserved_long_before_it_is_due():
    # Two nodes of 4 cores, each with 3 in use by queue 1, which has more waiting. The gang wants both nodes' 2 cores.
    waiting = in_queues((0, 2, 2), (1, 99, 1), has=[0, 6], running=ends((0, 3), (1, 3)))
    waiting = replace(waiting, gang=np.array([0, -1]), gang_least=np.array([2]), since=np.array([0.0, 0.0]))
    plan = once(taken(3, 3), waiting, now=1.0)
    assert reserved_nodes(plan) == {"class0": ["n0", "n1"]}
    # A single task of its queue that fits goes meanwhile: then nothing is kept.
    both = in_queues((0, 2, 2), (0, 9, 1), (1, 99, 1), has=[0, 6], running=ends((0, 3), (1, 3)))
    both = replace(both, gang=np.array([0, -1, -1]), gang_least=np.array([2, 0, 0]), since=np.zeros(3))
    assert (1, 0) in pairs(once(taken(3, 3), both, now=1.0))


def test_nothing_is_reserved_for_a_queue_that_has_its_part():
    waiting = in_queues((0, 1, 4), (1, 9, 1), has=[1, 5], running=ends((0, 4), (1, 4)))
    assert not once(taken(4, 4), waiting).carried.reserved  # 1 + 4 of 8 is more than the half


@pytest.mark.parametrize(("since", "stays"), [(0.0, True), (999.0, False)], ids=["due", "not due"])
def test_what_is_kept_for_who_is_due_stays_kept_whatever_its_queue_comes_to_have(since, stays):
    waiting = in_queues((0, 1, 4), (1, 9, 4), has=[5, 1], running=ends((0, 3), (1, 3)))
    waiting = replace(waiting, since=np.array([since, 999.0]))
    kept = {"class0": Reservation((("class0", "n0", 1),), LATE + 500, LATE + 50)}
    carried = Carried(reserved=kept, due={"class0": DueTime(0.0, 200.0)}, planned_at=LATE)
    plan = once(taken(3, 3), waiting, now=LATE, carried=carried)
    assert (plan.carried.reserved == kept) == stays


def test_nor_is_anything_at_first_for_one_that_is_due_of_a_queue_that_has_more_than_its_part():
    # Of 8 cores queue 0 has 5, more than its half; the claimant alone is no more than that.
    waiting = in_queues((0, 1, 4), (1, 9, 1), has=[5, 3], running=ends((0, 4), (1, 4)))
    waiting = replace(waiting, since=np.array([0.0, 999.0]))
    plan = once(taken(4, 4), waiting, now=LATE)
    assert list(plan.carried.due) == ["class0"]
    assert "class0" not in plan.carried.reserved
    at_its_part = in_queues((0, 1, 4), (1, 9, 1), has=[4, 4], running=waiting.running)
    plan = once(taken(4, 4), replace(at_its_part, since=waiting.since), now=LATE)
    assert list(plan.carried.reserved) == ["class0"], "it passes its part by one task"


def test_who_is_more_than_its_queues_part_stands_before_no_other_of_it_and_keeps_no_room():
    # Of 16 cores queue 0 has 3: with the first it would have 9 of its 8, with the second 7.
    waiting = in_queues((0, 1, 6), (0, 1, 4), (1, 99, 1), has=[3, 13], running=ends((0, 8), (1, 8)))
    assert reserved_nodes(once(taken(8, 8, size=8.0), waiting, now=1.0)) == {"class1": ["n0"]}
    carried = Carried(reserved={"class0": Reservation((("class0", "n1", 1),), 2000.0)}, planned_at=0.0)
    assert reserved_nodes(once(taken(8, 8, size=8.0), waiting, now=1.0, carried=carried)) == {"class1": ["n0"]}


@pytest.mark.parametrize(("since", "first"), [(0.0, (2, 1)), (999.0, (1, 1))], ids=["due", "not due"])
def test_only_for_who_is_due_does_what_is_reserved_count_as_its_queues(since, first):
    # Queue 0 has 2 of 20 cores and queue 1 has 7. With the 6 that are reserved queue 0 has more.
    waiting = in_queues((0, 1, 6), (0, 9, 1), (1, 9, 1), has=[2, 7], running=ends((0, 10), (1, 9)))
    waiting = replace(waiting, since=np.array([since, 999.0, 999.0]))
    kept = {"class0": Reservation((("class0", "n0", 1),), 2000.0)}
    carried = Carried(reserved=kept, due={"class0": DueTime(0.0, 200.0)}, planned_at=LATE)
    plan = once(taken(10, 9, size=10.0), waiting, now=LATE, carried=carried)
    assert (pairs(plan), plan.carried.reserved) == ([first], kept)


@pytest.mark.parametrize(
    ("saves", "has", "second"),
    [
        ({"owed": {"class0": 0.0}}, 7, (2, 0)),
        ({"reserved": {"class0": Reservation((("class0", "n0", 1),), 2000.0)}}, 7, (2, 0)),
        ({"reserved": {"class0": Reservation((("class0", "n0", 1),), 2000.0)}}, 3, (1, 0)),
    ],
    ids=["saved no more", "reserved", "reserved, and still below the other"],
)
def test_once_it_starts_its_queue_counts_what_it_has_and_neither_more_nor_less(saves, has, second):
    # With its 4 of 20 cores queue 0 has 11 or 7; queue 1 has 8.
    waiting = in_queues((0, 1, 4), (0, 9, 1), (1, 9, 1), has=[has, 8])
    waiting = replace(waiting, since=np.array([0.0, 999.0, 999.0]))
    carried = Carried(due={"class0": DueTime(0.0, 200.0)}, planned_at=LATE, **saves)
    assert pairs(once(taken(15, size=20.0), waiting, now=LATE, carried=carried)) == [(0, 0), second]


def test_what_a_queue_has_reserved_stays_as_it_is_while_somebody_of_another_is_due():
    waiting = in_queues((0, 1, 4), (1, 1, 4), has=[0, 4], running=ends((0, 4), (1, 4)))
    waiting = replace(waiting, since=np.array([999.0, 0.0]))
    carried = Carried(reserved={"class0": Reservation((("class0", "n0", 1),), 1500.0)}, planned_at=LATE)
    plan = once(taken(4, 4), waiting, Policy(reservable=1.0), now=LATE, carried=carried)
    assert plan.carried.due
    assert plan.carried.reserved["class0"].until == 1500.0


@pytest.mark.parametrize("gang", [-1, 0])
def test_nothing_is_kept_on_a_node_that_the_claimant_may_not_use_however_soon_it_has_room(gang):
    running = replace(ends((0, 4), (1, 4)), ends_at=np.array([1010.0, 1050.0]))
    waiting = in_queues((0, 2, 2), (1, 9, 1), has=[0, 8], running=running)
    waiting = replace(waiting, gang=np.array([gang, -1]), gang_least=np.array([2]))
    plan = once(taken(4, 4), replace(waiting, barred=np.array([[True, False], [False, False]])), now=1.0)
    assert reserved_nodes(plan) == {"class0": ["n1"]}


def test_a_gang_has_room_kept_for_all_of_it_and_no_more_or_none():
    # Five tasks of one core: four on the node that is free first, one on the next, which is free at 1050.
    running = replace(ends((0, 4), (1, 4), (2, 4)), ends_at=np.array([1010.0, 1050.0, 1090.0]))
    waiting = in_queues((0, 5, 1), (1, 9, 1), has=[0, 12], running=running)
    waiting = replace(waiting, gang=np.array([0, -1]), gang_least=np.array([5]))
    kept = once(taken(4, 4, 4), waiting, now=1.0).carried.reserved["class0"]
    assert (kept.room, kept.ready) == ((("class0", "n0", 4), ("class0", "n1", 1)), 1050.0)
    only_n0 = replace(waiting, barred=np.array([[False, True, True], [False, False, False]]))
    assert not once(taken(4, 4, 4), only_n0, now=1.0).carried.reserved


@pytest.mark.parametrize(("cores", "node", "ready"), [(1, "n0", 1010.0), (2, "n1", 1050.0)])
def test_two_classes_of_a_gang_have_room_kept_beside_one_another(cores, node, ready):
    # The first has three tasks of one of the 4 cores of n0, so one is left; the next node is free at 1050.
    running = replace(ends((0, 4), (1, 4), (2, 4)), ends_at=np.array([1010.0, 1050.0, 1090.0]))
    waiting = in_queues((0, 3, 1), (0, 1, cores), (1, 9, 1), has=[0, 12], running=running)
    waiting = replace(waiting, gang=np.array([0, 0, -1]), gang_least=np.array([4]))
    kept = once(taken(4, 4, 4), waiting, now=1.0).carried.reserved["class0"]
    assert (kept.room, kept.ready) == ((("class0", "n0", 3), ("class1", node, 1)), ready)


def test_where_nobody_knows_what_runs_the_first_node_that_is_large_enough_is_kept_for_a_time():
    full = cluster((2,), (4,), (4,), allocated=[[2, *[0] * 5], [4, *[0] * 5], [4, *[0] * 5]])
    plan = once(full, tasks((0, 1, (4,))), now=LATE)
    assert (plan.carried.reserved["class0"].room, plan.again_at) == ((("class0", "n1", 1),), LATE + 1200)


@pytest.mark.parametrize("known", [False, True], ids=["nobody knows what runs", "what runs ends"])
def test_two_gangs_have_room_kept_on_nodes_of_their_own(known):
    # Each wants two nodes whole, of four that are full.
    running = ends(*((node, 4) for node in range(4))) if known else None
    waiting = in_queues((0, 2, 4), (1, 2, 4), running=running)
    waiting = replace(waiting, gang=np.array([0, 1]), gang_least=np.array([2, 2]))
    plan = once(taken(4, 4, 4, 4), waiting, Policy(reservable=1.0), now=LATE)
    assert reserved_nodes(plan) == {"class0": ["n0", "n1"], "class1": ["n2", "n3"]}


@pytest.mark.parametrize(("count", "ready"), [(3, 1050.0), (4, None)])
def test_a_gang_has_no_room_kept_where_something_runs_that_never_ends_but_beside_that(count, ready):
    running = replace(ends((0, 1), (0, 3)), ends_at=np.array([np.inf, 1050.0]))
    waiting = replace(tasks((0, count, (1,)), running=running), gang=np.array([0]), gang_least=np.array([count]))
    kept = once(taken(4), waiting, now=LATE).carried.reserved.get("class0")
    assert (kept and kept.ready) == ready


@pytest.mark.parametrize("shuffles", [0, 9])
@pytest.mark.parametrize("of_block", [True, False])
@pytest.mark.parametrize(("disk", "link", "kept"), [(60, 60, True), (40, 60, False), (60, 40, False)])
def test_room_is_kept_for_who_will_read_over_the_network_as_far_as_its_source_is_fast_enough(
    disk, link, kept, of_block, shuffles
):
    # n0 is too small for the 4 cores, and has the block, or all that the shuffle reads. Other shuffles wait for disks.
    source = Blocks(np.array([[0]]), np.ones(1, bool), 2) if of_block else Shuffle(np.array([0]), np.array([50.0]))
    others = Shuffle(np.array([0, 1]), np.array([25.0, 25.0]))
    waiting = tasks((0, 1, (4,), 50, source), (0, shuffles, (2,), 50, others), running=ends((1, 4)))
    waiting = replace(waiting, since=np.array([0.0, LATE]))
    sizes = [(1, 9, disk, 60, 60, link), (4, 9, 60, 60, 60, 60)]
    snapshot = cluster(*sizes, allocated=[[1, *[0] * 5], [4, *[0] * 5]])
    plan = once(snapshot, waiting, Policy(headroom=0.9), now=LATE)
    assert (pairs(plan), reserved_nodes(plan)) == ([], {"class0": ["n1"]} if kept else {})


def test_where_nobody_knows_what_runs_nothing_is_kept_for_who_is_not_due():
    below_its_part = in_queues((0, 1, 4), (1, 9, 4), has=[0, 8])
    outranks = replace(tasks((0, 1, (4,)), (1, 9, (1,))), priority=np.array([1, 0]))
    for waiting in (below_its_part, outranks):
        assert not once(taken(4, 4), waiting, now=1.0).carried.reserved


def test_one_task_that_exceeds_its_queues_share_is_paid_for_by_what_the_queue_is_owed():
    # Queue 0 wants all 8 cores for 10 s; its part is half: 0.5 too much for 10 s, so 5 must be owed. It has nothing,
    # so 0.5 a second are: after 10 s it has the reservation.
    waiting = in_queues((0, 1, 8), (1, 99, 1), has=[0, 8], running=ends(*[(0, 1)] * 8))
    waiting = replace(waiting, since=np.array([0.0, 999.0]))
    planner, full = Planner(), taken(8, size=8.0)
    assert planner.plan(full, waiting, LATE).carried.owed == {"class0": 0.0}
    assert planner.plan(full, waiting, LATE + 8).carried.owed == {"class0": pytest.approx(4.0)}
    paid = planner.plan(full, waiting, LATE + 10)
    assert paid.carried.owed == {"class0": pytest.approx(5.0)}
    assert reserved_nodes(paid) == {"class0": ["n0"]}
    started = planner.plan(taken(0, size=8.0), waiting, LATE + 20)
    assert (pairs(started), started.carried.owed) == ([(0, 0)], {}), "the next of its class has to be paid for as well"


def test_what_a_queue_has_while_it_saves_puts_off_its_turn_four_times_as_long_at_most():
    # As above, but that the queue always has its half: the other one waits, and cannot use it. An eighth is counted.
    waiting = in_queues((0, 1, 8), (1, 99, 5), has=[4, 4], running=ends(*[(0, 1)] * 8))
    waiting = replace(waiting, since=np.array([0.0, 999.0]))
    planner, full = Planner(), taken(8, size=8.0)
    planner.plan(full, waiting, LATE)
    assert planner.plan(full, waiting, LATE + 39).carried.owed == {"class0": pytest.approx(39 / 8)}
    assert reserved_nodes(planner.plan(full, waiting, LATE + 40)) == {"class0": ["n0"]}


def test_who_is_due_of_a_queue_that_always_has_more_than_its_part_pays_for_that():
    # Queue 0 has 5 of 8 cores: an eighth beyond its half, of which an eighth is counted. Its task of 3 takes 10 s.
    waiting = in_queues((0, 1, 3), (1, 99, 5), has=[5, 3], running=ends(*[(0, 1)] * 8))
    waiting = replace(waiting, since=np.array([0.0, 999.0]))
    planner, full = Planner(), taken(8, size=8.0)
    assert not reserved_nodes(planner.plan(full, waiting, LATE))
    assert not reserved_nodes(planner.plan(full, waiting, LATE + 9))
    assert reserved_nodes(planner.plan(full, waiting, LATE + 10)) == {"class0": ["n0"]}


@pytest.mark.parametrize(
    ("has", "seconds", "owed"),
    [(0, 10_000, 1 + 150), (0, -10_000, 1), (6, 10, 1 + 1.25)],
    ids=["pause", "set back", "above its part"],
)
def test_no_more_is_owed_for_a_long_pause_and_no_less_for_a_clock_set_back_or_for_more_than_its_part(
    has, seconds, owed
):
    # Half of the cluster, for 300 s at most, is 150; a quarter of that half for 10 s is 1.25.
    waiting = in_queues((0, 1, 8), (1, 99, 1), has=[has, 8 - has], running=ends(*[(0, 1)] * 8))
    waiting = replace(waiting, since=np.array([0.0, 999.0]), duration=np.full(2, 1000.0))
    saves = Carried(owed={"class0": 1.0}, due={"class0": DueTime(0.0, 200.0)}, planned_at=LATE - seconds)
    plan = once(taken(8, size=8.0), waiting, now=LATE, carried=saves)
    assert plan.carried.owed == {"class0": pytest.approx(owed)}


def test_a_gang_that_exceeds_its_queues_share_starts_once_that_is_paid_for_and_it_fits():
    # As above, with two tasks of 4 cores. Somebody of the other queue waits who could run at any time.
    waiting = in_queues((0, 2, 4), (1, 99, 1), has=[0, 8], running=ends(*[(0, 1)] * 8))
    waiting = replace(waiting, since=np.array([0.0, 999.0]), gang=np.array([0, -1]), gang_least=np.array([2]))
    planner = Planner()
    planner.plan(taken(8, size=8.0), waiting, LATE)
    idle = replace(waiting, running=ends())
    paid = planner.plan(taken(0, size=8.0), idle, LATE + 10)
    assert pairs(paid) == [(0, 0), (0, 0)]
    assert not paid.carried.reserved


def test_nothing_is_kept_on_for_who_has_room_and_waits_for_a_nearer_node():
    # Its block is on n0, which is full; on n1 it has room, and may start there in ten minutes.
    block = Blocks(np.array([[0]]), np.ones(1, bool), 2)
    waiting = tasks((0, 1, (4,), 5, block), running=ends((0, 4)))
    carried = Carried(reserved={"class0": Reservation((("class0", "n0", 1),), 2000.0)}, planned_at=LATE)
    sizes = [(4, 9, 50, 50, 50, 50)] * 2
    for on_n1, reserved in ((0, {}), (4, {"class0": ["n0"]})):
        snapshot = cluster(*sizes, allocated=[[4, *[0] * 5], [on_n1, *[0] * 5]])
        plan = once(snapshot, waiting, Policy(locality_waits=(600.0,)), now=LATE, carried=carried)
        assert (pairs(plan), reserved_nodes(plan)) == ([], reserved)


def test_after_reservations_that_came_to_nothing_the_next_one_waits_for_an_hour_at_most():
    ended = Carried(
        reserved={"class0": Reservation((("class0", "n0", 1),), LATE)}, lapsed={"class0": Lapse(LATE - 9, 3000.0)}
    )
    plan = once(taken(3, 3), due_and_small(), now=LATE, carried=ended)
    assert plan.carried.lapsed == {"class0": Lapse(LATE + 3600, 3600.0)}


def test_nothing_is_kept_on_for_a_class_that_is_gone_or_has_nobody_waiting():
    waiting = in_queues((0, 2, 2), (1, 9, 1), has=[0, 8], running=ends((0, 4), (1, 4)))
    gang = replace(waiting, gang=np.array([0, -1]), gang_least=np.array([2]))
    room = (("class0", "n0", 1), ("gone", "n1", 1))
    carried = Carried(reserved={"class0": Reservation(room, 2000.0)}, planned_at=0.0)
    anew = once(taken(4, 4), gang, now=1.0, carried=carried).carried.reserved
    assert [name for name, _, _ in anew["class0"].room] == ["class0"]
    of_one = Carried(reserved={"class0": Reservation(room[:1], 2000.0)}, planned_at=0.0)
    nobody = in_queues((0, 0, 4), (0, 1, 4), (1, 9, 1), has=[0, 8], running=ends((0, 4), (1, 4)))
    assert list(once(taken(4, 4), nobody, now=1.0, carried=of_one).carried.reserved) == ["class1"]


@pytest.mark.parametrize("now", [1.0, LATE], ids=["not due", "due"])
def test_what_is_reserved_for_who_outranks_others_ends_when_it_was_to(now):
    waiting = tasks((0, 1, (4,)), (1, 9, (1,)), running=ends((0, 4), (1, 4), at=now + 50))
    waiting = replace(waiting, priority=np.array([1, 0]))
    carried = Carried(reserved={"class0": Reservation((("class0", "n1", 1),), now + 70)}, planned_at=now)
    plan = once(taken(4, 4), waiting, now=now, carried=carried)
    assert plan.carried.reserved["class0"] == carried.reserved["class0"]


def test_there_is_another_plan_when_a_reservation_ends():
    plan = once(taken(3, 3), due_and_small(), now=LATE)
    reserved = plan.carried.reserved["class0"]
    assert plan.again_at == reserved.until
    assert not once(taken(3, 3), due_and_small(), now=reserved.until, carried=plan.carried).carried.reserved
    running = replace(ends((0, 4), (1, 4)), ends_at=np.array([1300.0, 1100.0]))
    both = in_queues((0, 1, 4), (1, 1, 4), running=running)
    plan = once(taken(4, 4), both, Policy(reservable=1.0), now=LATE)
    assert sorted(one.until for one in plan.carried.reserved.values()) == [LATE + 200, LATE + 600]
    assert plan.again_at == LATE + 200


def large_gang(*others):
    """Return a queue with half of 8 cores, of which only a gang waits that wants all for 10 s."""
    waiting = in_queues((0, 2, 4), (1, 99, 1), *others, has=[0, 8], running=ends(*[(0, 1)] * 8, at=LATE + 20))
    return replace(waiting, gang=np.array([0, -1, *[-1] * len(others)]), gang_least=np.array([2]))


def test_a_queue_that_has_nothing_but_gangs_larger_than_its_part_saves_for_the_first_long_before_it_is_due():
    # 0.5 too much for 10 s, and 0.5 a second are owed.
    planner, full = Planner(), taken(8, size=8.0)
    for second in range(10):
        plan = planner.plan(full, large_gang(), float(second))
        assert plan.carried.owed == {"class0": pytest.approx(0.5 * second)}
        assert not plan.carried.reserved
    assert reserved_nodes(planner.plan(full, large_gang(), 10.0)) == {"class0": ["n0"]}
    idle = replace(large_gang(), running=ends())
    assert pairs(planner.plan(taken(0, size=8.0), idle, 11.0)) == [(0, 0), (0, 0)]


@pytest.mark.parametrize("lost", ["its node", "a pod"])
def test_it_saves_for_the_next_while_the_first_cannot_start(lost):
    # 2 nodes of 8 cores; queue 0, with a quarter of them, has a gang for each, which wants all of it. After 2 s the
    # first loses its node or a pod: what was saved for it stays, and the quarter is for the second.
    waiting = in_queues(
        (0, 2, 4), (1, 99, 1), (0, 2, 4), has=[0, 16], weight=[1, 3], running=ends(*[(0, 1), (1, 1)] * 8, at=LATE)
    )
    here, there, nowhere = [False, True], [True, False], [True, True]
    able = replace(
        waiting, gang=np.array([0, -1, 1]), gang_least=np.array([2, 2]), barred=np.array([here, here, there])
    )
    unable = (
        replace(able, barred=np.array([nowhere, here, there]))
        if lost == "its node"
        else replace(able, count=np.array([1, 99, 2]))
    )
    planner, full = Planner(), taken(8, 8, size=8.0)

    def owed(waiting, second):
        return planner.plan(full, waiting, float(second)).carried.owed

    assert [owed(able, second) for second in range(3)] == [{"class0": 0.25 * second} for second in range(3)]
    assert [owed(unable, second) for second in range(3, 6)] == [
        {"class0": 0.5, "class2": 0.25 * second} for second in range(3)
    ]
    assert owed(able, 6) == {"class0": 0.75, "class2": 0.5}  # again only for the first


def test_nor_does_it_before_that_where_something_smaller_of_it_waits():
    planner = Planner()
    for second in range(12):
        plan = planner.plan(taken(8, size=8.0), large_gang((0, 1, 4)), float(second))
        assert not plan.carried.owed
        assert list(plan.carried.reserved) in ([], ["class2"])


def test_while_it_saves_its_others_get_only_what_nobody_else_can_use():
    # Queue 0 has nothing and saves for 8 cores: its small task stands behind queue 1, which has its half.
    waiting = in_queues((0, 1, 8), (0, 9, 1), (1, 1, 1), has=[0, 4], running=ends(*[(0, 1)] * 7))
    waiting = replace(waiting, since=np.array([0.0, 999.0, 999.0]))
    saves = Carried(owed={"class0": 0.0}, due={"class0": DueTime(0.0, 200.0)}, planned_at=LATE)
    assert pairs(once(taken(7, size=8.0), waiting, now=LATE, carried=saves)) == [(2, 0)]
    assert pairs(once(taken(6, size=8.0), waiting, now=LATE, carried=saves)) == [(2, 0), (1, 0)]


def test_a_queue_saves_nothing_for_what_never_gets_room():
    # As above, but that of the 7 that are taken 2 never end.
    waiting = in_queues((0, 1, 8), (0, 9, 1), (1, 1, 1), has=[0, 4], running=ends(*[(0, 1)] * 5))
    waiting = replace(waiting, since=np.array([0.0, 999.0, 999.0]))
    planner = Planner()
    planner.carried = Carried(due={"class0": DueTime(0.0, 200.0)}, planned_at=LATE)
    for later in (0, 1):
        plan = planner.plan(taken(7, size=8.0), waiting, LATE + later)
        assert pairs(plan) == [(1, 0)]
        assert not plan.carried.owed


def test_a_queue_that_has_paid_saves_no_more_until_there_is_room_to_come():
    # It has paid 5 for 8 cores, of which 2 do not end any more.
    waiting = in_queues((0, 1, 8), (0, 1, 1), (1, 1, 1), has=[0, 4], running=ends(*[(0, 1)] * 5))
    waiting = replace(waiting, since=np.array([0.0, 999.0, 999.0]))
    paid = Carried(owed={"class0": 5.0}, due={"class0": DueTime(0.0, 200.0)}, planned_at=LATE)
    plan = once(taken(7, size=8.0), waiting, now=LATE, carried=paid)
    assert pairs(plan) == [(1, 0)]
    freed = replace(waiting, running=ends(*[(0, 1)] * 7))
    assert reserved_nodes(once(taken(7, size=8.0), freed, now=LATE, carried=plan.carried)) == {"class0": ["n0"]}


def test_a_reservation_that_comes_to_nothing_lapses_and_the_next_one_is_put_off_for_longer_each_time():
    planner, waiting = Planner(), due_and_small()
    until = next(iter(planner.plan(taken(3, 3), waiting, LATE).carried.reserved.values())).until
    assert until == LATE + 120.0  # at least starvedAfterSeconds; twice the 50 s that it should take are less
    overstayed = replace(waiting, running=ends((0, 3), (1, 3), at=until + 5))
    lapsed = planner.plan(taken(3, 3), overstayed, until + 1)
    assert not lapsed.carried.reserved
    assert lapsed.carried.lapsed == {"class0": Lapse(until + 121, 120.0)}
    assert not planner.plan(taken(3, 3), overstayed, until + 120).carried.reserved
    again = planner.plan(taken(3, 3), overstayed, until + 121)
    assert reserved_nodes(again) == {"class0": ["n0"]}
    assert planner.plan(taken(3, 3), overstayed, until + 1000).carried.lapsed["class0"].seconds == 240.0


def test_time_in_which_nobody_plans_ends_no_reservation():
    planner, waiting = Planner(), due_and_small(running=ends((0, 3), (1, 3), at=LATE + 5000))
    until = next(iter(planner.plan(taken(3, 3), waiting, LATE).carried.reserved.values())).until
    planner.rest(LATE + 1000)
    planner.rest(LATE + 30_000)  # without the Lease, or with caches that are too old to plan by
    waiting = replace(waiting, running=ends((0, 3), (1, 3), at=LATE + 35_000))
    plan = planner.plan(taken(3, 3), waiting, LATE + 30_001)
    assert plan.carried.reserved["class0"].until == until + 30_000
    assert not plan.carried.lapsed


@pytest.mark.parametrize(("seconds", "late"), [(600, 600), (4 * 3600, 3600)])
def test_room_is_kept_until_it_should_be_there_however_long_that_takes_and_for_an_hour_more_at_most(seconds, late):
    plan = once(taken(3, 3), due_and_small(running=ends((0, 3), (1, 3), at=LATE + seconds)), now=LATE)
    assert plan.carried.reserved["class0"].until == LATE + seconds + late


def test_a_claimant_starts_wherever_there_is_room_first_and_its_reservation_ends():
    carried = once(taken(3, 3), due_and_small(), now=LATE).carried
    assert pairs(once(taken(3, 0), due_and_small(), now=LATE, carried=carried)) == [(0, 1), (1, 0)]
    lapsed = replace(carried, lapsed={"class0": Lapse(LATE - 1, 60.0)})
    then = once(taken(3, 0), due_and_small(), now=LATE, carried=lapsed).carried
    assert (then.reserved, then.lapsed) == ({}, {})


def test_what_is_reserved_for_a_lower_priority_keeps_nothing_from_a_higher():
    carried = once(taken(3, 3), due_and_small(), now=LATE).carried
    assert carried.reserved
    above = replace(due_and_small(), priority=np.array([0, 1]))
    assert pairs(once(taken(3, 3), above, now=LATE, carried=carried)) == [(1, 0), (1, 1)]


def test_reasons_say_for_whom_room_is_kept():
    plan = once(taken(3, 4), due_and_small(running=ends((0, 3))), now=LATE, explain=True)
    assert plan.held[0].text == "no node has enough free: mostly cpu is short; room is reserved for it on n0"
    assert (plan.held[1].kind, plan.held[1].text) == (
        "reserved",
        "the room that it would fit into is reserved for others",
    )


def gang_and_small(*queues, ready=1050.0):
    """Return a gang that is due and needs two nodes of 4 cores, of which 3 are in use, and small tasks of 10 s."""
    running = ends((0, 3), (1, 3), at=ready)
    waiting = in_queues((queues[0], 2, 4), (queues[1], 99, 1), weight=[9.0, 1.0][: max(queues) + 1], running=running)
    waiting = replace(waiting, gang=np.array([0, -1]), gang_least=np.array([2]))
    return replace(waiting, since=np.array([0.0, 999.0]))


@pytest.mark.parametrize(("ready", "started"), [(1010.0, [(1, 0), (1, 1)]), (1009.9, [])])
def test_who_ends_before_a_gangs_room_is_all_there_uses_it_meanwhile(ready, started):
    waiting = gang_and_small(0, 0, ready=ready)
    plan = once(taken(3, 3), waiting, now=LATE)
    assert pairs(plan) == started
    assert reserved_nodes(plan) == {"class0": ["n0", "n1"]}
    # It had to be there by now: what comes free late is kept.
    late = replace(waiting, running=ends((0, 3), (1, 3), at=1060.0))
    later = once(taken(3, 3), late, now=ready, carried=plan.carried)
    assert (pairs(later), reserved_nodes(later)) == ([], {"class0": ["n0", "n1"]})


def test_nobody_of_another_queue_uses_a_gangs_room_however_short_he_says_he_is():
    assert pairs(once(taken(3, 3), gang_and_small(0, 0), now=LATE)) == [(1, 0), (1, 1)]
    plan = once(taken(3, 3, 4), gang_and_small(0, 1), now=LATE)
    assert (pairs(plan), reserved_nodes(plan)) == ([], {"class0": ["n0", "n1"]})


def test_a_gangs_room_is_used_no_further_than_its_queue_keeps_its_right_to_it():
    # Its part is 10 of 20 cores. It has 6 and starts two tasks on the other nodes: two more go, though four would fit.
    running = ends((0, 3), (1, 3), at=1050.0)
    waiting = in_queues((0, 2, 3), (0, 99, 1), (1, 3, 5), has=[6.0, 0.0], running=running)
    waiting = replace(waiting, gang=np.array([0, -1, -1]), gang_least=np.array([2, 0, 0]))
    plan = once(taken(3, 3, 4, 4, size=5.0), replace(waiting, since=np.array([0.0, 999.0, 999.0])), now=LATE)
    assert reserved_nodes(plan) == {"class0": ["n0", "n1"]}
    assert sorted(pairs(plan)) == [(1, 0), (1, 0), (1, 2), (1, 3)]
    # Nor by who has a lower priority, in the same plan.
    waiting = in_queues((0, 2, 3), (0, 99, 1), (1, 3, 5), (1, 9, 1), has=[6.0, 0.0], running=running)
    waiting = replace(waiting, gang=np.array([0, -1, -1, -1]), gang_least=np.array([2]))
    waiting = replace(waiting, priority=np.array([0, 0, 0, -1]), since=np.array([0.0, 999.0, 999.0, 999.0]))
    plan = once(taken(3, 3, 4, 4, size=5.0), waiting, now=LATE)
    assert sorted(pairs(plan)) == [(1, 0), (1, 0), (1, 2), (1, 3)]


def test_the_room_of_a_gang_that_waits_alone_above_others_is_used_whatever_its_queue_has():
    # The queue has 6 of 8 cores, more than its half.
    waiting = in_queues((0, 2, 4), (0, 99, 1), (1, 9, 4), has=[6, 0], running=ends((0, 3), (1, 3)))
    waiting = replace(waiting, gang=np.array([0, -1, -1]), gang_least=np.array([2]), priority=np.array([1, 1, 0]))
    kept = {"class0": Reservation((("class0", "n0", 1), ("class0", "n1", 1)), 2000.0, 1050.0)}
    plan = once(taken(3, 3), waiting, Policy(reservable=1.0), now=LATE, carried=Carried(reserved=kept, planned_at=LATE))
    assert (sorted(pairs(plan)), plan.carried.reserved) == ([(1, 0), (1, 1)], kept)


def test_a_gangs_room_is_used_no_further_than_its_queue_has_its_part_left_with_the_gang():
    # Of 16 cores the part of queue 0 is 8. With its 1 and the gang's 6 one more may start, though two would fit.
    waiting = in_queues((0, 2, 3), (0, 99, 1), (1, 9, 4), has=[1, 13], running=ends((0, 3), (1, 3)))
    waiting = replace(waiting, gang=np.array([0, -1, -1]), gang_least=np.array([2]), since=np.full(3, LATE - 1))
    kept = {"class0": Reservation((("class0", "n0", 1), ("class0", "n1", 1)), 2000.0, 1050.0)}
    plan = once(taken(3, 3, 4, 4), waiting, now=LATE, carried=Carried(reserved=kept, planned_at=LATE))
    assert (len(pairs(plan)), plan.carried.reserved) == (1, kept)


def test_nobody_uses_room_that_is_reserved_for_a_gang_again():
    lapsed = Carried(lapsed={"class0": Lapse(LATE - 1, 60.0)}, planned_at=LATE)
    plan = once(taken(3, 3), gang_and_small(0, 0), now=LATE, carried=lapsed)
    assert (pairs(plan), reserved_nodes(plan)) == ([], {"class0": ["n0", "n1"]})


def test_a_node_that_goes_takes_its_reservation_with_it():
    carried = Carried(reserved={"class0": Reservation((("class0", "gone", 1),), 2000.0)}, planned_at=LATE)
    plan = once(
        cluster((4,), allocated=[[3, *[0] * 5]]), due_and_small(running=ends((0, 3))), now=LATE, carried=carried
    )
    assert reserved_nodes(plan) == {"class0": ["n0"]}
    half = Reservation((("class0", "n0", 1), ("class0", "gone", 1)), 2000.0, 1050.0)
    carried = Carried(reserved={"class0": half}, planned_at=LATE)
    assert reserved_nodes(once(taken(3, 3), gang_and_small(0, 0), now=LATE, carried=carried)) == {
        "class0": ["n0", "n1"]
    }


def test_what_a_queue_saves_for_several_is_the_same_whatever_they_are_called():
    # It saves 0.1, 0.2 and 0.3 of the cluster, whose sum hangs on their order in the last digit; another queue has 0.6.
    waiting = in_queues(
        *((0, 1, 1), (0, 1, 2), (0, 1, 3), (0, 1, 0.5), (1, 1, 0.5), (2, 50, 5)),
        has=[0, 6, 3],
        weight=[1, 1, 38],
        running=ends(*[(0, 1)] * 9),
    )
    waiting = replace(waiting, since=np.array([0.0, 0.0, 0.0, 999.0, 999.0, 999.0]))
    starts = set()
    for number in range(40):
        names = [f"{number}-{row}" for row in range(6)]
        owed, due = dict.fromkeys(names[:3], 0.0), dict.fromkeys(names[:3], DueTime(0.0, 100.0))
        carried = Carried(owed=owed, due=due, planned_at=LATE)
        plan = once(taken(9.5, size=10.0), replace(waiting, names=names), now=LATE, carried=carried)
        starts.add(tuple(pairs(plan)))
    assert len(starts) == 1
