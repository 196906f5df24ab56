"""The Graphene experiments: the family that is drawn, and what is measured of an order."""

from pathlib import Path

import numpy as np
import pytest

from extender.graph import Dag, Parent, Stage
from lab.experiments.graphene.parts import QUICK, parts
from lab.experiments.graphene.parts import perform as perform_any
from lab.experiments.graphene.single import SingleRun, perform, work_lies
from lab.experiments.graphene.table7 import PAPER, beyond, share, within
from lab.experiments.graphene.tpch import TpchRun
from lab.experiments.graphene.tpch import perform as perform_tpch
from lab.experiments.running import run_parts
from lab.sim.workloads.dags import draw

TRACES = Path(__file__).parents[5] / "shared" / "traces"


@pytest.fixture(scope="module")
def family():
    random = np.random.default_rng(0)
    return [draw(random) for _ in range(100)]


def test_a_share_of_machines_is_as_large_as_the_load_says(family):
    dag = next(one.dag for one in family if 10 <= share(one.dag, 1.0).count < 40)
    assert share(dag, 2.0).count == pytest.approx(share(dag, 1.0).count / 2, abs=1)


def test_where_the_work_lies_is_by_the_resource_of_which_most_is_asked():
    def stage(name, tasks, seconds, *parents):
        return Stage(name, np.full(tasks, float(seconds)), np.array([0.5, 0.1]), tuple(Parent(one) for one in parents))

    # CPU: 2 x 10, 1 x 20, 3 x 20 and 1 x 100 halves of a machine's seconds; "a" and "d" are the longest path.
    dag = Dag([stage("a", 2, 10), stage("b", 1, 20), stage("c", 3, 20, "b"), stage("d", 1, 100, "a")])
    assert work_lies(dag) == pytest.approx((40 / 200, 120 / 200))


def test_each_order_of_the_papers_table_is_run():
    dag = draw(np.random.default_rng(1)).dag
    assert set(PAPER) < set(within(dag, share(dag, 1.0), 1)) | set(beyond(dag, share(dag, 1.0), 1))


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
        "graphene.gap_closed_all",
        "graphene.vs_bfs.p50",
        "graphene.vs_bfs.p75",
        "graphene.vs_bfs_all.p50",
        "graphene.vs_bfs_all.p75",
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
