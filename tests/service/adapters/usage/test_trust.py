"""What is believed of samples of a node, its pods and single pods."""

import pytest

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


def looked_at(node=(3, 8e9), pods_on=(2, 8e9), pod=(1, 8e9), age=10.0):
    """Return what is believed of a node of 8 cores and 16 GB, by (cores, bytes) of it, its pods and one pod."""
    tally = Tally()
    for book, name, (cpu, memory) in (
        (tally.nodes, "n1", node),
        (tally.pods_on, "n1", pods_on),
        (tally.pods, "one", pod),
    ):
        for what, value in {"cpu": cpu, "memory": memory, "time": NOW - age}.items():
            tally.put(book, name, what, value)
    offers = Node("n1", {"cpu": 8_000.0, "memory": 16e9})
    pods = [Pod("one", "d", "one", {"cpu": 1.0}, node="n1", opportunistic=True)]
    return judged(tally, [offers], pods, SampleLimits(NOW, NOW - 60, 90.0, 60.0))


@pytest.mark.parametrize(
    "values",
    [
        {"age": -9.0},  # clocks may differ by 10 s
        {"age": 89.0},
        {"node": (3, 8e9), "pods_on": (4.4, 8e9)},  # less than 1.5 times the whole: they are means of other moments
        {"node": (0.1, 8e9), "pods_on": (0.8, 8e9)},  # more, but by no more than a tenth of 8 cores
    ],
)
def test_what_may_be_so_is_believed(values):
    usage = looked_at(**values)
    assert (usage.problems, set(usage.nodes), set(usage.pods)) == ({}, {"n1"}, {"one"})


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"age": -11.0}, "newest sample is from the future: clocks differ"),
        ({"age": 91.0}, "newest sample is older than 90 s"),
        ({"node": (3, 0.0)}, "cpu or memory in use is exactly 0: what measures it stands still"),
        ({"node": (3, -1.0), "pod": (-1, 8e9)}, "memory is negative"),  # its own, before that of a pod
    ],
)
def test_what_cannot_be_so_is_said_of_the_node(values, problem):
    usage = looked_at(**values)
    assert (usage.problems, set(usage.nodes), set(usage.pods_on), set(usage.pods)) == ({"n1": problem}, *[set()] * 3)
