from dataclasses import replace

import pytest

from lab.experiments.peaks.predictors import PREDICTORS
from lab.experiments.peaks.replay import HORIZONS, MAIN, PeakRun, PeakSetup, perform
from tests.lab.experiments.peaks.surf import write


def nothing(_done, _total):
    pass


def outcome(folder, predictor, *, steps, nodes=1, cores=16.0):
    return perform(PeakRun(PeakSetup(nodes, cores, steps, folder), predictor, 1), nothing)


def test_a_job_that_jumps_is_a_violation_while_the_jump_is_within_the_horizon(tmp_path):
    # 100 steps at 4 of 16 cores, then 20 at 16. After a warm-up of 24 steps the p99 is 4. Seen within 6 steps from step
    # 95 on, to step 100, when the jump is not measured yet: 6 of 120. With 24 steps: 24; 72: 72, 288: 77 (from 24 on).
    folder = write(tmp_path, (0, 16, [0.25] * 100 + [1.0] * 20))
    found = outcome(folder, "percentiles", steps=120)
    assert found.violations == pytest.approx([100 * part / 120 for part in (6, 24, 72, 77)])
    # In warm-up (24 steps) and after the jump (19) its 16 cores count, else (77) 4.
    assert found.savings == pytest.approx(100 * (1 - (24 * 16 + 19 * 16 + 77 * 4) / (120 * 16)))


def test_the_oracle_is_never_passed_within_its_horizon(tmp_path):
    folder = write(tmp_path, (0, 16, [0.25] * 40 + [1.0] * 20 + [0.5] * 40))
    found = outcome(folder, "oracle", steps=100)
    assert found.violations[: MAIN + 1] == (0, 0)
    assert found.violations[MAIN + 1] > 0


def test_nothing_is_packed_on_top_where_requests_leave_no_room_for_a_job(tmp_path):
    # 0.9 x 16 leaves 1.6 of 16 cores, and every job needs 16.
    found = outcome(write(tmp_path, (0, 16, [0.1] * 60)), "requests", steps=60)
    assert (found.gained, found.evicted, found.used) == pytest.approx((0, 0, 10))


def test_pods_packed_on_top_use_what_is_idle_and_come_no_more_than_room_is(tmp_path):
    # The node has 40 cores; its job requests 16, uses 4. T_alloc 0.8 leaves 32 - 16 in the first step: one on top, of
    # the same kind. Then 32 - 4 - 4 = 24: a second one. Then 32 - 12 = 20: a third. 32 - 16 = 16: a fourth. Then none.
    found = outcome(write(tmp_path, (0, 16, [0.25] * 60)), "fixed.0.8", steps=6, cores=40.0)
    assert found.gained == pytest.approx(100 * (1 + 2 + 3 + 4 + 4 + 4) / 6)
    assert found.over_capacity == found.evicted == 0


def test_pods_on_top_of_a_node_that_is_over_are_evicted_and_their_work_is_lost(tmp_path):
    # Both wake up after 30 steps: the job of 16 cores itself, and those on top of it.
    folder = write(tmp_path, (0, 16, [0.1] * 30 + [1.0] * 30))
    found = outcome(folder, "fixed.0.9", steps=60, cores=32.0)
    assert found.evicted > 0
    assert found.lost > 0
    assert found.over_capacity > 0
    assert found.used <= 100


def test_n_rises_where_evictions_pass_the_budget_and_falls_where_there_are_none(tmp_path):
    calm = write(tmp_path / "calm", (0, 16, [0.25] * 120))
    wild = write(tmp_path / "wild", (0, 16, ([0.05] * 40 + [1.0] * 20) * 2))
    assert outcome(calm, "auto", steps=120, cores=48.0).sigmas < 5
    assert outcome(wild, "auto", steps=120, cores=48.0).sigmas > 5


def test_the_budget_changes_nothing_for_who_has_no_budget(tmp_path):
    folder = write(tmp_path, (0, 16, ([0.05] * 40 + [1.0] * 20) * 2))
    run = PeakRun(PeakSetup(1, 48.0, 120, folder), "maximum", 1)
    assert perform(run, nothing) == perform(replace(run, setup=replace(run.setup, budget=1.0)), nothing)


@pytest.mark.parametrize("name", PREDICTORS)
def test_the_same_seed_gives_the_same_outcome(tmp_path, name):
    folder = write(tmp_path, *((300 * start, 16, [0.2, 0.9, 0.4] * 5) for start in range(12)))
    first, again = (outcome(folder, name, steps=40, nodes=2, cores=48.0) for _ in range(2))
    assert first == again
    assert len(first.violations) == len(HORIZONS)
