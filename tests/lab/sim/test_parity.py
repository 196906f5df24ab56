"""The verbs over HTTP and the simulator's stand-in for kube-scheduler: the same pod and state, the same answer."""

import json

import numpy as np
import pytest

from extender.adapters.http.routes import create_app
from extender.adapters.http.verbs import Verbs
from extender.adapters.metrics.serve import ServeMetrics
from extender.cluster.events import NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU, DIMENSIONS, IO_DIMENSIONS, MEMORY
from extender.cluster.waiting import Shuffle
from extender.verdict import Placement, Ranker
from lab.sim.schedulers.kube import WithExtender, demanded, pod_of
from tests.lab.sim.small import Class, blocks, cluster, machine, row, waiting

NODES = 24
SHAPES = {
    "equal": [machine(16, 64, 200)],
    "large and small": [machine(64, 256, 1000), machine(4, 8, 100)],
    "of many shapes": [
        machine(16, 16, 400),
        machine(4, 64, 50),
        row(8, 32, 100, 50, 1000, 1000),
        row(8, 32, 1000, 1000, 10, 10),
        row(16, 0, 100, 100, 100, 100),
    ],
    "with rates that some do not declare": [
        machine(16, 64, 200),
        machine(16, 64, np.inf),
        row(8, 32, np.inf, 100, 100, np.inf),
    ],
}


class Always:
    """A Readiness and Warner that are never in the way."""

    def wait(self, seconds):
        return True

    def problem(self):
        return None

    def flight_time(self):
        return 0.0

    def warn(self, kind, namespace, name, uid, message, owner=""):
        raise AssertionError(message)


class Http:
    """The real app over a ledger of these machines; speaks as kube-scheduler does."""

    def __init__(self, names, capacity, placement):
        self.ledger, always = Ledger(in_flight_seconds=15), Always()
        self.ledger.apply(NodesListed([_node(name, offer) for name, offer in zip(names, capacity, strict=True)]))
        verbs = Verbs(
            ledger=self.ledger,
            ranker=Ranker(placement),
            rules=(),
            readiness=always,
            warner=always,
            metrics=ServeMetrics("test"),
            wait_seconds=0.0,
        )
        self.client = create_app(verbs).test_client()

    def bound(self, uid, node, demand):
        """Tell the ledger, as the watch would, that a pod with this demand [6] is on this node."""
        self.ledger.apply(PodSeen(Pod(uid, "simulated", uid, _amounts(demand), node=node, resource_version=2)))

    def filter(self, pod, names):
        """Return the nodes that pass."""
        reply = self._post("filter", pod, names)
        assert sorted([*reply["NodeNames"], *reply["FailedAndUnresolvableNodes"]]) == sorted(names)
        return reply["NodeNames"]

    def prioritize(self, pod, names):
        """Return each node's level."""
        return {it["Host"]: it["Score"] for it in self._post("prioritize", pod, names)}

    def _post(self, verb, pod, names):
        reply = self.client.post(f"/{verb}", data=json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}))
        assert reply.status_code == 200
        return reply.get_json()


def _amounts(demand):
    return {name: amount for name, amount in zip(DIMENSIONS, demand.tolist(), strict=True) if amount > 0}


def _node(name, offer):
    return Node(name, {d: amount for d, amount in zip(DIMENSIONS, offer.tolist(), strict=True) if np.isfinite(amount)})


def written(uid, demand):
    """Return the pod as its user would write it: requests, and rates in our annotation."""
    amounts = _amounts(demand)
    requests = {CPU: f"{amounts.get(CPU, 0):.0f}m", MEMORY: f"{amounts.get(MEMORY, 0):.0f}"}
    rates = {name: f"{amount:.0f}" for name, amount in amounts.items() if name in IO_DIMENSIONS}
    metadata = {"name": uid, "namespace": "simulated", "uid": uid, "resourceVersion": "1"}
    metadata["annotations"] = {"dovetail.dev/demand": json.dumps(rates)}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]}}


def drawn(shapes, random):
    """Return the capacity [N, 6] of machines of these shapes, and what is allocated: a part of that."""
    capacity = np.array([shapes[place] for place in random.integers(0, len(shapes), NODES)])
    offered = np.where(np.isfinite(capacity), capacity, 1e9)
    return capacity, np.floor(offered * random.choice([0.0, 0.2, 0.5, 0.9, 1.0], (NODES, 6)))


def work(random):
    """Return classes of all kinds: some read blocks, some shuffle, some neither."""
    classes = []
    for kind in ("none", "blocks", "spread") * 3:
        size = row(*np.floor(random.uniform(0, 8, 2)), 0, random.integers(0, 60))
        count, reading, inputs = int(random.integers(1, 6)), float(random.integers(0, 60)), None
        if kind == "blocks":
            inputs = blocks(NODES, *[random.choice(NODES, 3, replace=False).tolist() for _ in range(count)])
        elif kind == "spread":
            inputs, reading = Shuffle(np.arange(0, NODES, 2), np.full(NODES // 2, 1e6)), NODES / 2
        classes.append(Class(count, size, reading=reading, inputs=inputs))
    return waiting(*classes)


@pytest.mark.parametrize("placement", [Placement(), Placement("dot", 0.0), Placement("l2-norm-ratio", 0.1)], ids=str)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_the_same_nodes_pass_and_get_the_same_levels(shapes, placement, seed):
    random = np.random.default_rng(seed)
    capacity, allocated = drawn(SHAPES[shapes], random)
    snapshot, waits, stand_in = cluster(*capacity, allocated=allocated), work(random), WithExtender(placement=placement)
    names = snapshot.layout.names
    http = Http(names, capacity, placement)
    for name, held in zip(names, allocated, strict=True):
        http.bound(f"held-{name}", name, held)
    for task_class, demand in zip(waits.names, demanded(waits), strict=True):
        pod = pod_of(task_class, demand)
        rows = stand_in.filter(snapshot, pod, np.arange(NODES))
        passed = http.filter(written(task_class, demand), list(names))
        assert passed == [names[node] for node in rows]
        levels = stand_in.prioritize(snapshot, pod, rows)
        assert http.prioritize(written(task_class, demand), passed) == dict(zip(passed, levels.tolist(), strict=True))
        http.ledger.forget(task_class)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_pod_by_pod_the_stand_in_takes_a_node_that_the_verbs_put_first(shapes, seed):
    """Every placement of a plan is asked again over HTTP, once the ledger has heard of those before it."""
    random = np.random.default_rng(100 + seed)
    capacity, allocated = drawn(SHAPES[shapes], random)
    snapshot, waits = cluster(*capacity, allocated=allocated), local(work(random))
    names, declared = snapshot.layout.names, demanded(waits)
    http = Http(names, capacity, Placement())
    for name, held in zip(names, allocated, strict=True):
        http.bound(f"held-{name}", name, held)
    chosen = WithExtender(seed).plan(snapshot, waits, 0.0).assignments
    for number, (task_class, node) in enumerate(zip(chosen.task_class.tolist(), chosen.node.tolist(), strict=True)):
        uid, demand = f"pod-{number}", declared[task_class]
        levels = http.prioritize(written(uid, demand), http.filter(written(uid, demand), list(names)))
        assert levels[names[node]] == max(levels.values())
        http.bound(uid, names[node], demand)
    placed = np.bincount(chosen.task_class, minlength=len(declared))
    for task_class in np.flatnonzero(placed < waits.count).tolist():
        assert http.filter(written(f"left-{task_class}", declared[task_class]), list(names)) == []
    assert placed.any()


def local(waits):
    """Return the same classes, all reading where they run: what a pod declares is then all that it takes."""
    return waiting(
        *(
            Class(int(count), demand, reading=reading / 1e6)
            for count, demand, reading in zip(waits.count, waits.demand, waits.reading, strict=True)
        )
    )
