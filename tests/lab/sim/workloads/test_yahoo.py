import numpy as np
import pytest

from extender.errors import TraceError
from lab.sim.workloads.workload import BLOCKS, LOCAL
from lab.sim.workloads.yahoo import maps, yahoo

HEAD = "job,task,type,attempt_start_s,attempt_finish_s,attempt_host,attempt_rack,preferred"
HOSTS = "host,rack\nb,r1\na,r0\nc,r1\n"
JOBS = "job,submit_s\nj2,50\nj1,0\n"
TASKS = (
    "j1,t1,MAP,10,14,a,r0,r0/a;r1/b",  # on its node
    "j1,t2,MAP,10,16,c,r1,r1/b",  # in its rack
    "j1,t3,MAP,10,13,a,r0,",  # nobody knows where its block is
    "j1,t4,REDUCE,20,30,a,r0,",
    "j2,t5,MAP,60,62,a,r0,r1/c",  # elsewhere
    "j2,t6,MAP,,,,,r1/c",  # never ran
)


@pytest.fixture
def traces(tmp_path):
    def write(tasks=TASKS):
        folder = tmp_path / "rumen_yahoo_locality"
        folder.mkdir()
        (folder / "t_hosts.csv").write_text(HOSTS)
        (folder / "t_jobs.csv").write_text(JOBS)
        (folder / "t_tasks.csv").write_text("\n".join((HEAD, *tasks)) + "\n")
        return tmp_path

    return write


def test_maps_run_as_long_as_they_did_and_read_where_their_blocks_were(traces):
    workload, machines = yahoo(traces(), "t", slots=2)
    assert [(job.name, job.arrives_at) for job in workload.jobs] == [("j1", 0.0), ("j2", 50.0)]
    known, unknown = workload.jobs[0].stages
    assert known.source == BLOCKS
    assert known.durations.tolist() == [4.0, 6.0]
    assert known.copies.tolist() == [[0, 1], [1, -1]]  # hosts by name: a, b, c
    assert unknown.source == LOCAL
    assert unknown.durations.tolist() == [3.0]
    assert machines.racks.tolist() == [0, 1, 1]
    assert machines.capacity[:, 0].tolist() == [2000.0] * 3


def test_what_was_realised_is_read_from_where_attempts_ran(traces):
    levels = [it.level for it in maps(traces(), "t")]
    assert levels == [0, 1, None, 2]
    assert np.mean([level == 0 for level in levels if level is not None]) == pytest.approx(1 / 3)


def test_a_map_that_ends_before_it_begins_is_refused(traces):
    with pytest.raises(TraceError, match="a map of j1 ends at 9"):
        maps(traces(("j1,t1,MAP,10,9,a,r0,r0/a",)), "t")
