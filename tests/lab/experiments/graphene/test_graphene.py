"""The Graphene experiments: the family that is drawn, and what is measured of an order."""

from pathlib import Path

import numpy as np
import pytest

from lab.experiments.graphene.family import VARIATIONS, draw, share
from lab.experiments.graphene.parts import QUICK, parts
from lab.experiments.graphene.parts import perform as perform_any
from lab.experiments.graphene.single import SingleRun, perform
from lab.experiments.graphene.tpch import TpchRun
from lab.experiments.graphene.tpch import perform as perform_tpch
from lab.experiments.running import run_parts

TRACES = Path(__file__).parents[5] / "shared" / "traces"


@pytest.fixture(scope="module")
def family():
    random = np.random.default_rng(0)
    return [draw(random) for _ in range(300)]


def test_the_family_has_the_statistics_that_the_paper_publishes(family):
    depth = np.array([one.depth for one in family])
    assert 4 <= np.median(depth) <= 6
    assert np.mean(depth > 10) == pytest.approx(0.25, abs=0.06)
    assert np.mean([one.tree for one in family]) == pytest.approx(0.4, abs=0.1)
    assert np.mean([one.parts >= 4 for one in family]) == pytest.approx(0.24, abs=0.06)
    assert 10 <= np.median([len(one.dag) for one in family]) <= 60
    assert 1_000 <= np.median([one.dag.count.sum() for one in family]) <= 9_000


def test_demands_vary_nearly_as_published(family):
    demand = np.vstack([one.dag.demand for one in family])
    # Cut off at a machine, so somewhat less.
    assert demand.std(axis=0) / demand.mean(axis=0) == pytest.approx(VARIATIONS, rel=0.2)


def test_a_share_of_machines_is_as_large_as_the_load_says(family):
    dag = next(one.dag for one in family if 10 <= share(one.dag, 1.0).count < 40)
    assert share(dag, 2.0).count == pytest.approx(share(dag, 1.0).count / 2, abs=1)


def test_what_is_measured_lies_between_the_bound_and_the_simple_orders():
    measured = perform(SingleRun(10, 1.0, 4, effort=500), lambda _done, _total: None)
    assert (measured.new_lb <= measured.tightest * (1 + 1e-9)).all()
    assert (measured.tightest <= measured.ours * (1 + 1e-9)).all()
    assert (measured.ours <= measured.spans["breadth-first"] * (1 + 1e-9)).all()


def test_the_small_form_has_all_rows(tmp_path):
    sections, skipped = run_parts(
        parts(QUICK, [10], tmp_path), perform_any, processes=1, show=lambda _name, _done, _total: None
    )
    assert [part.part for part in skipped] == ["tpch"]
    assert "tpch_dags.jsonl; say with --traces where the traces are" in skipped[0].reason
    assert skipped[0].trace == ""
    ids = [figure.id for figure in sections[0].figures]
    assert ids == [
        *(f"graphene.bound.p{percentile}" for percentile in (50, 75, 90)),
        "graphene.gap_closed",
        "graphene.vs_bfs.p50",
        "graphene.vs_bfs.p75",
        "graphene.worse_than_baseline",
        "graphene.build_s.p50",
        "graphene.build_s.p99",
    ]


@pytest.mark.traces
@pytest.mark.skipif(not TRACES.is_dir(), reason="needs the workload traces in ../shared/traces")
def test_on_a_published_sequence_of_queries_the_rules_stand_in_the_known_order():
    times = perform_tpch(TpchRun(1, TRACES), lambda _done, _total: None)
    order = sorted(times.seconds, key=lambda name: times.seconds[name])
    assert order == ["dovetail", "least_work", "fair", "fifo"]
    assert times.bound < times.seconds["dovetail"]
