"""The ledger: what is allocated where, and which pods are on their way."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.eligibility import Taint
from extender.cluster.events import NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.cluster.node_terms import OpportunisticTerms

NODES = ("a", "b", "c")
UIDS = ("p", "q", "r")
GPU = "a.b/gpu"


def node(name, **more):
    return Node(name, {"cpu": 1000.0, "memory": 100.0, **more})


def pod(uid, cpu=100.0, version=1, **more):
    return Pod(uid=uid, namespace="default", name=uid, demand={"cpu": cpu}, resource_version=version, **more)


def ledger(*events, in_flight_seconds=15.0):
    filled = Ledger(in_flight_seconds=in_flight_seconds)
    for event in events:
        filled.apply(event)
    return filled


def everywhere(snapshot):
    return np.ones(len(snapshot.layout.names), dtype=np.bool_)


def take_off(filled, flying, *names, now=0.0, **how):
    snapshot = filled.snapshot(now)
    candidates = np.isin(snapshot.layout.names, names)
    assert filled.assume(flying, candidates, snapshot, now, **how)


def cpu_of(array):
    return array[:, 0].tolist()


def contents(snapshot):
    """Everything that a snapshot says, in a form that can be compared."""
    nominated = snapshot.nominations
    return (
        snapshot.layout.names,
        snapshot.layout.axis,
        snapshot.layout.capacity.tolist(),
        snapshot.allocated.tolist(),
        snapshot.in_flight.tolist(),
        sorted(zip(nominated.uids, nominated.rows.tolist(), nominated.priorities.tolist(), strict=True)),
    )


# -- nodes


@pytest.mark.parametrize(
    ("changes", "stays"),
    [
        ({"labels": {"disk": "ssd"}}, True),
        ({"taints": (Taint("node.kubernetes.io/not-ready", "", "NoSchedule"),)}, True),
        ({"unschedulable": True}, True),
        ({"taints": (Taint("old", "", "PreferNoSchedule"),)}, False),
        ({"allocatable": {"cpu": 1000.0}}, False),
        ({"terms": OpportunisticTerms(0.5)}, False),
    ],
)
def test_the_layout_stays_as_it_is_while_nodes_offer_the_same(changes, stays):
    filled = ledger(NodesListed([node("a"), node("b")]))
    before = filled.snapshot(0)
    filled.apply(NodeSeen(replace(node("a"), **changes)))
    after = filled.snapshot(0)
    assert (after.layout is before.layout) == stays
    assert after.version > before.version


# -- allocation


def test_a_bound_pod_is_allocated_on_its_node():
    filled = ledger(NodesListed([node("b"), node("a")]), PodSeen(pod("p", node="b")), PodSeen(pod("q", 50, node="b")))
    snapshot = filled.snapshot(0)
    assert snapshot.layout.names == ("a", "b")
    assert cpu_of(snapshot.allocated) == [0, 150]  # 100 + 50 on b
    assert filled.counts() == (2, 0, 0)


def test_a_waiting_pod_holds_nothing():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p")))
    assert cpu_of(filled.snapshot(0).allocated) == [0]
    assert filled.counts() == (0, 1, 0)
    assert filled.nominated() == []


def test_a_priority_that_no_pod_on_a_node_has_any_more_holds_no_memory():
    filled = ledger(NodeSeen(node("a")))
    for number in range(3):
        filled.apply(PodSeen(pod("p", node="a", priority=number, version=number)))
    assert cpu_of(filled.below(3)) == [100]
    filled.apply(PodGone("p"))
    assert cpu_of(filled.below(3)) == [0]
    assert not filled._books.allocated._by_priority  # what no caller asks for must not be kept either


def test_a_pod_frees_its_node_when_it_finishes_or_goes():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", node="a")), PodSeen(pod("q", 50, node="a")))
    filled.apply(PodSeen(pod("p", version=2, node="a", finished=True)))
    assert cpu_of(filled.snapshot(0).allocated) == [50]
    filled.apply(PodGone("q"))
    assert cpu_of(filled.snapshot(0).allocated) == [0]
    assert filled.counts() == (0, 1, 0)


def test_a_resized_pod_counts_at_its_new_size_only():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", 100, node="a")), PodSeen(pod("p", 300, 2, node="a")))
    assert cpu_of(filled.snapshot(0).allocated) == [300]


def test_a_pod_that_was_seen_before_its_node_counts_once_the_node_is_there():
    filled = ledger(PodSeen(pod("p", node="a")))
    assert filled.snapshot(0).allocated.shape == (0, 7)  # the six, and what no node offers
    filled.apply(NodeSeen(node("a")))
    assert cpu_of(filled.snapshot(0).allocated) == [100]


def test_a_node_that_goes_and_comes_back_has_its_pods_again():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", node="a")))
    filled.snapshot(0)
    filled.apply(NodeGone("a"))
    assert filled.snapshot(0).layout.names == ()
    filled.apply(NodeSeen(node("a")))
    assert cpu_of(filled.snapshot(0).allocated) == [100]


def test_a_node_that_goes_and_comes_back_between_two_snapshots_forgets_the_pods_that_left():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", node="a")), PodSeen(pod("q", 50, node="a")))
    filled.snapshot(0)
    for event in (NodeGone("a"), PodGone("p"), NodeSeen(node("a"))):
        filled.apply(event)
    assert cpu_of(filled.snapshot(0).allocated) == [50]


def test_a_new_extended_resource_makes_a_column_and_counts_what_pods_hold_of_it():
    asking = Pod("p", "default", "p", {"cpu": 1.0, GPU: 2.0}, node="a")
    filled = ledger(NodeSeen(node("a")), PodSeen(asking))
    assert GPU not in filled.snapshot(0).layout.columns
    filled.apply(NodeSeen(node("a", **{GPU: 8.0})))
    snapshot = filled.snapshot(0)
    column = snapshot.layout.columns[GPU]
    assert snapshot.allocated[0, column] == 2
    assert snapshot.layout.capacity[0, column] == 8


def test_an_event_older_than_what_is_known_is_ignored():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", 300, 5, node="a")), PodSeen(pod("p", 100, 4, node="a")))
    assert cpu_of(filled.snapshot(0).allocated) == [300]


def test_a_list_is_believed_also_where_it_is_older_as_after_a_restored_backup():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", 300, 5, node="a")), PodsListed([pod("p", 100, 4, node="a")]))
    assert cpu_of(filled.snapshot(0).allocated) == [100]


def test_a_list_removes_what_it_does_not_name():
    filled = ledger(NodesListed([node("a"), node("b")]), PodsListed([pod("p", node="a"), pod("q", node="b")]))
    filled.apply(NodesListed([node("b")]))
    filled.apply(PodsListed([pod("p", node="a")]))
    snapshot = filled.snapshot(0)
    assert snapshot.layout.names == ("b",)
    assert cpu_of(snapshot.allocated) == [0]
    assert filled.counts() == (1, 0, 0)


def test_the_same_node_again_changes_nothing():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", node="a")))
    before = filled.snapshot(0)
    filled.apply(NodeSeen(node("a")))
    filled.apply(PodSeen(pod("p", node="a")))
    assert filled.snapshot(0).version == before.version


def test_a_pod_is_given_back_as_the_watch_has_shown_it():
    filled = ledger(PodSeen(pod("p", version=7)))
    assert filled.pod("p") == pod("p", version=7)
    assert filled.pod("q") is None


# -- flights


def test_a_pod_in_flight_counts_on_every_node_that_it_may_have_got():
    filled = ledger(NodesListed([node(n) for n in NODES]))
    take_off(filled, pod("p"), "a", "c")
    snapshot = filled.snapshot(0)
    assert cpu_of(snapshot.in_flight) == [100, 0, 100]
    assert cpu_of(snapshot.allocated) == [0, 0, 0]
    assert snapshot.flights == 1
    assert filled.counts() == (0, 0, 1)


@pytest.mark.parametrize(
    ("event", "allocated"),
    [
        pytest.param(PodSeen(pod("p", version=2, node="a")), 100, id="bound"),
        pytest.param(PodSeen(pod("p", version=2, node="a", finished=True)), 0, id="finished"),
        pytest.param(PodSeen(pod("p", version=2, finished=True)), 0, id="finished without a node"),
        pytest.param(PodSeen(pod("p", version=2, unschedulable=True)), 0, id="refused after it was asked about"),
        pytest.param(PodGone("p"), 0, id="deleted"),
        pytest.param(PodsListed([]), 0, id="gone from the list"),
        pytest.param(PodsListed([pod("p", version=2, node="a")]), 100, id="bound in a list"),
    ],
)
def test_a_flight_lands_with_news_of_its_end(event, allocated):
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p")))
    take_off(filled, pod("p"), "a")
    filled.apply(event)
    snapshot = filled.snapshot(0)
    assert cpu_of(snapshot.in_flight) == [0]
    assert cpu_of(snapshot.allocated) == [allocated]
    assert snapshot.flights == 0


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(PodSeen(pod("p", version=1, unschedulable=True)), id="refused before it was asked about"),
        pytest.param(PodSeen(pod("p", version=2)), id="changed, still waiting"),
        pytest.param(PodSeen(pod("q", version=2, node="a")), id="another pod"),
    ],
)
def test_a_flight_goes_on_with_other_news(event):
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p")))
    take_off(filled, pod("p"), "a")
    filled.apply(event)
    assert filled.snapshot(0).flights == 1


def test_a_pod_that_preempts_lands_with_its_nomination_which_counts_from_then_on():
    filled = ledger(NodesListed([node(n) for n in NODES]), PodSeen(pod("p", unschedulable=True)))
    take_off(filled, pod("p", unschedulable=True), "a", "b", preempts=True)
    filled.apply(PodSeen(pod("p", version=1, unschedulable=True, nominated="c")))
    assert filled.snapshot(0).flights == 1, "an older nomination"
    filled.apply(PodSeen(pod("p", version=2, unschedulable=True, nominated="b")))
    snapshot = filled.snapshot(0)
    assert (snapshot.flights, snapshot.nominations.rows.tolist()) == (0, [1])
    take_off(filled, pod("p", version=2, nominated="b"), "a")
    filled.apply(PodSeen(pod("p", version=3, nominated="a")))
    assert filled.snapshot(0).flights == 1, "one that passed the filter waits for its binding"


def test_pods_of_lower_priority_that_leave_a_node_are_named():
    there = [
        pod("low", node="a", leaving=True, priority=1),
        pod("equal", node="a", leaving=True, priority=5),
        pod("stays", node="a", priority=1),
        pod("elsewhere", node="b", leaving=True),
        pod("ended", node="a", leaving=True, finished=True),
    ]
    filled = ledger(NodesListed([node("a"), node("b")]), *map(PodSeen, there))
    assert [it.uid for it in filled.leaving("a", below=5)] == ["low"]
    assert filled.leaving("gone", below=5) == []


def test_a_snapshot_comes_with_those_of_the_pods_asked_for_that_are_known():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", node="a")), PodSeen(pod("q")))
    snapshot, known = filled.snapshot_with(["p", "nobody"], 0)
    assert cpu_of(snapshot.allocated) == [100]
    assert known == {"p": pod("p", node="a")}


def test_a_flight_ends_after_its_time_and_not_before():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p")), PodSeen(pod("q")), in_flight_seconds=15)
    take_off(filled, pod("p"), "a", now=100)
    take_off(filled, pod("q"), "a", now=101)
    assert filled.newest_flight_since() == 101
    assert cpu_of(filled.snapshot(115).in_flight) == [200]  # 115 - 100 = 15, not more
    assert filled.in_flight(115.1) == {"q"}
    assert cpu_of(filled.snapshot(116.1).in_flight) == [0]
    assert filled.newest_flight_since() is None


def test_forgetting_a_flight_restores_the_arrays_exactly():
    filled = ledger(NodesListed([node(n) for n in NODES]), PodSeen(pod("q", 333, node="b")))
    take_off(filled, pod("r", 7), "b")
    before = contents(filled.snapshot(0))
    take_off(filled, pod("p"), "a", "b")
    assert contents(filled.snapshot(0)) != before
    filled.forget("p")
    assert contents(filled.snapshot(0)) == before


def test_forgetting_a_pod_that_does_not_fly_changes_nothing():
    filled = ledger(NodeSeen(node("a")))
    before = filled.snapshot(0).version
    filled.forget("p")
    assert filled.snapshot(0).version == before


def test_assume_refuses_where_another_pod_took_off_since_the_snapshot():
    filled = ledger(NodeSeen(node("a")))
    old = filled.snapshot(0)
    take_off(filled, pod("p"), "a")
    assert not filled.assume(pod("q"), everywhere(old), old, 0)
    assert cpu_of(filled.snapshot(0).in_flight) == [100]


@pytest.mark.parametrize(
    ("event", "in_flight"),
    [
        (NodeSeen(node("0")), [0, 100, 100]),
        (NodeSeen(node("c")), [100, 100, 0]),
        (NodeGone("a"), [100]),
        (NodeSeen(node("a", **{GPU: 1.0})), [100, 100]),
        (NodesListed([]), []),
    ],
)
@pytest.mark.parametrize("laid_out", [True, False])
def test_assume_goes_through_where_nodes_changed_and_counts_on_those_that_are_still_there(event, in_flight, laid_out):
    filled = ledger(NodeSeen(node("a")), NodeSeen(node("b")))
    old = filled.snapshot(0)
    filled.apply(event)
    if laid_out:
        filled.snapshot(0)
    assert filled.assume(pod("p"), everywhere(old), old, 0)
    assert cpu_of(filled.snapshot(0).in_flight) == in_flight


# -- flights of pods that the watch has not shown


def test_a_pod_that_the_watch_has_not_shown_flies_for_a_moment_and_once():
    filled = ledger(NodeSeen(node("a")))
    for now in (100.0, 100.5):
        take_off(filled, pod("ghost"), "a", now=now)
        assert cpu_of(filled.snapshot(now).in_flight) == [100]
    assert cpu_of(filled.snapshot(101.0).in_flight) == [100]  # from the first time on: 100 + 1
    assert cpu_of(filled.snapshot(101.1).in_flight) == [0]
    for now in (101.2, 115.0, 1_000.0):
        take_off(filled, pod("ghost"), "a", now=now)
        assert cpu_of(filled.snapshot(now).in_flight) == [0]


def test_after_one_that_was_never_shown_no_such_pod_flies_for_a_while():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("real")))
    take_off(filled, pod("ghost"), "a", now=100.0)
    assert cpu_of(filled.snapshot(101.1).in_flight) == [0]  # not to be trusted until 101.1 + 10
    for now, uid, in_flight in ((102.0, "g2", 0), (111.0, "g3", 0), (111.0, "real", 100), (111.2, "g4", 200)):
        take_off(filled, pod(uid), "a", now=now)
        assert cpu_of(filled.snapshot(now).in_flight) == [in_flight], uid


def test_a_pod_that_the_watch_shows_in_time_flies_on_with_what_the_watch_says():
    filled = ledger(NodeSeen(node("a")))
    take_off(filled, pod("p", 900), "a", now=100.0)
    filled.apply(PodSeen(pod("p", 30)))
    assert cpu_of(filled.snapshot(115.0).in_flight) == [30]  # 100 + 15
    assert cpu_of(filled.snapshot(115.1).in_flight) == [0]
    take_off(filled, pod("another"), "a", now=115.2)
    assert cpu_of(filled.snapshot(115.2).in_flight) == [100], "nobody was doubted"


def test_it_lands_by_news_that_is_later_than_what_was_asked():
    filled = ledger(NodeSeen(node("a")))
    take_off(filled, pod("p", version=2, unschedulable=True), "a")
    filled.apply(PodSeen(pod("p", version=1)))
    filled.apply(PodSeen(pod("p", version=2, unschedulable=True)))
    assert filled.snapshot(0).flights == 1, "its refusal was known when it was asked about"
    filled.apply(PodSeen(pod("p", version=3, unschedulable=True)))
    assert filled.snapshot(0).flights == 1, "something else about it has changed"


def test_pods_that_the_watch_has_not_shown_give_way_to_one_that_it_has():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("real")), PodSeen(pod("other")))
    for uid in ("ghost", "ghost2", "other"):
        take_off(filled, pod(uid), "a")
    assert not filled.yield_to("ghost3"), "nor has it shown this one"
    assert filled.yield_to("real")
    assert cpu_of(filled.snapshot(0).in_flight) == [100]
    assert not filled.yield_to("real")
    take_off(filled, pod("ghost4"), "a", now=9.0)
    assert cpu_of(filled.snapshot(9.0).in_flight) == [100]


@pytest.mark.parametrize("shown", [True, False])
def test_a_forged_uid_moves_nobody(shown):
    filled = ledger(NodesListed([node("a"), node("b")]))
    if shown:
        filled.apply(PodSeen(pod("p")))
    take_off(filled, pod("p"), "a")
    forged = replace(pod("p", 7), name="x")
    assert filled.contradicts(forged)
    assert not filled.contradicts(pod("p", 7))
    take_off(filled, forged, "b")
    assert cpu_of(filled.snapshot(0).in_flight) == [100, 0]


def test_a_forged_uid_of_a_pod_that_does_not_fly_takes_no_room():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p")))
    take_off(filled, replace(pod("p", 7), name="x"), "a")
    assert filled.snapshot(0).flights == 0


def test_a_flight_of_another_pod_ends_when_the_watch_shows_whose_uid_it_is():
    filled = ledger(NodeSeen(node("a")))
    take_off(filled, replace(pod("p"), namespace="elsewhere"), "a")
    filled.apply(PodSeen(pod("p")))
    assert filled.snapshot(0).flights == 0


def test_assume_goes_through_where_only_another_pod_landed():
    filled = ledger(NodeSeen(node("a")))
    take_off(filled, pod("p"), "a")
    snapshot = filled.snapshot(0)
    filled.apply(PodSeen(pod("p", version=2, node="a")))
    assert filled.assume(pod("q"), everywhere(snapshot), snapshot, 0)


def test_a_pod_that_passed_nowhere_does_not_fly():
    filled = ledger(NodeSeen(node("a")))
    take_off(filled, pod("p"), "a")
    take_off(filled, pod("p"))
    snapshot = filled.snapshot(0)
    assert snapshot.flights == 0
    assert cpu_of(snapshot.in_flight) == [0]


def test_a_pod_asked_about_twice_counts_once():
    filled = ledger(NodesListed([node("a"), node("b")]))
    take_off(filled, pod("p"), "a", "b")
    take_off(filled, pod("p"), "b")
    assert cpu_of(filled.snapshot(0).in_flight) == [0, 100]


def test_a_pod_whose_binding_was_faster_than_the_verb_does_not_fly():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", version=2, node="a")))
    take_off(filled, pod("p", version=1), "a")
    snapshot = filled.snapshot(0)
    assert cpu_of(snapshot.in_flight) == [0]
    assert cpu_of(snapshot.allocated) == [100]


def test_flights_survive_nodes_that_come_and_go():
    filled = ledger(NodesListed([node("b"), node("c")]))
    take_off(filled, pod("p"), "b", "c")
    filled.apply(NodeSeen(node("a")))
    assert cpu_of(filled.snapshot(0).in_flight) == [0, 100, 100]
    filled.apply(NodeGone("b"))
    assert cpu_of(filled.snapshot(0).in_flight) == [0, 100]
    filled.apply(PodSeen(pod("p", version=2, node="c")))
    snapshot = filled.snapshot(0)
    assert cpu_of(snapshot.in_flight) == [0, 0]
    assert cpu_of(snapshot.allocated) == [0, 100]


def test_a_flight_that_lands_while_the_nodes_change_leaves_nothing_behind():
    filled = ledger(NodeSeen(node("a")))
    take_off(filled, pod("p"), "a")
    filled.apply(NodeSeen(node("b")))
    filled.apply(PodSeen(pod("p", version=2, node="a")))
    snapshot = filled.snapshot(0)
    assert cpu_of(snapshot.in_flight) == [0, 0]
    assert cpu_of(snapshot.allocated) == [100, 0]


# -- nominations


def nominated_load(filled, priority, uid="other"):
    snapshot = filled.snapshot(0)
    load = snapshot.nominations.load(snapshot.allocated.shape, priority=priority, uid=uid)
    return None if load is None else cpu_of(load)


def test_a_nominated_pod_counts_against_equal_or_lower_priority_and_never_against_itself():
    filled = ledger(NodesListed([node("a"), node("b")]), PodSeen(pod("p", nominated="b", priority=5)))
    assert nominated_load(filled, 4) == [0, 100]
    assert nominated_load(filled, 5) == [0, 100]
    assert nominated_load(filled, 6) is None
    assert nominated_load(filled, 5, uid="p") is None


def test_two_pods_nominated_to_one_node_add_up():
    filled = ledger(NodeSeen(node("a")), *(PodSeen(pod(uid, nominated="a")) for uid in ("p", "q")))
    assert nominated_load(filled, 0) == [200]
    assert nominated_load(filled, 0, uid="q") == [100]


@pytest.mark.parametrize(
    "event",
    [
        PodSeen(pod("p", version=2)),
        PodSeen(pod("p", version=2, node="a", nominated="a")),
        PodSeen(pod("p", version=2, finished=True, nominated="a")),
        PodGone("p"),
        NodeGone("a"),
    ],
)
def test_a_nomination_ends_when_it_is_cleared_used_or_without_an_object(event):
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", nominated="a")))
    assert nominated_load(filled, 0) == [100]
    filled.apply(event)
    assert nominated_load(filled, 0) is None


def test_each_nomination_that_comes_changes_or_goes_gives_the_snapshot_another_version():
    filled = ledger(NodesListed([node("a"), node("b")]), PodSeen(pod("p")))
    versions = [filled.snapshot(0).version]
    for event in (
        PodSeen(pod("p", version=2, nominated="a")),
        PodSeen(pod("p", version=3, nominated="b")),
        PodGone("p"),
    ):
        filled.apply(event)
        versions.append(filled.snapshot(0).version)
    assert len(set(versions)) == 4


def test_a_nominated_pod_in_flight_counts_as_in_flight_only_and_again_when_it_comes_back():
    filled = ledger(NodeSeen(node("a")), PodSeen(pod("p", nominated="a")))
    take_off(filled, pod("p", nominated="a"), "a")
    assert nominated_load(filled, 0) is None
    assert cpu_of(filled.snapshot(0).in_flight) == [100]
    filled.forget("p")
    assert nominated_load(filled, 0) == [100]


# -- waiting


def test_waiting_ends_with_the_next_change_and_says_so():
    filled = ledger(NodeSeen(node("a")))
    snapshot = filled.snapshot(0)
    timer = threading.Timer(0.02, filled.apply, [PodSeen(pod("p", node="a"))])
    timer.start()
    assert filled.wait_past(snapshot, 10.0)
    timer.join()


def test_waiting_ends_with_a_pod_that_comes_though_it_holds_nothing_yet():
    filled = ledger(NodeSeen(node("a")))
    snapshot = filled.snapshot(0)
    filled.apply(PodSeen(pod("p")))
    assert filled.wait_past(snapshot, 0.0)


def test_waiting_without_a_change_ends_after_its_time():
    filled = ledger(NodeSeen(node("a")))
    assert not filled.wait_past(filled.snapshot(0), 0.01)


# -- properties


amounts = st.integers(0, 5).map(lambda n: n * 10.0)
node_specs = st.builds(
    lambda name, cpu, gpu: Node(name, {"cpu": cpu} | ({GPU: gpu} if gpu else {})),
    st.sampled_from(NODES),
    amounts,
    amounts,
)
pod_specs = st.builds(
    lambda uid, cpu, gpu, where, nominated, finished: Pod(
        uid, "default", uid, {"cpu": cpu, GPU: gpu}, node=where, nominated=nominated, finished=finished
    ),
    st.sampled_from(UIDS),
    amounts,
    amounts,
    st.sampled_from([None, *NODES]),
    st.sampled_from([None, *NODES]),
    st.booleans(),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("node"), node_specs),
        st.tuples(st.just("node gone"), st.sampled_from(NODES)),
        st.tuples(st.just("pod"), pod_specs),
        st.tuples(st.just("late"), pod_specs),
        st.tuples(st.just("again"), st.sampled_from(UIDS)),
        st.tuples(st.just("pod gone"), st.sampled_from(UIDS)),
        st.tuples(st.just("pods listed"), st.lists(pod_specs, max_size=3, unique_by=lambda p: p.uid)),
        st.tuples(st.just("nodes listed"), st.lists(node_specs, max_size=3, unique_by=lambda n: n.name)),
        st.tuples(st.just("snapshot"), st.none()),
        st.tuples(st.just("fly"), pod_specs),
    ),
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(steps)
def test_any_history_ends_in_the_same_arrays_as_its_end_alone(history):
    lived, nodes, pods = Ledger(in_flight_seconds=1.0), {}, {}
    kept = []
    for version, (what, thing) in enumerate(history, 1):
        match what:
            case "node":
                nodes[thing.name] = thing
                lived.apply(NodeSeen(thing))
            case "node gone":
                nodes.pop(thing, None)
                lived.apply(NodeGone(thing))
            case "pod":
                pods[thing.uid] = replace(thing, resource_version=version)
                lived.apply(PodSeen(pods[thing.uid]))
            case "late":
                if thing.uid in pods:
                    lived.apply(PodSeen(replace(thing, resource_version=pods[thing.uid].resource_version - 1)))
            case "again":
                if thing in pods:
                    lived.apply(PodSeen(pods[thing]))
            case "pod gone":
                pods.pop(thing, None)
                lived.apply(PodGone(thing))
            case "pods listed":
                pods = {p.uid: replace(p, resource_version=version) for p in thing}
                lived.apply(PodsListed(list(pods.values())))
            case "nodes listed":
                nodes = {n.name: n for n in thing}
                lived.apply(NodesListed(thing))
            case "snapshot":
                snapshot = lived.snapshot(0)
                kept.append((snapshot, contents(snapshot)))
            case "fly":
                snapshot = lived.snapshot(0)
                assert lived.assume(replace(thing, resource_version=version), everywhere(snapshot), snapshot, 0)
    fresh = ledger(NodesListed(list(nodes.values())), PodsListed(list(pods.values())))
    assert contents(lived.snapshot(10)) == contents(fresh.snapshot(10))  # 10 s: every flight is over
    assert lived.counts() == fresh.counts()
    assert lived.least_priority() == fresh.least_priority()
    for snapshot, then in kept:
        assert contents(snapshot) == then  # an old snapshot never changes


@settings(deadline=None)
@given(st.permutations(NODES), st.lists(pod_specs, max_size=3, unique_by=lambda p: p.uid))
def test_the_order_in_which_nodes_and_pods_come_changes_nothing(order, pods):
    there = [PodSeen(p) for p in pods]
    straight = ledger(*(NodeSeen(node(n)) for n in NODES), *there)
    shuffled = ledger(*there[::-1], *(NodeSeen(node(n)) for n in order))
    assert contents(straight.snapshot(0)) == contents(shuffled.snapshot(0))


@settings(deadline=None)
@given(st.lists(pod_specs, max_size=3, unique_by=lambda p: p.uid), pod_specs, st.lists(st.booleans(), min_size=3))
def test_assume_then_forget_restores_the_ledger(pods, flying, marks):
    flying = replace(flying, uid="flying")
    filled = ledger(NodesListed([node(n, **{GPU: 4.0}) for n in NODES]), *map(PodSeen, pods))
    before = filled.snapshot(0)
    then = contents(before)
    assert filled.assume(flying, np.array(marks[:3]), before, 0)
    filled.forget("flying")
    assert contents(filled.snapshot(0)) == then


def test_threads_that_apply_assume_and_look_leave_the_right_totals():
    filled = ledger(NodesListed([node(n) for n in NODES]))
    workers, rounds = 4, 50
    faults = []

    def work(worker):
        try:
            for n in range(rounds):
                uid = f"{worker}-{n}"
                while True:
                    snapshot = filled.snapshot(0)
                    if filled.assume(pod(uid, 1), everywhere(snapshot), snapshot, 0):
                        break
                if filled.snapshot(0).allocated.sum() < 0:
                    faults.append(uid)
                if n % 10 == 0:
                    filled.apply(NodeSeen(node("d", **{"disk-read": float(worker * rounds + n)})))
                filled.apply(PodSeen(pod(uid, 1, 2, node=NODES[n % 3])))
                if n % 2:
                    filled.apply(PodGone(uid))
        except Exception as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=[w]) for w in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    snapshot = filled.snapshot(0)
    assert not snapshot.in_flight.any()
    assert snapshot.allocated[:, 0].sum() == 100  # 4 workers x 50 pods of 1m, every second one deleted again
    assert filled.counts() == (100, 0, 0)


def reads(uid, *holders, **more):
    return replace(pod(uid, **more), demand={"disk-read": 90.0}, inputs=tuple((name, 1.0) for name in holders))


def rate_of(filled, name):
    layout = filled.snapshot(0).layout
    column = layout.columns[name]
    return dict(zip(layout.names, filled.snapshot(0).allocated[:, column].tolist(), strict=True))


def test_a_pod_that_reads_from_others_counts_on_their_disks_and_links_until_it_ends():
    filled = ledger(NodesListed([node(name) for name in NODES]), PodSeen(reads("p", "a", "b", node="c")))
    assert rate_of(filled, "disk-read") == {"a": 45.0, "b": 45.0, "c": 0.0}
    assert rate_of(filled, "network-out") == {"a": 45.0, "b": 45.0, "c": 0.0}
    assert rate_of(filled, "network-in") == {"a": 0.0, "b": 0.0, "c": 90.0}
    filled.apply(PodSeen(reads("p", "a", "b", node="c", version=2, finished=True)))
    assert not filled.snapshot(0).allocated.any()


def test_a_pod_beside_its_input_takes_its_own_disk_alone():
    filled = ledger(NodesListed([node(name) for name in NODES]), PodSeen(reads("p", "a", "b", node="b")))
    assert rate_of(filled, "disk-read") == {"a": 0.0, "b": 90.0, "c": 0.0}
    assert not filled.snapshot(0).allocated[:, filled.snapshot(0).layout.columns["network-in"]].any()


def test_a_pod_in_flight_to_one_node_counts_where_it_will_read():
    filled = ledger(NodesListed([node(name) for name in NODES]))
    filled.promise(reads("p", "a"), "c", 0.0)
    snapshot = filled.snapshot(0)
    assert snapshot.in_flight[:, snapshot.layout.columns["network-out"]].tolist() == [90.0, 0.0, 0.0]


def test_a_nominated_pod_counts_where_it_will_read_but_not_against_itself():
    filled = ledger(NodesListed([node(name) for name in NODES]), PodSeen(reads("p", "a", "b", nominated="c")))
    snapshot = filled.snapshot(0)
    load = snapshot.nominations.load(snapshot.allocated.shape, priority=0, uid="other")
    assert load[:, snapshot.layout.columns["disk-read"]].tolist() == [45.0, 45.0, 0.0]
    assert load[:, snapshot.layout.columns["network-in"]].tolist() == [0.0, 0.0, 90.0]
    assert snapshot.nominations.load(snapshot.allocated.shape, priority=0, uid="p") is None


NODE_CHANGES = st.lists(st.tuples(st.sampled_from(NODES), st.booleans(), st.booleans()), max_size=8)


@settings(max_examples=200, deadline=None)
@given(changes=NODE_CHANGES, where=st.lists(st.sampled_from(NODES), min_size=3, max_size=3), last=st.sampled_from(UIDS))
def test_whatever_nodes_come_and_go_what_pods_read_is_counted_as_in_a_ledger_that_saw_only_the_end(
    changes, where, last
):
    pods = [
        reads(uid, *NODES[: count + 1], node=name) for count, (uid, name) in enumerate(zip(UIDS, where, strict=True))
    ]
    there = {name: node(name) for name in NODES}
    filled = ledger(NodesListed(there.values()), *(PodSeen(it) for it in pods))
    for name, comes, with_gpu in changes:
        there.pop(name, None)
        if comes:
            there[name] = node(name, **({GPU: 1.0} if with_gpu else {}))
        filled.apply(NodeSeen(there[name]) if comes else NodeGone(name))
        if with_gpu:
            filled.snapshot(0)
    filled.apply(PodGone(last))
    fresh = ledger(NodesListed(there.values()), *(PodSeen(it) for it in pods if it.uid != last))
    assert contents(filled.snapshot(0)) == contents(fresh.snapshot(0))


def test_what_a_node_uses_besides_its_pods_counts_as_allocated_until_it_is_gone():
    filled = ledger(NodesListed((node("a"), node("b"))), PodSeen(pod("p", node="a")))
    before = filled.snapshot(0.0)
    filled.note_load({"a": {"cpu": 300.0}, "not there": {"cpu": 1.0}})
    loaded = filled.snapshot(0.0)
    assert cpu_of(loaded.allocated) == [400.0, 0.0]
    assert loaded.version > before.version
    filled.apply(PodGone("p"))
    filled.apply(NodeSeen(node("0")))
    assert cpu_of(filled.snapshot(0.0).allocated) == [0.0, 300.0, 0.0]
    filled.note_load({})
    assert cpu_of(filled.snapshot(0.0).allocated) == [0.0, 0.0, 0.0]


def test_a_load_that_stays_as_it_is_changes_nothing():
    filled = ledger(NodesListed((node("a"),)))
    filled.note_load({"a": {"cpu": 300.0}})
    before = filled.snapshot(0.0)
    filled.note_load({"a": {"cpu": 300.0}})
    assert filled.snapshot(0.0).version == before.version
