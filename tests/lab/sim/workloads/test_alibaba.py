from pathlib import Path

import numpy as np
import pytest

from extender.errors import TraceError
from lab.sim.workloads.alibaba import JOBS_2017, JOBS_2018, alibaba2017, alibaba2018
from lab.sim.workloads.specs import machines
from lab.sim.workloads.workload import BLOCKS, SHUFFLE

TRACES = Path(__file__).parents[4].parent / "shared" / "traces"
GIB = 2.0**30
CPU, MEMORY, WRITE = 0, 1, 3

HEADER_2017 = "job_id,task_id,submit_s,inst_duration_s,cpu_cores,mem_norm,instances\n"
JOBS = HEADER_2017 + "7,1,100,13.5,0.5,0.25,250\n8,2,160,60,1.0,0.01,1\n7,3,101,20,1.0,0.5,2\n"

HEADER_2018 = "job,task_name,stage,parents,instances,start_s,end_s,inst_duration_s,cpu_req_pct,mem_req\n"
DAG = "j_1,M1,1,,2,60,90,30,100.0,0.5\nj_1,J3_1_2,3,1;2,1,100,110,10,50.0,1.0\nj_1,M2,2,,1,65,90,25,100.0,0.5\n"


def written(tmp_path, content):
    path = tmp_path / "jobs.csv"
    path.write_text(content)
    return path


def test_rows_of_a_job_of_2017_are_its_stages_which_do_not_wait_for_each_other(tmp_path):
    workload = alibaba2017(written(tmp_path, JOBS), 1, arrivals="trace")
    first, second = workload.jobs
    assert [(job.name, job.arrives_at) for job in workload.jobs] == [("7", 0), ("8", 60)]
    assert [(stage.name, stage.tasks, stage.parents, stage.source) for stage in first.stages] == [
        ("1", 250, (), BLOCKS),
        ("3", 2, (), BLOCKS),
    ]
    stage = first.stages[0]
    assert stage.demand[CPU] == 500
    assert stage.demand[MEMORY] == 64 * GIB  # a quarter of 256 GB
    assert stage.duration == 13.5
    assert stage.durations.mean() == pytest.approx(13.5)
    assert second.stages[0].durations.tolist() == [60.0]


def test_stages_of_2018_wait_for_their_parents_whatever_the_order_of_the_lines(tmp_path):
    (job,) = alibaba2018(written(tmp_path, HEADER_2018 + DAG), 1).jobs
    assert [(stage.name, stage.parents, stage.source) for stage in job.stages] == [
        ("1", (), BLOCKS),
        ("2", (), BLOCKS),
        ("3", (0, 1), SHUFFLE),
    ]
    assert job.stages[2].demand[CPU] == 500
    assert job.stages[2].demand[MEMORY] == round(0.01 * 512 * GIB)


def test_a_dag_arrives_when_its_first_stage_starts(tmp_path):
    later = DAG.replace("j_1", "j_0").replace(",60,", ",360,").replace(",65,", ",365,").replace(",100,110", ",400,410")
    jobs = alibaba2018(written(tmp_path, HEADER_2018 + later + DAG), 1, arrivals="trace").jobs
    assert [(job.name, job.arrives_at) for job in jobs] == [("j_1", 0), ("j_0", 300)]


def test_a_stage_that_waits_for_one_its_job_does_not_have_is_named(tmp_path):
    path = written(tmp_path, HEADER_2018 + DAG.replace("1;2", "1;9"))
    with pytest.raises(TraceError) as raised:
        alibaba2018(path, 1)
    assert str(raised.value) == (
        f"{path}, line 3, column 'parents': stage 3 of job j_1 waits for stage 9, which that job does not have"
    )


def test_stages_that_wait_for_each_other_are_named(tmp_path):
    path = written(tmp_path, HEADER_2018 + DAG.replace("M2,2,,", "M2,2,3,"))
    with pytest.raises(TraceError) as raised:
        alibaba2018(path, 1)
    assert str(raised.value) == (
        f"{path}, line 3, column 'parents': stage 3 of job j_1 is in or behind a cycle of stages that wait for each "
        f"other: 3, 2"
    )


def test_a_stage_that_stands_twice_is_named(tmp_path):
    path = written(tmp_path, HEADER_2018 + DAG + DAG.splitlines()[0] + "\n")
    with pytest.raises(TraceError, match=r"line 5, column 'stage': job j_1 has stage 1 already"):
        alibaba2018(path, 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (HEADER_2018 + DAG.replace("1;2", "1,2"), "line 3, column 'mem_req': more follows"),
        (HEADER_2018 + DAG.replace("1;2", "1+2"), "line 3, column 'parents': '1+2'; accepted: whole numbers"),
        (
            HEADER_2018 + DAG.replace(",2,60", ",0,60"),
            "line 2, column 'instances': '0'; accepted: a whole number, 1 or more",
        ),
        (HEADER_2018 + DAG[:-12], "line 4, column 'cpu_req_pct': missing"),
    ],
)
def test_a_malformed_or_cut_off_line_is_named_by_file_line_and_column(tmp_path, content, says):
    path = written(tmp_path, content)
    with pytest.raises(TraceError) as raised:
        alibaba2018(path, 1)
    assert str(raised.value).startswith(f"{path}, {says}")


def test_a_task_of_2017_that_takes_no_time_is_refused(tmp_path):
    path = written(tmp_path, JOBS.replace("13.5", "0"))
    with pytest.raises(TraceError, match=r"line 2, column 'inst_duration_s': '0'; accepted: a number above 0"):
        alibaba2017(path, 1)


def test_reading_and_writing_are_drawn_per_stage_around_the_medians_of_the_table(tmp_path):
    rows = [f"{number},1,{number},10,0.5,0.01,1\n" for number in range(2000)]
    workload = alibaba2017(written(tmp_path, HEADER_2017 + "".join(rows)), 1)
    stages = [job.stages[0] for job in workload.jobs]
    assert np.median([stage.reading for stage in stages]) == pytest.approx(4e6, rel=0.1)
    assert np.median([stage.demand[WRITE] for stage in stages]) == pytest.approx(2e6, rel=0.1)


def test_the_same_seed_gives_the_same_jobs(tmp_path):
    path = written(tmp_path, JOBS)
    first, second, other = (alibaba2017(path, seed).jobs[0].stages[0] for seed in (1, 1, 2))
    assert first.durations.tobytes() == second.durations.tobytes()
    assert first.reading == second.reading != other.reading


@pytest.mark.traces
@pytest.mark.skipif(not TRACES.is_dir(), reason="needs the workload traces in ../shared/traces")
@pytest.mark.parametrize(
    ("read", "path", "jobs", "profile"),
    [(alibaba2017, JOBS_2017, 5216, "alibaba2017"), (alibaba2018, JOBS_2018, 3690, "alibaba2018")],
)
def test_the_whole_trace_is_read_and_no_task_takes_more_than_a_machine(read, path, jobs, profile):
    workload = read(TRACES / path, 1)
    assert len(workload.jobs) == jobs
    capacity = machines(profile).capacity[0]
    for job in workload.jobs:
        for place, stage in enumerate(job.stages):
            taken = stage.demand.copy()
            taken[[2, 4, 5]] = stage.reading
            assert (taken <= capacity).all()
            assert all(parent < place for parent in stage.parents)
