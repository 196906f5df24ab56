"""Queues that settings declare and those that pods name."""

import random

import numpy as np
import pytest

from extender.cluster.queues import Queue
from extender.control.queues.tree import QueueTree
from extender.policy.shares import parts_as_wanted


def shares(queues, *names):
    active, _, share = QueueTree(queues).shares(names, {*names})
    return {name: round(value, 4) for name, value in zip(active, share.tolist(), strict=True)}


def test_a_queue_that_nobody_declared_has_weight_1():
    assert shares([Queue("a", 3)], "a", "other") == {"a": 0.75, "other": 0.25}


def test_only_queues_with_pods_share():
    assert shares([Queue("a", 3), Queue("b", 5)], "a") == {"a": 1.0}


def test_a_minimum_share_is_kept():
    assert shares([Queue("a", 1, minimum=0.5), Queue("b", 9)], "a", "b") == {"a": 0.5, "b": 0.5}


def test_children_divide_what_their_parent_has():
    # research: 2 of 3 parts; in it 1 to 3.
    queues = [Queue("research", 2), Queue("nlp", 1, parent="research"), Queue("vision", 3, parent="research")]
    assert shares(queues, "nlp", "vision", "sales") == {"nlp": 0.1667, "vision": 0.5, "sales": 0.3333}
    assert shares(queues, "nlp", "sales") == {"nlp": 0.6667, "sales": 0.3333}


def test_pods_of_a_queue_with_children_are_one_more_child():
    queues = [Queue("research", 1), Queue("nlp", 1, parent="research")]
    assert shares(queues, "research", "nlp") == {"nlp": 0.5, "research": 0.5}


@pytest.mark.parametrize(("minimums", "scaled"), [((0.4, 0.4), False), ((0.8, 0.8), True)])
def test_minimum_shares_beyond_the_cluster_are_scaled_down_and_it_is_known(minimums, scaled):
    tree = QueueTree([Queue("a", minimum=minimums[0]), Queue("b", minimum=minimums[1])])
    assert tree.scaled_down == scaled
    assert tree.minimum("a") == pytest.approx(0.5 if scaled else 0.4)


def test_a_warning_names_the_minimum_shares_that_are_scaled_down_and_what_they_count_as():
    queues = [Queue("a", minimum=0.9), Queue("b", minimum=0.6), Queue("c"), Queue("d", minimum=0.5, parent="c")]
    text = "queues: the minimum shares of the highest queues add up to more than 1 (a 0.9, b 0.6)"
    assert QueueTree(queues).warnings() == [f"{text}; they count as a 0.6, b 0.4"]


def test_minimum_shares_within_the_cluster_are_no_warning():
    assert QueueTree([Queue("a", minimum=0.9), Queue("b", minimum=0.1)]).warnings() == []


def test_what_is_above_a_queue():
    tree = QueueTree([Queue("top"), Queue("middle", parent="top"), Queue("leaf", parent="middle")])
    assert tree.chain("leaf") == ["middle", "top"]
    assert tree.chain("middle") == ["middle", "top"], "its own pods are a queue below it"
    assert tree.chain("nobody's") == ["(undeclared)"], "beside the highest ones, all of them as one"


@pytest.mark.parametrize(("weight", "share"), [(1.0, 0.25), (2.0, 0.4)])
def test_queues_that_nobody_declared_weigh_together_what_settings_say(weight, share):
    """Weights 2 and 1, and the others' 1 or 2: a quarter or two fifths for all 100 of them."""
    names = ["research", "sales", *(f"n{number}" for number in range(100))]
    active, _, shares = QueueTree([Queue("research", 2), Queue("sales", 1)], weight).shares(names, {*names})
    found = dict(zip(active, shares.tolist(), strict=True))
    assert found["sales"] == pytest.approx((1 - share) / 3)
    assert found["n7"] == pytest.approx(share / 100)


def test_where_no_queue_is_declared_namespaces_are_equal():
    assert shares([], "web", "shop") == {"shop": 0.5, "web": 0.5}
    assert shares([Queue("idle", 9)], "web", "shop") == {"shop": 0.5, "web": 0.5}


def test_the_example_of_the_documentation():
    queues = [
        Queue("research", 2, minimum=0.25),
        Queue("nlp", parent="research"),
        Queue("vision", 3, parent="research"),
        Queue("sales", minimum=0.3, fifo=True),
    ]
    # 0.7 left for weights 2 + 1; 0.4667 divided as 1 to 3.
    all_of_them = {"nlp": 0.1167, "sales": 0.3, "vision": 0.35, "web": 0.2333}
    assert shares(queues, "nlp", "vision", "sales", "web") == all_of_them
    assert shares(queues, "nlp", "vision", "sales") == {"nlp": 0.1667, "sales": 0.3333, "vision": 0.5}


def test_the_groups_of_a_plan_are_the_queues_with_pods_and_those_above_them():
    tree = QueueTree([Queue("lab", 2, minimum=0.3), Queue("nlp", 3, parent="lab"), Queue("idle", 9)], 4.0)
    groups = tree.groups(["lab", "nlp", "web"])
    # lab, nlp, web, then what stands above those that nobody declared, and lab's own pods below it.
    assert groups.weight.tolist() == [2.0, 3.0, 1.0, 4.0, 1.0]
    assert groups.minimum.tolist() == [0.3, 0.0, 0.0, 0.0, 0.0]
    assert groups.parent.tolist() == [-1, 0, 3, -1, 0]
    assert groups.leaf.tolist() == [4, 1, 2]


@pytest.mark.parametrize("seed", range(50))
def test_where_all_queues_want_everything_the_plan_divides_the_cluster_by_their_fair_shares(seed):
    """Two formulas: they agree while weights are above 0 and minimums within what parents have."""
    draw = random.Random(seed)
    names = [f"q{number}" for number in range(draw.randint(1, 8))]
    queues = [Queue(name, draw.choice((0.5, 1, 2, 3)), draw.choice((0.0, 0.1, 0.3))) for name in names]
    queues += [Queue(f"{name}-{n}", draw.choice((0.5, 1, 2)), parent=name) for name in names for n in range(2)]
    tree = QueueTree(queues)
    some = [queue.name for queue in queues if draw.random() < 0.7] or ["q0"]
    active, _, fair = tree.shares(some, {*some})
    groups = tree.groups(active)
    wanted = np.zeros(len(groups.weight))
    wanted[groups.leaf] = np.inf
    part = parts_as_wanted(groups.weight, groups.minimum, groups.parent, wanted)[groups.leaf]
    assert part.tolist() == pytest.approx(fair.tolist())
