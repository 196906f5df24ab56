"""The fit of unpublished values: the search, what it may touch, and the file that it leaves."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from lab.experiments.fit import frozen
from lab.experiments.fit.published import CAPACITY, DRF, FAIR, TABLE_3, TABLE_6
from lab.experiments.fit.search import search
from lab.experiments.fit.targets import SUITE, TARGETS, FitSize, MeasuredCells, measure, with_factors
from lab.sim.engine.measures import HIGH_LOADS, Fullness
from lab.sim.workloads.parameters import Parameters

BOTH = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


def fitted(target):
    """Return what the file of a fit holds."""
    return json.loads((Path(frozen.__file__).parent / f"{target.group}.json").read_bytes())


def like(target, factors):
    """Return cells that meet the paper where low_cpu is halved and split doubled, and miss it more elsewhere."""
    miss = abs(math.log(factors["low_cpu"] / 0.5)) + abs(math.log(factors["split"] / 2.0))
    return MeasuredCells(tuple(cell.paper + 0.1 * miss for cell in target.cells), (target.seconds,) * 2)


def test_the_search_keeps_what_is_better_and_comes_near_the_values_that_meet_the_table():
    found = list(search(SUITE, lambda factors: like(SUITE, factors), 300, 1))
    assert found[0].factors == dict.fromkeys((knob.name for knob in SUITE.knobs), 1.0)
    assert (np.diff([trial.distance for trial in found]) < 0).all()
    assert found[-1].factors["low_cpu"] == pytest.approx(0.5, rel=0.1)
    assert found[-1].factors["split"] == pytest.approx(2.0, rel=0.1)


def test_the_same_search_finds_the_same_and_another_seed_something_else():
    def run(seed):
        return [trial.factors for trial in search(SUITE, lambda factors: like(SUITE, factors), 30, seed)]

    assert run(1) == run(1)
    assert run(1) != run(2)


@BOTH
def test_no_value_leaves_its_bounds_and_no_other_value_changes(target):
    for factor in (1e-3, 1e3):
        changed = with_factors(target, {knob.name: factor for knob in target.knobs})
        group, before = getattr(changed, target.group), getattr(target.start, target.group)
        for knob in target.knobs:
            value = getattr(group, knob.name)
            assert knob.least * 0.99 <= np.mean(value) <= knob.most * 1.01
        free = {knob.name for knob in target.knobs}
        others = [name for name in type(group).__dataclass_fields__ if name not in free]
        assert [getattr(group, name) for name in others] == [getattr(before, name) for name in others]


@BOTH
def test_only_baselines_are_run(target):
    assert set(target.policies) <= {CAPACITY, DRF, FAIR}
    assert {cell.policy for cell in target.cells} == set(target.policies)


def test_all_cells_of_both_tables_count():
    assert len(TABLE_6) == 2 * 4 * 3
    assert len(TABLE_3) == 6 * 3
    assert len({cell.name for cell in (*TABLE_6, *TABLE_3)}) == 42


def test_a_cell_is_that_of_its_load_and_of_the_way_that_is_used_more():
    assert _disk(TABLE_6).ours([_run(0.0)]) == 0.09  # row 1: disk-read .08, disk-write .09
    assert _disk(TABLE_6).ours([_run(0.0), _run(0.1)]) == pytest.approx(0.14)  # the mean of .09 and .19


def test_table_6_is_about_estimates_and_table_3_about_what_machines_carry():
    assert _disk(TABLE_6).ours([_run(0.0)]) == pytest.approx(0.09)
    assert _disk(TABLE_3).ours([_run(0.0)]) == pytest.approx(0.25 + 0.08)


def _disk(cells):
    return next(cell for cell in cells if cell.resource.startswith("disk") and cell.load == 0.9)


def _run(more):
    promised = np.arange(24, dtype=float).reshape(len(HIGH_LOADS), 6) / 100 + more
    return Fullness(promised + 0.5, np.zeros(6), np.zeros(6), 0.0, 0.0, promised, promised + 0.25)


def test_a_measurement_is_the_mean_over_seeds_of_runs_of_the_baselines():
    size = FitSize("suite:jobs=1", "tetris:4")
    one, two, both = (measure(SUITE, size, seeds, Path(), Parameters()) for seeds in ([1], [2], [1, 2]))
    plain = [place for place, cell in enumerate(SUITE.cells) if len(cell.columns) == 1]
    ones, twos, boths = (np.array(each.cells)[plain] for each in (one, two, both))
    assert boths == pytest.approx((ones + twos) / 2)
    assert both.makespans == pytest.approx((np.array(one.makespans) + two.makespans) / 2)
    assert one.cells != two.cells
    assert max(one.cells) > 0


@BOTH
def test_the_file_of_a_fit_has_the_values_that_are_the_defaults_and_says_how_they_came_about(target):
    told, group = fitted(target), getattr(Parameters(), target.group)
    for name, value in told["values"].items():
        default = getattr(group, name)
        assert value == (list(default) if isinstance(default, tuple) else default), name
    assert set(told["values"]) == {knob.name for knob in target.knobs}
    assert told["command"].startswith(f"dovetail experiment fit {target.group} ")
    assert told["policies"] == list(target.policies)
    assert told["seeds"] == list(range(len(told["seeds"])))


@BOTH
def test_the_file_of_a_fit_has_every_cell_beside_the_papers_and_the_largest_miss(target):
    told = fitted(target)
    assert [(cell["cell"], cell["paper"]) for cell in told["cells"]] == [
        (cell.name, cell.paper) for cell in target.cells
    ]
    for cell in told["cells"]:
        assert cell["miss"] == pytest.approx(cell["ours"] - cell["paper"], abs=0.0011)
    assert told["fit"] == max(abs(cell["miss"]) for cell in told["cells"])
