"""filter with an order: who has to wait is refused everywhere, who goes passes where the plan wants it."""

import json
import threading

import numpy as np
import pytest

from extender.adapters.http.event_wait import LAG_SECONDS
from extender.verdict import Standing
from tests.service.adapters.http.test_verbs import NETWORK, Extender, landed, pod


class Order:
    """Says of every pod what it was made with, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def standing(self, pod, snapshot, fits):
        self.asked.append((pod.name, [name for name, fit in zip(snapshot.layout.names, fits, strict=True) if fit]))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def ordered(*answers, nodes=("a", "b"), lag_seconds=LAG_SECONDS):
    extender = Extender(*nodes)
    extender.verbs.lag_seconds = lag_seconds
    extender.verbs.order = Order(*answers)
    extender.verbs.__post_init__()
    return extender


def test_a_pod_whose_turn_it_is_not_is_refused_everywhere_with_one_constant_reason():
    extender = ordered(Standing(waits="others go first"))
    replies = [extender.filter(pod(), "b", "a", "gone") for _ in range(2)]
    assert replies[0] == replies[1]
    assert replies[0]["FailedAndUnresolvableNodes"] == dict.fromkeys(("b", "a", "gone"), "others go first")
    assert not replies[0]["NodeNames"]
    assert not replies[0]["FailedNodes"]
    assert extender.sample("dovetail_refusals_total", reason="others go first") == 6


def test_a_nominated_node_that_nobody_leaves_is_unresolvable_to_a_pod_that_waits_for_its_turn():
    extender = ordered(Standing(waits="others go first"))
    reply = extender.filter({**pod(), "status": {"nominatedNodeName": "a"}}, "a")
    assert reply["FailedNodes"] == {}
    assert reply["FailedAndUnresolvableNodes"] == {"a": "others go first"}


def test_a_pod_that_waits_for_its_turn_is_not_in_flight():
    extender = ordered(Standing(waits="others go first"))
    extender.filter(pod(), "a", "b")
    assert extender.ledger.counts()[2] == 0


def test_a_pod_whose_turn_it_is_passes_on_the_chosen_node_alone_and_is_in_flight_to_it():
    extender = ordered(Standing(node="b"))
    reply = extender.filter(pod(network=60), "a", "b")
    assert reply["NodeNames"] == ["b"]
    assert reply["FailedAndUnresolvableNodes"] == {"a": "another node was chosen"}
    assert extender.ledger.snapshot(100.0).in_flight.sum(axis=1).tolist() == [0.0, 1000.0 + 60.0]


@pytest.mark.parametrize("chosen", ["b", "elsewhere", None])
def test_where_the_chosen_node_was_not_asked_about_all_that_fit_pass(chosen):
    extender = ordered(Standing(node=chosen), nodes=("a", "b", "c"))
    assert extender.filter(pod(), "a", "c")["NodeNames"] == ["a", "c"]


def test_a_pod_passes_on_those_of_several_chosen_nodes_that_were_asked_about():
    among = np.array([True, True, False])  # a, b
    extender = ordered(Standing(among=among), nodes=("a", "b", "c"))
    reply = extender.filter(pod(network=60), "c", "b")
    assert reply["NodeNames"] == ["b"]
    assert reply["FailedAndUnresolvableNodes"] == {"c": "another node was chosen"}
    assert extender.ledger.snapshot(100.0).in_flight.sum(axis=1).tolist() == [0.0, 1000.0 + 60.0, 0.0]


def test_the_order_is_told_on_which_nodes_the_pod_fits_of_those_asked_about():
    extender = ordered(Standing(), nodes=("a", "b", "c"))
    extender.ledger.apply(landed("old", "b", network=60.0))
    extender.filter(pod(network=50), "c", "b")
    assert extender.verbs.order.asked == [("pod", ["c"])]


def test_a_pod_that_fits_nowhere_gets_the_same_answer_as_without_an_order():
    extender = ordered(Standing(waits="others go first"))
    for node in ("a", "b"):
        extender.ledger.apply(landed(f"on-{node}", node, network=60.0))
    reply = extender.filter(pod(network=50), "a", "b")
    assert reply["FailedAndUnresolvableNodes"] == dict.fromkeys(("a", "b"), f"insufficient {NETWORK}")
    assert extender.verbs.order.asked == []


def test_whole_nodes_are_answered_in_the_same_way():
    extender = ordered(Standing(node="b"))
    items = [{"metadata": {"name": name}} for name in ("a", "b")]
    reply = extender.post("filter", {"Pod": pod(), "Nodes": {"items": items}, "NodeNames": None}).get_json()
    assert reply["Nodes"]["items"] == [items[1]]


def test_a_refused_pod_that_the_cluster_woke_is_asked_about_again_once_news_has_come():
    # The second call waits for what kube-scheduler heard before us; then it is the pod's turn.
    extender = ordered(
        Standing(waits="others go first"), Standing(waits="others go first"), Standing(node="a"), lag_seconds=30.0
    )
    extender.filter(pod(), "a", "b")
    timer = threading.Timer(0.01, extender.ledger.apply, [landed("old", "b")])
    timer.start()
    reply = extender.filter(pod(), "a", "b")
    timer.join()
    assert reply["NodeNames"] == ["a"]


def test_prioritize_ranks_what_passed_whatever_the_order():
    extender = ordered(Standing(waits="others go first"))
    body = {"Pod": pod(), "Nodes": None, "NodeNames": ["a", "b"]}
    assert len(json.loads(extender.post("prioritize", body).data)) == 2
