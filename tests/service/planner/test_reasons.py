from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.waiting import Blocks, Running
from extender.planner import WaitReason
from tests.service.costs import elements_of
from tests.service.planner.scenes import cluster, once, tasks

BARRED = "node selector, affinity, taints, cordons or volumes"


def held(snapshot, waiting, barred=None, now=0.0):
    if barred is not None:
        waiting = replace(waiting, barred=np.array(barred, bool))
    return once(snapshot, waiting, now=now, explain=True).held


def test_a_class_that_no_node_allows_says_so():
    assert held(cluster((4,), (4,)), tasks((0, 1, (1,))), [[True, True]])[0] == WaitReason(
        "barred", f"no node allows it: {BARRED}"
    )


def test_a_class_that_is_barred_from_all_nodes_with_room_says_so():
    snapshot = cluster((4,), (4,), allocated=[[0] * 6, [4, *[0] * 5]])
    assert held(snapshot, tasks((0, 1, (1,))), [[True, False]])[0] == WaitReason(
        "no-room", f"the nodes with room do not allow it: {BARRED}; on those that do, mostly cpu is short"
    )


def test_a_class_that_is_too_large_for_the_nodes_that_allow_it_says_so():
    assert held(cluster((9,), (4,)), tasks((0, 1, (5,))), [[True, False]])[0] == WaitReason(
        "too-large", "no node that allows it is large enough: too little cpu on each"
    )


def test_what_other_nodes_lack_is_no_reason():
    # n0 lacks memory, but is barred; n1 lacks CPU.
    snapshot = cluster((4, 4), (4, 4), allocated=[[0, 4, 0, 0, 0, 0], [4, 0, 0, 0, 0, 0]])
    assert held(snapshot, tasks((0, 1, (1, 1))), [[True, False]])[0].text == (
        "no node has enough free: mostly cpu is short"
    )


def test_where_only_reserved_nodes_have_room_that_is_the_reason():
    running = Running(np.array([0]), np.array([50.0]), np.array([[3.0, *[0] * 5]]))
    waiting = replace(tasks((0, 1, (4,)), (1, 1, (1,)), running=running), since=np.array([0.0, 999.0]))
    found = held(cluster((4,), allocated=[[3, *[0] * 5]]), waiting, now=1000.0)
    assert [found[0].kind, found[1].kind] == ["no-room", "reserved"]


def test_without_nodes_that_is_the_reason():
    assert held(cluster(), tasks((0, 1, (1,))))[0].kind == "no-nodes"


def test_the_reasons_of_many_classes_that_need_the_same_cost_one_look_at_the_nodes(monkeypatch):
    def looks(classes):
        # All wait: two of three CPUs are taken on both nodes, and one node bars every second class.
        waiting = tasks(*((job, 1, (2,)) for job in range(classes)))
        waiting = replace(waiting, barred=np.array([[False, row % 2 == 1] for row in range(classes)]))
        snapshot = cluster((3,), (3,), allocated=[[2, *[0] * 5]] * 2)
        assert {why.kind for why in once(snapshot, waiting, explain=True).held.values()} == {"no-room"}
        plain, explained = (
            elements_of(monkeypatch, ["where"], lambda explain=explain: once(snapshot, waiting, explain=explain))
            for explain in (False, True)
        )
        return explained - plain

    assert looks(40) == looks(4)


@pytest.mark.parametrize(("reading", "kind"), [(2.0, "no-room"), (3.0, "too-large")])
def test_a_class_that_could_not_read_its_input_if_all_nodes_were_empty_is_not_told_to_wait_for_room(reading, kind):
    # n0 holds the input, and its disk gives 2. n1 has a faster disk, and reads from n0 no faster. Both are full.
    blocks = Blocks(np.array([[0]]), np.ones(1, dtype=bool), 2)
    snapshot = cluster((1, 1, 2, 9, 9, 9), (1, 1, 9, 9, 9, 9), allocated=[[1, *[0] * 5]] * 2)
    why = once(snapshot, tasks((0, 1, (1,), reading, blocks)), explain=True).held[0]
    assert why.kind == kind
