import numpy as np
import pytest

from lab.sim.workloads.draws import correlated, durations, skewed


def test_durations_have_the_mean_exactly_and_about_the_variation_asked_for():
    drawn = durations(np.random.default_rng(1), 10_000, 20.0, 0.25)
    assert drawn.mean() == pytest.approx(20.0, rel=1e-12)
    assert drawn.std() / 20.0 == pytest.approx(0.25, abs=0.01)
    assert drawn.min() > 0


def test_a_single_task_takes_the_mean():
    assert durations(np.random.default_rng(1), 1, 20.0, 0.25).tolist() == [20.0]


def test_skewed_quantities_are_their_medians_at_score_zero_and_stay_within_bounds():
    medians, variations = (300.0, 8.0), (1.42, 2.24)
    assert skewed(np.zeros(2), medians, variations, least=0.1, most=20.0).tolist() == [300.0, 8.0]
    assert skewed(np.full(2, 9.0), medians, variations, least=0.1, most=20.0) == pytest.approx([6000.0, 160.0])
    assert skewed(np.full(2, -9.0), medians, variations, least=0.1, most=20.0) == pytest.approx([30.0, 0.8])


def test_skewed_quantities_are_log_normal_between_their_bounds():
    # a variation of sqrt(e - 1) is a sigma of 1: at score 2 it is e^2 times the median
    value = skewed(np.array([2.0]), (10.0,), (np.sqrt(np.e - 1),), least=0.0, most=100.0)
    assert value[0] == pytest.approx(10.0 * np.e**2)


def test_scores_go_together_as_their_matrix_says():
    rng, matrix = np.random.default_rng(5), np.array([[1.0, 0.4], [0.4, 1.0]])
    scores = np.array([correlated(rng, matrix) for _ in range(5000)])
    assert np.corrcoef(scores.T)[0, 1] == pytest.approx(0.4, abs=0.04)
    assert scores.std(axis=0) == pytest.approx([1.0, 1.0], abs=0.04)
