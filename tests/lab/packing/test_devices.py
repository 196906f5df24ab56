"""A part of a device must fit on one device, and who asks for more gets whole ones."""

from functools import cache

import numpy as np
import pytest

from extender.cluster.model import Node
from lab.packing.bound import fewest_machines
from lab.packing.compaction import CompactionLimits, Policy, compact
from lab.packing.devices import PARTS, devices_of
from lab.packing.misfits import without_misfits
from lab.packing.model import problem_of
from lab.packing.orders import order_of
from lab.packing.placing import pack
from lab.packing.rules import RULES as EVERY_RULE
from lab.packing.task import PackingTask
from tests.lab.packing.small import GIB, GPU, PARTS_OF_GPU, everywhere
from tests.lab.packing.test_placing import ranking, tasks_on

RULES = list(EVERY_RULE)


def machine(name, milli, cpu=64_000):
    return Node(name, {"cpu": float(cpu), "memory": 64 * GIB, PARTS_OF_GPU: float(milli)})


def asking(milli, cpu=100, **others):
    demand = {"cpu": float(cpu), "memory": GIB, PARTS_OF_GPU: float(milli)}
    return PackingTask({name: amount for name, amount in demand.items() if amount}, **others)


def packed(nodes, tasks, rule="first-fit", leaving=()):
    problem = problem_of(nodes, tasks, leaving)
    return pack(problem, everywhere(problem), order_of(problem, "arrival"), rule)


@pytest.mark.parametrize("rule", RULES)
def test_a_third_part_of_600_has_no_device_though_800_are_free_in_sum(rule):
    packing = packed([machine("n", 2000)], [asking(600)] * 3, rule)
    assert (packing.pending, packing.allocated.sum(axis=0)[0]) == (1, 200.0)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("asked", "pending"),
    [
        ((400, 1000), 0),  # one in part, one whole
        ((400, 400, 1000), 0),  # the second part goes to the fuller device: one stays whole
        ((600, 600, 1000), 1),  # each part has a device of its own: none is whole
        ((300, 2000), 1),  # 1700 are free, but one device is not whole
        ((700, 500, 300, 500), 0),  # 700 + 300 and 500 + 500
        ((2000, 1), 1),
    ],
)
def test_parts_share_the_fullest_device_that_has_room_and_whole_ones_take_free_ones(rule, asked, pending):
    tasks = [asking(milli, arrived=float(place), job=str(place)) for place, milli in enumerate(asked)]
    assert packed([machine("n", 2000)], tasks, rule).pending == pending


def test_what_leaves_with_its_machine_has_its_part_of_a_device():
    # 600 of 2,000 leave with the machine: one device is whole, the other has 400.
    daemon = [asking(600, 0, node="n")]
    assert packed([machine("n", 2000)], [asking(700)] * 2, leaving=daemon).pending == 1
    assert packed([machine("n", 2000)], [asking(2000)], leaving=daemon).pending == 1
    assert packed([machine("n", 2000)], [asking(400), asking(1000, arrived=1.0)], leaving=daemon).pending == 0


def test_who_asks_for_more_than_one_device_in_parts_gets_whole_ones():
    # 1,500 is two devices; with a part of 400 on the third, two more of 300 fit there.
    nodes, tasks = [machine("n", 3000)], [asking(1500), asking(400, arrived=1.0), *[asking(300, arrived=2.0)] * 3]
    assert packed(nodes, tasks).pending == 1


def test_tasks_for_which_no_machine_has_devices_enough_are_misfits():
    daemon = [asking(500, 0, node="n")]
    problem = problem_of([machine("n", 2000)], [asking(1500, job="two"), asking(900, job="one")], daemon)
    assert without_misfits(problem)[1] == {"two": 1}


def test_devices_are_told_apart_only_where_somebody_asks_for_a_part():
    whole = problem_of([machine("n", 2000)], [asking(1000), asking(2000)])
    parts = problem_of([machine("n", 2000)], [asking(1000), asking(200)])
    assert len(devices_of(whole, everywhere(whole))) == 0
    assert len(devices_of(parts, everywhere(parts))) == 1


def test_plain_extended_resources_are_amounts():
    node = Node("n", {"cpu": 8000.0, "memory": 8 * GIB, GPU: 2000.0})
    assert packed([node], [PackingTask({"cpu": 1.0, GPU: 600.0})] * 3).pending == 0
    assert GPU not in PARTS


def drawn(seed, machines=8, classes=9, most=6):
    draw = np.random.default_rng(seed)
    nodes = [
        machine(f"n{row}", 1000 * draw.integers(0, 5), 1000 * draw.integers(2, 9))
        if draw.random() < 0.8
        else machine(f"n{row}", 1500, 4000)
        for row in range(machines)
    ]
    tasks = []
    for row in range(classes):
        milli = draw.choice([0, 100, 250, 400, 600, 700, 1000, 1500, 2000])
        one = asking(milli, 250 * draw.integers(1, 6), arrived=float(row), job=f"j{row}")
        tasks += [one] * int(draw.integers(1, most + 1))
    return problem_of(nodes, tasks)


class OneByOne:
    """The devices of each machine, longhand."""

    def __init__(self, capacity):
        self.free = [[min(1000, amount - start) for start in range(0, amount, 1000)] for amount in capacity]

    def chosen(self, row, milli):
        """Return which devices of a machine a task would get, None for none."""
        free = self.free[row]
        if milli >= 1000:
            whole = [place for place, amount in enumerate(free) if amount == 1000]
            number = -(-milli // 1000)
            return whole[:number] if len(whole) >= number else None
        fitting = [place for place, amount in enumerate(free) if amount >= milli]
        return [min(fitting, key=lambda place: free[place])] if fitting else None

    def take(self, row, milli):
        for place in self.chosen(row, milli):
            self.free[row][place] -= min(milli, 1000)


def one_by_one(problem, rule):
    """Place task after task on the machine that ranks highest, the first of equal ones; return counts [C, M]."""
    classes, column = problem.classes, problem.layout.columns[PARTS_OF_GPU]
    devices = OneByOne(problem.capacity[:, column].astype(int).tolist())
    counts = np.zeros((len(classes.count), problem.machines), dtype=int)
    for row in order_of(problem, "arrival"):
        milli = int(classes.demand[row, column])
        for _ in range(classes.count[row]):
            allocated = counts.T @ classes.demand
            fits = (allocated + classes.demand[row] <= problem.capacity).all(axis=1)
            if milli:
                fits &= [devices.chosen(place, milli) is not None for place in range(problem.machines)]
            if not fits.any():
                break
            rank, machines = ranking(problem, rule, allocated)
            best = int(np.where(fits, rank(classes.demand[row], machines), -np.inf).argmax())
            counts[row, best] += 1
            if milli:
                devices.take(best, milli)
    return counts


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(12))
def test_a_class_goes_where_its_tasks_would_go_one_by_one(rule, seed):
    problem = drawn(seed)
    packing = pack(problem, everywhere(problem), order_of(problem, "arrival"), rule)
    np.testing.assert_array_equal(tasks_on(problem, packing), one_by_one(problem, rule))


def shares_devices(capacity, asked):
    """Say by trying everything whether devices take these tasks."""
    asked = sorted(asked, reverse=True)

    @cache
    def rest(place, free):
        if place == len(asked):
            return True
        milli = asked[place]
        number = -(-milli // 1000)
        if milli >= 1000:
            whole = [device for device, amount in enumerate(free) if amount == 1000][:number]
            taken = tuple(0 if device in whole else amount for device, amount in enumerate(free))
            return len(whole) == number and rest(place + 1, taken)
        return any(
            rest(place + 1, tuple(sorted((*free[:device], amount - milli, *free[device + 1 :]))))
            for device, amount in enumerate(free)
            if amount >= milli
        )

    return rest(0, tuple(min(1000, capacity - start) for start in range(0, capacity, 1000)))


def fits_somehow(problem, rows, pending):
    """Say by trying everything whether these machines take all tasks but so many."""
    classes, column = problem.classes, problem.layout.columns[PARTS_OF_GPU]
    tasks = np.repeat(np.arange(len(classes.count)), classes.count).tolist()

    def holds(row, on):
        amounts = classes.demand[list(on)].sum(axis=0)
        if not (amounts <= problem.capacity[row]).all():
            return False
        asked = [int(classes.demand[one, column]) for one in on]
        return shares_devices(int(problem.capacity[row, column]), [milli for milli in asked if milli])

    @cache
    def rest(place, on, left_out):
        if place == len(tasks):
            return True
        if left_out < pending and rest(place + 1, on, left_out + 1):
            return True
        for number, row in enumerate(rows):
            more = (*on[number], tasks[place])
            if holds(row, more) and rest(place + 1, (*on[:number], more, *on[number + 1 :]), left_out):
                return True
        return False

    return rest(0, tuple(() for _ in rows), 0)


@pytest.mark.parametrize("seed", range(100, 120))
def test_no_placement_at_all_beats_the_bound_and_no_rule_beats_the_best_placement(seed):
    problem, pending = drawn(seed, machines=4, classes=4, most=2), seed % 2
    rows = np.random.default_rng(seed).permutation(4)
    best = next((size for size in range(5) if fits_somehow(problem, rows[:size].tolist(), pending)), 5)
    assert fewest_machines(problem, rows, pending) <= best
    for rule in RULES:
        for size in range(5):
            packing = pack(problem, rows[:size], order_of(problem, "sum"), rule)
            assert packing.pending > pending or size >= best


@pytest.mark.parametrize("rule", RULES)
def test_the_bound_for_the_same_permutations_never_exceeds_the_sizes(rule):
    found = compact(drawn(3, machines=40, classes=25), Policy("arrival", rule), CompactionLimits(tau=0.02, trials=5))
    assert found is not None
    assert (found.bounds <= found.sizes).all()
