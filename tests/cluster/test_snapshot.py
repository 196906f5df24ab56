"""Snapshots: rows, columns, and what is not declared."""

import numpy as np
import pytest

from extender.cluster.model import Node, NodesListed, Pod, PodSeen
from extender.cluster.snapshot import layout_of
from extender.cluster.state import Ledger

GPU, FPGA = "a.b/gpu", "a.b/fpga"


def nodes():
    return {
        "b": Node("b", {"cpu": 4000.0, "memory": 8.0, "network-in": 5.0}),
        "a": Node("a", {"cpu": 2000.0, "memory": 9.0, GPU: 1.0, FPGA: 2.0}),
    }


def taken():
    ledger = Ledger(in_flight_seconds=15)
    ledger.apply(NodesListed(list(nodes().values())))
    ledger.apply(PodSeen(Pod("p", "default", "p", {"cpu": 500.0}, node="b")))
    ledger.apply(PodSeen(Pod("q", "default", "q", {"cpu": 500.0}, nominated="a")))
    return ledger.snapshot(0)


def test_rows_are_sorted_by_name_and_extended_resources_come_last_by_name():
    layout = layout_of(nodes())
    assert layout.names == ("a", "b")
    assert layout.rows == {"a": 0, "b": 1}
    assert layout.axis == ("cpu", "memory", "disk-read", "disk-write", "network-in", "network-out", FPGA, GPU)
    assert [layout.columns[name] for name in layout.axis] == list(range(8))


def test_what_a_node_does_not_declare_is_unlimited_there():
    capacity = layout_of(nodes()).capacity
    inf = np.inf
    assert capacity.tolist() == [[2000, 9, inf, inf, inf, inf, 2, 1], [4000, 8, inf, inf, 5, inf, inf, inf]]


def test_a_vector_leaves_out_what_no_node_declares():
    layout = layout_of(nodes())
    asked = {"cpu": 1.0, GPU: 2.0, "x.y/z": 3.0, "x.y/none": 0.0}
    assert layout.vector(asked).tolist() == [1, 0, 0, 0, 0, 0, 0, 2]


@pytest.mark.parametrize("view", ["as taken", "with more nodes"])
def test_no_array_of_a_snapshot_can_be_written_to(view):
    snapshot = taken() if view == "as taken" else taken().with_nodes([Node("c", {})])
    nominated = snapshot.nominations
    arrays = {
        "capacity": snapshot.layout.capacity,
        "allocated": snapshot.allocated,
        "in_flight": snapshot.in_flight,
        "rows": nominated.rows,
        "priorities": nominated.priorities,
        "demand": nominated.demand,
    }
    assert [name for name, array in arrays.items() if array.flags.writeable] == []


def test_more_nodes_come_after_the_others_empty_and_on_the_same_axis():
    before = taken()
    after = before.with_nodes([Node("0", {"cpu": 100.0, GPU: 7.0, "x.y/z": 1.0})])
    assert after.layout.names == ("a", "b", "0")
    assert after.layout.rows["0"] == 2
    assert after.layout.axis == before.layout.axis
    assert after.layout.capacity[2].tolist() == [100, np.inf, np.inf, np.inf, np.inf, np.inf, np.inf, 7]
    assert after.allocated[:, 0].tolist() == [0, 500, 0]
    assert after.in_flight.shape == after.allocated.shape
    assert before.layout.names == ("a", "b")
    load = after.nominations.load(after.allocated.shape, priority=0, uid="other")
    assert load[:, 0].tolist() == [500, 0, 0]


def test_counting_nominations_leaves_them_as_they_were():
    snapshot = taken()
    for _ in range(2):
        assert snapshot.nominations.load(snapshot.allocated.shape, priority=0, uid="q") is None
        assert snapshot.nominations.load(snapshot.allocated.shape, priority=0, uid="other")[0, 0] == 500
