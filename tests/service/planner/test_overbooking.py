"""What starts beyond what disks and links have: only what gains more than it costs, within a cap."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.waiting import Blocks, Running
from extender.errors import SettingsError
from extender.planner import Policy
from extender.planner.plan import Carried, Reservation
from tests.service.planner.scenes import cluster, load_of, once, pairs, scenes, tasks

LINK = (1, 1, 0, 0, 6)  # 6 of a link (network in) of 10
DISK = (1, 1, 6)


def running(*rows):
    """Each: node, when it is expected to end, what it takes."""
    demand = np.array([[*row[2], *(0.0,) * (6 - len(row[2]))] for row in rows])
    return Running(np.array([row[0] for row in rows]), np.array([float(row[1]) for row in rows]), demand)


def plan(ends_at, demand=LINK, overbook=0.2, *, nodes=1, capacity=(10,) * 6, now=0.0, **others):
    """One task of 10 s that waits, where one of the same shape runs on every node until then."""
    there = running(*((node, ends_at, demand) for node in range(nodes)))
    snapshot = cluster(*[capacity] * nodes, allocated=[[*demand, *(0,) * (6 - len(demand))]] * nodes)
    return pairs(once(snapshot, tasks((0, 1, demand), running=there, **others), Policy(overbook=overbook), now))


def test_two_tasks_of_six_tenths_of_a_link_share_it_where_that_is_on():
    # The paper's example: 8 s are gained (12 instead of 20), 2 are lost (12 instead of 10).
    assert plan(10.0) == [(0, 0)]
    assert plan(10.0, overbook=0.0) == []


def test_a_task_waits_for_room_that_comes_soon():
    # In w s there is room: the new task gains w - 2, the other loses what is left of it times .2.
    # w - 2 > 3 x .2 w from w = 5 on: the benefit must be three times the cost.
    assert plan(4.9) == []
    assert plan(5.1) == [(0, 0)]


def test_room_on_any_node_counts():
    # The node with room for it within the cap is full for 10 s. The other one is full of CPU for 1 s more.
    there = running((0, 10.0, LINK), (1, 1.0, (10,)))
    snapshot = cluster((10,) * 6, (10,) * 6, allocated=[[*LINK, 0], [10, 0, 0, 0, 0, 0]])
    waiting = tasks((0, 1, LINK), running=there)
    assert pairs(once(snapshot, waiting, Policy(overbook=0.2))) == []


def test_the_cap_is_a_part_of_what_the_node_has():
    assert plan(10.0, overbook=0.19) == []  # 12 of 11.9


@pytest.mark.parametrize("demand", [(6,), (1, 6)])
def test_cpu_and_memory_are_never_overbooked(demand):
    assert plan(10.0, demand, 0.9) == []


def test_disks_cost_seeks():
    # Alone a disk at .6 is fast enough; at 1.2 all take 1.2 x (1 + .127 x 1.2) = 1.383 times as long.
    # With 10 s left: 10 - 3.83 = 6.17 is gained, 3.83 lost. At .55 each, 1.1: 1.1 x 1.14 = 1.254 times as long, so
    # 7.46 is gained and 2.54 lost; at .52, 1.04: 1.177, so 8.23 and 1.77: only that is three times as much.
    assert plan(10.0, DISK) == []
    assert plan(10.0, (1, 1, 5.5)) == []
    assert plan(10.0, (1, 1, 5.2)) == [(0, 0)]


def test_who_fits_goes_first_and_takes_what_there_is():
    there = running((0, 10.0, LINK))
    snapshot = cluster((10,) * 6, allocated=[[*LINK, 0]])
    waiting = tasks((0, 1, LINK), (0, 1, (9,)), running=there)
    assert pairs(once(snapshot, waiting, Policy(overbook=0.2))) == [(1, 0)]


def test_a_task_that_started_in_the_same_plan_is_affected_too():
    # Nothing runs; of two tasks of 10 s the first fits, the second is the paper's example.
    snapshot = cluster((10,) * 6)
    waiting = tasks((0, 2, LINK), running=running((0, 1.0, (0,))))
    assert pairs(once(snapshot, waiting, Policy(overbook=0.2))) == [(0, 0), (0, 0)]
    assert pairs(once(snapshot, waiting, Policy())) == [(0, 0)]


def test_who_is_late_needs_as_long_again():
    # It should have ended 10 s ago: 10 s more. Only 1 s late, room is near.
    assert plan(10.0, now=20.0) == [(0, 0)]
    assert plan(10.0, now=11.0) == []


def test_a_disk_from_which_others_read_is_not_overbooked():
    # Of the 8 of the disk that are promised, somebody elsewhere reads 2.
    snapshot = cluster((10,) * 6, allocated=[[1, 1, 8, 0, 0, 2]])
    waiting = tasks((0, 1, (1, 1, 4)), running=running((0, 100.0, DISK)))
    assert pairs(once(snapshot, waiting, Policy(overbook=0.2))) == []
    alone = cluster((10,) * 6, allocated=[[1, 1, 8, 0, 0, 0]])
    waiting = tasks((0, 1, (1, 1, 4)), running=running((0, 100.0, (1, 1, 8))))
    assert pairs(once(alone, waiting, Policy(overbook=0.2))) == [(0, 0)]


def test_a_reader_from_elsewhere_may_overbook_its_own_link_but_not_its_source():
    # The block is on node 1, of which CPU is full. Node 0 receives 6 already.
    def waiting(nodes):
        blocks = Blocks(np.array([[1]]), np.ones(1, bool), 2)
        return tasks((0, 1, (1,), 6.0, blocks), running=nodes)

    full = (1, 100.0, (10,))
    receiving = cluster((10,) * 6, (10,) * 6, allocated=[[1, 1, 0, 0, 6, 0], [10, 0, 0, 0, 0, 0]])
    there = running((0, 100.0, LINK), full)
    assert pairs(once(receiving, waiting(there), Policy(overbook=0.2, locality_waits=()))) == [(0, 0)]
    sending = cluster((10,) * 6, (10,) * 6, allocated=[[1, 1, 0, 0, 6, 0], [10, 0, 0, 0, 0, 6]])
    assert pairs(once(sending, waiting(there), Policy(overbook=0.2))) == []


def test_where_nobody_knows_what_runs_nothing_is_overbooked():
    snapshot = cluster((10,) * 6, allocated=[[*LINK, 0]])
    assert pairs(once(snapshot, tasks((0, 1, LINK)), Policy(overbook=0.2))) == []


def test_a_node_on_which_room_is_reserved_is_not_overbooked():
    # It is reserved for who takes the whole disk: CPU and memory, and a fifth more of the link, would do for the other.
    there = running((0, 100.0, (1, 1, 6, 0, 6)))
    snapshot = cluster((10,) * 6, allocated=[[1, 1, 6, 0, 6, 0]])
    waiting = tasks((0, 1, (1, 1, 10)), (1, 1, LINK), running=there)
    reserved = Carried(reserved={"class0": Reservation((("class0", "n0", 1),), 500.0)})
    assert pairs(once(snapshot, waiting, Policy(overbook=0.2))) == [(1, 0)]
    assert pairs(once(snapshot, waiting, Policy(overbook=0.2), carried=reserved)) == []


def test_an_unaccepted_cap_is_refused():
    with pytest.raises(SettingsError, match=r"overbook: 1\.0; accepted: at least 0, below 1"):
        Policy(overbook=1.0)


def full_scene(scene, ends):
    """Let something run on every node of a scene that takes half of what it has."""
    capacities, classes, policy = scene
    held = np.where(np.isfinite(capacities), np.array(capacities) / 2, 0.0)
    waiting = tasks(*classes, running=Running(np.arange(len(held)), np.full(len(held), ends), held))
    return cluster(*capacities, allocated=held), waiting, policy


@settings(max_examples=150, deadline=None)
@given(scenes(), st.sampled_from([1.0, 5.0, 50.0]), st.sampled_from([0.2, 0.5, 0.9]))
def test_no_node_is_promised_more_than_the_cap_beyond_and_nothing_else_is_overbooked(scene, ends, cap):
    snapshot, waiting, policy = full_scene(scene, ends)
    load = load_of(snapshot, waiting, once(snapshot, waiting, replace(policy, overbook=cap)))
    most = np.array([1, 1, 1 + cap, 1 + cap, 1 + cap, 1 + max(cap, policy.source_excess)])
    assert (load <= snapshot.layout.capacity * most + 1e-9).all()


@settings(max_examples=100, deadline=None)
@given(scenes())
def test_by_default_nothing_is_overbooked(scene):
    snapshot, waiting, policy = full_scene(scene, 50.0)
    load = load_of(snapshot, waiting, once(snapshot, waiting, policy))
    most = np.array([1, 1, 1, 1, 1, 1 + policy.source_excess])
    assert (load <= snapshot.layout.capacity * most + 1e-9).all()


@settings(max_examples=150, deadline=None)
@given(scenes(), st.sampled_from([1.0, 5.0, 50.0]))
def test_each_start_beyond_what_there_is_gains_three_times_what_it_costs(scene, ends):
    snapshot, waiting, policy = full_scene(scene, ends)
    waiting = replace(waiting, inputs=[None] * len(waiting.inputs))
    usual = pairs(once(snapshot, waiting, policy))
    starts = pairs(once(snapshot, waiting, replace(policy, overbook=0.5)))
    assert starts[: len(usual)] == usual
    capacity, load = snapshot.layout.capacity, snapshot.allocated.copy()
    there = [(node, ends, row) for node, row in enumerate(load.copy())]
    for place, (row, node) in enumerate(starts):
        demand = waiting.demand[row].copy()
        demand[2] += waiting.reading[row]
        if place >= len(usual):
            gained, lost = gain(capacity, load, there, node, demand)
            assert gained > 3 * lost
        load[node] += demand
        there.append((node, 10.0, demand))


def gain(capacity, load, there, node, demand):
    """Return benefit and cost of a task of 10 s, task by task: Graphene's figure 15, lines 14 to 19."""

    def slower(amount, taken):
        factors = [1.0]
        for place in range(2, 6):
            if taken[place] > 0 and 0 < capacity[node, place] < np.inf:
                full = amount[place] / capacity[node, place]
                seeks = min(1 + 0.127 * full, 0.0287 / 0.016)
                incast = min(1 + 0.5 * max(full - 1.2, 0), 2.0)
                factors.append(full * (seeks if place in (2, 3) else incast))
        return max(factors)

    new = slower(load[node] + demand, demand)
    # The next room: on each node, the first end after which what is left fits.
    waits = []
    for other in range(len(capacity)):
        room = capacity[other] - load[other]
        for at, taken in sorted(((at, taken) for on, at, taken in there if on == other), key=lambda one: one[0]):
            room = room + taken
            if all(part <= free for part, free in zip(demand, room, strict=True) if part > 0):
                waits.append(at)
                break
    lost = 0.0
    for on, left, taken in there:
        if on == node:
            before, after = slower(load[node], taken), slower(load[node] + demand, taken)
            done = min(10.0 * new / after, left)
            lost += done * (after - before)
    return min(waits, default=np.inf) + 10.0 - 10.0 * new, lost
