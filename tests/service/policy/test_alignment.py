from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from extender.policy.alignment import (
    RULES,
    TASK_RULES,
    cosine,
    dot,
    fullness,
    l2_norm_diff,
    l2_norm_ratio,
    offered,
    room,
)
from extender.policy.levels import levels

every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())

# Two nodes of two dimensions. The largest capacities are (20, 100); divided by them the
# demand is (0.1, 0.2) and free is (0.25, 0.8) and (0.5, 0.4).
DEMAND = np.array([2.0, 20.0])
FREE = np.array([[5.0, 80.0], [10.0, 40.0]])
CAPACITY = np.array([[10.0, 100.0], [20.0, 50.0]])


@st.composite
def clusters(draw):
    """Demand [R], free [N, R], capacity [N, R], read-only: with unlimited, absent and over-allocated dimensions."""
    shape = draw(st.integers(0, 6)), draw(st.integers(1, 4))
    demand = draw(arrays(float, shape[1], elements=st.integers(0, 32).map(float)))
    capacity = draw(arrays(float, shape, elements=st.sampled_from([0.0, 1.0, 8.0, 64.0, np.inf])))
    allocated = draw(arrays(float, shape, elements=st.integers(0, 80).map(float)))
    with np.errstate(invalid="ignore"):
        free = capacity - allocated
    for array in (demand, free, capacity):
        array.setflags(write=False)
    return demand, free, capacity


def score(rule, demand, free, capacity):
    return rule(demand, *prepared(free, capacity))


def full(free, capacity):
    return fullness(*prepared(free, capacity))


def prepared(free, capacity, *, allocated_without_limit=5.0):
    nodes = offered(capacity)
    allocated = np.where(np.isfinite(capacity), nodes.capacity - free, allocated_without_limit)
    return room(allocated, nodes), nodes


def test_dot_sums_demand_times_free():
    # 0.1 x 0.25 + 0.2 x 0.8 = 0.185; 0.1 x 0.5 + 0.2 x 0.4 = 0.13
    assert_allclose(score(dot, DEMAND, FREE, CAPACITY), [0.185, 0.13])


def test_cosine_divides_the_dot_product_by_both_lengths():
    # demand^2 = 0.01 + 0.04 = 0.05; free^2 = 0.0625 + 0.64 = 0.7025 and 0.25 + 0.16 = 0.41
    assert_allclose(score(cosine, DEMAND, FREE, CAPACITY), [0.185 / sqrt(0.05 * 0.7025), 0.13 / sqrt(0.05 * 0.41)])


def test_l2_norm_diff_is_minus_the_squared_distance():
    # 0.15^2 + 0.6^2 = 0.3825; 0.4^2 + 0.2^2 = 0.2
    assert_allclose(score(l2_norm_diff, DEMAND, FREE, CAPACITY), [-0.3825, -0.2])


def test_l2_norm_ratio_is_minus_the_squared_ratios():
    # (2/5)^2 + (20/80)^2 = 0.2225; (2/10)^2 + (20/40)^2 = 0.29
    assert_allclose(score(l2_norm_ratio, DEMAND, FREE, CAPACITY), [-0.2225, -0.29])


def test_fullness_is_the_mean_allocated_fraction_of_what_the_node_has():
    capacity = np.array([[10.0, 100.0, 0.0], [10.0, np.inf, 8.0], [np.inf, np.inf, 0.0]])
    free = np.array([[5.0, 80.0, 0.0], [-1.0, np.inf, 6.0], [np.inf, np.inf, 0.0]])
    # (0.5 + 0.2) / 2 = 0.35; over-allocated counts as full: (1 + 0.25) / 2 = 0.625; nothing to fill: 0
    assert_allclose(full(free, capacity), [0.35, 0.625, 0.0])


def test_the_largest_node_sets_the_weight_of_a_dimension_and_what_nobody_limits_has_none():
    nodes = offered(np.array([[4.0, np.inf, np.inf], [8.0, 2.0, np.inf]]))
    assert_array_equal(nodes.weight, [1 / 64, 1 / 4, 0])


def test_of_equal_nodes_each_rule_prefers_the_one_that_it_says():
    # An empty, a half full and a nearly full node of one shape.
    capacity = np.full((3, 2), 10.0)
    free = np.array([[10.0, 10.0], [5.0, 5.0], [2.0, 2.0]])
    demand = np.array([2.0, 1.0])
    order = {
        name: list(np.argsort(-score(rule, demand, free, capacity), kind="stable")) for name, rule in RULES.items()
    }
    assert order["dot"] == [0, 1, 2], "the emptiest first"
    assert order["l2-norm-ratio"] == [0, 1, 2], "the least strain first"
    assert order["l2-norm-diff"] == [2, 1, 0], "the tightest first"
    assert_allclose(score(cosine, demand, free, capacity), 3 / sqrt(10), err_msg="shape alone: all equal")


def test_by_the_default_rule_shape_decides_not_emptiness_nor_fullness():
    capacity = np.full((3, 2), 10.0)
    emptiest, proportioned, fullest = [9.0, 9.0], [6.0, 3.0], [2.0, 2.0]
    free = np.array([emptiest, proportioned, fullest])
    demand = np.array([2.0, 1.0])
    # cosine: 27 / (sqrt 5 x sqrt 162) = 0.949; 15 / (sqrt 5 x sqrt 45) = 1; 6 / (sqrt 5 x sqrt 8) = 0.949
    assert_allclose(score(cosine, demand, free, capacity), [0.9486833, 1.0, 0.9486833])
    assert_array_equal(levels(score(cosine, demand, free, capacity), full(free, capacity), step=0.01), [8, 10, 9])
    assert np.argmax(score(dot, demand, free, capacity)) == 0


def test_a_dimension_that_the_pod_does_not_demand_keeps_it_off_nodes_that_are_rich_in_it():
    # A CPU pod; a half full node without GPUs, an empty node with eight.
    demand, capacity = np.array([4.0, 0.0]), np.array([[32.0, 0.0], [32.0, 8.0]])
    free = np.array([[16.0, 0.0], [32.0, 8.0]])
    # cosine: (0.5, 0) lies along the demand: 1; (1, 1) is at 45 degrees: 1 / sqrt 2
    assert_allclose(score(cosine, demand, free, capacity), [1, 1 / sqrt(2)])


def test_empty_nodes_of_different_shapes_differ():
    # Both empty. Divided by their own capacities both would be (1, 1); by the largest they are (1, 1/8) and (1, 1).
    capacity = np.array([[32.0, 1.0], [32.0, 8.0]])
    scores = score(cosine, np.array([16.0, 0.0]), capacity, capacity)
    assert_allclose(scores, [1 / sqrt(1 + 1 / 64), 1 / sqrt(2)])


def test_an_unlimited_dimension_takes_no_part_on_that_node():
    limited, unlimited = [8.0, 8.0], [8.0, np.inf]
    demand, capacity = np.array([4.0, 2.0]), np.array([limited, unlimited])
    free = capacity - np.array([4.0, 4.0])
    # Demand (0.5, 0.25), free (0.5, 0.5) on the first; 0.5 and 0.5 on the second.
    assert_allclose(score(dot, demand, free, capacity), [0.375, 0.25])
    assert_allclose(score(cosine, demand, free, capacity), [0.375 / sqrt(0.3125 * 0.5), 1])
    assert_allclose(score(l2_norm_diff, demand, free, capacity), [-0.0625, 0])
    assert_allclose(score(l2_norm_ratio, demand, free, capacity), [-1.25, -1])


@every_rule
def test_what_is_allocated_in_an_unlimited_dimension_does_not_matter(rule):
    demand, capacity = np.array([1.0, 1.0]), np.array([[8.0, np.inf], [8.0, 8.0]])
    scores = [rule(demand, *prepared(capacity, capacity, allocated_without_limit=held)) for held in (0.0, 1e9)]
    assert_array_equal(scores[0], scores[1])


@pytest.mark.parametrize("rule", [dot, cosine, l2_norm_ratio])
def test_a_node_that_has_nothing_of_what_is_demanded_comes_last(rule):
    capacity = np.array([[32.0, 0.0], [32.0, 8.0]])
    scores = score(rule, np.array([1.0, 4.0]), capacity, capacity)
    assert scores[0] < scores[1]


@every_rule
def test_a_pod_without_demand_still_gets_scores(rule):
    scores = score(rule, np.zeros(2), CAPACITY, CAPACITY)
    assert np.isfinite(scores).all()


@every_rule
@given(clusters())
def test_scores_are_numbers_one_for_each_node(rule, cluster):
    scores = score(rule, *cluster)
    assert scores.shape == (len(cluster[1]),)
    assert not np.isnan(scores).any()


@every_rule
@given(clusters(), st.randoms())
def test_permuting_nodes_permutes_scores(rule, cluster, random):
    demand, free, capacity = cluster
    order = list(range(len(free)))
    random.shuffle(order)
    assert_allclose(score(rule, demand, free[order], capacity[order]), score(rule, demand, free, capacity)[order])
    assert_allclose(full(free[order], capacity[order]), full(free, capacity)[order])


@every_rule
@given(clusters(), st.sampled_from([1e-3, 1000.0, 2.0**30]))
def test_changing_the_unit_of_a_dimension_changes_nothing(rule, cluster, factor):
    demand, free, capacity = cluster
    units = np.ones(len(demand))
    units[0] = factor
    assert_allclose(
        score(rule, demand * units, free * units, capacity * units),
        score(rule, demand, free, capacity),
        rtol=1e-9,
        atol=1e-9,
    )
    assert_allclose(full(free * units, capacity * units), full(free, capacity), rtol=1e-9, atol=1e-9)


@given(clusters())
def test_cosine_and_fullness_stay_within_0_and_1(cluster):
    demand, free, capacity = cluster
    for values in (score(cosine, demand, free, capacity), full(free, capacity)):
        assert ((values >= -1e-9) & (values <= 1 + 1e-9)).all()


def test_ffd_rules_order_task_classes_by_product_and_by_sum():
    demand = np.array([[0.5, 0.1], [0.125, 0.8]])  # parts of the machine
    free = np.array([1.0, 0.5])
    assert_allclose(TASK_RULES["ffd-prod"](demand, free), [0.05, 0.1])
    assert_allclose(TASK_RULES["ffd-sum"](demand, free), [0.6, 0.925])


def test_by_product_a_machine_without_devices_tells_tasks_apart_by_the_others():
    # It has no GPU, so that every task demands none of it there.
    demand = np.array([[0.5, 0.2, 0.0], [0.25, 0.25, 0.0]])
    assert_allclose(TASK_RULES["ffd-prod"](demand, np.array([1.0, 1.0, 0.0])), [0.1, 0.0625])


def test_task_rules_by_hand():
    demand, free = np.array([[0.5, 0.0], [0.25, 0.25]]), np.array([1.0, 0.5])
    assert_allclose(TASK_RULES["dot"](demand, free), [0.5, 0.25 + 0.125])
    assert_allclose(TASK_RULES["cosine"](demand, free), [0.5 / (0.5 * 1.25**0.5), 0.375 / (0.125 * 1.25) ** 0.5])
    assert_allclose(TASK_RULES["l2-norm-diff"](demand, free), [-(0.25 + 0.25), -(0.5625 + 0.0625)])
    assert_allclose(TASK_RULES["l2-norm-ratio"](demand, free), [0.25, 0.0625 + 0.25])


def test_a_dimension_with_nothing_free_does_no_harm_to_any_task_rule():
    demand, free = np.array([[0.5, 0.0]]), np.array([0.5, 0.0])
    assert all(np.isfinite(rule(demand, free)).all() for rule in TASK_RULES.values())
