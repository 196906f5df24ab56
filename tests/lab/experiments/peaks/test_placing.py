import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lab.experiments.peaks.placing import place
from lab.experiments.peaks.trace import SurfJobs


def jobs_of(*rows):
    """Return jobs of (when it comes, steps, cores)."""
    submitted, length, cores = (np.array([row[column] for row in rows]) for column in range(3))
    return SurfJobs(submitted, length, cores.astype(float), np.zeros((len(rows), 1)))


def placed(*rows, nodes=1, cores=4.0, steps=20):
    result = place(jobs_of(*rows), nodes=nodes, cores=cores, steps=steps, seed=1)
    return list(zip(result.job.tolist(), result.node.tolist(), result.start.tolist(), strict=True))


def test_a_job_waits_until_requests_leave_room_for_it():
    # 3 of 4 cores are taken for five steps.
    assert placed((0, 5, 3), (1, 2, 2)) == [(0, 0, 0), (1, 0, 5)]


def test_nobody_passes_who_came_first():
    assert placed((0, 5, 3), (1, 2, 2), (2, 1, 1)) == [(0, 0, 0), (1, 0, 5), (2, 0, 5)]


def test_the_fullest_node_with_room_is_taken():
    (_, first, _), (_, second, _), (_, third, _) = placed((0, 9, 3), (1, 9, 2), (2, 9, 1), nodes=2)
    assert first == third != second


@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=20),
    st.integers(1, 3),
    st.integers(0, 5),
)
def test_no_node_is_promised_more_than_it_has_and_nobody_starts_before_coming(rows, nodes, seed):
    rows = sorted(rows)
    jobs = jobs_of(*rows)
    result = place(jobs, nodes=nodes, cores=4.0, steps=200, seed=seed)
    assert sorted(result.job.tolist()) == list(range(len(rows)))
    assert (result.start >= jobs.submitted[result.job]).all()
    for step in range(200):
        running = (result.start <= step) & (step < result.start + jobs.length[result.job])
        held = np.bincount(result.node[running], jobs.cores[result.job[running]], minlength=nodes)
        assert (held <= 4).all()
