"""The mix of the pods on nodes that ask for devices: what they ask for, and where they may go."""

from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.events import NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.mix import MOST_CLASSES, NO_MIX, DeviceAskers
from extender.cluster.model import Node, Pod
from extender.verdict import Placement, Ranker

GPU = "a.b/gpu"
AXIS = ("cpu", "memory", GPU, "c.d/nic")


NODES = {name: Node(name, {}, labels={"model": model}) for name, model in (("m", "x"), ("n", "y"), ("o", "y"))}
NAMES = tuple(NODES)


def mixed(askers, axis=AXIS):
    return askers.mix(axis, NAMES, NODES)


def pod(uid, node="n", **demand):
    return Pod(uid, "default", uid, {"cpu": 1.0, **demand}, node=node)


def gpus(uid, count, cpu=1.0, node="n"):
    return Pod(uid, "default", uid, {"cpu": cpu, GPU: float(count)}, node=node)


def test_pods_are_counted_by_what_they_ask_for():
    askers = DeviceAskers()
    for asking in (gpus("a", 1), gpus("b", 1), gpus("c", 8, cpu=32.0), pod("none")):
        askers.add(asking, 1)
    mix = mixed(askers)
    assert mix.demand.tolist() == [[1, 0, 1, 0], [32, 0, 8, 0]]
    assert mix.count.tolist() == [2, 1]
    assert mix.devices.tolist() == [2]


def test_what_is_not_packed_and_whoever_runs_on_idle_resources_do_not_count():
    askers = DeviceAskers()
    askers.add(replace(gpus("a", 1), demand={"cpu": 1.0, GPU: 1.0, "pods": 1.0}), 1)
    askers.add(replace(gpus("b", 2), opportunistic=True), 1)
    assert mixed(askers, (*AXIS, "pods")).demand.tolist() == [[1, 0, 1, 0, 0]]


def test_who_has_left_is_forgotten():
    askers = DeviceAskers()
    askers.add(gpus("a", 1), 1)
    assert len(mixed(askers).count) == 1
    askers.add(gpus("a", 1), -1)
    assert mixed(askers) is NO_MIX


def test_the_mix_stays_the_same_object_until_a_tenth_has_changed_or_the_axis_has():
    askers = DeviceAskers()
    for number in range(100):
        askers.add(gpus(f"p{number}", 1), 1)
    first = mixed(askers)
    for number in range(10):
        askers.add(gpus(f"more{number}", 2), 1)
        assert mixed(askers) is first
    askers.add(gpus("one more", 2), 1)
    askers.add(gpus("another", 2), 1)
    assert mixed(askers).count.tolist() == [100, 12]
    assert mixed(askers, AXIS[:3]) is not mixed(askers)


def test_of_many_classes_those_with_most_pods_count():
    askers = DeviceAskers()
    for number in range(MOST_CLASSES + 5):
        askers.add(gpus(f"once{number}", 1 + number), 1)
    for number in range(2):
        askers.add(gpus(f"twice{number}", 999), 1)
    mix = mixed(askers)
    assert len(mix.count) == MOST_CLASSES
    assert (mix.demand[0, 2], mix.count[0]) == (999, 2)


def test_pods_that_may_go_to_the_same_nodes_are_one_group():
    askers = DeviceAskers()
    on_y = Constraints(selector=(("model", "y"),))
    for asking in (gpus("a", 1), replace(gpus("b", 2), constraints=on_y), replace(gpus("c", 4), constraints=on_y)):
        askers.add(asking, 1)
    mix = mixed(askers)
    assert mix.asked.tolist() == [[6], [1]]  # the group with most pods first
    assert mix.may.tolist() == [[False, True, True], [True, True, True]]


def test_where_all_have_the_same_constraints_nodes_are_not_told_apart():
    askers = DeviceAskers()
    for number in range(2):
        askers.add(replace(gpus(f"p{number}", 1), constraints=Constraints(selector=(("model", "y"),))), 1)
    assert mixed(askers).may.tolist() == [[True, True, True]]


def test_other_nodes_make_another_mix():
    askers = DeviceAskers()
    askers.add(gpus("a", 1), 1)
    first = mixed(askers)
    fewer = {name: NODES[name] for name in "mn"}
    assert askers.mix(AXIS, tuple(fewer), fewer).may.shape == (1, 2)
    assert mixed(askers) is not first


@pytest.mark.parametrize("leaves", ["gone", "finished"])
def test_a_snapshot_holds_the_mix_of_the_pods_on_nodes(leaves):
    ledger = Ledger(in_flight_seconds=15)
    ledger.apply(NodesListed([Node("n", {"cpu": 64.0, GPU: 8.0})]))
    ledger.apply(PodSeen(gpus("waits", 4, node=None)))
    assert ledger.snapshot(0.0).mix is NO_MIX
    ledger.apply(PodSeen(gpus("runs", 2)))
    snapshot = ledger.snapshot(0.0)
    column = snapshot.layout.columns[GPU]
    assert snapshot.mix.demand[:, column].tolist() == [2]
    assert snapshot.mix.devices.tolist() == [column]
    ledger.apply(PodGone("runs") if leaves == "gone" else PodSeen(replace(gpus("runs", 2), finished=True)))
    assert ledger.snapshot(0.0).mix is NO_MIX


def test_a_pod_is_ranked_on_a_node_that_kube_scheduler_knows_and_we_do_not_yet():
    gpu = {"cpu": 8000.0, "memory": 1e10, "pods": 110.0, "nvidia.com/gpu": 8.0}
    known = Ledger(in_flight_seconds=15.0)
    known.apply(NodesListed((Node("a", gpu),)))
    known.apply(PodsListed([Pod("u", "d", "p", {"cpu": 100.0, "pods": 1.0, "nvidia.com/gpu": 1.0}, node="a")]))
    wider = known.snapshot(0.0).with_nodes([Node("new", gpu)])
    for demand in ({"cpu": 100.0, "pods": 1.0}, {"cpu": 100.0, "pods": 1.0, "nvidia.com/gpu": 1.0}):
        assert len(Ranker(Placement()).rank(wider, Pod("v", "d", "q", demand), np.array([0, 1]))) == 2


def test_where_pods_may_go_follows_the_labels_of_nodes():
    ledger = Ledger(in_flight_seconds=15)
    ledger.apply(NodesListed([Node(name, {"cpu": 64.0, GPU: 8.0}) for name in "ab"]))
    on_y = Constraints(selector=(("model", "y"),))
    ledger.apply(PodsListed([gpus("u", 1, node="a"), replace(gpus("v", 2, node="a"), constraints=on_y)]))
    assert ledger.snapshot(0.0).mix.may.tolist() == [[True, True], [False, False]]
    ledger.apply(NodeSeen(Node("b", {"cpu": 64.0, GPU: 8.0}, labels={"model": "y"})))
    assert ledger.snapshot(0.0).mix.may.tolist() == [[True, True], [False, True]]
