"""kube-scheduler's scores against numbers worked out with Kubernetes' formulas."""

import numpy as np
import pytest

from lab.sim.schedulers.kube_scores import Nodes


def nodes(*rows):
    """Return nodes, each given as (cpu, allocated cpu, memory, allocated memory)."""
    figures = np.array(rows, dtype=np.int64)
    return Nodes(figures[:, [0, 2]], figures[:, [1, 3]])


def pod(cpu, memory):
    return np.array([cpu, memory], dtype=np.int64)


def test_a_node_fits_to_the_last_of_cpu_and_memory_and_what_is_not_requested_refuses_nobody():
    found = nodes((4, 2, 8, 4), (4, 3, 8, 4), (4, 2, 8, 5), (4, 9, 8, 4))
    assert found.fits(pod(2, 4)).tolist() == [True, False, False, False]
    assert found.fits(pod(0, 4)).tolist() == [True, True, False, True]
    assert found.fits(pod(0, 0)).all()


@pytest.mark.parametrize(
    ("cpu", "memory", "score"),
    [
        (
            1000,
            1024,
            43,
        ),  # (4000 - 2000) x 100 / 4000 = 50; (8192 - 5120) x 100 / 8192 = 37.5, so 37; 87 / 2 = 43.5, so 43
        (3000, 4096, 0),  # nothing left of either
        (0, 0, 62),  # 75 and 50: 62.5
        (1, 1, 61),  # 74.975, so 74, and 49.98, so 49: 61.5
        (3001, 0, 25),  # more than there is scores 0; and 50
    ],
)
def test_least_allocated_is_the_mean_of_what_stays_free_rounded_down_twice(cpu, memory, score):
    assert nodes((4000, 1000, 8192, 4096)).least_allocated(pod(cpu, memory)).tolist() == [score]


@pytest.mark.parametrize(
    ("cpu", "memory", "score"),
    [
        # Before: 1/4 and 1/2, half of the difference is 1/8: 87.5, so 87.
        (1000, 1024, 78),  # 2/4 and 5/8: 1/16, so 93; 50 + (50 + 93 - 87) / 2 = 78
        (1000, 0, 81),  # 2/4 and 1/2: 100; 50 + (50 + 13) / 2 = 81.5
        (0, 2048, 69),  # 1/4 and 3/4: 1/4, so 75; 50 + (50 - 12) / 2 = 69
        (0, 0, 0),  # a pod without requests is not scored
        (9000, 4096, 81),  # fractions above 1 count as 1: 100
    ],
)
def test_balanced_allocation_scores_how_much_closer_the_pod_brings_cpu_and_memory(cpu, memory, score):
    assert nodes((4000, 1000, 8192, 4096)).balanced_allocation(pod(cpu, memory)).tolist() == [score]


def test_a_node_without_one_of_the_two_is_scored_by_the_other():
    found = nodes((4000, 1000, 0, 0), (0, 0, 0, 0))
    assert found.least_allocated(pod(1000, 0)).tolist() == [50, 0]
    assert found.balanced_allocation(pod(1000, 0)).tolist() == [75, 75]


def test_memory_of_terabytes_is_counted_exactly():
    large = 2**52
    assert nodes((1, 0, large, 0)).least_allocated(pod(0, 1)).tolist() == [99]  # (100 + 99) / 2


def test_a_placed_pod_counts_from_then_on_and_only_the_nodes_asked_about_are_scored():
    found = nodes((4000, 0, 8192, 0), (4000, 0, 8192, 0))
    found.take(pod(1000, 4096), 1)
    assert found.least_allocated(pod(1000, 1024), slice(1, 2)).tolist() == [43]
    assert found.fits(pod(3001, 0), slice(1, 2)).tolist() == [False]
    assert found.fits(pod(3001, 0)).tolist() == [True, False]
