import numpy as np
import pytest
from numpy.testing import assert_allclose

from extender.errors import TraceError
from lab.experiments.peaks.trace import JOBS, USAGE, surf_jobs
from lab.options import TRACES
from tests.lab.experiments.peaks.surf import write


def test_jobs_come_in_the_order_of_their_arrival_with_the_cores_that_they_use(tmp_path):
    jobs = surf_jobs(write(tmp_path, (700, 4, [0.5, 1.0]), (0, 16, [0.25])))
    assert jobs.submitted.tolist() == [0, 2]  # 700 s is in the third step of 300 s
    assert jobs.length.tolist() == [1, 2]
    assert jobs.cores.tolist() == [16, 4]
    assert_allclose(jobs.use, [[4, 0], [2, 4]])


def test_a_job_shorter_than_a_sample_is_left_out(tmp_path):
    write(tmp_path, (0, 16, [1.0]), (0, 16, [1.0]))
    file = tmp_path / JOBS
    file.write_text(file.read_text().replace("j1,0,300", "j1,0,299"))
    assert len(surf_jobs(tmp_path).length) == 1


@pytest.mark.parametrize("missing", ["j0,0,0.5", "j0,1,0.5"])
def test_a_job_whose_use_is_not_known_is_named_with_its_line(tmp_path, missing):
    write(tmp_path, (0, 16, [0.5, 0.5, 0.5]))
    file = tmp_path / USAGE
    file.write_text(file.read_text().replace(f"{missing}\n", ""))
    with pytest.raises(TraceError, match=r"surf_week_jobs\.csv, line 2: the use of job j0"):
        surf_jobs(tmp_path)


@pytest.mark.traces
@pytest.mark.skipif(not (TRACES / JOBS).is_file(), reason=f"SURF's jobs are not at {TRACES}")
def test_surfs_jobs_use_never_more_than_they_request():
    jobs = surf_jobs(TRACES)
    assert len(jobs.length) == 2620
    assert (jobs.use <= jobs.cores[:, np.newaxis]).all()
    assert (np.diff(jobs.submitted) >= 0).all()
