"""Delay Scheduling in the planner. Nodes have CPU and memory; tasks take one CPU each unless it says otherwise."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from extender.cluster.waiting import Blocks, Running
from extender.errors import SettingsError
from extender.planner import Carried, LocalityWait, Planner, Policy
from extender.planner.board import Board
from extender.planner.filling import match
from extender.planner.locality.nearness import Nearness
from extender.planner.prepared import prepared
from tests.service.planner.scenes import cluster, left_in, load_of, once, pairs, real_scenes, reserved_nodes, tasks

POLICY = Policy(locality_waits=(10.0,), fairness=0.0)
RACKS = replace(POLICY, locality_waits=(10.0, 5.0))
FULL = (1.0,)


def blocks(nodes, *copies):
    width = max(len(copy) for copy in copies)
    held = np.full((len(copies), width), -1)
    for row, copy in enumerate(copies):
        held[row, : len(copy)] = copy
    return Blocks(held, np.ones(len(copies), bool), nodes)


def nodes(count, free, cpu=1.0):
    """Return `count` nodes of which only those in `free` have a CPU free."""
    load = [[0.0 if node in free else cpu, *[0.0] * 5] for node in range(count)]
    return cluster(*[(cpu, 1.0)] * count, allocated=load)


def reader(job, *copies, of):
    return (job, len(copies), FULL, 0.0, blocks(of, *copies))


def waited(plan, name="job0"):
    return plan.carried.locality.get(name, LocalityWait())


def test_without_waits_a_task_takes_what_there_is():
    plan = once(nodes(3, {2}), tasks(reader(0, [0], of=3)), Policy())
    assert pairs(plan) == [(0, 2)]
    assert plan.carried.locality == {}
    assert plan.again_at == np.inf


def test_a_job_is_passed_over_for_its_wait_then_takes_what_there_is():
    planner, room, waiting = Planner(POLICY), nodes(3, {2}), tasks(reader(0, [0], of=3))
    first = planner.plan(room, waiting, 100.0)
    assert not len(first.assignments)
    assert first.again_at == 110.0
    later = planner.plan(room, waiting, 104.0)
    assert not len(later.assignments)
    assert waited(later) == LocalityWait(0, 4.0, np.inf)
    assert later.again_at == 110.0  # 104 + (10 - 4)
    last = planner.plan(room, waiting, 110.0)
    assert pairs(last) == [(0, 2)]
    assert [terms.level for terms in last.terms] == [1]
    assert waited(last) == LocalityWait(1, 0.0)  # from now on it waits for nothing


def test_a_start_beside_the_block_takes_the_job_back_to_the_first_level():
    waiting = tasks(reader(0, [0], [1], of=3))
    carried = Carried(locality={"job0": LocalityWait(1, 0.0)}, planned_at=0.0)
    plan = once(nodes(3, {0, 2}), waiting, POLICY, carried=carried)
    assert pairs(plan) == [(0, 0)]  # the other does not take node 2: the job waits anew
    assert waited(plan) == LocalityWait(0, 0.0, np.inf)


def test_only_a_start_of_what_wants_to_be_near_its_input_sets_the_wait_of_its_job_anew():
    # It has waited for 4 s, and an earlier chance counts for 2 s more.
    carried = Carried(locality={"job0": LocalityWait(0, 4.0, 2.0)}, planned_at=100.0)
    beside = tasks(reader(0, [0], of=3), (0, 1, FULL))
    plan = once(nodes(3, {2}), beside, POLICY, now=101.0, carried=carried)
    assert (pairs(plan), waited(plan).seconds) == ([(1, 2)], 5.0)
    plan = once(nodes(3, {0}), tasks(reader(0, [0], [0], of=3)), POLICY, now=101.0, carried=carried)
    assert (pairs(plan), waited(plan)) == ([(0, 0)], LocalityWait())


def test_while_a_job_waits_others_take_the_room():
    planner = Planner(replace(POLICY, srtf=0.0))
    waiting = tasks(reader(0, [0], of=3), (1, 1, FULL))
    assert pairs(planner.plan(nodes(3, {2}), waiting, 0.0)) == [(1, 2)]


def test_time_counts_only_while_the_job_was_passed_over():
    planner, waiting = Planner(POLICY), tasks(reader(0, [0], of=3))
    planner.plan(nodes(3, {2}), waiting, 0.0)
    planner.plan(nodes(3, set()), waiting, 4.0)  # no room at all from here on: nobody passes it over
    planner.plan(nodes(3, {2}), waiting, 60.0)
    plan = planner.plan(nodes(3, {2}), waiting, 61.0)
    assert waited(plan) == LocalityWait(0, 5.0, np.inf)  # 4 + 1
    assert plan.again_at == 66.0


def test_room_that_others_took_counts_for_a_moment_only():
    planner, other = Planner(replace(POLICY, srtf=9.0, pass_counts=2.0)), (1, 1, FULL)  # the shorter job goes first
    first, alone = tasks(reader(0, [0], of=3), other, work=[1.0, 9.0]), tasks(reader(0, [0], of=3))
    plan = planner.plan(nodes(3, {2}), first, 0.0)
    assert waited(plan) == LocalityWait(0, 0.0, 2.0)
    assert plan.again_at == np.inf  # there is no room for it, whatever the time
    plan = planner.plan(nodes(3, {2}), alone, 60.0)
    assert waited(plan) == LocalityWait(0, 2.0, np.inf)
    assert plan.again_at == 68.0  # 60 + (10 - 2): this room stays empty


def test_a_chance_that_others_took_counts_as_long_however_many_plans_follow():
    planner, alone = Planner(replace(POLICY, srtf=9.0, pass_counts=2.0)), tasks(reader(0, [0], of=3))
    planner.plan(nodes(3, {2}), tasks(reader(0, [0], of=3), (1, 1, FULL), work=[1.0, 9.0]), 0.0)
    for now, passed in ((0.5, 0.5), (1.5, 1.5), (9.0, 2.0)):
        assert waited(planner.plan(nodes(3, set()), alone, now)) == LocalityWait(0, passed, 2.0 - passed)


def test_a_job_of_which_nothing_waits_keeps_its_wait_as_long_as_it_is_there():
    # It has waited for 4 s and is there with what runs. Room that others took counts for 2 s more.
    carried = Carried(locality={"runs": LocalityWait(0, 4.0, 2.0), "gone": LocalityWait(0, 4.0)}, planned_at=100.0)
    waiting = replace(tasks((0, 1, FULL)), jobs_there=["job0", "runs"])
    plan = once(nodes(3, set()), waiting, POLICY, now=150.0, carried=carried)
    assert plan.carried.locality == {"runs": LocalityWait(0, 6.0)}
    soon = once(nodes(3, set()), waiting, POLICY, now=100.5, carried=carried)
    assert soon.carried.locality == {"runs": LocalityWait(0, 4.5, 1.5)}


def test_time_does_not_count_while_the_job_is_held_for_fairness():
    fair = replace(POLICY, fairness=0.99, srtf=0.0)
    waiting = tasks(reader(0, [0], of=3), (1, 9, FULL), held=[[2, *[0] * 5], [0] * 6])
    planner = Planner(fair)
    for now in (0.0, 50.0):
        plan = planner.plan(nodes(3, {2}), waiting, now)
        assert pairs(plan) == [(1, 2)]  # job1 has nothing yet
        assert waited(plan) == LocalityWait()


def test_a_job_in_its_turn_is_passed_over_for_the_next_in_turn():
    fair = replace(POLICY, fairness=0.99, srtf=0.0)
    # job0 has least and waits; of the others job1 is owed more than job2, whatever their scores
    waiting = tasks(
        reader(0, [0], of=3), (1, 9, (0.5,)), (2, 9, (1.0,)), held=[[0] * 6, [0.5, *[0] * 5], [2, *[0] * 5]]
    )
    plan = once(nodes(3, {2}), waiting, fair)
    assert pairs(plan)[0] == (1, 2)
    assert waited(plan).counts > 0


def test_who_would_not_have_gone_anyway_is_not_passed_over():
    short = replace(POLICY, srtf=100.0)
    waiting = tasks(reader(0, [0], of=3), (1, 1, FULL), work=[9.0, 1.0])
    plan = once(nodes(3, {2}), waiting, short)
    assert pairs(plan) == [(1, 2)]  # the shorter job, with or without waits
    assert waited(plan) == LocalityWait()


def test_the_first_of_a_fifo_line_lets_the_second_pass_and_is_passed_over():
    waiting = replace(
        tasks(reader(0, [0], of=3), reader(0, [2], of=3)), behind=np.array([0, 1]), waits_as=["first", "second"]
    )
    plan = once(nodes(3, {2}), waiting, POLICY)
    assert pairs(plan) == [(1, 2)]
    assert waited(plan, "first") == LocalityWait(0, 0.0, POLICY.pass_counts)
    assert waited(plan, "second") == LocalityWait()


def test_a_later_one_of_a_line_is_not_passed_over_by_those_before_it():
    waiting = replace(
        tasks(reader(0, [2], of=3), reader(0, [0], of=3)), behind=np.array([0, 1]), waits_as=["first", "second"]
    )
    plan = once(nodes(3, {2}), waiting, POLICY)
    assert pairs(plan) == [(0, 2)]
    assert not waited(plan, "second").counts > 0


def with_racks(waiting, *rack):
    return replace(waiting, topology=np.array([rack]))


def test_after_the_first_wait_the_rack_will_do_and_after_the_second_anywhere():
    waiting = with_racks(tasks(reader(0, [0], of=4)), 0, 0, 1, 1)
    for seconds, free, taken in (
        (0.0, {1, 2}, []),
        (10.0, {2, 3}, []),
        (10.0, {1, 2}, [(0, 1)]),
        (15.0, {2}, [(0, 2)]),
        (15.0, {1, 2}, [(0, 1)]),  # the rack first, where there is room
    ):
        carried = Carried(locality={"job0": LocalityWait(0, 0.0, np.inf)}, planned_at=100.0)
        assert pairs(once(nodes(4, free), waiting, RACKS, now=100.0 + seconds, carried=carried)) == taken


def test_nodes_that_are_in_no_rack_are_on_no_rack_together():
    # Blocks are on node 0, which is in none as node 1 is, and on node 2, which is with node 3.
    waiting = with_racks(tasks(reader(0, [0], [2], of=4)), -1, -1, 0, 0)
    carried = Carried(locality={"job0": LocalityWait(0, 10.0)}, planned_at=0.0)
    assert pairs(once(nodes(4, {1}), waiting, RACKS, carried=carried)) == []
    assert pairs(once(nodes(4, {3}), waiting, RACKS, carried=carried)) == [(0, 3)]
    anywhere = Carried(locality={"job0": LocalityWait(2)}, planned_at=0.0)
    plan = once(nodes(4, {1}), waiting, RACKS, carried=anywhere)
    assert [terms.level for terms in plan.terms] == [2]


def test_racks_come_before_zones_and_zones_before_anywhere():
    # Rack and zone of each node; the block is on node 0.
    zones = replace(tasks(reader(0, [0], of=4)), topology=np.array([[0, 0, 1, 2], [0, 0, 0, 1]]))
    policy = replace(POLICY, locality_waits=(10.0, 5.0, 3.0))
    for seconds, free, taken, level in (
        (9.0, {1, 2, 3}, [], []),
        (18.0, {1, 2, 3}, [(0, 1)], [1]),
        (10.0, {2, 3}, [], []),
        (15.0, {2, 3}, [(0, 2)], [2]),
        (15.0, {3}, [], []),
        (18.0, {3}, [(0, 3)], [3]),
    ):
        carried = Carried(locality={"job0": LocalityWait(0, seconds)}, planned_at=0.0)
        plan = once(nodes(4, free), zones, policy, carried=carried)
        assert (pairs(plan), [terms.level for terms in plan.terms]) == (taken, level)


def test_a_start_on_the_rack_waits_for_the_rack_only():
    waiting = with_racks(tasks(reader(0, [0], [0], of=4)), 0, 0, 1, 1)
    carried = Carried(locality={"job0": LocalityWait(0, 10.0)}, planned_at=0.0)
    plan = once(nodes(4, {1, 2}), waiting, RACKS, carried=carried)
    assert pairs(plan) == [(0, 1)]
    assert [terms.level for terms in plan.terms] == [1]
    assert waited(plan) == LocalityWait(1, 0.0, np.inf)
    assert plan.again_at == 5.0


def test_a_start_on_the_rack_reads_from_the_rack():
    waiting = with_racks(tasks((0, 1, (1,), 5.0, blocks(4, [0, 3]))), 0, 0, 1, 1)
    free = [(1, 1, 10, 10, 10, 10)] * 4
    load = [[1, 0, 4, 0, 0, 0], [0] * 6, [1, *[0] * 5], [1, *[0] * 5]]  # node 3 has more disk free, on another rack
    for wait in (LocalityWait(0, 10.0), LocalityWait(2)):  # the rack will do, or anywhere
        plan = once(
            cluster(*free, allocated=load), waiting, RACKS, carried=Carried(locality={"job0": wait}, planned_at=0.0)
        )
        assert (plan.assignments.node.item(), plan.assignments.source.item()) == (1, 0)


def test_reads_from_elsewhere_share_the_disk_that_they_read_from():
    # Both blocks are on node 0, which has no CPU free; its disk gives 10, of which each task reads 6.
    waiting = tasks((0, 2, (1,), 6.0, blocks(2, [0], [0])))
    snapshot = cluster((1, 1, 10, 10, 99, 99), (9, 9, 10, 10, 99, 99), allocated=[[1, *[0] * 5], [0] * 6])
    assert pairs(once(snapshot, waiting, Policy())) == [(0, 1)]


def test_what_prefers_nodes_waits_for_them_like_what_reads_blocks():
    waiting = replace(tasks((0, 1, FULL)), preferred=np.array([[0, 1, 2]]))
    for seconds, free, taken in ((0.0, {1, 2}, []), (0.0, {0, 2}, [(0, 0)]), (10.0, {1, 2}, [(0, 1)])):
        carried = Carried(locality={"job0": LocalityWait(0, seconds)}, planned_at=0.0)
        assert pairs(once(nodes(3, free), waiting, RACKS, carried=carried)) == taken


def test_without_waits_nobody_asks_at_which_levels_there_are_nodes():
    waiting = replace(tasks((0, 1, FULL)), preferred=np.array([[1, 0, 1]]))
    classes, sources = prepared(waiting, nodes(3, {2}).layout), None  # who looks at all nodes asks what is read there
    assert Nearness(waiting, classes, sources, long_task=np.inf).existing(0).shape == (1, 0)


def test_preferred_nodes_go_first_even_without_waits():
    waiting = replace(tasks((0, 1, FULL)), preferred=np.array([[1, 0, 1]]))
    plan = once(nodes(3, {0, 1, 2}), waiting, Policy())
    assert pairs(plan) == [(0, 1)]
    plan = once(nodes(3, {0}), waiting, Policy())
    assert pairs(plan) == [(0, 0)]
    assert [terms.remote for terms in plan.terms] == [0.9]  # the remote penalty is 10 %


def test_a_start_that_is_not_where_a_class_prefers_scores_less_than_one_to_which_it_is_all_the_same():
    # Node 1 has a CPU and a unit of memory free. The first class scores 1 x 1 + 0.5 x 1 = 1.5 there, and 10 % less as
    # it prefers node 0, which is full: 1.35. The second scores 1 x 1 + 0.4 x 1 = 1.4.
    waiting = tasks((0, 1, (1.0, 0.5)), (1, 1, (1.0, 0.4)))
    policy = Policy(fairness=0.0, srtf=0.0)
    assert pairs(once(nodes(2, {1}), waiting, policy)) == [(0, 1)]
    plan = once(nodes(2, {1}), replace(waiting, preferred=np.array([[0, 1], [0, 0]])), policy)
    assert pairs(plan) == [(1, 1)]
    alone = once(nodes(2, {1}), replace(tasks((0, 1, (1.0, 0.5))), preferred=np.array([[0, 1]])), policy)
    assert [terms.alignment for terms in alone.terms] == pytest.approx([1.35])


def test_nobody_waits_for_a_node_that_cannot_take_it():
    waiting = tasks(reader(0, [0], of=2))
    small = cluster((0.5, 1.0), (1.0, 1.0))
    assert pairs(once(small, waiting, POLICY)) == [(0, 1)]
    barred = replace(waiting, barred=np.array([[True, False]]))
    assert pairs(once(nodes(2, {1}), barred, POLICY)) == [(0, 1)]
    nowhere = tasks((0, 1, FULL, 0.0, blocks(2, [-1])))
    assert not len(once(nodes(2, {1}), nowhere, POLICY).assignments)  # its block is lost


def test_who_prefers_nothing_does_not_wait():
    waiting = replace(tasks((0, 1, FULL)), preferred=np.array([[2, 2]]))
    assert pairs(once(nodes(2, {1}), waiting, POLICY)) == [(0, 1)]
    running = Running(np.array([1]), np.array([500.0]), np.zeros((1, 6)), seconds=np.array([400.0]))
    long = replace(waiting, preferred=np.array([[0, 0]]), running=running, duration=np.array([300.0]))
    plan = once(nodes(2, {1}), long, replace(POLICY, long_task=60.0))
    assert (pairs(plan), [terms.level for terms in plan.terms]) == ([(0, 1)], [0])


def test_who_waits_for_locality_is_not_starved_before_its_waits_are_over():
    waiting, planner = tasks(reader(0, [0], of=2), since=0.0), Planner(POLICY)
    first = planner.plan(nodes(2, {1}), waiting, 1000.0)
    assert not len(first.assignments)
    assert not first.carried.reserved
    assert first.again_at == 1010.0
    last = planner.plan(nodes(2, {1}), waiting, 1010.0)
    assert pairs(last) == [(0, 1)]
    assert all(terms.starved for terms in last.terms)


def test_who_has_waited_too_long_and_fits_nowhere_has_a_node_reserved_as_ever():
    waiting = tasks(reader(0, [0], of=2), since=0.0)
    plan = once(nodes(2, set()), waiting, POLICY, now=1000.0)
    assert reserved_nodes(plan) == {"class0": ["n0"]}
    assert waited(plan) == LocalityWait()


def test_of_two_nodes_a_starved_class_takes_the_one_near_its_input():
    waiting = tasks(reader(0, [0], of=3), since=0.0)
    assert pairs(once(nodes(3, {0, 2}), waiting, POLICY, now=1000.0)) == [(0, 0)]


def test_a_gang_is_not_kept_in_part_for_ever_by_its_own_local_start():
    waiting = replace(
        tasks(reader(0, [0], [1], of=3)), gang=np.array([0]), gang_least=np.array([2]), since=np.array([100.0])
    )
    planner, room = Planner(POLICY), nodes(3, {0, 2})
    assert not len(planner.plan(room, waiting, 100.0).assignments)
    plan = planner.plan(room, waiting, 110.0)
    assert sorted(pairs(plan)) == [(0, 0), (0, 2)]
    assert waited(plan) == LocalityWait()  # from the next plan on its job waits anew


def test_long_tasks_stay_away_from_nodes_that_run_more_of_them_than_the_mean():
    running = Running(np.array([0]), np.array([500.0]), np.zeros((1, 6)), seconds=np.array([400.0]))
    long = replace(tasks(reader(0, [0, 1], of=2), running=running), duration=np.array([300.0]))
    policy = replace(POLICY, long_task=60.0)
    assert pairs(once(nodes(2, {0, 1}), long, policy)) == [(0, 1)]
    plan = once(nodes(2, {0}), long, policy)
    assert not len(plan.assignments)
    assert waited(plan).counts  # it waits for node 1, and takes node 0 in the end
    unknown = replace(long, duration=np.array([np.nan]))
    assert not len(once(nodes(2, {0}), unknown, policy).assignments)
    short = replace(long, duration=np.array([30.0]))
    assert pairs(once(nodes(2, {0}), short, policy)) == [(0, 0)]


def test_who_is_due_waits_by_the_clock_though_others_take_the_room():
    # The other job has nothing running and less to do. Room that it takes counts for 2 s of the wait of 10 s.
    waiting = tasks(reader(0, [0], of=3), (1, 2, FULL), work=[9.0, 1.0])
    planner = Planner(replace(POLICY, srtf=9.0, pass_counts=2.0))
    due = replace(waiting, since=np.array([0.0, 1000.0]))
    assert pairs(planner.plan(nodes(3, {2}), due, 1000.0)) == [(1, 2)]
    planner.plan(nodes(3, set()), due, 1005.0)
    assert pairs(planner.plan(nodes(3, {2}), due, 1010.0)) == [(0, 2)]


def test_who_finds_no_source_with_room_on_its_rack_reads_from_beyond_once_it_has_waited_for_that():
    # Node 1 has the only CPU; the copy on its rack has 4 of its disk free and the task reads 5.
    waiting = with_racks(tasks((0, 1, (1,), 5.0, blocks(4, [0, 3]))), 0, 0, 1, 1)
    load = [[1, 0, 6, 0, 0, 0], [0] * 6, [1, *[0] * 5], [1, *[0] * 5]]
    room, planner = cluster(*[(1, 1, 10, 10, 10, 10)] * 4, allocated=load), Planner(RACKS)
    planner.carried = Carried(locality={"job0": LocalityWait(0, 10.0)}, planned_at=0.0)
    first = planner.plan(room, waiting, 0.0)
    assert (pairs(first), first.again_at) == ([], 5.0)
    last = planner.plan(room, waiting, 5.0)
    assert (last.assignments.node.item(), last.assignments.source.item()) == (1, 3)
    # Node 2, which is looked at after node 1, has a CPU as well: it reads on its own rack, and at once.
    both = cluster(*[(1, 1, 10, 10, 10, 10)] * 4, allocated=[*load[:2], [0] * 6, load[3]])
    carried = Carried(locality={"job0": LocalityWait(0, 10.0)}, planned_at=0.0)
    plan = once(both, waiting, RACKS, carried=carried)
    assert (plan.assignments.node.item(), plan.assignments.source.item()) == (2, 3)


def test_a_plan_by_a_clock_that_was_set_back_takes_nothing_off_a_wait():
    carried = Carried(locality={"job0": LocalityWait(0, 4.0, np.inf)}, planned_at=100.0)
    plan = once(nodes(3, {2}), tasks(reader(0, [0], of=3)), POLICY, now=50.0, carried=carried)
    assert waited(plan) == LocalityWait(0, 4.0, np.inf)


def test_long_tasks_that_start_in_one_plan_stay_apart_as_those_of_two_plans_do():
    # Node 0 has two CPUs, the others one. After the first start it runs more long tasks than the mean.
    room, policy = cluster((2, 2), (1, 1), (1, 1)), replace(POLICY, long_task=60.0)
    anywhere = replace(tasks(reader(0, [0, 1], [0, 1], of=3)), duration=np.array([300.0]))
    assert sorted(pairs(once(room, anywhere, policy))) == [(0, 0), (0, 1)]
    plan = once(room, replace(anywhere, inputs=[blocks(3, [0], [0])]), policy)
    assert pairs(plan) == [(0, 0)]  # for the other no node is near: it waits for its 10 s
    assert (waited(plan), plan.again_at) == (LocalityWait(0, 0.0, np.inf), 10.0)


def test_the_reason_says_what_it_waits_for_and_does_not_change_with_time():
    waiting = with_racks(tasks(reader(0, [0, 1], of=4)), 0, 1, 1, 1)
    planner = Planner(RACKS, explain=True)
    reasons = [planner.plan(nodes(4, {2}), waiting, now).held[0] for now in (0.0, 3.0, 9.9)]
    assert {it.kind for it in reasons} == {"locality"}
    assert {it.text for it in reasons} == {
        "waits for node-local room: 2 preferred nodes, all full; rack level from 10 s on"
    }
    none = planner.plan(nodes(4, set()), waiting, 9.95).held[0]
    assert none.kind == "no-room"


def test_the_reason_at_the_rack_says_when_anywhere_will_do():
    waiting = with_racks(tasks(reader(0, [0], of=4)), 0, 0, 1, 1)
    carried = Carried(locality={"job0": LocalityWait(0, 12.0)}, planned_at=0.0)
    held = once(nodes(4, {2}), waiting, RACKS, carried=carried, explain=True).held[0]
    assert held.text == "waits for rack-local room: 2 preferred nodes, all full; anywhere from 15 s on"


@pytest.mark.parametrize("waits", [(-1.0,), (np.inf,), (5.0, np.nan)])
def test_a_wait_that_is_none_is_refused(waits):
    with pytest.raises(SettingsError, match="locality_waits"):
        Policy(locality_waits=waits)


WAITS = st.sampled_from([(3.0,), (3.0, 2.0), (0.0, 4.0), (1.0, 1.0, 1.0)])


@st.composite
def waiting_scenes(draw):
    snapshot, waiting, policy = draw(real_scenes())
    number, count = len(waiting.count), len(snapshot.layout.names)

    def rows(values, shape):
        size = int(np.prod(shape))
        return np.array(draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))).reshape(shape)

    if draw(st.booleans()):
        waiting = replace(waiting, topology=rows([-1, 0, 1], (1, count)))
    if draw(st.booleans()):
        waiting = replace(waiting, preferred=rows([0, 1, 2], (number, count)))
    return (
        snapshot,
        waiting,
        replace(policy, locality_waits=draw(WAITS), long_task=draw(st.sampled_from([5.0, np.inf]))),
    )


@settings(max_examples=200, deadline=None)
@given(waiting_scenes())
def test_a_plan_with_waits_never_takes_more_than_there_is(scene):
    snapshot, waiting, policy = scene
    plan = once(snapshot, waiting, policy, now=1000.0)
    assert (load_of(snapshot, waiting, plan) <= snapshot.layout.capacity).all()
    assert (left_in(waiting, plan) >= 0).all()


@settings(max_examples=200, deadline=None)
@given(waiting_scenes())
def test_after_the_sum_of_its_waits_nobody_is_held_back_for_locality(scene):
    """Nothing changes but time; each plan at the time for which the last one asked."""
    snapshot, waiting, policy = scene
    planner, now = Planner(replace(policy, starved_after=1e9), explain=True), 1000.0
    end = now + sum(policy.locality_waits)
    for _ in range(50):
        plan = planner.plan(snapshot, waiting, now)
        planner.carried = plan.carried
        if len(plan.assignments) or plan.again_at == np.inf:
            break
        assert plan.again_at > now
        assert plan.again_at <= end + 1e-6
        now = plan.again_at
    if not len(plan.assignments):
        assert plan.again_at == np.inf
        assert not any(held.kind == "locality" for held in plan.held.values())


@settings(max_examples=100, deadline=None)
@given(waiting_scenes())
def test_waits_that_are_over_leave_nobody_out_who_could_start_without_waits(scene):
    snapshot, waiting, policy = scene
    waiting = replace(waiting, gang=None, gang_least=None)
    names = {name: LocalityWait(0, sum(policy.locality_waits)) for name in waiting.jobs.names}
    over = once(snapshot, waiting, replace(policy, long_task=np.inf), now=0.0, carried=Carried(locality=names))
    without = once(snapshot, waiting, replace(policy, locality_waits=()), now=0.0)
    assert bool(len(over.assignments)) == bool(len(without.assignments))


@settings(max_examples=100, deadline=None)
@given(waiting_scenes())
def test_levels_and_long_tasks_can_be_taken_back_but_who_was_passed_over_has_been(scene):
    snapshot, waiting, policy = scene
    waits = {name: LocalityWait(job % 3, 1.0, 5.0) for job, name in enumerate(waiting.jobs.names)}
    carried, classes = Carried(locality=waits, planned_at=998.0), prepared(waiting, snapshot.layout)
    board, fresh = (Board(policy, snapshot, waiting, carried, classes, now=1000.0) for _ in range(2))
    assume(board.locality is not None)  # else nobody chooses where to start
    undo, everyone = board.checkpoint(), np.ones(len(waiting.count), bool)

    def filled():
        board.admit(everyone)
        match(board, board)
        taken = board.taken.assignments()
        return (
            taken.task_class.tolist(),
            taken.node.tolist(),
            board.locality.waits.level.tolist(),
            board.locality.waits.may.tolist(),
        )

    first, skipped = filled(), board.locality.waits.counts.copy()
    for _ in range(2):
        undo()
        assert (board.locality.waits.may == fresh.locality.waits.may).all()
        assert filled() == first
        assert (board.locality.waits.counts == skipped).all()
    undo()
    assert board.locality.outcome(1000.0, ~everyone) == fresh.locality.outcome(1000.0, ~everyone)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sets(st.integers(0, 3)), st.integers(0, 6)), min_size=1, max_size=20),
    st.sampled_from([(5.0, 3.0), (4.0, 0.0), (0.0, 6.0)]),
)
def test_room_comes_and_goes_and_the_task_starts_as_soon_as_it_was_passed_over_long_enough(moments, waits):
    """Told by the reasons alone: time counts from a plan that gave locality as the reason to the next plan."""
    waiting = with_racks(tasks(reader(0, [0], of=4)), 0, 0, 1, 1)
    planner = Planner(replace(RACKS, locality_waits=waits, starved_after=1e9), explain=True)
    now = passed = 0.0
    for free, seconds in moments:
        plan = planner.plan(nodes(4, free), waiting, now)
        may = 0 if passed < waits[0] else 1 if passed < sum(waits) else 2
        levels = {0: 0, 1: 1, 2: 2, 3: 2}
        able = [node for node in free if levels[node] <= may]
        if able:
            assert levels[plan.assignments.node.item()] == min(levels[node] for node in able)
            return
        assert not len(plan.assignments)
        assert plan.held[0].kind == ("locality" if free else "no-room")
        passed += seconds if free else 0
        now += seconds
