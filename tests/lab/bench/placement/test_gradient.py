"""Fragmentation gradient descent, with numbers by hand."""

import numpy as np

from extender.cluster.ledger.layout import layout_of
from extender.cluster.model import Node, Pod
from lab.bench.placement.gradient import Gradient
from lab.bench.placement.traces import GPU, PodShape, TraceCluster

NODES = {name: Node(name, {"cpu": 8.0, "memory": 8.0, GPU: 2000.0}) for name in ("a", "b")}
LAYOUT = layout_of(NODES)


def task(gpus, milli, models=(), cpu=1.0):
    return PodShape(
        Pod("u", "t", "p", {"cpu": cpu, "memory": 1.0, GPU: float(gpus * milli)}), gpus, milli, models=models
    )


def scores(tasks, gpus, asked, allocated=None, models=("x", "y")):
    workload = TraceCluster("made", tuple(NODES.values()), tasks, {}, dict(zip(NODES, models, strict=True)))
    taken = np.zeros(LAYOUT.capacity.shape) if allocated is None else allocated
    return Gradient(workload, LAYOUT).scores(taken, np.array(gpus), asked, np.array([0, 1])).tolist()


def score_of(more):
    """Return the score where so many GPUs more become a fragment."""
    return np.floor(100 / (1 + np.exp(more)))


def test_a_part_goes_where_a_gpu_is_begun_already():
    # Half of the pods ask for whole GPUs. On a half a GPU is a fragment to them, which goes; on b one becomes one.
    tasks = (task(1, 1000), task(1, 500))
    assert scores(tasks, [[1000, 500], [1000, 1000]], tasks[1]) == [score_of(-0.5 / 2), score_of(0.5 / 2)]


def test_a_node_whose_cores_run_out_strands_its_gpus():
    tasks = (task(1, 1000, cpu=4.0), task(0, 0, cpu=2.0))
    allocated = np.zeros(LAYOUT.capacity.shape)
    allocated[0, LAYOUT.columns["cpu"]] = 4.0
    # Two cores of a's last four: a GPU pod, half of all pods, could use neither of its two GPUs then.
    assert scores(tasks, [[1000, 1000], [1000, 1000]], tasks[1], allocated) == [score_of(2 / 2), score_of(0.0)]


def test_a_model_that_a_pod_does_not_take_is_a_fragment_to_it():
    # Nobody but the pod itself: on a one GPU of two was a fragment to half of the pods, and goes.
    tasks = (task(1, 1000, models=("y",)), task(1, 1000))
    assert scores(tasks, [[1000, 1000], [1000, 1000]], tasks[1]) == [score_of(-1 / 2), score_of(0.0)]


def test_what_was_worked_out_is_kept_only_until_the_node_changes():
    tasks = (task(1, 1000), task(1, 500))
    workload = TraceCluster("made", tuple(NODES.values()), tasks, {}, {})
    gradient, rows = Gradient(workload, LAYOUT), np.array([0, 1])
    before = np.zeros(LAYOUT.capacity.shape)
    first = gradient.scores(before, np.array([[1000, 1000], [1000, 1000]]), tasks[1], rows)
    after = before.copy()
    after[0, LAYOUT.columns[GPU]] = 500.0
    second = gradient.scores(after, np.array([[500, 1000], [1000, 1000]]), tasks[1], rows)
    assert (first.tolist(), second.tolist()) == ([score_of(0.25)] * 2, [score_of(-0.25), score_of(0.25)])
