"""Plans leave room for load that no pod accounts for."""

from extender.cluster.events import NodeGone, NodeSeen, NodesListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node
from extender.cluster.usage import Sample, Usage
from extender.control.idle_room.load_besides_pods import LoadBesidesPods

NOW = 100.0


def sample(cpu, memory=0.0):
    return Sample({"cpu": cpu, "memory": memory}, NOW - 10, NOW)


class Scene:
    def __init__(self):
        self.ledger = Ledger(in_flight_seconds=15.0)
        self.ledger.apply(NodesListed(tuple(Node(name, {"cpu": 4000.0, "memory": 100.0}) for name in ("a", "b"))))
        self.usage = Usage()
        self.load = LoadBesidesPods(self.ledger, lambda: self.usage)

    def step(self):
        self.load.step(self.ledger.snapshot(0.0).layout)

    def taken(self):
        snapshot = self.ledger.snapshot(0.0)
        return dict(zip(snapshot.layout.names, snapshot.allocated[:, 0].tolist(), strict=True))


def test_a_load_counts_on_its_node_until_a_look_says_that_it_is_gone():
    scene = Scene()
    scene.usage = Usage({"a": sample(3000.0), "b": sample(1000.0)}, {"a": sample(1000.0), "b": sample(1000.0)})
    scene.step()
    assert scene.taken() == {"a": 2000.0, "b": 0.0}
    assert scene.load.by_node == {"a": {"cpu": 2000.0}}
    scene.usage = Usage({"a": sample(1000.0)}, {"a": sample(1000.0)})
    scene.step()
    assert scene.taken() == {"a": 0.0, "b": 0.0}


def test_where_nothing_is_measured_any_more_no_load_counts_so_that_regular_work_goes_on():
    scene = Scene()
    scene.usage = Usage({"a": sample(3000.0)}, {"a": sample(1000.0)})
    scene.step()
    scene.usage = Usage(problems={"a": "no series"})
    scene.step()
    assert scene.taken() == {"a": 0.0, "b": 0.0}


def test_a_node_that_goes_and_one_that_comes_are_no_matter():
    scene = Scene()
    scene.usage = Usage({"b": sample(3000.0)}, {"b": sample(1000.0)})
    scene.step()
    scene.ledger.apply(NodeGone("a"))
    scene.ledger.apply(NodeSeen(Node("c", {"cpu": 4000.0, "memory": 100.0})))
    scene.step()
    assert scene.taken() == {"b": 2000.0, "c": 0.0}
