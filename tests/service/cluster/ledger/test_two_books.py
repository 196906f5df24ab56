"""The two books: what pods count as regular, and what opportunistic ones need beyond that.

Nodes of 1,000 CPU and 100 of memory; a pod needs 100 CPU, 10 of memory and a GPU, unless it says otherwise.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.eligibility import Constraints, Toleration
from extender.cluster.events import NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.verdict import once_gone

NODES = ("a", "b", "c")
GPU = "a.b/gpu"
DEMAND = {"cpu": 100.0, "memory": 10.0, GPU: 1.0}


def node(name):
    return Node(name, {"cpu": 1000.0, "memory": 100.0, GPU: 4.0})


def pod(uid, *, opportunistic=True, version=1, demand=DEMAND, reads=(), **more):
    inputs = tuple((name, 1.0) for name in reads)
    return Pod(
        uid, "default", uid, demand, resource_version=version, opportunistic=opportunistic, inputs=inputs, **more
    )


def ledger(*pods, nodes=NODES):
    filled = Ledger(in_flight_seconds=15.0)
    filled.apply(NodesListed([node(name) for name in nodes]))
    for event in map(PodSeen, pods):
        filled.apply(event)
    return filled


def amounts(snapshot, book, name):
    """Return what a book has of a node."""
    layout = snapshot.layout
    found = getattr(snapshot, book)[layout.rows[name]].tolist()
    return {dimension: amount for dimension, amount in zip(layout.axis, found, strict=True) if amount}


def both(snapshot, name):
    return amounts(snapshot, "allocated", name), amounts(snapshot, "given", name)


def test_a_regular_pod_stands_in_the_first_book_only():
    snapshot = ledger(pod("p", opportunistic=False, node="a")).snapshot(0)
    assert both(snapshot, "a") == (DEMAND, {})
    assert not snapshot.opportunistic.pods


def test_an_opportunistic_pod_stands_in_the_first_book_with_what_no_resize_frees():
    snapshot = ledger(pod("p", node="a")).snapshot(0)
    assert both(snapshot, "a") == ({GPU: 1.0}, {"cpu": 100.0, "memory": 10.0})


def test_a_promoted_pod_moves_from_the_second_book_to_the_first():
    filled = ledger(pod("p", node="a"))
    then = filled.snapshot(0)
    filled.apply(PodSeen(pod("p", node="a", opportunistic=False, version=2)))
    assert both(filled.snapshot(0), "a") == (DEMAND, {})
    assert both(then, "a") == ({GPU: 1.0}, {"cpu": 100.0, "memory": 10.0})  # a snapshot does not change


@pytest.mark.parametrize("end", [PodGone("p"), PodSeen(pod("p", node="a", version=2, finished=True)), PodsListed([])])
def test_an_opportunistic_pod_that_ends_leaves_both_books(end):
    filled = ledger(pod("p", node="a"))
    filled.apply(end)
    snapshot = filled.snapshot(0)
    assert both(snapshot, "a") == ({}, {})
    assert not snapshot.opportunistic.pods


def test_a_pod_in_flight_stands_in_both_books_on_every_node_that_it_may_have_got():
    filled = ledger()
    snapshot = filled.snapshot(0)
    assert filled.assume(pod("p"), np.array([True, False, True]), snapshot, 0)
    flying = filled.snapshot(0)
    assert [amounts(flying, "in_flight", name) for name in NODES] == [{GPU: 1.0}, {}, {GPU: 1.0}]
    assert [amounts(flying, "given", name).get("cpu") for name in NODES] == [100.0, None, 100.0]
    assert not flying.opportunistic.pods  # it has no node yet
    filled.forget("p")
    assert not filled.snapshot(0).given.any()


def test_one_that_is_promised_a_node_stands_in_both_books_there():
    filled = ledger()
    filled.promise(pod("p", version=0), "b", 0.0)
    snapshot = filled.snapshot(0)
    assert [amounts(snapshot, "given", name).get("cpu") for name in NODES] == [None, 100.0, None]
    assert amounts(snapshot, "in_flight", "b") == {GPU: 1.0}


def test_what_is_demoted_in_flight_moves_to_the_second_book_and_lands_at_its_time():
    regular = pod("p", opportunistic=False)
    filled = ledger(regular)
    filled.promise(regular, "b", 0.0)
    filled.apply(PodSeen(pod("p", version=2)))
    snapshot = filled.snapshot(15.0)
    assert (amounts(snapshot, "in_flight", "b"), amounts(snapshot, "given", "b").get("cpu")) == ({GPU: 1.0}, 100.0)
    assert not filled.snapshot(15.1).given.any()


def test_what_is_promised_as_opportunistic_stays_so_until_its_resize_shows():
    """Its annotation is written first: that news says nothing of the resize."""
    filled = ledger(pod("p", opportunistic=False))
    filled.promise(pod("p"), "b", 0.0)
    filled.apply(PodSeen(pod("p", opportunistic=False, version=2)))
    assert amounts(filled.snapshot(0), "given", "b").get("cpu") == 100.0


def test_an_opportunistic_pod_counts_where_it_was_promised_also_when_kube_scheduler_took_its_nomination_away():
    filled = ledger(pod("p", nominated="b", promised="b"))
    filled.apply(PodSeen(pod("p", promised="b", version=2)))
    snapshot = filled.snapshot(0)
    beyond = snapshot.nominations.given_to(snapshot.allocated.shape)
    assert beyond[snapshot.layout.rows["b"]].sum() == 110.0  # 100 CPU and 10 of memory
    filled.apply(PodSeen(pod("p", version=3)))
    assert filled.snapshot(0).nominations.given_to(snapshot.allocated.shape) is None


@pytest.mark.parametrize("more", [{"opportunistic": False}, {"gates": ("dovetail.dev/hold",)}])
def test_a_promise_without_a_nomination_holds_nothing_for_a_regular_pod_or_one_that_is_held(more):
    snapshot = ledger(pod("p", promised="b", **more)).snapshot(0)
    assert not snapshot.nominations.uids


def test_a_nominated_pod_counts_with_what_no_resize_frees_and_is_given_the_rest():
    nominations = ledger(pod("p", nominated="b", priority=5), pod("q", opportunistic=False, nominated="c")).snapshot(0)
    shape, load = nominations.allocated.shape, nominations.nominations.load
    assert load(shape, priority=0, uid="")[:, :2].tolist() == [[0, 0], [0, 0], [100, 10]]
    beyond = nominations.nominations.given_to(shape)
    assert beyond[:, :2].tolist() == [[0, 0], [100, 10], [0, 0]]
    assert beyond[:, 2:].sum() == 0
    assert not nominations.given.any()  # it has no node, and is not in flight


def test_what_an_opportunistic_pod_reads_elsewhere_is_given_there():
    """It reads 90 of disk: 45 of each holder, over the network."""
    reader = pod("p", node="c", demand={"cpu": 100.0, "disk-read": 90.0, GPU: 1.0}, reads=("a", "b"))
    snapshot = ledger(reader).snapshot(0)
    for holder in "ab":
        assert both(snapshot, holder) == ({}, {"disk-read": 45.0, "network-out": 45.0})
    assert both(snapshot, "c") == ({GPU: 1.0}, {"cpu": 100.0, "network-in": 90.0})
    assert snapshot.opportunistic.demand.tolist() == [snapshot.given[2].tolist()]


def test_the_opportunistic_pods_come_by_uid_with_node_need_start_and_priority():
    pods = (
        pod("z", node="a", started=7.0, priority=3),
        pod("r", node="a", opportunistic=False),
        pod("b", node="c", demand={"cpu": 5.0}),
        pod("gone", node="unknown"),
    )
    found = ledger(*pods).snapshot(0).opportunistic
    assert found.uids == ("b", "z")
    assert [it.name for it in found.pods] == ["b", "z"]
    assert found.node.tolist() == [2, 0]
    assert found.demand[:, :2].tolist() == [[5, 0], [100, 10]]
    assert found.started.tolist() == [np.inf, 7.0]
    assert found.priority.tolist() == [0, 3]
    for array in (found.node, found.demand, found.started, found.priority):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_a_pod_that_starts_is_shown_as_started_from_the_next_snapshot_on():
    filled = ledger(pod("p", node="a"))
    then = filled.snapshot(0).opportunistic
    filled.apply(PodSeen(pod("p", node="a", version=2, started=9.0)))
    assert filled.snapshot(0).opportunistic.started.tolist() == [9.0]
    assert then.started.tolist() == [np.inf]


def test_nodes_that_come_move_its_row():
    filled = ledger(pod("p", node="c"))
    assert filled.snapshot(0).opportunistic.node.tolist() == [2]
    filled.apply(NodeSeen(node("b2")))
    assert filled.snapshot(0).opportunistic.node.tolist() == [3]


def test_the_arrays_are_made_once_while_nothing_changes():
    filled = ledger(pod("p", node="a"))
    first = filled.snapshot(0)
    filled.apply(PodSeen(pod("q", node="b", opportunistic=False)))
    second = filled.snapshot(0)
    assert second.given is first.given
    assert second.opportunistic is first.opportunistic


def test_the_second_book_is_read_only():
    snapshot = ledger(pod("p", node="a")).snapshot(0)
    with pytest.raises(ValueError, match="read-only"):
        snapshot.given[0, 0] = 1.0


def test_a_snapshot_that_is_made_by_hand_has_an_empty_second_book():
    snapshot = ledger(pod("p", opportunistic=False, node="a")).snapshot(0)
    by_hand = type(snapshot)(0, 0, snapshot.layout, snapshot.allocated, snapshot.in_flight, snapshot.nominations)
    assert by_hand.given.shape == snapshot.allocated.shape
    assert not by_hand.given.any()
    assert by_hand.opportunistic.demand.shape == (0, len(snapshot.layout.axis))


def test_nodes_that_are_added_have_nothing_given():
    wider = ledger(pod("p", node="a")).snapshot(0).with_nodes([node("new")])
    assert [amounts(wider, "given", name).get("cpu") for name in (*NODES, "new")] == [100.0, None, None, None]


def test_a_victim_leaves_the_book_that_it_stands_in():
    victims = [pod("p", node="a"), pod("q", node="a", opportunistic=False)]
    snapshot = ledger(*victims, pod("r", node="a"), pod("s", node="a", opportunistic=False)).snapshot(0)
    gone = once_gone(snapshot, {"a": victims})
    assert both(gone, "a") == ({"cpu": 100.0, "memory": 10.0, GPU: 2.0}, {"cpu": 100.0, "memory": 10.0})


def test_pods_of_lower_priority_hold_what_counts_as_regular():
    regular = [pod(uid, node="a", opportunistic=False, priority=level) for uid, level in (("q", 0), ("r", 5), ("s", 9))]
    filled = ledger(pod("p", node="a"), *regular)
    assert filled.below(5)[0, :2].tolist() == [100.0, 10.0]
    assert filled.least_priority() == 0


def test_what_running_pods_that_have_changed_ask_for_is_counted_as_they_are_now():
    before = pod("p", opportunistic=False, node="a", near=("shop",))
    tolerant = Constraints(tolerations=(Toleration("spot", "Exists"),))
    after = replace(before, resource_version=2, near=(), constraints=tolerant)
    filled = ledger(before, after)
    assert not filled.draws("shop")
    filled.apply(PodGone("p"))
    assert filled.snapshot(0).mix.count.tolist() == ledger().snapshot(0).mix.count.tolist()


NEEDS = {
    "p": {"cpu": 70.0, "memory": 3.0, GPU: 1.0},
    "q": {"cpu": 33.0, "disk-read": 100.0},
    "r": {"memory": 7.0, "disk-read": 11.0, "network-in": 5.0, "ephemeral-storage": 2.0},
}
READS = {"p": (), "q": ("a", "b", "c"), "r": ("b", "gone")}
news = st.tuples(
    st.sampled_from(sorted(NEEDS)), st.sampled_from([None, *NODES]), st.sampled_from([None, *NODES]), st.booleans()
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), news),
        st.tuples(st.just("pod gone"), st.sampled_from(sorted(NEEDS))),
        st.tuples(st.just("node"), st.sampled_from(NODES)),
        st.tuples(st.just("node gone"), st.sampled_from(NODES)),
        st.tuples(st.just("fly"), news),
        st.tuples(st.just("snapshot"), st.none()),
    ),
    max_size=40,
)


def drawn(uid, where, nominated, opportunistic, version):
    return pod(
        uid,
        opportunistic=opportunistic,
        version=version,
        demand=NEEDS[uid],
        reads=READS[uid],
        node=where,
        nominated=nominated,
    )


@settings(max_examples=300, deadline=None)
@given(steps)
def test_whatever_happens_both_books_together_are_that_of_a_ledger_where_all_are_regular(history):
    """To the byte, whoever is demoted or promoted, on nodes or in flight; and as in a ledger that saw only the end."""
    books, one_book = Ledger(in_flight_seconds=15.0), Ledger(in_flight_seconds=15.0)
    nodes, pods = {}, {}
    for version, (what, thing) in enumerate(history, 1):
        match what:
            case "pod":
                pods[thing[0]] = drawn(*thing, version)
                event = PodSeen(pods[thing[0]])
            case "pod gone":
                pods.pop(thing, None)
                event = PodGone(thing)
            case "node":
                nodes[thing] = node(thing)
                event = NodeSeen(nodes[thing])
            case "node gone":
                nodes.pop(thing, None)
                event = NodeGone(thing)
            case "fly":
                flying = drawn(*thing, version)
                books.promise(flying, thing[2], 0.0)
                one_book.promise(replace(flying, opportunistic=False), thing[2], 0.0)
                continue
            case _:
                books.snapshot(0)
                continue
        books.apply(event)
        one_book.apply(PodSeen(replace(event.pod, opportunistic=False)) if isinstance(event, PodSeen) else event)
    ours, theirs = books.snapshot(0), one_book.snapshot(0)
    together = ours.allocated + ours.in_flight + ours.given
    assert together.tolist() == (theirs.allocated + theirs.in_flight).tolist()
    assert (ours.nominations.demand + ours.nominations.given).sum() == theirs.nominations.demand.sum()
    fresh = Ledger(in_flight_seconds=15.0)
    fresh.apply(NodesListed(list(nodes.values())))
    fresh.apply(PodsListed(list(pods.values())))
    later, anew = books.snapshot(100), fresh.snapshot(100)  # every flight is over
    assert later.allocated.tolist() == anew.allocated.tolist()
    assert later.given.tolist() == anew.given.tolist()
    assert later.opportunistic.uids == anew.opportunistic.uids
    assert later.opportunistic.demand.tolist() == anew.opportunistic.demand.tolist()


def test_a_priority_that_changes_is_the_one_that_is_left_again():
    filled = ledger(pod("p", node="a", priority=5))
    filled.apply(PodSeen(pod("p", node="a", priority=9, version=2)))
    assert filled.least_priority() == 9
    filled.apply(PodGone("p"))
    assert filled.least_priority() is None
