"""filter and preempt of opportunistic pods: they go to the node that they were promised, and nowhere else."""

import json

from extender.adapters.http.request_context import ANOTHER_PROMISED, NO_PROMISE
from tests.service.adapters.http.test_verbs import NETWORK, Extender, landed, pod, shown


def demoted(name="pod", *, promised=None, nominated=None, network=None, version="3", cpu="2"):
    """Return a pod that gave its requests up; where it was promised a node, that is nominated too."""
    document = pod(name, cpu="0", network=network, version=version)
    document["metadata"]["annotations"] |= {
        "dovetail.dev/regular-requests": json.dumps({"containers": {"main": {"cpu": cpu}}})
    }
    if promised:
        document["metadata"]["annotations"]["dovetail.dev/nominated"] = promised
    if nominated or promised:
        document["status"] = {"nominatedNodeName": nominated or promised}
    return document


def test_an_opportunistic_pod_passes_on_the_node_that_it_was_promised_alone():
    extender = Extender("a", "b", "c")
    extender.ledger.apply(landed("full", "b", cpu=4000.0))
    reply = extender.filter(demoted(promised="b"), "c", "b", "a", "gone")
    assert reply["NodeNames"] == ["b"]
    assert reply["FailedAndUnresolvableNodes"] == dict.fromkeys(("c", "a", "gone"), ANOTHER_PROMISED)
    assert not reply["FailedNodes"]
    assert extender.sample("dovetail_refusals_total", reason=ANOTHER_PROMISED) == 3


def test_one_without_a_promise_passes_nowhere_with_the_same_reason_each_time():
    extender = Extender("a", "b")
    extender.ledger.apply(shown(demoted()))
    replies = [extender.filter(demoted(), "a", "b") for _ in range(2)]
    extender.ledger.apply(landed("old", "a", network=60.0))
    replies.append(extender.filter(demoted(version="4"), "a", "b"))
    assert replies[0] == replies[1] == replies[2]
    assert replies[0]["FailedAndUnresolvableNodes"] == {"a": NO_PROMISE, "b": NO_PROMISE}
    assert not replies[0]["NodeNames"]
    assert extender.ledger.counts()[2] == 0, "it is not in flight"


def test_one_that_others_nominated_has_no_promise():
    reply = Extender("a").filter(demoted(nominated="a"), "a")
    assert reply["FailedAndUnresolvableNodes"] == {"a": NO_PROMISE}


def test_one_whose_node_is_not_asked_about_passes_nowhere():
    reply = Extender("a", "b").filter(demoted(promised="b"), "a")
    assert reply["FailedAndUnresolvableNodes"] == {"a": ANOTHER_PROMISED}


def test_one_whose_node_went_away_passes_nowhere():
    reply = Extender("a").filter(demoted(promised="gone"), "a", "gone")
    assert reply["FailedAndUnresolvableNodes"] == {"a": ANOTHER_PROMISED, "gone": ANOTHER_PROMISED}


def test_what_it_counts_on_its_node_must_fit_there():
    # Of what it needs a GPU counts, and the node has none; its 90 of network-in beside the other's 60 do not.
    extender = Extender("a", "b")
    extender.ledger.apply(landed("old", "b", network=60.0))
    document = demoted(promised="b", network=90)
    assert extender.filter(document, "a", "b")["NodeNames"] == ["b"]
    document["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
    document["metadata"]["resourceVersion"] = "4"
    document["metadata"]["uid"] = "uid-gpu"
    reply = extender.filter(document, "a", "b")
    assert reply["FailedAndUnresolvableNodes"] == {"a": ANOTHER_PROMISED, "b": "insufficient example.com/gpu"}


def test_it_is_in_flight_to_its_node_with_what_it_needs_in_the_second_book():
    extender = Extender("a", "b")
    extender.filter(demoted(promised="b", network=50), "a", "b")
    snapshot = extender.ledger.snapshot(100.0)
    column = snapshot.layout.columns
    assert snapshot.in_flight[:, column["cpu"]].tolist() == [0.0, 0.0]
    assert snapshot.given[:, column["cpu"]].tolist() == [0.0, 2000.0]
    assert snapshot.given[:, column[NETWORK]].tolist() == [0.0, 50.0]


def test_the_promise_that_kube_scheduler_has_seen_and_we_have_not_counts():
    extender = Extender("a", "b")
    regular = pod(cpu="2", version="1")
    extender.ledger.apply(shown(regular))
    assert extender.filter(regular, "a", "b")["NodeNames"] == ["a", "b"]
    assert extender.filter(demoted(promised="b"), "a", "b")["NodeNames"] == ["b"]
    extender.ledger.apply(shown(demoted(promised="a", version="5")))
    assert extender.filter(demoted(promised="b"), "a", "b")["NodeNames"] == ["a"]


def test_a_regular_pod_goes_anywhere_whatever_it_was_promised():
    document = pod()
    document["metadata"]["annotations"] = {"dovetail.dev/nominated": "b"}
    assert Extender("a", "b").filter(document, "a", "b")["NodeNames"] == ["a", "b"]


def test_one_whose_requests_have_come_back_is_regular_and_goes_anywhere():
    document = demoted(promised="b")
    document["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert Extender("a", "b").filter(document, "a", "b")["NodeNames"] == ["a", "b"]


def test_preempt_helps_an_opportunistic_pod_on_its_node_alone():
    extender = Extender("a", "b")
    for name in ("a", "b"):
        extender.ledger.apply(landed(f"on-{name}", name))
    assert extender.preempt(demoted(promised="b"), a=("uid-on-a",), b=("uid-on-b",)).keys() == {"b"}
    assert not extender.preempt(demoted("other"), a=("uid-on-a",), b=("uid-on-b",))


def test_a_nomination_of_others_does_not_invite_preemption():
    # On `a`, which kube-scheduler nominated, somebody is leaving; the pod was promised `b`.
    extender = Extender("a", "b")
    extender.ledger.apply(landed("goes", "a", leaving=True, priority=-1))
    reply = extender.filter(demoted(promised="b", nominated="a"), "a")
    assert not reply["FailedNodes"]
    assert reply["FailedAndUnresolvableNodes"] == {"a": ANOTHER_PROMISED}


def test_one_without_a_promise_takes_nobody_out_of_flight_and_waits_for_nobody():
    # `first` was never shown, so it would give way to a pod that was, if that found no room.
    extender = Extender("a", wait_seconds=3_600.0)
    extender.filter(pod("first", network=80), "a")
    extender.ledger.apply(shown(demoted()))
    assert not extender.filter(demoted(), "a")["NodeNames"]
    assert not extender.preempt(demoted(), a=())
    assert extender.ledger.counts()[2] == 1
