"""On nodes of unequal shapes each class goes where it suits, if there is room, whichever node is filled first."""

from dataclasses import replace

import numpy as np
import pytest

from extender.planner import Policy
from extender.planner.prepared import scale_of
from tests.service.planner.scenes import cluster, once, pairs, tasks

CPU_NODE, MEMORY_NODE = (32, 64), (8, 128)


@pytest.mark.parametrize("matching", ["machine", "pair"])
@pytest.mark.parametrize("nodes", [(CPU_NODE, MEMORY_NODE), (MEMORY_NODE, CPU_NODE)])
def test_each_class_starts_on_the_shape_that_suits_it(matching, nodes):
    # Class 0 needs memory, class 1 cores. On the wrong nodes only 17 of class 1 would start beside class 0.
    waiting = tasks((0, 2, (1, 48)), (1, 32, (1, 2)))
    started = pairs(once(cluster(*nodes), waiting, Policy(matching=matching)))
    assert {node for task_class, node in started if task_class == 0} == {nodes.index(MEMORY_NODE)}
    assert sum(task_class == 1 for task_class, _ in started) == 32


def test_who_has_the_next_turn_on_the_better_node_goes_there_first():
    # Both classes are better off on the memory node; the second job's turn is first, as it has nothing.
    waiting = tasks((0, 1, (1, 100)), (1, 1, (1, 100)), held=[[8, *[0] * 5], [0] * 6])
    started = pairs(once(cluster((64, 110), MEMORY_NODE), waiting, Policy(fairness=0.9)))
    assert started[0] == (1, 1)


def test_a_full_node_of_the_right_shape_keeps_nobody_waiting():
    waiting = tasks((0, 1, (1, 48)))
    snapshot = cluster(CPU_NODE, MEMORY_NODE, allocated=[[0] * 6, [0, 100, *[0] * 4]])
    assert pairs(once(snapshot, waiting)) == [(0, 0)]


@pytest.mark.parametrize("matching", ["machine", "pair"])
def test_under_a_backlog_each_shape_takes_those_that_it_suits(matching):
    # Two nodes of each shape. Class 0 needs cores, class 1 memory: a node has room for 8 tasks of the right class, and
    # for 2 of the wrong one. Both have more waiting than the right nodes have room for.
    nodes = ((32, 32), (32, 32), (8, 128), (8, 128))
    waiting = tasks((0, 64, (4, 1)), (1, 64, (1, 16)), work=[1.0, 1.0])
    started = pairs(once(cluster(*nodes), waiting, Policy(matching=matching)))
    assert {node for task_class, node in started if task_class == 0} == {0, 1}
    assert sum(task_class == 1 and node >= 2 for task_class, node in started) == 16
    assert len(started) == 32


def test_the_size_of_a_node_does_not_count_nor_what_is_large_on_a_few():
    capacity = np.array([[16.0, 32.0, 64.0], [64.0, 128.0, 256.0]])
    rest = np.zeros((4, 3))
    packed = np.vstack((capacity, rest)) > 0
    assert scale_of(np.vstack((capacity, rest)), packed)[:2] == pytest.approx(1 / capacity)


def test_a_node_with_devices_is_divided_by_its_own_capacity():
    capacity = np.array([[32.0, 8.0], [32.0, 128.0], *[[0.0, 0.0]] * 4, [4.0, 0.0]])
    scale = scale_of(capacity, capacity > 0)
    assert scale[:, 0].tolist() == [1 / 32, 1 / 32, 0, 0, 0, 0, 1 / 4]
    assert scale[0, 1] / scale[1, 1] == pytest.approx(80 / 20)


def test_larger_nodes_of_one_shape_are_no_other_shape():
    waiting = tasks((0, 1, (1, 4)))
    assert pairs(once(cluster((16, 64), (32, 128)), waiting)) == pairs(once(cluster((16, 64), (16, 64)), waiting))


def test_nodes_that_come_late_in_the_order_are_found_as_well():
    # Where nodes are looked at, 256 at a time, those of many cores come last: they are half full.
    snapshot = cluster(*[(4, 64)] * 260, *[(64, 64)] * 40)
    many_cores = snapshot.layout.capacity[:, 0] == 64
    used = np.where(many_cores[:, np.newaxis], [32.0, 32.0, 0, 0, 0, 0], 0.0)
    ((_, node),) = pairs(once(replace(snapshot, allocated=used), tasks((0, 1, (1, 1)))))
    assert many_cores[node]


def test_shapes_are_the_same_in_whatever_units_amounts_are():
    waiting, nodes = tasks((0, 2, (1, 48)), (1, 32, (1, 2))), cluster(CPU_NODE, MEMORY_NODE)
    scale = np.array([2.0**-8, 2.0**-8, *[1.0] * 4])
    small = cluster(*([amount * 2.0**-8 for amount in node] for node in (CPU_NODE, MEMORY_NODE)))
    assert pairs(once(small, replace(waiting, demand=waiting.demand * scale))) == pairs(once(nodes, waiting))
