from dataclasses import replace

import numpy as np

from extender.planner import Policy
from tests.service.planner.scenes import cluster, once, pairs, tasks


def shuffled(*classes, which=True):
    waiting = tasks(*classes)
    return replace(waiting, shuffled=np.full(len(classes), which))


def test_tasks_whose_output_is_shuffled_go_to_all_nodes_alike():
    """Of 6 tasks each of 3 nodes gets 2, though one has room for 4."""
    snapshot = cluster(*[(4, 8, 6, 6, 6, 6)] * 3)
    counts = np.bincount(np.array(pairs(once(snapshot, shuffled((0, 6, (1, 1))))))[:, 1])
    assert counts.tolist() == [2, 2, 2]


def test_others_fill_one_node_after_the_other():
    snapshot = cluster(*[(4, 8, 6, 6, 6, 6)] * 3)
    for waiting in (tasks((0, 6, (1, 1))), shuffled((0, 6, (1, 1)), which=False)):
        assert [node for _, node in pairs(once(snapshot, waiting))] == [0, 0, 0, 0, 1, 1]


def test_where_a_disk_is_faster_than_the_link_nobody_is_spread():
    """Who runs beside the output reads it at 7 a second, others at 6."""
    snapshot = cluster(*[(4, 8, 7, 6, 6, 6)] * 3)
    assert [node for _, node in pairs(once(snapshot, shuffled((0, 4, (1, 1)))))] == [0, 0, 0, 0]


def test_what_its_equal_part_leaves_over_goes_where_there_is_room():
    """Each of 2 nodes should get 3 of 5 tasks; one has room for 1 only, so the other gets its 3 and then one more."""
    snapshot = cluster(*[(4, 8, 6, 6, 6, 6)] * 2, allocated=[[0] * 6, [3, 0, 0, 0, 0, 0]])
    assert [node for _, node in pairs(once(snapshot, shuffled((0, 5, (1, 1)))))] == [0, 0, 0, 1, 0]


def test_jobs_in_line_are_not_passed_for_it():
    """The first job of a FIFO queue takes all of the first node before the second job gets anything of it."""
    snapshot = cluster(*[(2, 8, 6, 6, 6, 6)] * 2)
    waiting = replace(shuffled((0, 2, (1, 1)), (0, 2, (1, 1))), behind=np.array([0, 1]))
    assert pairs(once(snapshot, waiting, Policy())) == [(0, 0), (0, 0), (1, 1), (1, 1)]
