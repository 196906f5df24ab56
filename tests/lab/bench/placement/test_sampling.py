import numpy as np

from extender.cluster.model import Node, Pod
from extender.verdict import Placement
from lab.bench.placement.packing import MeasuredWorkload
from lab.bench.placement.sampling import Rotation, measure
from lab.bench.placement.traces import PodShape, TraceCluster


def test_a_search_ends_once_enough_nodes_fit_and_the_next_begins_there():
    rotation, fits = Rotation(2), np.array([True, False, True, True, True])
    assert rotation(fits).tolist() == [0, 2]
    assert rotation(fits).tolist() == [3, 4]
    assert rotation(fits).tolist() == [0, 2]  # round and round


def test_a_search_goes_over_the_end_of_the_list():
    rotation = Rotation(2)
    rotation(np.array([True, True, True, True]))
    assert rotation(np.array([True, False, False, True])).tolist() == [0, 3]


def test_where_too_few_nodes_fit_all_were_looked_at_and_the_next_search_begins_where_this_one_did():
    rotation = Rotation(2)
    rotation(np.array([True, True, True, True]))
    assert rotation(np.array([False, True, False, False])).tolist() == [1]
    assert rotation(np.array([True, True, True, True])).tolist() == [2, 3]


def test_a_node_that_does_not_fit_is_passed_by_once():
    rotation = Rotation(1)
    assert rotation(np.array([True, False, True])).tolist() == [0]
    assert rotation(np.array([True, True, True])).tolist() == [2]  # node 1 was looked at by the first search


def scene(capacities, tasks):
    nodes = tuple(Node(f"node-{number}", capacity) for number, capacity in enumerate(capacities))
    return MeasuredWorkload(TraceCluster("made", nodes, tuple(tasks), {}), "cpu", "cpu_allocated", (100,), "made up")


def task(**demand):
    return PodShape(Pod("u", "trace", "pod", dict(demand)))


def test_a_sample_that_misses_the_node_of_the_right_shape_costs_room():
    # One node is for pods of 4 GB a core, the other for those of 1. Chosen from both, each pod goes to its like.
    # From a sample of one it goes by turns to either, whatever its shape, and what is left has the wrong proportions.
    made = scene(
        [{"cpu": 16.0, "memory": 64.0}, {"cpu": 16.0, "memory": 16.0}], [task(cpu=1.0, memory=m) for m in (4.0, 1.0)]
    )
    rows = {row.id: row for row in measure(made, Placement(), [1, 2], range(5), lambda: None).rows}
    of_all, of_one, of_two = (rows[f"choice.quality.{name}.cpu_allocated.100"] for name in ("all", "1", "2"))
    assert of_one.ours < of_all.ours - 1
    assert of_two.ours == of_all.ours
    assert of_two.note.endswith("; +0.00 against all")
    assert of_one.note.endswith(f"; {of_one.ours - of_all.ours:+.2f} against all")


def test_every_replay_is_counted():
    counted = []
    made = scene([{"cpu": 2.0, "memory": 2.0}], [task(cpu=1.0, memory=1.0)])
    measure(made, Placement(), [1], [3, 4], lambda: counted.append(1))
    assert len(counted) == 2 * 2  # all and the sample, by two seeds
