"""DAGs that are drawn: their statistics, and the jobs that they make."""

import numpy as np
import pytest

from lab.sim.workloads.dags import VARIATIONS, dags, draw


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


def test_depth_counts_edges_as_in_the_paper_where_maps_and_reduces_have_one(family):
    for one in family[:50]:
        chain = np.zeros(len(one.dag))
        for row in one.dag.rows.tolist():
            chain[row] = max((chain[edge.row] + 1 for edge in one.dag.parents[row]), default=0)
        assert one.depth == chain.max()


def test_demands_vary_nearly_as_published(family):
    demand = np.vstack([one.dag.demand for one in family])
    # Cut off at a machine, so somewhat less.
    assert demand.std(axis=0) / demand.mean(axis=0) == pytest.approx(VARIATIONS, rel=0.2)


def test_as_a_workload_they_arrive_in_the_time_that_so_many_cores_take():
    slow, fast = (dags(1, jobs=5, load=load) for load in (160.0, 320.0))
    assert slow.jobs[0].arrives_at == fast.jobs[0].arrives_at == 0
    assert slow.jobs[-1].arrives_at == pytest.approx(2 * fast.jobs[-1].arrives_at)
    assert [job.arrives_at for job in dags(1, jobs=5, arrivals="start").jobs] == [0] * 5


def test_the_same_seed_is_the_same_workload_and_edges_stay_one_to_one():
    one, two = dags(3, jobs=8), dags(3, jobs=8)
    assert [len(job.stages) for job in one.jobs] == [len(job.stages) for job in two.jobs]
    assert any(stage.one_to_one for job in one.jobs for stage in job.stages)
