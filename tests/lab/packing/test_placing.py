"""Classes are placed as their tasks would be, one after the other, and always within what machines have."""

from itertools import permutations

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.ledger.mix import DeviceAskers
from extender.cluster.ledger.snapshot import Nominations, Snapshot
from extender.cluster.model import Pod
from extender.policy.alignment import offered
from extender.verdict import Placement, Ranker, judge
from lab.packing.model import problem_of
from lab.packing.orders import order_of
from lab.packing.placing import pack
from lab.packing.rules import RULES as EVERY_RULE
from lab.packing.rules import Sought, best_fit, held, rank_of, sought_of, weight_of_sought
from tests.lab.packing.small import GIB, drawn, everywhere, node, task

RULES = list(EVERY_RULE)


def tasks_on(problem, packing):
    """Return how many tasks of each class are on each machine [C, M]."""
    counts = np.zeros((len(problem.classes.count), problem.machines), dtype=int)
    for part in packing.placed:
        counts[part.task_class, part.machines] += part.count
    return counts


def ranking(problem, rule, allocated):
    """Return the rank of a rule, and the machines with this allocated [M, R], for it."""
    rank, devices = rank_of(rule, problem, np.arange(len(problem.layout.axis)))
    weight = weight_of_sought(allocated[:, devices].sum(axis=0), problem.capacity[:, devices].sum(axis=0))
    return rank, held(allocated, offered(problem.packed), Sought(sought_of(problem, devices), weight))


def one_by_one(problem, order, rule):
    """Place task after task on the machine that ranks highest, the first of equal ones; return counts [C, M]."""
    classes = problem.classes
    counts = np.zeros((len(classes.count), problem.machines), dtype=int)
    for row in order:
        for _ in range(classes.count[row]):
            allocated = counts.T @ classes.demand
            fits = classes.masks[classes.mask[row]] & (allocated + classes.demand[row] <= problem.capacity).all(axis=1)
            if classes.group[row] >= 0:
                same = classes.group == classes.group[row]
                fits &= counts[same].sum(axis=0) < classes.at_most[row]
            if not fits.any():
                break
            rank, machines = ranking(problem, rule, allocated)
            ranks = rank(classes.demand[row], machines)
            counts[row, np.where(fits, ranks, -np.inf).argmax()] += 1
    return counts


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(12))
def test_a_class_goes_where_its_tasks_would_go_one_by_one(rule, seed):
    problem = drawn(seed)
    order = order_of(problem, "arrival")
    packing = pack(problem, everywhere(problem), order, rule)
    np.testing.assert_array_equal(tasks_on(problem, packing), one_by_one(problem, order, rule))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(20, 30))
def test_a_placement_is_feasible_and_counts_every_task_once(rule, seed):
    problem = drawn(seed, machines=150, classes=60, most=40)
    classes = problem.classes
    draw = np.random.default_rng(seed)
    machines = draw.permutation(problem.machines)[:100]
    packing = pack(problem, machines, order_of(problem, "sum"), rule, draw=draw)
    counts = tasks_on(problem, packing)
    assert (counts.T @ classes.demand <= problem.capacity).all()
    np.testing.assert_allclose((counts.T @ classes.demand)[machines], packing.allocated)
    assert not counts[~classes.masks[classes.mask]].any()
    assert not np.delete(counts, machines, axis=1).any()
    assert counts.sum() + packing.pending == classes.tasks
    for group in set(classes.group.tolist()) - {-1}:
        same = classes.group == group
        assert (counts[same].sum(axis=0) <= classes.at_most[same].max()).all()


@pytest.mark.parametrize("order", ["arrival", "cpu", "memory", "sum"])
@pytest.mark.parametrize("seed", range(5))
def test_first_fit_without_constraints_never_places_less_on_a_longer_prefix(order, seed):
    problem = drawn(seed, machines=30, classes=40, plain=True)
    machines = np.random.default_rng(seed).permutation(problem.machines)
    pending = [pack(problem, machines[:size], order_of(problem, order), "first-fit").pending for size in range(1, 31)]
    assert pending == sorted(pending, reverse=True)
    assert pending[0] > pending[-1]


@pytest.mark.parametrize("rule", RULES)
def test_equal_tasks_fill_equal_machines_as_the_arithmetic_says(rule):
    # A machine takes min(4000 / 1000, 8 / 3 rounded down) = 2 tasks: five machines take 10 of 11.
    problem = problem_of([node(f"n{row}") for row in range(5)], [task(1000, 3)] * 11)
    packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), rule)
    assert packing.pending == 1
    assert (packing.allocated[:, 0] == 2000).all()


@pytest.mark.parametrize("gpus", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_dovetail_chooses_among_the_nodes_that_the_services_ranking_puts_first(seed, gpus):
    problem = drawn(seed, classes=5, most=4, plain=True, gpus=gpus)
    layout, classes = problem.layout, problem.classes
    packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), "dovetail")
    # The next task, of class 0: the service is asked about the same nodes as they are now, and has seen all tasks.
    allocated, askers = packing.allocated, DeviceAskers()
    for number in np.repeat(np.arange(len(classes.count)), classes.count).tolist():
        askers.add(asking(layout, classes.demand[number]), 1)
    nobody = Nominations((), np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64), np.zeros((0, len(layout.axis))))
    snapshot = Snapshot(
        0,
        0,
        layout,
        allocated=allocated,
        in_flight=np.zeros_like(allocated),
        nominations=nobody,
        mix=askers.mix(layout.axis, layout.names, {}),
    )
    pod = asking(layout, classes.demand[0])
    rows = np.flatnonzero(judge(snapshot, pod).passed)
    rank, machines = ranking(problem, "dovetail", allocated)
    ranks = rank(classes.demand[0], machines.at(rows))
    assert set(rows[ranks == ranks.max(initial=-np.inf)]) == set(
        Ranker(Placement()).best(snapshot, pod, rows) if len(rows) else ()
    )


def test_dovetail_leaves_devices_to_those_who_have_no_others():
    nodes = [node(f"{model}{row}", gpus=4, labels={"model": model}) for model in "xy" for row in range(2)]
    anybody = [task(100, gpus=1, arrived=1.0, job="anywhere")] * 8
    only_x = [task(100, gpus=1, arrived=2.0, job="x", constraints=Constraints(selector=(("model", "x"),)))] * 8
    problem = problem_of(nodes, anybody + only_x)
    packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), "dovetail")
    assert packing.pending == 0
    assert tasks_on(problem, packing).tolist() == [[0, 0, 4, 4], [4, 4, 0, 0]]


def asking(layout, demand):
    amounts = dict(zip(layout.axis, demand.tolist(), strict=True))
    return Pod(uid="u", namespace="n", name="p", demand={name: amount for name, amount in amounts.items() if amount})


def test_ties_are_broken_by_the_draw_for_kube_schedulers_scores_and_never_for_first_fit():
    problem = problem_of([node(f"n{row:02}") for row in range(40)], [task()])
    machines, order = everywhere(problem), order_of(problem, "arrival")
    chosen = {
        rule: {
            int(pack(problem, machines, order, rule, draw=np.random.default_rng(seed)).placed[0].machines[0])
            for seed in range(10)
        }
        for rule in ("stock", "first-fit")
    }
    assert chosen["first-fit"] == {0}
    assert len(chosen["stock"]) > 1


def test_placing_gives_up_once_too_many_tasks_are_pending():
    problem = problem_of([node("n")], [task(8000, job="a")] * 3 + [task(1000, job="b", arrived=1.0)])
    packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), "first-fit", give_up_above=2)
    assert (packing.pending, packing.complete, len(packing.placed)) == (3, False, 1)


def test_sum_divides_by_the_median_machine():
    # The median machine has 4 cores and 8 GiB: 3 cores are 0.75 of it, and 1 core with 5 GiB is 0.25 + 0.625 = 0.875.
    nodes = [node("a"), node("b"), node("c", cpu=64_000, gib=8)]
    problem = problem_of(nodes, [task(3000, 0.0, job="cpu"), task(1000, 5, job="both", arrived=1.0)])
    assert [problem.classes.job[row] for row in order_of(problem, "sum")] == ["both", "cpu"]
    assert [problem.classes.job[row] for row in order_of(problem, "cpu")] == ["cpu", "both"]
    assert problem.capacity[0, 1] == 8 * GIB


def test_best_fit_takes_the_first_of_machines_that_are_equally_full():
    """Three dimensions of one size that hold 1, 2 and 3 in any order: their mean differs in the last digit only."""
    orders = np.array(list(permutations([1.0, 2.0, 3.0])))
    nothing = Sought(np.zeros((len(orders), 0)), np.ones(0))
    for capacity in (5.0, 9.0, 12.0):
        machines = held(orders, offered(np.full(orders.shape, capacity)), nothing)
        assert len(set(best_fit(np.zeros(3), machines).tolist())) == 1
