import msgspec
import pytest

from extender.adapters.kube.nodes import NodeObject, node_from
from extender.cluster.model import CapacityRule
from extender.cluster.node_terms import HAS_SWAP, RUNS_WINDOWS

KEY = "dovetail.dev/"


def read_node(document, rules=(), highest=0.95):
    return node_from(msgspec.json.decode(msgspec.json.encode(document), type=NodeObject), rules, highest)


def node_document(capacity=None):
    return {
        "metadata": {"name": "n1", "labels": {"disk": "ssd"}, "annotations": capacity and {KEY + "capacity": capacity}},
        "status": {"allocatable": {"cpu": "2", "memory": "1Ki", "pods": "110", "a.b/gpu": "1"}},
    }


def test_a_node_offers_what_is_allocatable_and_its_declared_rates():
    rules = [CapacityRule({"disk": "ssd"}, {"disk-read": 5.0})]
    own = {"cpu": 2000, "memory": 1024, "pods": 110, "a.b/gpu": 1}
    assert read_node(node_document()).allocatable == own
    assert read_node(node_document(), rules).allocatable == own | {"disk-read": 5}
    assert read_node(node_document('{"disk-read": 7}'), rules).allocatable == own | {"disk-read": 7}


def test_a_node_is_known_by_all_its_addresses():
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "n1.example"}]
    known = read_node({"metadata": {"name": "n1"}, "status": {"addresses": addresses}})
    assert known.addresses == ("10.0.0.1", "n1.example")
    assert read_node({"metadata": {"name": "n1"}}).addresses == ()


def test_a_broken_node_annotation_leaves_the_settings_capacity_and_is_named():
    node = read_node(node_document("nonsense"), [CapacityRule({}, {"disk-read": 5.0})])
    assert node.allocatable["disk-read"] == 5
    assert node.problem.startswith("annotation dovetail.dev/capacity: ")


def with_threshold(text):
    return {"metadata": {"name": "n1", "annotations": {KEY + "opportunistic-threshold": text}}}


@pytest.mark.parametrize(
    ("text", "threshold"), [("0.6", 0.6), (" 0.95 ", 0.95), ("0", 0.0), ("off", 0.0), ("6e-1", 0.6), ("1e-400", 0.0)]
)
def test_a_node_may_state_a_threshold_of_its_own_or_none(text, threshold):
    node = read_node(with_threshold(text))
    assert (node.terms.effective, node.problem) == (threshold, None)


@pytest.mark.parametrize(
    "text", ["", "0.96", "1.5", "-0.1", "nan", "inf", "80%", "OFF", "0_1", "\u0660", "1" * 65, "0." * 40]
)
def test_a_node_whose_threshold_cannot_be_understood_is_off_and_named(text):
    node = read_node(with_threshold(text))
    assert node.terms.effective == 0
    assert node.problem.startswith("annotation dovetail.dev/opportunistic-threshold: ")
    assert node.problem.endswith("; no opportunistic pod is started there")


def test_both_broken_annotations_of_a_node_are_named():
    annotations = {KEY + "capacity": "x", KEY + "opportunistic-threshold": "y"}
    node = read_node({"metadata": {"name": "n1", "annotations": annotations}})
    assert "dovetail.dev/capacity" in node.problem
    assert "accepted: a number from 0 to 0.95 (evictAtMemory), or off" in node.problem


def test_a_node_that_states_nothing_goes_by_the_usual_threshold():
    assert read_node(node_document()).terms.effective is None


def test_what_a_node_has_and_does_not_offer_is_set_aside():
    status = {
        "capacity": {"cpu": "4", "memory": "3Ki", "pods": "200", "a.b/gpu": "2"},
        "allocatable": {"cpu": "3500m", "memory": "3Ki", "pods": "110", "a.b/gpu": "1"},
    }
    assert read_node({"metadata": {"name": "n1"}, "status": status}).terms.system == {"cpu": 500}


@pytest.mark.parametrize(
    "status",
    [
        {"allocatable": {"cpu": "4"}},
        {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "4"}},
        {"capacity": {"cpu": "-1"}, "allocatable": {"cpu": "4"}},
        {"capacity": None, "allocatable": None},
    ],
)
def test_of_a_node_that_does_not_say_what_it_has_nothing_is_set_aside(status):
    assert read_node({"metadata": {"name": "n1"}, "status": status}).terms.system == {}


@pytest.mark.parametrize(
    ("info", "labels", "why"),
    [
        ({"swap": {"capacity": 1024}}, {}, HAS_SWAP),
        ({"swap": {"capacity": 0}}, {}, None),
        ({"swap": {}}, {}, None),
        ({"swap": None, "operatingSystem": "linux"}, {"kubernetes.io/os": "linux"}, None),
        ({"operatingSystem": "windows"}, {}, RUNS_WINDOWS),
        (None, {"kubernetes.io/os": "windows"}, RUNS_WINDOWS),
    ],
)
def test_nodes_with_swap_and_windows_nodes_refuse_opportunistic_pods_whatever_they_state(info, labels, why):
    meta = {**with_threshold("0.5")["metadata"], "labels": labels}
    terms = read_node({"metadata": meta, "status": {"nodeInfo": info}}).terms
    assert (terms.refuses, terms.effective) == (why, 0.5 if why is None else 0.0)
