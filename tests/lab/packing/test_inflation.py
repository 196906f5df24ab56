"""A workload grows until it no longer fits."""

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints
from lab.packing.compaction import Policy
from lab.packing.inflation import MOST, by_chance, horizontal, inflate, most, picky, vertical
from lab.packing.model import problem_of
from lab.packing.rules import RULES as EVERY_RULE
from tests.lab.packing.small import GIB, node, task

ALL = np.arange(1)


def four_machines(tasks):
    return problem_of([node(f"n{row}") for row in range(4)], tasks)


@pytest.mark.parametrize("rule", list(EVERY_RULE))
def test_horizontal_inflation_ends_where_the_machines_are_full(rule):
    # 16 tasks of a core fit; there are 8.
    found = most(four_machines([task(1000, 1)] * 8), "horizontal", ALL, Policy("arrival", rule), tau=0.0)
    assert found is not None
    assert found.factor == 2.0
    np.testing.assert_allclose(found.used, [1.0, 0.5])


def test_vertical_inflation_ends_where_the_tasks_are_too_large():
    # Two tasks on each machine: a task may grow to 2 cores (from 1.25) or 4 GiB (from 2): by 1.6, and not by 1.61.
    found = most(four_machines([task(1250, 2)] * 8), "vertical", ALL, Policy(), tau=0.0)
    assert found is not None
    assert found.factor == 1.6


def test_part_of_the_tasks_may_be_pending():
    problem = four_machines([task(1000, 1)] * 8)
    without = inflate(problem, "horizontal", 2.5, ALL, Policy())
    assert without.pending == 4 / 20
    found = most(problem, "horizontal", ALL, Policy(), tau=0.2)
    assert found is not None
    assert found.factor == 2.5


def test_horizontal_inflation_clones_jobs_and_keeps_their_groups_apart():
    problem = problem_of([node("a"), node("b")], [task(100, 1, group="g")] * 2)
    larger = horizontal(problem, 1.5, ALL)
    assert larger.classes.count.tolist() == [2, 1]
    assert larger.classes.group[0] != larger.classes.group[1]
    assert inflate(problem, "horizontal", 2.0, ALL, Policy()).pending == 0.0


def test_vertical_inflation_ends_at_the_largest_machine():
    problem = problem_of([node("a"), node("b", cpu=8000)], [task(3000, 1)])
    assert vertical(problem, 10.0, ALL).classes.demand[0, :2].tolist() == [8000, 8 * GIB]


def test_tasks_that_all_may_be_as_large_as_a_machine_grow_no_more_than_is_tried():
    # One task on each machine: none is larger than the machine, so all factors fit.
    found = most(four_machines([task(1000, 1)] * 4), "vertical", ALL, Policy(), tau=0.0)
    assert found is not None
    assert found.factor == MOST == 64.0


def test_a_workload_that_does_not_fit_as_it_is_cannot_be_inflated():
    assert most(four_machines([task(1000, 1)] * 17), "horizontal", ALL, Policy(), tau=0.0) is None


def test_tasks_are_picky_that_are_large_or_may_go_to_few_machines():
    nodes = [node(f"n{row}", labels={"disk": "ssd"} if row < 2 else {}) for row in range(4)]
    to_ssd = Constraints(selector=(("disk", "ssd"),))
    tasks = [task(2500, 1, job="large"), task(1000, 1, job="few", constraints=to_ssd), task(2400, 1, job="neither")]
    large, few = picky(problem_of(nodes, tasks))
    assert large.tolist() == [True, False, False]
    assert few.tolist() == [False, True, False]


def test_cloning_jobs_at_random_ends_at_the_first_pending_tasks_and_says_what_is_used():
    found = by_chance(four_machines([task(1000, 1)] * 8), ALL, Policy(), tau=0.0)
    assert found.factor == 2.0  # 8 + 8 fill the machines; the clone after is pending
    assert found.pending == 8 / 24
    np.testing.assert_allclose(found.used, [1.0, 0.5])


def test_cloning_ends_where_nothing_is_ever_pending():
    found = by_chance(four_machines([task(0, 0)]), ALL, Policy(), tau=0.0)
    assert found.factor == 64.0
