"""What pods declare counts no more than nodes offer, and as it was when they got their node."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.events import NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.cluster.pods import reckoning
from extender.cluster.pods.opportunistic import RegularRequests
from extender.cluster.pods.reckoning import CHANGED, CHANGED_REQUESTS
from tests.service.costs import calls_of

CPU, DISK, IN, OUT = "cpu", "disk-read", "network-in", "network-out"


def node(name, rate=100.0, **more):
    return Node(name, {CPU: 4000.0, "memory": 8e9, DISK: rate, IN: rate, OUT: rate} | more)


def pod(name="p", where=None, version=1, inputs=(), **rates):
    demand = {CPU: 1.0} | {key.replace("_", "-"): float(rate) for key, rate in rates.items()}
    inputs = tuple((holder, 1.0) for holder in inputs)
    return Pod(f"uid-{name}", "team", name, demand, node=where, resource_version=version, inputs=inputs)


def ledger(*nodes):
    made = Ledger(in_flight_seconds=15)
    made.apply(NodesListed(nodes))
    return made


def held(made, name, dimension):
    snapshot = made.snapshot(0)
    return snapshot.allocated[snapshot.layout.rows[name], snapshot.layout.columns[dimension]]


def known(made, name="p"):
    return made.snapshot_with([f"uid-{name}"], 0)[1][f"uid-{name}"]


# -- no more than nodes offer


def test_a_rate_above_what_the_largest_node_offers_is_a_broken_annotation_and_requests_count():
    made = ledger(node("small"), node("large", 500.0))
    made.apply(PodSeen(pod(network_in=500)))
    assert (known(made).demand, known(made).problem) == ({CPU: 1, IN: 500}, None)
    made.apply(PodSeen(pod(version=2, network_in=501, disk_read=5)))
    assert known(made).demand == {CPU: 1}
    assert known(made).problem == "annotation dovetail.dev/demand: network-in 501, any node offers at most 500"


def test_an_annotation_that_was_put_right_is_broken_again_once_no_node_offers_as_much():
    made = ledger(node("a"), node("small", 50.0))
    made.apply(PodSeen(pod(network_in=101)))
    made.apply(PodSeen(pod(version=2, network_in=100)))
    assert known(made).problem is None
    made.apply(NodeGone("a"))
    assert known(made).problem == "annotation dovetail.dev/demand: network-in 100, any node offers at most 50"


def test_where_a_node_does_not_limit_a_rate_none_is_too_large():
    made = ledger(node("a"), Node("b", {CPU: 4000.0}))
    made.apply(PodSeen(pod(network_in=1e12)))
    assert known(made).problem is None


def test_before_any_node_is_known_nothing_is_too_large():
    made = ledger()
    made.apply(PodSeen(pod(network_in=1e12, inputs=("a", "b"))))
    assert known(made).problem is None


def test_an_input_on_more_nodes_than_there_are_is_a_broken_annotation():
    made = ledger(node("a"), node("b"))
    made.apply(PodSeen(pod(disk_read=5, inputs=("a", "gone"))))
    assert known(made).inputs == (("a", 1.0), ("gone", 1.0))
    made.apply(PodSeen(pod(version=2, disk_read=5, inputs=("a", "b", "c"))))
    assert (known(made).inputs, known(made).demand) == ((), {CPU: 1, DISK: 5})
    assert known(made).problem == "annotation dovetail.dev/input: 3 nodes, there are 2"


def test_other_problems_are_told_as_well():
    made = ledger(node("a"))
    made.apply(PodSeen(replace(pod(disk_read=101), problem="before")))
    assert known(made).problem == "before; annotation dovetail.dev/demand: disk-read 101, any node offers at most 100"


def test_pods_are_judged_anew_when_the_largest_node_comes_or_goes():
    made = ledger(node("small"))
    made.apply(PodSeen(pod(network_in=500)))
    for event, demand in (
        (NodeSeen(node("large", 500.0)), {CPU: 1, IN: 500}),
        (NodeSeen(node("large", 499.0)), {CPU: 1}),
        (NodeSeen(node("large", 600.0)), {CPU: 1, IN: 500}),
        (NodeGone("large"), {CPU: 1}),
    ):
        made.apply(event)
        assert known(made).demand == demand


def test_inputs_are_judged_anew_when_nodes_come_and_go():
    made = ledger(node("a"))
    made.apply(PodSeen(pod(inputs=("a", "b"))))
    for event, problem in (
        (NodeSeen(node("b")), None),
        (NodeSeen(node("c")), None),
        (NodeGone("a"), None),
        (NodeGone("b"), "annotation dovetail.dev/input: 2 nodes, there are 1"),
    ):
        made.apply(event)
        assert known(made).problem == problem


def test_a_node_that_offers_no_more_than_others_has_no_pod_judged_anew(monkeypatch):
    """Pods that declare may be many, and nodes come many at a time."""
    made = ledger(node("a"), node("b"))
    made.apply(PodsListed([pod("p", network_in=5), pod("q", "a", network_in=5), pod("r", inputs=("a", "b"))]))
    judged = []
    monkeypatch.setattr(reckoning, "_plausible", lambda pod, *_: judged.append(pod) or pod)
    made.apply(NodeSeen(node("c")))
    assert judged == []
    made.apply(NodeSeen(node("d", 500.0)))
    assert len(judged) == 3


def test_pods_that_are_listed_before_the_nodes_are_judged_when_these_come():
    made = Ledger(in_flight_seconds=15)
    made.apply(PodsListed([pod("p", "a", disk_read=1e15), pod("q", "a", disk_read=30)]))
    made.apply(NodesListed([node("a")]))
    assert held(made, "a", DISK) == 30


def test_one_running_pod_with_inputs_everywhere_takes_nothing_of_others():
    names = [f"n{number}" for number in range(20)]
    made = ledger(*(node(name) for name in names))
    made.apply(PodSeen(pod("evil", "n0", disk_read=1e15, inputs=names[1:])))
    assert [held(made, name, dimension) for name in names for dimension in (DISK, IN, OUT)] == [0] * 60


def test_a_reader_takes_of_others_no_more_than_its_own_link():
    made = ledger(node("slow", **{IN: 10.0}), node("a"), node("b"))
    made.apply(PodSeen(pod("p", "slow", disk_read=100, inputs=("a", "b"))))
    assert [held(made, name, DISK) for name in ("a", "b")] == [5, 5]
    assert held(made, "slow", IN) == 10


def test_a_reader_on_a_node_without_limits_takes_of_others_no_more_than_the_fastest_has():
    made = ledger(Node("any", {CPU: 4000.0}), node("a"), node("b", 60.0))
    made.apply(PodSeen(pod("p", "any", disk_read=1e12, inputs=("a", "b"))))
    assert [held(made, name, OUT) for name in ("a", "b")] == [50, 50]


def test_a_pod_reads_no_faster_than_the_fastest_disk_with_its_input():
    made = ledger(node("slow", 20.0), node("slower", 10.0), node("fast", 500.0))
    made.apply(PodSeen(pod(disk_read=50, inputs=("slow", "slower", "gone"))))
    assert known(made).demand == {CPU: 1, DISK: 20}
    excess = "disk-read 50, the nodes with its input offer at most 20, which counts"
    assert known(made).problem == f"annotation dovetail.dev/demand: {excess}"
    made.apply(PodSeen(pod(version=2, disk_read=20, inputs=("slow", "slower", "gone"))))
    assert (known(made).demand, known(made).problem) == ({CPU: 1, DISK: 20}, None)


def test_a_disk_that_declares_no_rate_serves_any():
    made = ledger(node("slow", 20.0), Node("any", {CPU: 4000.0}))
    made.apply(PodSeen(pod(disk_read=50, inputs=("slow", "any"))))
    assert known(made).demand == {CPU: 1, DISK: 50}


def test_how_fast_a_pod_reads_is_judged_anew_when_a_node_with_its_input_comes_changes_or_goes():
    made = ledger(node("slow", 20.0), node("fast", 500.0))
    made.apply(PodSeen(pod(disk_read=50, inputs=("slow", "later"))))
    for event, rate in (
        (NodeSeen(node("later", 30.0)), 30),
        (NodeSeen(node("later", 60.0)), 50),
        (NodeGone("later"), 20),
        (NodeSeen(node("slow", 40.0)), 40),
    ):
        made.apply(event)
        assert known(made).demand == {CPU: 1, DISK: rate}


def test_a_reader_on_the_node_of_its_input_takes_all_of_a_slower_disk():
    made = ledger(node("slow", 20.0), node("fast", 500.0))
    made.apply(PodSeen(pod("p", "slow", disk_read=50, inputs=("slow",))))
    assert held(made, "slow", DISK) == 20


# -- as it was when the pod got its node


@pytest.mark.parametrize("first", [{}, {"network_in": 10}])
@pytest.mark.parametrize("then", [{}, {"network_in": 100}, {"network_in": 1e15}, {"disk_read": 9, "inputs": ("a",)}])
def test_what_a_pod_declares_counts_as_when_it_was_first_seen_on_its_node(first, then):
    made = ledger(node("a"))
    made.apply(PodSeen(pod(version=1, where="a", **first)))
    made.apply(PodSeen(pod(version=2, where="a", **then)))
    assert held(made, "a", IN) == first.get("network_in", 0)
    assert held(made, "a", DISK) == 0
    assert known(made).problem == (None if first == then else CHANGED)


def test_a_waiting_pod_may_declare_something_else():
    made = ledger(node("a"))
    made.apply(PodSeen(pod(network_in=10)))
    made.apply(PodSeen(pod(version=2, network_in=20)))
    made.apply(PodSeen(pod(version=3, where="a", network_in=20)))
    assert held(made, "a", IN) == 20
    assert known(made).problem is None


def test_requests_of_a_bound_pod_follow_its_resizes():
    made = ledger(node("a"))
    for version, cpu in ((1, 1.0), (2, 700.0)):
        made.apply(PodSeen(replace(pod(version=version, where="a", network_in=5), demand={CPU: cpu, IN: 5.0})))
    assert held(made, "a", CPU) == 700


def test_a_change_does_not_count_after_a_new_list_either():
    made = ledger(node("a"))
    made.apply(PodSeen(pod(where="a", network_in=10)))
    made.apply(PodsListed([pod(version=9, where="a", network_in=90)]))
    assert held(made, "a", IN) == 10


def test_an_annotation_that_was_too_large_when_the_pod_got_its_node_can_become_right_by_a_larger_node():
    made = ledger(node("a"))
    made.apply(PodSeen(pod(where="a", network_in=300)))
    made.apply(PodSeen(pod(version=2, where="a", network_in=50)))
    assert held(made, "a", IN) == 0
    made.apply(NodeSeen(node("large", 1_000.0)))
    assert held(made, "a", IN) == 300


def test_older_news_changes_nothing():
    made = ledger(node("a"))
    made.apply(PodSeen(pod(version=5, network_in=10)))
    made.apply(PodSeen(pod(version=4, network_in=1e9)))
    assert (known(made).demand, known(made).problem) == ({CPU: 1, IN: 10}, None)


# -- sums stay exact


def test_nothing_is_left_of_huge_amounts_that_came_and_went():
    made = ledger(node("a"))
    made.apply(PodSeen(pod("honest", "a", disk_read=7)))
    huge = [
        replace(pod(f"h{n}", "a", disk_read=2**53 - 1), demand={"memory": 2.0**53 - 1, CPU: 1.0}) for n in range(300)
    ]
    for it in huge:
        made.apply(PodSeen(it))
    random.Random(1).shuffle(huge)
    for it in huge:
        made.apply(PodGone(it.uid))
    assert (held(made, "a", DISK), held(made, "a", "memory"), held(made, "a", CPU)) == (7, 0, 1)


# -- opportunistic pods

TWO, NINE = (RegularRequests(pod={"cpu": cpus}) for cpus in ("2", "9"))


def demoted(cpus, requests, where="a", version=1, **more):
    demand = {CPU: cpus * 1000.0, "a.b/gpu": 1.0}
    return replace(
        pod(where=where, version=version), demand=demand, opportunistic=True, regular_requests=requests, **more
    )


@pytest.mark.parametrize("later", [demoted(9, NINE, version=2), demoted(0, None, version=2, problem="broken")])
def test_what_an_opportunistic_pod_says_that_it_needs_counts_as_when_it_got_its_node(later):
    """It is not made regular by another word than that which it got its node by."""
    made = ledger(node("a"))
    made.apply(PodSeen(demoted(2, TWO)))
    made.apply(PodSeen(later))
    assert (known(made).demand, known(made).regular_requests) == ({CPU: 2000, "a.b/gpu": 1}, None)
    assert known(made).problem == "; ".join(filter(None, (later.problem, CHANGED_REQUESTS)))
    made.apply(PodSeen(replace(later, resource_version=3)))
    assert known(made).demand == {CPU: 2000, "a.b/gpu": 1}


def test_the_same_word_again_is_no_change():
    made = ledger(node("a"))
    made.apply(PodSeen(demoted(2, TWO)))
    made.apply(PodSeen(demoted(2, TWO, version=2)))
    assert (known(made).regular_requests, known(made).problem) == (TWO, None)


def test_before_it_has_a_node_a_pod_may_say_something_else():
    made = ledger(node("a"))
    made.apply(PodSeen(demoted(2, TWO, where=None)))
    made.apply(PodSeen(demoted(9, NINE, version=2)))
    assert (known(made).demand[CPU], known(made).regular_requests, known(made).problem) == (9000, NINE, None)


def test_a_promoted_pod_counts_with_what_it_requests_now():
    made = ledger(node("a"))
    made.apply(PodSeen(demoted(2, TWO)))
    made.apply(PodSeen(replace(demoted(3, TWO, version=2), opportunistic=False)))
    assert (known(made).demand[CPU], known(made).problem) == (3000, None)


events = st.lists(
    st.one_of(
        st.builds(
            lambda name, where, rate, inputs: PodSeen(pod(name, where, 1, inputs, disk_read=rate)),
            st.sampled_from("pqr"),
            st.sampled_from([None, "a", "b"]),
            st.sampled_from([0, 1, 60, 100, 500, 2**53 - 1]),
            st.sampled_from([(), ("a",), ("b",), ("a", "b")]),
        ),
        st.builds(lambda name: PodGone(f"uid-{name}"), st.sampled_from("pqr")),
        st.builds(
            lambda name, rate: NodeSeen(node(name, rate)), st.sampled_from("abc"), st.sampled_from([50.0, 100.0, 500.0])
        ),
        st.builds(NodeGone, st.sampled_from("abc")),
    ),
    max_size=25,
)


@settings(max_examples=300, deadline=None)
@given(events)
def test_whatever_comes_a_ledger_holds_what_one_that_is_told_the_pods_as_they_count_holds(told):
    made = ledger(node("a"))
    nodes = {"a": node("a")}
    for event in told:
        made.apply(event)
        if isinstance(event, NodeSeen):
            nodes[event.node.name] = event.node
        elif isinstance(event, NodeGone):
            nodes.pop(event.name, None)
    pods = made.snapshot_with([f"uid-{name}" for name in "pqr"], 0)[1].values()
    anew = ledger(*nodes.values())
    anew.apply(PodsListed(list(pods)))
    assert made.snapshot(0).allocated.tolist() == anew.snapshot(0).allocated.tolist()
    most = max((found.allocatable[DISK] for found in nodes.values()), default=float("inf"))
    assert all(it.demand.get(DISK, 0) <= most for it in pods)


def test_a_node_whose_devices_change_costs_the_same_however_many_nodes_there_are():
    def cost(count):
        made = ledger(*(node(f"n{number}") for number in range(count)))
        return calls_of(lambda: made.reckon(NodeSeen(node("n0", **{"a.b/gpu": 8.0}))))

    assert cost(200) == cost(2)
