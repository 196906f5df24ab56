"""Alibaba's jobs in the UBIS experiment: what is made of the trace, and the part's rows."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from extender.cli import cli
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from extender.errors import TraceError
from lab.experiments.ubis.alibaba import at_most, much_slower_jobs, regular_slowdown
from lab.experiments.ubis.alibaba_jobs import CAPPED, RAISED, AlibabaJobs
from lab.experiments.ubis.pipelines import slower_jobs
from lab.experiments.ubis.runs import UbisRun, perform
from lab.options import TRACES
from lab.sim.workloads.alibaba import JOBS_2018

GIB = 2.0**30
HEADER = (
    "job,stage,parents,instances,start_s,inst_duration_s,cpu_req_pct,mem_req,cpu_used_pct_per_inst,mem_used_per_inst\n"
)
JOBS = "".join(
    f"j_{job},1,,{40 + job},{job},60,100,0.5,20,0.1\nj_{job},2,1,10,{job + 60},20,50,0.2,100,0.4\n" for job in range(50)
)


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / JOBS_2018
    path.parent.mkdir(parents=True)
    path.write_text(HEADER + JOBS)
    return AlibabaJobs(tmp_path, nodes=1, seconds=300.0)


def asked(*arguments):
    return CliRunner().invoke(
        cli, ["experiment", "ubis", "--quick", "--only", "alibaba", "--processes", "1", *arguments]
    )


def mean_use(stage, dimension):
    phases = np.diff(stage.use.until, prepend=0.0)
    return float((phases * stage.use.parts[:, dimension]).sum() * stage.demand[dimension])


def test_a_task_requests_and_uses_in_the_mean_what_the_trace_says(jobs):
    first = jobs.workload(0).jobs[0].stages[0]
    assert first.demand[CPU_INDEX] == 1000
    assert first.demand[MEMORY_INDEX] == pytest.approx(0.005 * 512 * GIB)
    assert mean_use(first, CPU_INDEX) == pytest.approx(200)
    assert mean_use(first, MEMORY_INDEX) == pytest.approx(0.001 * 512 * GIB)
    assert first.durations.mean() == pytest.approx(60)


def test_cpu_above_the_request_is_used_and_memory_above_it_is_not(jobs):
    second = jobs.workload(0).jobs[0].stages[1]
    assert second.use.parts[:, CPU_INDEX].tolist() == [2.0, 2.0, 2.0]  # 100 % of a core on a request of 50 %
    assert second.demand[MEMORY_INDEX] == pytest.approx(0.002 * 512 * GIB)
    assert second.use.parts[:, MEMORY_INDEX].tolist() == [1.0, 1.0, 1.0]  # at least 0.24 % of a machine, on 0.2 %


def test_a_raised_request_holds_the_most_that_the_task_uses_of_memory_and_others_stay(jobs):
    first, second = replace(jobs, memory=RAISED).workload(0).jobs[0].stages
    assert first.demand[MEMORY_INDEX] == pytest.approx(0.005 * 512 * GIB)
    assert second.demand[MEMORY_INDEX] == pytest.approx(1.2 * 0.004 * 512 * GIB)
    assert second.use.parts[:, MEMORY_INDEX].tolist() == pytest.approx([0.5, 1 / 1.2, 1.0])
    assert mean_use(second, MEMORY_INDEX) == pytest.approx(0.004 * 512 * GIB)


def test_jobs_request_all_cores_for_the_seconds_wherever_the_piece_begins(jobs):
    wanted = 96 * 300.0
    starts = set()
    for seed in range(20):
        workload = jobs.workload(seed)
        requested = [
            sum(stage.tasks * stage.duration * stage.demand[CPU_INDEX] / 1000 for stage in job.stages)
            for job in workload.jobs
        ]
        assert sum(requested[:-1]) < wanted <= sum(requested)
        assert all(job.arrives_at == 0 for job in workload.jobs)
        starts.add(workload.jobs[0].name)
    assert len(starts) > 5


def test_jobs_that_come_over_time_request_the_load_while_they_come(jobs):
    workload = replace(jobs, load=1.2).workload(3)
    # 300 s of work at 1.2 times the cores come within 250 s; the last job is the one that passes 300 s.
    assert 250 <= workload.jobs[-1].arrives_at <= 250 * 1.1


def test_a_trace_that_requests_less_than_is_wanted_is_refused(jobs):
    with pytest.raises(TraceError, match="198500 core-seconds; 345600 are needed"):
        replace(jobs, seconds=3600.0).workload(0)


def test_regular_tasks_are_compared_with_the_same_tasks(jobs):
    off = perform(UbisRun(jobs, None, 0), lambda *_: None)
    ours = perform(UbisRun(jobs, 0.8, 0), lambda *_: None)
    assert ours.makespan < off.makespan
    assert 0 < ours.counts.opportunistic < ours.counts.starts
    marks = np.array([False, False, True])
    ours = replace(ours, stretch=np.array([2.2, 1.0, 5.0]), counts=replace(ours.counts, opportunistic_at_start=marks))
    off = replace(off, stretch=np.array([2.0, 1.0, 1.0]))
    assert regular_slowdown(ours, off) == pytest.approx(
        100 * (3.2 / 3.0 - 1)
    )  # the third began as an opportunistic one


def test_a_job_is_much_slower_from_five_percent_on(jobs):
    off = replace(perform(UbisRun(jobs, None, 0), lambda *_: None), job_seconds={"a": 100.0, "b": 100.0, "c": 100.0})
    ours = replace(off, job_seconds={"a": 104.0, "b": 106.0, "c": 90.0})
    assert much_slower_jobs(ours, off) == pytest.approx(100 / 3)
    assert slower_jobs(ours, off) == pytest.approx(200 / 3)


def test_the_scarcer_of_cpu_and_memory_says_how_much_less_it_can_be_at_most(jobs):
    off = perform(UbisRun(jobs, None, 0), lambda *_: None)
    scarce = replace(off, use=np.array([0.2, 0.4, 0.9, 0.9, 0.9, 0.9]))
    assert at_most(0.8)(off, replace(scarce, chain=0.0)) == pytest.approx(50)  # 0.4 of the time is half of it at 0.8
    assert at_most(0.8)(off, replace(scarce, chain=0.75 * off.makespan)) == pytest.approx(25)


def test_no_run_is_over_before_the_longest_chain_of_stages(jobs):
    paced = replace(jobs, load=1.2)
    (last, *_) = (stage.durations.max() for stage in paced.workload(0).jobs[-1].stages)
    for t_alloc in (None, 0.9):
        outcome = perform(UbisRun(paced, t_alloc, 0), lambda *_: None)
        assert paced.workload(0).jobs[-1].arrives_at + last < outcome.chain <= outcome.makespan


def test_the_part_has_its_rows_and_a_report(jobs, tmp_path):
    report = tmp_path / "alibaba.html"
    result = asked("--traces", str(jobs.traces), "--json", "--report", str(report))
    assert result.exit_code == 0, result.output
    rows = {row["id"]: row["ours"] for row in json.loads(result.stdout)["rows"]}
    for name in ("makespan", "total_job_time", "preempted", "jobs_slower", "regular_slowdown", "regular_killed"):
        assert math.isfinite(rows[f"alibaba.{name}"])
        assert math.isfinite(rows[f"alibaba.{name}.15s"])
    assert {"alibaba.makespan.raised.0.9.1s", "alibaba.total_job_time.paced.0.9.15s"} <= set(rows)
    assert rows["alibaba.makespan"] == max(rows["alibaba.makespan.0.5.1s"], rows["alibaba.makespan.0.9.1s"]) > 0
    assert report.read_text(encoding="utf-8").count("<svg") == 1


def test_without_the_trace_the_part_is_skipped_with_its_reason(tmp_path):
    result = asked("--traces", str(tmp_path))
    assert result.exit_code != 0
    assert f"alibaba: skipped: Alibaba's jobs for 150 s on 1 nodes, memory {CAPPED}" in result.output
    assert "does not exist" in result.output


@pytest.mark.traces
@pytest.mark.skipif(not (TRACES / JOBS_2018).is_file(), reason=f"Alibaba's jobs are not at {TRACES}")
def test_the_trace_uses_29_percent_of_the_cpu_that_it_requests_and_less_memory_where_that_is_capped():
    stages = [stage for job in AlibabaJobs(TRACES, nodes=20).workload(0).jobs for stage in job.stages]
    seconds = np.array([stage.durations.sum() for stage in stages])
    for dimension, low, high in ((CPU_INDEX, 0.2, 0.4), (MEMORY_INDEX, 0.3, 0.6)):
        requested = (seconds * [stage.demand[dimension] for stage in stages]).sum()
        used = (seconds * [mean_use(stage, dimension) for stage in stages]).sum()
        assert low < used / requested < high
