"""Compaction finds how few machines are enough; the bound says how few could be."""

import math
from functools import cache

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints
from lab.packing.bound import fewest_machines
from lab.packing.compaction import CompactionLimits, Policy, compact
from lab.packing.model import problem_of
from lab.packing.orders import order_of
from lab.packing.placing import pack
from lab.packing.rules import RULES as EVERY_RULE
from tests.lab.packing.small import drawn, everywhere, node, task

RULES = list(EVERY_RULE)
ZONE_A = Constraints(selector=(("zone", "a"),))


def fits_somehow(problem, machines, pending):
    """Say by trying everything whether these machines hold all tasks but so many."""
    classes = problem.classes
    tasks = [row for row, count in enumerate(classes.count.tolist()) for _ in range(count)]
    capacity = np.where(np.isfinite(problem.capacity), problem.capacity, 1e18)

    @cache
    def rest(place, held, left_out):
        if place == len(tasks):
            return True
        row = tasks[place]
        if left_out < pending and rest(place + 1, held, left_out + 1):
            return True
        for index, machine in enumerate(machines):
            on_it = [*held[index], row]
            same = [one for one in on_it if classes.group[one] >= 0 and classes.group[one] == classes.group[row]]
            if (
                classes.masks[classes.mask[row], machine]
                and (classes.demand[on_it].sum(axis=0) <= capacity[machine]).all()
                and len(same) <= max(classes.at_most[row], 0 if same else 1)
                and rest(place + 1, (*held[:index], tuple(on_it), *held[index + 1 :]), left_out)
            ):
                return True
        return False

    return rest(0, tuple(() for _ in machines), 0)


@pytest.mark.parametrize("seed", range(15))
def test_no_placement_at_all_beats_the_bound_and_no_rule_beats_the_best_placement(seed):
    problem = drawn(seed, machines=4, classes=3, most=2)
    machines = np.random.default_rng(seed).permutation(4)
    pending = seed % 2
    enough = [size for size in range(5) if fits_somehow(problem, tuple(machines[:size].tolist()), pending)]
    best = enough[0] if enough else 5
    assert fewest_machines(problem, machines, pending) <= best
    for rule in RULES:
        for size in range(5):
            packing = pack(problem, machines[:size], order_of(problem, "sum"), rule)
            assert packing.pending > pending or size >= best


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_for_the_same_permutations_never_exceeds_the_sizes(rule, seed):
    problem = drawn(seed, machines=60, classes=25, most=8)
    found = compact(problem, Policy("arrival", rule), CompactionLimits(tau=0.02, trials=5, seed=seed))
    assert found is not None
    assert (found.bounds <= found.sizes).all()
    assert (found.sizes >= 1).all()


def test_the_bound_by_number_sees_that_large_tasks_do_not_share_a_machine():
    # By volume 5 x 3 / 4 = 3.75 machines; but no machine of 4 cores takes two tasks of 3.
    problem = problem_of([node(f"n{row}") for row in range(10)], [task(3000, 0)] * 5)
    assert fewest_machines(problem, everywhere(problem), 0) == 5
    assert fewest_machines(problem, everywhere(problem), 2) == 3


def test_the_bound_looks_at_the_machines_that_tasks_are_bound_to():
    # Zone a is every second machine: n0, n2, n4, ...; three full machines of it end at n4, the fifth.
    nodes = [node(f"n{row}", labels={"zone": "ab"[row % 2]}) for row in range(10)]
    problem = problem_of(nodes, [task(4000, 0, constraints=ZONE_A)] * 3)
    assert fewest_machines(problem, everywhere(problem), 0) == 5


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("tasks", "tau"), [(40, 0.0), (41, 0.0), (100, 0.0), (100, 0.05)])
def test_equal_machines_and_tasks_are_compacted_to_what_the_arithmetic_says(rule, tasks, tau):
    # Four tasks of a core on each machine of four.
    problem = problem_of([node(f"n{row:02}") for row in range(30)], [task(1000, 1)] * tasks)
    found = compact(problem, Policy("arrival", rule), CompactionLimits(tau=tau, trials=3))
    assert found is not None
    assert set(found.sizes.tolist()) == {math.ceil((tasks - int(tau * tasks)) / 4)}
    assert (found.bounds == found.sizes).all()
    assert found.times == 1


def test_a_cluster_that_is_too_small_is_grown_by_clones_of_itself():
    problem = problem_of([node(f"n{row}") for row in range(3)], [task(1000, 1)] * 31)
    found = compact(problem, Policy(), CompactionLimits(tau=0.0, trials=3))
    assert found is not None
    assert (found.times, found.percentile) == (4, 8)  # 6 machines hold 24 tasks, 12 hold 48; 31 / 4 is more than 7


def test_a_workload_that_fits_on_no_number_of_machines_has_no_compacted_size():
    assert compact(problem_of([node("n")], [task(5000)]), Policy(), CompactionLimits(tau=0.0)) is None


def test_a_larger_error_bound_stops_the_search_at_most_that_far_above():
    problem = drawn(3, machines=60, classes=25, most=8, plain=True)
    exact = compact(problem, Policy(), CompactionLimits(trials=4))
    rough = compact(problem, Policy(), CompactionLimits(trials=4, mu=5))
    assert exact is not None
    assert rough is not None
    assert ((rough.sizes - exact.sizes >= 0) & (rough.sizes - exact.sizes < 5)).all()
    assert (rough.sizes > exact.sizes).any()


def test_first_fit_without_constraints_has_no_neighbour_that_disagrees():
    found = compact(drawn(5, machines=60, classes=25, most=8, plain=True), Policy(), CompactionLimits(trials=11))
    assert found is not None
    assert found.looked > 0
    assert found.disagree == 0


@pytest.mark.parametrize("seed", range(6))
def test_first_fit_finds_the_first_prefix_that_holds_the_workload_when_each_is_tried(seed):
    problem = drawn(seed, machines=70, classes=20, most=8)
    pending = int(0.02 * problem.classes.tasks)
    found = compact(problem, Policy(), CompactionLimits(tau=0.02, trials=1, seed=seed))
    assert found is not None
    assert found.times == 1
    machines = np.random.default_rng([seed, 0]).permutation(problem.machines)
    order = order_of(problem, "arrival")
    sizes = [size for size in range(71) if pack(problem, machines[:size], order, "first-fit").pending <= pending]
    assert found.sizes.tolist() == [min([*sizes, 71])]


def test_a_packing_that_is_not_monotone_is_seen_by_its_neighbours():
    found = compact(drawn(0, 80, 40, 8), Policy("arrival", "stock"), CompactionLimits(tau=0.0, trials=4))
    assert found is not None
    assert found.disagree > 0


def test_trials_come_out_the_same_each_time():
    problem = drawn(1, machines=40, classes=20)
    twice = [compact(problem, Policy("sum", "dovetail"), CompactionLimits(trials=3, seed=7)) for _ in range(2)]
    assert twice[0] is not None
    assert twice[1] is not None
    assert twice[0].sizes.tolist() == twice[1].sizes.tolist()
