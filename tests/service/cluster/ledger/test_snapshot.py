"""Snapshots: nothing in them changes, and more nodes may come after those that are known."""

import numpy as np
import pytest

from extender.cluster.events import NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from tests.service.cluster.ledger.test_layout import GPU, nodes


def taken():
    ledger = Ledger(in_flight_seconds=15)
    ledger.apply(NodesListed(list(nodes().values())))
    ledger.apply(PodSeen(Pod("p", "default", "p", {"cpu": 500.0}, node="b")))
    ledger.apply(PodSeen(Pod("q", "default", "q", {"cpu": 500.0}, nominated="a")))
    return ledger.snapshot(0)


@pytest.mark.parametrize("view", ["as taken", "with more nodes"])
def test_no_array_of_a_snapshot_can_be_written_to(view):
    snapshot = taken() if view == "as taken" else taken().with_nodes([Node("c", {})])
    nominated = snapshot.nominations
    arrays = {
        "capacity": snapshot.layout.capacity,
        "system": snapshot.layout.system,
        "threshold": snapshot.layout.threshold,
        "allocated": snapshot.allocated,
        "in_flight": snapshot.in_flight,
        "rows": nominated.rows,
        "priorities": nominated.priorities,
        "demand": nominated.demand,
    }
    assert [name for name, array in arrays.items() if array.flags.writeable] == []


def test_more_nodes_come_after_the_others_empty_and_on_the_same_axis():
    before = taken()
    after = before.with_nodes([Node("0", {"cpu": 100.0, GPU: 7.0})])
    assert after.layout.names == ("a", "b", "0")
    assert after.layout.rows["0"] == 2
    assert after.layout.axis == before.layout.axis
    assert after.layout.capacity[2].tolist() == [100, 0, np.inf, np.inf, np.inf, np.inf, 0, 7, 0]
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


def test_a_node_that_offers_what_no_known_node_does_is_left_to_kube_scheduler_there():
    after = taken().with_nodes([Node("0", {"cpu": 100.0, "x.y/z": 1.0})])
    assert after.layout.capacity[:, -1].tolist() == [0, 0, np.inf]
