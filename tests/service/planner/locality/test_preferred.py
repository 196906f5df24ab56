"""What is said of nodes that tasks wait for. Tasks take one CPU each; jobs wait 10 s for a node with their block."""

from dataclasses import replace

import numpy as np

from extender.cluster.waiting import Running
from extender.planner import Carried, LocalityWait
from tests.service.planner.locality.test_delay import FULL, POLICY, RACKS, blocks, nodes, reader, with_racks
from tests.service.planner.scenes import cluster, once, pairs, tasks

ANYWHERE = "anywhere from 10 s on"


def held(snapshot, waiting, policy=POLICY, **more):
    return once(snapshot, waiting, policy, explain=True, **more).held[0]


def said(text, last=ANYWHERE):
    return f"waits for node-local room: {text}; {last}"


def test_each_task_of_a_class_is_told_of_its_own_nodes():
    found = held(nodes(4, {3}), tasks(reader(0, [0], [0, 1, 2], [1, 2], of=4)))
    one, three, two = (
        said("1 preferred node, full"),
        said("3 preferred nodes, all full"),
        said("2 preferred nodes, all full"),
    )
    assert found.near.texts == {0: one, 1: three, 2: two}
    assert found.text == one


def test_one_that_the_plan_places_lends_the_others_no_words():
    waiting = tasks(reader(0, [2], [0, 1], of=4))
    assert pairs(once(nodes(4, {2, 3}), waiting, POLICY)) == [(0, 2)]
    found = held(nodes(4, {2, 3}), waiting)
    assert found.text == said("2 preferred nodes, all full")
    assert found.near.texts == {1: found.text}


def test_more_tasks_than_are_looked_at_at_once_have_their_words():
    # 600 tasks: those before 300 have their block on node 0, the others on nodes 0 and 1.
    waiting = tasks(reader(0, *([0] if task < 300 else [0, 1] for task in range(600)), of=3))
    texts = held(nodes(3, {2}), waiting).near.texts
    assert [*texts] == [*range(600)]
    assert [task for task, text in texts.items() if "2 preferred nodes" in text] == [*range(300, 600)]


def test_beyond_the_node_each_is_told_of_the_nodes_of_its_own_racks():
    waiting = with_racks(tasks(reader(0, [0], [0, 2], of=5)), 0, 0, 1, 1, 2)
    carried = Carried(locality={"job0": LocalityWait(0, 12.0)}, planned_at=0.0)
    found = held(nodes(5, {4}), waiting, RACKS, carried=carried)
    words = "waits for rack-local room: {} preferred nodes, all full; anywhere from 15 s on"
    assert found.near.texts == {0: words.format(2), 1: words.format(4)}
    assert found.near.level == 1


def test_a_node_that_is_in_no_rack_has_nobody_beside_it():
    waiting = with_racks(tasks(reader(0, [0], [4], of=6)), 0, 0, 1, 1, -1, -1)
    carried = Carried(locality={"job0": LocalityWait(0, 12.0)}, planned_at=0.0)
    texts = held(nodes(6, {5}), waiting, RACKS, carried=carried).near.texts
    assert texts[1] == "waits for rack-local room: 1 preferred node, full; anywhere from 15 s on"


def test_a_class_that_prefers_nodes_has_one_text():
    found = held(nodes(3, {2}), replace(tasks((0, 2, FULL)), preferred=np.array([[0, 0, 1]])))
    assert (found.text, found.near.texts) == (said("2 preferred nodes, all full"), {})


def test_a_node_that_is_too_small_or_barred_is_not_one_of_them():
    waiting = replace(tasks((0, 1, FULL)), preferred=np.array([[0, 0, 0, 1]]), barred=np.array([[False] * 4]))
    snapshot = cluster((0.5,), (1,), (1,), (1,), allocated=[[0] * 6, [1, *[0] * 5], [1, *[0] * 5], [0] * 6])
    assert held(snapshot, waiting).text == said("2 preferred nodes, all full")
    barred = replace(waiting, barred=np.array([[False, False, True, False]]))
    assert held(snapshot, barred).text == said("1 preferred node, full")


def test_a_node_that_runs_more_long_tasks_than_the_mean_is_not_called_full():
    running = Running(np.array([0]), np.array([500.0]), np.zeros((1, 6)), seconds=np.array([400.0]))
    waiting = replace(tasks(reader(0, [0, 1], of=2), running=running), duration=np.array([300.0]))
    found = held(nodes(2, {0}), waiting, replace(POLICY, long_task=60.0))
    assert found.text == said("2 preferred nodes, all full or crowded by long tasks")
    assert (found.near.crowded, found.near.reserved) == ([0], [])


def test_a_node_that_is_reserved_is_not_called_full():
    # Node 0 has 1 of its 2 CPUs free, for the class that has waited for 1,000 s and takes both.
    running = Running(np.array([0]), np.array([50.0]), np.array([[1.0, *[0.0] * 5]]))
    waiting = replace(tasks(reader(0, [0], of=2), (1, 1, (2.0,)), running=running), since=np.array([999.0, 0.0]))
    snapshot = cluster((2,), (1,), allocated=[[1, *[0] * 5], [0] * 6])
    found = held(snapshot, waiting, now=1000.0)
    assert found.text == said("1 preferred node, reserved")
    assert (found.near.crowded, found.near.reserved) == ([], [0])


def test_a_node_whose_disk_has_too_little_to_spare_is_not_called_full():
    # The task reads 50. Node 0 has a CPU free, but 10 of its disk's 100; node 1 has no CPU; node 2 could read from it.
    rates = (1, 1, 100, 100, 100, 100)
    snapshot = cluster(rates, rates, rates, allocated=[[0, 0, 90, 0, 0, 0], [1, 0, 0, 0, 0, 0], [0] * 6])
    found = held(snapshot, tasks((0, 1, FULL, 50.0, blocks(3, [0, 1]))))
    assert found.text == said("2 preferred nodes, none with room for it")


def test_a_task_that_could_use_none_of_its_nodes_is_told_of_none():
    waiting = replace(tasks(reader(0, [0], [1], of=3)), barred=np.array([[False, True, False]]))
    found = held(nodes(3, {2}), waiting)
    assert found.near.texts == {0: said("1 preferred node, full"), 1: f"waits for node-local room; {ANYWHERE}"}
