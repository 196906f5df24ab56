"""Devices that are lost to others, with numbers by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.policy.stranding import StrandedMore, lost_more, sought, stranded, unit_of, usual_pods, weight_of_sought

GPUS = np.array([1])


def usual(*classes):
    """Return usual pods that ask for (cores, GPUs), each so many times."""
    amounts = np.array([asked for asked, _ in classes], dtype=float)
    return usual_pods(amounts, np.array([count for _, count in classes]), GPUS)


def lost(usual_pods, *free):
    return stranded(np.array(free, dtype=float), usual_pods).tolist()


def test_devices_that_all_can_use_are_not_stranded():
    assert lost(usual(((4, 1), 3), ((8, 2), 1)), (8, 2), (64, 8), (0, 0)) == [0, 0, 0]


def test_a_class_that_lacks_cores_can_use_no_device_of_the_node():
    # Seven cores: one of four pods asks for eight.
    assert lost(usual(((4, 1), 3), ((8, 2), 1)), (7, 2)) == [2 / 4]


def test_devices_without_cores_are_stranded_to_everybody():
    assert lost(usual(((4, 1), 3), ((8, 2), 1)), (3, 8)) == [8]


def test_the_rest_of_a_device_is_stranded_to_those_who_ask_for_whole_ones_or_for_more_than_it():
    # 1,600 thousandths: 600 are of no use to who asks for 1,000, nor for 700; who asks for 500 has use for all.
    three = usual(((1, 1000), 2), ((1, 700), 1), ((1, 500), 1))
    assert lost(three, (64, 1600)) == [pytest.approx(0.6 * 3 / 4)]


def test_who_asks_for_no_device_does_not_count():
    assert lost(usual(((4, 1), 1), ((60, 0), 9)), (8, 2)) == [0]


def test_without_usual_pods_nothing_is_stranded():
    nobody = usual_pods(np.zeros((0, 2)), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.intp))
    assert lost(nobody, (3, 8), (64, 8)) == [0, 0]


@pytest.mark.parametrize(
    ("asked", "unit"),
    [
        ([(1, 5), (2, 3), (8, 1)], 1),
        ([(2, 5), (4, 3)], 2),
        ([(250, 9), (700, 9), (1000, 5), (2000, 3), (8000, 1)], 1000),
        ([(470, 9), (810, 9)], 810),
        ([(1000, 50), (2000, 49), (1500, 1)], 1000),  # one stray pod in a hundred
        ([(0, 4)], 1),
    ],
)
def test_a_unit_is_what_nearly_all_larger_amounts_are_multiples_of(asked, unit):
    amounts, counts = np.array(asked, dtype=float).T
    assert unit_of(amounts, counts.astype(np.int64)) == unit


@given(
    st.lists(st.tuples(st.tuples(st.integers(0, 9), st.integers(0, 9)), st.integers(1, 5)), max_size=5),
    st.lists(st.tuples(st.integers(-3, 20), st.integers(-3, 20)), min_size=1, max_size=5),
)
def test_no_more_is_stranded_than_is_there_and_never_less_than_nothing(classes, free):
    amounts = np.array([asked for asked, _ in classes], dtype=float).reshape(-1, 2)
    devices = GPUS if amounts[:, 1].any() else GPUS[:0]
    pods = usual_pods(amounts, np.array([count for _, count in classes], dtype=np.int64), devices)
    room = np.array(free, dtype=float)
    found = stranded(room, pods)
    unit = pods.unit.item(0) if len(devices) else 1.0
    assert (found >= -1e-9).all()
    assert (found <= np.maximum(room[:, 1], 0) / unit + 1e-9).all()


# What is sought: four nodes with 2, 2, 4 and no GPUs.

CAPACITY = np.array([[2.0], [2.0], [4.0], [0.0]])
ANYWHERE = [True, True, True, True]


def by_node(asked, may):
    return sought(np.array(asked, dtype=float).reshape(-1, 1), np.array(may), CAPACITY).ravel().tolist()


def test_devices_of_which_all_pods_may_have_any_are_sought_alike():
    assert by_node([7], [ANYWHERE]) == [0, 0, 0, 0]
    assert by_node([7, 3], [ANYWHERE, [True, True, True, False]]) == [0, 0, 0, 0]


def test_what_some_must_have_is_sought_more():
    # Half of what is asked for, four of eight GPUs, must lie on the first two nodes, which have four.
    assert by_node([1, 1], [ANYWHERE, [True, True, False, False]]) == [1, 1, 0, 0]
    assert by_node([3, 1], [ANYWHERE, [True, False, False, False]]) == [1, 0, 0, 0]


def test_who_may_go_nowhere_seeks_nothing():
    assert by_node([1, 9], [ANYWHERE, [False, False, False, True]]) == [0, 0, 0, 0]
    assert by_node([0, 0], [ANYWHERE, [True, False, False, False]]) == [0, 0, 0, 0]


def test_a_node_where_nobody_may_go_makes_no_other_dear():
    assert by_node([3, 1], [[True, True, False, False], [True, True, False, False]]) == [0, 0, 0, 0]


def test_what_is_sought_counts_less_the_fuller_the_cluster_is():
    weights = weight_of_sought(np.array([0.0, 4.0, 8.0, 9.0, 0.0]), np.array([8.0, 8.0, 8.0, 8.0, 0.0]))
    assert weights.tolist() == [1, 0.25, 0, 0, 1]


def test_a_pod_takes_what_is_sought_by_the_device():
    pods = usual(((4, 1), 1))
    free = np.array([[64.0, 8.0], [64.0, 8.0]])
    more = lost_more(np.array([4.0, 2.0]), free, np.array([[0.5], [0.0]]), pods)
    assert more.tolist() == [1.0, 0.0]


def test_a_pod_strands_what_those_left_with_too_little_could_have_used():
    # Of 8 cores and 2 GPUs it leaves 4 and 1: of no use to one of four pods. Of 7 cores and 2 GPUs, which were of no
    # use to that one already, it leaves 3 and 1: of no use to anybody.
    pods = usual(((4, 1), 3), ((8, 2), 1))
    free, nobody = np.array([[8.0, 2.0], [64.0, 8.0], [7.0, 2.0]]), np.zeros((3, 1))
    assert lost_more(np.array([4.0, 1.0]), free, nobody, pods).tolist() == [1 / 4, 0, 1 - 2 / 4]


def test_parts_of_devices_are_counted_in_whole_ones():
    # Two GPUs, in thousandths, of a node where one pod more would ask for half of each.
    pods = usual(((4, 1000), 1))
    assert lost_more(np.array([4.0, 2000.0]), np.array([[64.0, 8000.0]]), np.array([[0.5]]), pods).tolist() == [1.0]
    assert lost_more(np.array([64.0, 2000.0]), np.array([[64.0, 8000.0]]), np.zeros((1, 1)), pods).tolist() == [6.0]


def test_what_is_kept_of_nodes_is_what_would_be_worked_out_anew():
    # Nodes change, and some are asked about or all, for two kinds of pods by turns.
    draw, who, nodes = np.random.default_rng(1), usual(((4, 1), 3), ((8, 2), 1)), 40
    by_others = draw.integers(0, 2, (nodes, 1)).astype(float)
    more, free = StrandedMore(who, by_others), draw.integers(0, 9, (nodes, 2)).astype(float)
    for turn in range(60):
        free[draw.integers(nodes, size=3)] = draw.integers(0, 9, (3, 2))
        demand = np.array([[4.0, 1.0], [8.0, 2.0]][draw.integers(2)])
        rows = None if turn % 3 == 0 else draw.permutation(nodes)[: draw.integers(1, nodes)]
        there = np.arange(nodes) if rows is None else rows
        found = more(demand, free[there], rows)
        assert found.tolist() == lost_more(demand, free[there], by_others[there], who).tolist()
        found[:] = np.nan  # the caller's own
