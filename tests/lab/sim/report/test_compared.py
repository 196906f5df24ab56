"""Two runs compared, with numbers by hand."""

import math

import numpy as np
import pytest

from lab.sim.report.compared import Slowed, bound_share, improvement, job_changes, slowed


def test_improvement_is_the_part_of_the_baseline_that_is_saved():
    assert improvement(200, 150) == 25  # 1.33 times better (Tetris, 5.1)
    assert improvement(100, 110) == -10
    assert improvement(0, 0) == 0


def test_each_job_is_compared_with_itself():
    assert job_changes(np.array([10.0, 20, 0]), np.array([5.0, 30, 0])).tolist() == [50, -50, 0]


def test_the_median_of_the_changes_is_not_the_change_of_the_median():
    # Changes 50, 0 and 0 %: median 0. Medians 20 and 15: 25 %.
    before, after = np.array([30.0, 20, 10]), np.array([15.0, 20, 10])
    assert np.median(job_changes(before, after)) == 0
    assert improvement(float(np.median(before)), float(np.median(after))) == 25


def test_slowed_jobs_are_those_slower_by_more_than_one_percent():
    # By 1 % (not counted), 10 %, 30 %, and one faster: 2 of 4, by (10 + 30) / 2 in the mean.
    found = slowed(np.array([100.0, 100, 100, 100]), np.array([101.0, 110, 130, 50]))
    assert found == Slowed(50.0, pytest.approx(20.0), pytest.approx(30.0))


def test_no_job_is_slowed_down_by_the_same_run():
    times = np.array([3.0, 4.0])
    assert slowed(times, times) == Slowed(0, 0, 0)


def test_the_share_of_the_bound_is_our_gain_in_the_bounds():
    # From 100: ours to 60, the bound to 50; 40 of 50.
    assert bound_share(100, 60, 50) == 80


def test_a_bound_that_gains_nothing_has_no_share():
    assert math.isnan(bound_share(100, 90, 100))
