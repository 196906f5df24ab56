"""Orders that overbook network and disk: what is shared slows in proportion, and CPU and memory are never shared."""

import numpy as np
import pytest

from extender.graph import Dag, Machines, Parent, Stage, orders
from extender.graph.orders import longest_path
from extender.graph.replay import replay
from lab.experiments.graphene.overbooking import Rule, span
from lab.experiments.graphene.table7 import share
from lab.sim.workloads.dags import draw

ONE = Machines(1, np.ones(4))


def stage(name, tasks, seconds, demand, *parents):
    return Stage(name, np.full(tasks, float(seconds)), np.array(demand, float), tuple(Parent(one) for one in parents))


def test_two_tasks_that_share_a_link_each_take_longer_in_proportion():
    # 0.6 and 0.6 of the network: both at 1 / 1.2, so 12 s instead of 10 each; one after the other it were 20.
    dag = Dag([stage("a", 2, 10, [0.1, 0.1, 0.6, 0])])
    assert span(dag, ONE, Rule(np.inf)) == pytest.approx(12)
    assert span(dag, ONE, Rule(1.25)) == pytest.approx(12)
    assert span(dag, ONE, Rule(1.1)) == pytest.approx(20)


def test_who_ends_first_gives_its_part_back():
    # Both at 1 / 1.2 until the short one has done its 5 s at 6 s; the other has 5 s left, and the link alone.
    dag = Dag([stage("a", 1, 5, [0.1, 0.1, 0.6, 0]), stage("b", 1, 10, [0.1, 0.1, 0.6, 0])])
    assert span(dag, ONE, Rule(np.inf)) == pytest.approx(11)


def test_memory_is_never_overbooked():
    dag = Dag([stage("a", 2, 10, [0.1, 0.6, 0, 0])])
    assert span(dag, ONE, Rule(np.inf)) == pytest.approx(20)


def test_children_wait_and_the_longest_path_goes_first():
    dag = Dag([stage("short", 1, 1, [1, 0, 0, 0]), stage("a", 1, 1, [1, 0, 0, 0]), stage("b", 1, 5, [0, 0, 0, 0], "a")])
    assert span(dag, ONE, Rule(1.0)) == pytest.approx(6)


def test_breadth_first_starts_what_lies_first_though_its_path_is_short():
    # "b" runs beside "short" as soon as "a" is done where the longest path goes first.
    dag = Dag([stage("short", 2, 5, [1, 0, 0, 0]), stage("a", 1, 1, [1, 0, 0, 0]), stage("b", 1, 9, [0, 0, 0, 0], "a")])
    assert span(dag, ONE, Rule(1.0)) == pytest.approx(11)
    assert span(dag, ONE, Rule(1.0, orders.BREADTH_FIRST)) == pytest.approx(20)


def test_an_order_at_random_is_that_of_its_seed():
    dag = draw(np.random.default_rng(100)).dag
    rule = Rule(np.inf, orders.RANDOM)
    assert span(dag, share(dag, 1.0), rule, 1) == span(dag, share(dag, 1.0), rule, 1)


def test_without_overbooking_it_is_the_replay_by_the_longest_path():
    random = np.random.default_rng(100)
    for _ in range(4):
        dag = draw(random).dag
        machines = share(dag, 1.0)
        assert span(dag, machines, Rule(1.0)) == pytest.approx(replay(dag, machines, longest_path(dag)).span)
