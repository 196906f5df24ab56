"""The bound says how few machines could be enough; no placement that is possible weighs more than it says."""

import itertools

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.peers import HostPort, Peers, TopologySpread
from lab.packing.bound import fewest_machines
from lab.packing.measures import measures_of
from lab.packing.model import problem_of
from lab.packing.orders import order_of
from lab.packing.placing import pack
from lab.packing.rules import RULES
from tests.lab.packing.small import everywhere, node, task
from tests.lab.packing.test_devices import asking, shares_devices
from tests.lab.packing.test_devices import machine as with_gpus
from tests.lab.packing.test_keeping import ZONE, drawn, machine, of, pod


def least(nodes, tasks, pending=0):
    problem = problem_of(nodes, tasks)
    return fewest_machines(problem, everywhere(problem), pending)


def test_of_a_group_of_which_a_machine_takes_two_five_need_three_machines():
    nodes, tasks = [node(f"n{row}") for row in range(9)], [task(10, 0, group="g", at_most=2)] * 5
    assert [least(nodes, tasks, pending) for pending in (0, 1, 2)] == [3, 2, 2]


@pytest.mark.parametrize("peers", [Peers(away=(of("web"),)), Peers(ports=(HostPort(80),))])
def test_tasks_that_keep_apart_need_a_machine_each(peers):
    nodes = [machine(f"n{row}") for row in range(9)]
    assert [least(nodes, [pod("web", peers, cpu=10)] * 6, pending) for pending in (0, 2)] == [6, 4]


def test_tasks_that_keep_apart_by_zone_need_as_many_zones():
    # The third zone begins at the fourth machine. Without a zone a machine takes any number.
    nodes = [machine("n0", "a"), machine("n1", "a"), machine("n2", "b"), machine("n3", "c"), machine("n4", "")]
    tasks = [pod("web", Peers(away=(of("web", ZONE),)), cpu=10)]
    assert [least(nodes, tasks * count) for count in (1, 2, 3, 4, 9)] == [1, 3, 4, 5, 5]


def test_of_tasks_that_spread_a_zone_takes_as_many_more_than_the_smallest_as_the_skew_lets():
    # The machine of zone b has room for two tasks: one of zone a, with room for four, takes three at most.
    sizes = [("b", 2000), ("a", 4000), ("a", 4000), ("c", 9000), ("c", 9000)]
    nodes = [machine(f"n{row}", zone, cpu) for row, (zone, cpu) in enumerate(sizes)]
    tasks = [pod("web", Peers(spread=(TopologySpread(of("web", ZONE)),)))]
    # On n0 alone 2; with n1 2 + 3, with n2 no more, with n3 three more, and with n4 again no more.
    assert [least(nodes, tasks * count) for count in (2, 5, 6, 8, 9)] == [1, 2, 4, 4, 6]
    # In fewer zones than three the least is 0, so each takes one.
    three = [pod("web", Peers(spread=(TopologySpread(of("web", ZONE), domains=3),)))]
    assert [least(nodes, three * count) for count in (1, 2, 3)] == [1, 2, 4]


def test_jobs_that_keep_apart_from_each_other_count_together():
    nodes, peers = [machine(f"n{row}") for row in range(9)], Peers(away=(of("web"),))
    assert least(nodes, [pod("web", peers, job=job) for job in "abc"]) == 3


def test_beside_a_task_larger_than_half_there_is_no_room_for_medium_ones():
    # By volume (3 x 3,000 + 4 x 1,500) / 4,000 = 3.75. But 1,500 do not go beside 3,000: three machines, and two more.
    assert least([node(f"n{row}") for row in range(9)], [task(3000, 0)] * 3 + [task(1500, 0)] * 4) == 5


def test_beside_a_large_part_of_a_device_there_is_no_room_for_medium_ones():
    # By volume 3,700 of 2,000 each: two machines. But 3 parts of 700 and 2 x 2 of 400 need five GPUs: three machines.
    nodes = [with_gpus(f"n{row}", 2000) for row in range(9)]
    assert least(nodes, [asking(700)] * 3 + [asking(400)] * 4) == 3


def test_a_part_larger_than_half_takes_a_device():
    # A machine of 3,000 has room for five parts of 600 in sum, but it has three devices.
    assert least([with_gpus(f"n{row}", 3000) for row in range(9)], [asking(600)] * 5 + [asking(1000)]) == 2


def test_tasks_that_may_all_be_left_out_ask_for_no_machines_of_theirs():
    # Zone a is the ninth machine. By volume, without the two largest, 4,020 of 4,000 each.
    nodes = [node(f"n{row}", labels={"zone": "a" if row == 8 else "b"}) for row in range(9)]
    tasks = [task(4000, 0)] * 3 + [task(10, 0, constraints=Constraints(selector=(("zone", "a"),)))] * 2
    assert [least(nodes, tasks, pending) for pending in (1, 2)] == [9, 2]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", range(6))
def test_no_rule_places_all_tasks_but_those_left_out_on_fewer_machines(rule, seed):
    nodes, tasks = drawn(seed, machines=14, classes=9, most=8)
    problem, pending = problem_of(nodes, tasks), seed % 3
    rows = np.random.default_rng(seed).permutation(14)
    fewest = fewest_machines(problem, rows, pending)
    assert fewest > 1
    for size in range(1, fewest):
        assert pack(problem, rows[:size], order_of(problem, "arrival"), rule).pending > pending


@pytest.mark.parametrize("parts", [None, 1000.0])
@pytest.mark.parametrize("seed", range(12))
def test_no_tasks_that_a_machine_can_take_weigh_more_than_the_most_it_takes(parts, seed):
    draw = np.random.default_rng(seed)
    demand = draw.choice([0, 100, 150, 300, 400, 550, 600, 700, 850, 1000, 1500, 2000], 8).astype(float)
    offers = draw.choice([500, 1000, 1000, 1500, 2000, 3000], 5).astype(float)
    if not demand.any():
        return
    measures = list(measures_of(demand, np.ones(8, dtype=np.int64), offers, parts))
    assert len(measures) > 3
    weights = [measure.weights(demand) for measure in measures]
    for row, amount in enumerate(offers.tolist()):
        for number in range(1, 7):
            for some in itertools.combinations(range(8), number):
                if demand[list(some)].sum() > amount:
                    continue
                asked = [int(demand[one]) for one in some if demand[one]]
                if parts is not None and not shares_devices(int(amount), asked):
                    continue
                for measure, weight in zip(measures, weights, strict=True):
                    assert weight[list(some)].sum() <= measure.most(offers)[row] * (1 + 1e-9)
