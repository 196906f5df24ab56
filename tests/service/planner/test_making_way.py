"""Who makes way for regular pods, on small nodes of two resources: CPU, which nobody holds there, and places."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.making_way import InTheWay, MakingWay

amount = st.integers(0, 4)


def in_the_way(node, places, *, may_go=None):
    held = np.array([[0.0, float(place)] for place in places]).reshape(len(places), 2)
    able = np.ones(len(places), dtype=bool) if may_go is None else np.array(may_go, dtype=bool)
    return InTheWay(np.array(node, dtype=np.intp), held, np.arange(len(places), dtype=float), able)


def test_of_two_nodes_the_one_where_fewer_go_is_cleared():
    look = MakingWay(np.array([[9.0, 0.0], [9.0, 0.0]]), in_the_way([0, 0, 1], [1, 1, 2]))
    placed, (way,) = look.ways(np.array([1.0, 2.0]), np.ones(2, dtype=bool), 1, 9)
    assert (placed, way.node, way.victims.tolist(), way.short.tolist()) == (1, 1, [2], [0.0, 2.0])


def test_what_is_free_is_taken_before_anybody_goes():
    look = MakingWay(np.array([[9.0, 2.0]]), in_the_way([0], [1]))
    placed, ways = look.ways(np.array([1.0, 1.0]), np.ones(1, dtype=bool), 3, 9)
    assert (placed, [way.victims.tolist() for way in ways]) == (3, [[0]])


def test_a_pod_that_needs_six_places_gets_them_of_six_that_hold_one_each():
    look = MakingWay(np.array([[9.0, 0.0]]), in_the_way([0] * 6, [1] * 6))
    placed, (way,) = look.ways(np.array([1.0, 6.0]), np.ones(1, dtype=bool), 1, 9)
    assert (placed, sorted(way.victims.tolist())) == (1, [0, 1, 2, 3, 4, 5])


def test_of_many_nodes_the_one_where_fewest_go_is_found():
    pairs = [(node, 1) for node in range(20) for _ in range(2)]
    look = MakingWay(np.tile([9.0, 0.0], (21, 1)), in_the_way(*zip(*pairs, (20, 2), strict=True)))
    placed, (way,) = look.ways(np.array([1.0, 2.0]), np.ones(21, dtype=bool), 1, 9)
    assert (placed, way.node, way.victims.tolist()) == (1, 20, [40])


def test_a_node_that_is_short_of_what_nobody_holds_there_is_left_alone_without_a_warning():
    # The first is short of 8 GiB, which no opportunistic pod there holds; the second has it, and one pod in the way.
    gib = 2.0**30
    look = MakingWay(np.array([[gib, 0.0], [9 * gib, 0.0]]), in_the_way([0, 1], [1, 1]))
    placed, (way,) = look.ways(np.array([9 * gib, 1.0]), np.ones(2, dtype=bool), 1, 9)
    assert (placed, way.node, way.victims.tolist()) == (1, 1, [1])


def test_nobody_else_goes_once_as_many_are_to_go_as_may_at_once():
    look = MakingWay(np.array([[9.0, 0.0]]), in_the_way([0] * 4, [1] * 4))
    placed, ways = look.ways(np.array([1.0, 1.0]), np.ones(1, dtype=bool), 4, 2)
    assert (placed, [way.victims.tolist() for way in ways]) == (2, [[0], [1]])


def test_a_pod_that_needs_more_on_some_nodes_takes_there_what_it_needs():
    # It needs 2 of CPU on the first node, and 5 on the second. The first has CPU for two, the second a place for one.
    look = MakingWay(np.array([[5.0, 0.0], [9.0, 1.0]]), in_the_way([0, 0, 0], [1, 1, 1]))
    placed, ways = look.ways(np.array([[2.0, 1.0], [5.0, 1.0]]), np.ones(2, dtype=bool), 9, 9)
    assert (placed, [(way.node, way.victims.tolist()) for way in ways]) == (3, [(0, [0]), (0, [1])])


def test_a_node_where_the_pod_may_not_go_is_neither_filled_nor_cleared():
    # Only the third is allowed. The first has room, the second a pod in the way, as the third.
    free, pods = np.array([[9.0, 1.0], [9.0, 0.0], [9.0, 0.0]]), in_the_way([1, 2], [1, 1])
    demand, allowed = np.array([1.0, 1.0]), np.array([False, False, True])
    placed, (way,) = MakingWay(free, pods).ways(demand, allowed, 3, 9)
    assert (placed, way.node, way.victims.tolist()) == (1, 2, [1])


def test_a_node_that_is_over_allocated_takes_no_room_from_others():
    # The first has 2 places less than nothing, the second has 2.
    look = MakingWay(np.array([[9.0, -2.0], [9.0, 2.0]]), in_the_way([], []))
    assert look.ways(np.array([1.0, 1.0]), np.ones(2, dtype=bool), 3, 9) == (2, [])


def test_a_pod_has_a_way_if_it_fits_once_all_go_who_may():
    free, pods = np.array([[9.0, 1.0], [1.0, 0.0]]), in_the_way([0, 0, 1], [1, 1, 3], may_go=[True, False, True])
    look, everywhere = MakingWay(free, pods), np.ones(2, dtype=bool)
    assert look.most().tolist() == [9, 3]
    assert [look.possible(np.array([1.0, places]), everywhere) for places in (3.0, 4.0)] == [True, False]
    assert not look.possible(np.array([9.0, 3.0]), everywhere), "one has the CPU for it, the other the places"
    assert not look.possible(np.array([1.0, 3.0]), np.array([True, False]))


def test_a_look_changes_nothing_of_what_it_was_given():
    free, pods = np.array([[9.0, 1.0]]), in_the_way([0], [1])
    assert MakingWay(free, pods).ways(np.array([1.0, 1.0]), np.ones(1, dtype=bool), 2, 9)[0] == 2
    assert (free.tolist(), pods.may_go.tolist()) == ([[9, 1]], [True])


def test_a_checkpoint_takes_everything_back():
    look = MakingWay(np.array([[9.0, 1.0]]), in_the_way([0, 0], [1, 1]))
    before = look.checkpoint()
    assert look.ways(np.array([1.0, 1.0]), np.ones(1, dtype=bool), 9, 9)[0] == 3
    look.restore(before)
    assert look.ways(np.array([1.0, 1.0]), np.ones(1, dtype=bool), 9, 9)[0] == 3


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(amount, amount), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.booleans()), max_size=8),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=3),
)
def test_nobody_goes_in_vain_or_twice_and_no_node_is_given_more_than_comes_free(free, pods, waiting):
    room = np.array(free, dtype=float)
    there = [(min(node, len(free) - 1), places, may) for node, places, may in pods]
    holders = in_the_way(*([list(column) for column in zip(*there, strict=True)][:2] or ([], [])))
    holders = InTheWay(holders.node, holders.held, holders.lost, np.array([may for *_, may in there], dtype=bool))
    look, everywhere = MakingWay(room, holders), np.ones(len(free), dtype=bool)
    gone, needed, left = set(), np.zeros(2), room.sum(axis=0)
    for cpu, places, count in waiting:
        demand = np.array([cpu, places], dtype=float)
        placed, ways = look.ways(demand, everywhere, count, 99)
        assert placed <= count
        needed += placed * demand
        for way in ways:
            victims = way.victims.tolist()
            assert victims
            assert not gone & set(victims)
            assert all(holders.may_go[place] and holders.node[place] == way.node for place in victims)
            brings = holders.held[victims].sum(axis=0)
            assert (brings >= way.short).all()
            for spare in victims:  # none of them could have stayed
                assert (brings - holders.held[spare] < way.short).any()
            gone |= set(victims)
    freed = holders.held[sorted(gone)].sum(axis=0) if gone else np.zeros(2)
    assert (needed <= left + freed + 1e-9).all()
