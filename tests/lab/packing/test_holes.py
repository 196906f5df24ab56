"""Holes are counted a machine at a time, in units of CPU and memory together."""

import numpy as np

from extender.cluster.model import Node
from lab.packing.holes import fill, stranded, unit_of_median, unit_of_tasks, utilisation
from lab.packing.model import problem_of
from tests.lab.packing.small import GIB, node, task


def test_units_fill_the_holes_and_not_what_is_too_small_or_stranded():
    # n0 has 3 cores and 1 GiB left: one unit of 1 core and 1 GiB. n1 has all 4 and 8: four. n2 has no core left.
    nodes = [node("n0"), node("n1"), node("n2")]
    tasks = [task(1000, 7, node="n0"), task(4000, 1, node="n2")]
    problem = problem_of(nodes, tasks)
    found = fill(problem, problem.allocated, np.array([1000.0, GIB]))
    assert found.units.tolist() == [1, 4, 0]
    np.testing.assert_allclose(found.before, [5 / 12, 8 / 24])
    np.testing.assert_allclose(found.after, [10 / 12, 13 / 24])


def test_a_unit_can_be_another_one_on_each_machine():
    problem = problem_of([node("n0"), node("n1", cpu=8000, gib=16)], [])
    found = fill(problem, problem.allocated, 0.3 * problem.capacity[:, :2])
    assert found.units.tolist() == [3, 3]


def test_a_unit_takes_a_place_for_a_pod():
    machine = Node("n0", {"cpu": 4000.0, "memory": 8 * GIB, "pods": 2.0})
    problem = problem_of([machine], [])
    assert fill(problem, problem.allocated, np.array([1000.0, GIB])).units.tolist() == [2]


def test_over_allocated_machines_have_no_room_and_no_negative_room():
    problem = problem_of([node("n0")], [task(5000, 1, node="n0")])
    found = fill(problem, problem.allocated, np.array([1000.0, GIB]))
    assert found.units.tolist() == [0]
    assert found.before[0] == 1.25


def test_units_are_a_part_of_the_median_machine_or_a_percentile_of_what_tasks_demand():
    problem = problem_of([node("a"), node("b"), node("c", cpu=64_000)], [task(1000, 1)] * 9 + [task(3000, 5)])
    np.testing.assert_allclose(unit_of_median(problem, 0.5), [2000, 4 * GIB])
    np.testing.assert_allclose(unit_of_tasks(problem, 50), [1000, GIB])


def test_what_strands_is_what_there_is_no_unit_of():
    problem = problem_of([node("a"), node("b"), node("c")], [task(0, 8, node="a"), task(4000, 1, node="b")])
    of_cpu, of_memory = stranded(problem, problem.allocated, np.array([500.0, GIB]))
    assert of_cpu.tolist() == [True, False, False]
    assert of_memory.tolist() == [False, True, False]


def test_what_leaves_with_a_machine_is_no_part_of_what_it_offers():
    problem = problem_of([node("a")], [task(1500, 4, node="a")], [task(1000, 0, node="a")])
    np.testing.assert_allclose(utilisation(problem, problem.allocated), [0.5, 0.5])
