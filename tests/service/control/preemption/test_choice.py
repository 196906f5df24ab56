import numpy as np

from extender.cluster.events import NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.cluster.usage import Sample, Usage
from extender.control.preemption.choice import choices, shortages

NOW = 1000.0


def pod(name, *, node="n1", started=0.0, opportunistic=True, leaving=False):
    demand = {"cpu": 1000.0, "memory": 10.0}
    more = {"started": started, "opportunistic": opportunistic, "leaving": leaving}
    return Pod(name, "default", name, demand, node=node, **more)


def chosen(pods, use, over, *, going=(), spared=(), problems=None):
    """Return the victims by node; `over` says by how much CPU a node is over, `use` what CPU each pod was measured."""
    ledger = Ledger(in_flight_seconds=15.0)
    ledger.apply(NodesListed([Node(name, {"cpu": 10_000.0, "memory": 100.0}) for name in ("n1", "n2")]))
    for it in pods:
        ledger.apply(PodSeen(it))
    snapshot = ledger.snapshot(NOW)
    excess = np.zeros(snapshot.layout.capacity.shape)
    for name, amount in over.items():
        excess[snapshot.layout.rows[name], 0] = amount
    samples = {name: Sample({"cpu": float(cpu)}, 990.0, NOW) for name, cpu in use.items()}
    usage = Usage(pods=samples, problems=problems or {})
    found = choices(snapshot, excess, usage, NOW, going=set(going), spared=set(spared))
    return {choice.node: sorted(victim.name for victim in choice.victims) for choice in found}


def test_the_one_that_suffices_goes():
    assert chosen([pod("a"), pod("b")], {"a": 100, "b": 900}, {"n1": 500}) == {"n1": ["b"]}


def test_of_two_that_suffice_the_one_that_would_lose_less_work_goes():
    pods = [pod("old", started=100.0), pod("new", started=900.0)]
    assert chosen(pods, {"old": 900, "new": 900}, {"n1": 500}) == {"n1": ["new"]}


def test_each_node_is_seen_to_the_most_overloaded_first():
    pods = [pod("a"), pod("b", node="n2")]
    found = chosen(pods, {"a": 900, "b": 900}, {"n1": 100, "n2": 500})
    assert list(found.items()) == [("n2", ["b"]), ("n1", ["a"])]


def test_what_is_worst_is_by_parts_of_what_a_node_offers_not_by_units():
    ledger = Ledger(in_flight_seconds=15.0)
    ledger.apply(NodesListed([Node("n1", {"cpu": 1_000.0, "memory": 1e9})]))
    layout = ledger.snapshot(NOW).layout
    short = layout.vector({"cpu": 500.0, "memory": 1e8, "network-in": 5.0})
    assert list(shortages(layout, 0, short).items()) == [("cpu", 500.0), ("memory", 1e8), ("network-in", 5.0)]


def test_regular_pods_never_go():
    assert chosen([pod("a", opportunistic=False)], {"a": 900}, {"n1": 500}) == {}


def test_who_is_on_its_way_out_counts_as_gone():
    pods = [pod("leaving", leaving=True), pod("asked"), pod("c"), pod("d")]
    use = {"leaving": 300, "asked": 300, "c": 300, "d": 200}
    assert chosen(pods, use, {"n1": 600}, going=["asked"]) == {}
    assert chosen(pods, use, {"n1": 700}, going=["asked"]) in ({"n1": ["c"]}, {"n1": ["d"]})
    assert chosen(pods, use, {"n1": 900}, going=["asked"]) == {"n1": ["c"]}


def test_who_may_not_be_asked_stays_and_the_next_goes():
    assert chosen([pod("a"), pod("b")], {"a": 900, "b": 900}, {"n1": 500}, spared=["a"]) == {"n1": ["b"]}


def test_where_all_together_do_not_suffice_all_go_that_use_what_is_short():
    pods = [pod("a"), pod("b"), pod("idle")]
    assert chosen(pods, {"a": 900, "b": 900, "idle": 0}, {"n1": 5000}) == {"n1": ["a", "b"]}


def test_nobody_goes_by_what_was_not_measured():
    assert chosen([pod("a")], {}, {"n1": 500}) == {}
    assert chosen([pod("a")], {"a": 900}, {"n1": 500}, problems={"n1": "two series"}) == {}
