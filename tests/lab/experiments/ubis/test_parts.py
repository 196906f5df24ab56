"""The UBIS experiment: its jobs are the paper's, and its small form has every row."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from extender.cli import cli
from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from lab.experiments.running import runs_of
from lab.experiments.ubis.groups import FULL, QUICK
from lab.experiments.ubis.jobs import Pipelines, SleepJobs, chain_seconds
from lab.experiments.ubis.parts import parts
from lab.experiments.ubis.pipelines import later_jobs, slower_jobs
from lab.experiments.ubis.pressure import fewer
from lab.options import TRACES
from lab.sim.workloads.workload import Job, Stage, Workload

GIB = 2.0**30

ROWS = (
    "ubis.share.sleep.0.9",
    "ubis.preempted.sleep",
    "ubis.makespan",
    "ubis.makespan.bound",
    "ubis.makespan.etl_alone",
    "ubis.total_job_time",
    "ubis.regular_slowdown",
    "ubis.regular_killed",
    "ubis.jobs_slower",
    "ubis.jobs_later",
    "ubis.regular_delay",
    "ubis.busy.opportunistic",
    "ubis.pressure.preemptions",
    "ubis.pressure.regular_slowdown",
    "ubis.auto.makespan",
    "ubis.auto.preemptions_vs_best_fixed",
)


def test_sleeping_maps_grow_to_their_part_of_the_heap():
    # 0.2 GB of the JVM, and 99 % of a heap of 1.6: 1.784 of 2.
    use = SleepJobs("g-sleep").workload(0).jobs[0].stages[0].use
    assert use.parts[-1, MEMORY_INDEX] == pytest.approx(1.784 / 2)
    assert (np.diff(use.parts[:, MEMORY_INDEX]) > 0).all()
    assert (SleepJobs("sleep").workload(0).jobs[0].stages[0].use.parts[:, MEMORY_INDEX] == 0.1).all()


def test_a_node_holds_56_of_the_pipelines_tasks_by_its_vcores():
    pipelines = Pipelines()
    capacity = pipelines.machines.capacity
    demand = pipelines.workload(0).jobs[0].stages[0].demand
    assert capacity.shape[0] == 19
    assert capacity[0, CPU_INDEX] / demand[CPU_INDEX] == 56
    assert capacity[0, MEMORY_INDEX] // demand[MEMORY_INDEX] == 65


def test_no_task_uses_more_than_it_demands_as_requests_were_set_to_the_observed_peaks():
    for stage in (stage for job in Pipelines(size=0.05).workload(3).jobs for stage in job.stages):
        most = stage.use.parts[:, [CPU_INDEX, MEMORY_INDEX]].max() * stage.use.scale.max()
        assert most <= 1.0
        assert stage.use.parts[:, MEMORY_INDEX].mean() == pytest.approx(0.5, abs=0.1)


def test_bursting_tasks_request_what_they_use_in_the_middle_of_their_time_and_little_memory():
    stage = Pipelines(mix=("bursts",), size=0.05).workload(3).jobs[0].stages[0]
    assert stage.use.parts[:, CPU_INDEX].tolist() == [0.2, 1.0, 0.4]
    assert stage.use.scale.mean() == pytest.approx(1.0, abs=0.05)
    assert (stage.use.parts[:, MEMORY_INDEX] == 0.3).all()


def test_by_pressure_fewer_are_preempted_and_none_fewer_where_none_was():
    outcomes = [SimpleNamespace(preempted=part) for part in (1.0, 4.0, 0.0)]
    assert fewer(outcomes[0], outcomes[1]) == 75
    assert fewer(outcomes[2], outcomes[2]) == 0


def test_different_runs_have_different_names():
    for scale in (FULL, QUICK):
        chosen = parts(scale, range(10, 12), TRACES)
        assert len(runs_of(chosen)) == len({run for part in chosen for run in part.runs()})


def outcome(seconds, ends):
    """Return an outcome of which only the times of jobs are asked."""
    return SimpleNamespace(job_seconds=seconds, job_ends=ends)


def test_a_job_is_slower_or_later_by_more_than_a_heartbeat_and_may_be_one_and_not_the_other():
    base = outcome({"a": 10.0, "b": 10.0, "c": 10.0, "d": 10.0}, {"a": 10.0, "b": 20.0, "c": 10.0, "d": 30.0})
    ours = outcome({"a": 11.0, "b": 12.0, "c": 9.0, "d": 10.0}, {"a": 11.0, "b": 18.0, "c": 9.0, "d": 32.0})
    assert slower_jobs(ours, base) == 25
    assert later_jobs(ours, base) == 25


def test_the_longest_chain_is_that_of_the_longest_tasks_from_the_arrival_on():
    demand = np.ones(6)

    def stage(*seconds, parents=()):
        return Stage("s", demand, 0.0, 1.0, np.array(seconds, dtype=float), parents=parents)

    # 5 + (4, then 3, after 2 or 4) = 12, and 8.
    late = Job("late", 5.0, [stage(4.0, 1.0), stage(2.0), stage(3.0, parents=(0, 1))])
    assert chain_seconds(Workload("w", [Job("long", 0.0, [stage(8.0)]), late])) == 12


@pytest.mark.slow
def test_the_small_form_has_every_row_and_a_report(tmp_path):
    report = tmp_path / "ubis.html"
    result = CliRunner().invoke(cli, ["experiment", "ubis", "--quick", "--json", "--report", str(report)])
    assert result.exit_code == 0, result.output
    rows = {row["id"]: row for row in json.loads(result.stdout)["rows"]}
    for name in ROWS:
        assert math.isfinite(rows[name]["ours"])
    assert rows["ubis.regular_killed"]["ours"] == 0
    assert report.read_text(encoding="utf-8").count("<svg") >= 12
