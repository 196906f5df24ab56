"""One pod of which nothing new is known does not make its node unknown."""

from extender.adapters.usage.trust import SampleLimits, Tally, judged
from extender.cluster.model import Node, Pod

NOW = 1_000.0


def test_an_opportunistic_pod_that_waits_to_start_again_is_left_out_alone():
    node, tally = Node("n1", {"cpu": 8_000.0, "memory": 16e9}), Tally()
    for book, name, age, cpu in ((tally.nodes, "n1", 10, 3), (tally.pods_on, "n1", 10, 2), (tally.pods, "good", 10, 1)):
        for what, value in {"cpu": float(cpu), "memory": 8e9, "time": NOW - age}.items():
            tally.put(book, name, what, value)
    tally.put(tally.pods, "crashed", "time", NOW - 100)  # its last raw sample; its CPU has no rate any more
    pods = [Pod(uid, "d", uid, {"cpu": 1.0}, node="n1", opportunistic=True) for uid in ("good", "crashed")]
    usage = judged(tally, [node], pods, SampleLimits(NOW, NOW - 60, 90.0, 60.0))
    assert (usage.problems, set(usage.nodes), set(usage.pods)) == ({}, {"n1"}, {"good"})
    tally.put(tally.pods, "good", "memory", -1.0)  # what cannot be is a sign that the others cannot be believed either
    assert judged(tally, [node], pods, SampleLimits(NOW, NOW - 60, 90.0, 60.0)).problems.keys() == {"n1"}
