"""`dovetail graph`: a job of a file or of a trace, its order, and what is wrong with either."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from extender.cli import cli
from extender.errors import DovetailError

TRACES = Path(__file__).parents[5] / "shared" / "traces"
MAP = {"name": "map", "tasks": 4, "seconds": 2, "demand": {"cpu": 1}}
LONG = {"name": "long", "seconds": 10, "demand": {"cpu": 1}, "parents": ["first"]}
JOB = {"job": "etl", "stages": [MAP, {"name": "first", "seconds": 1, "demand": {"cpu": 2}}, LONG]}
MACHINES = {"name": "m", "count": 2, "allocatable": {"cpu": 2, "memory": "4Gi"}}


@pytest.fixture
def graph(tmp_path):
    """Return what runs the command on these jobs and machines."""

    def run(*flags, jobs=(JOB,), machines=(MACHINES,)):
        files = []
        for name, lines in (("workload.jsonl", jobs), ("machines.jsonl", machines)):
            files.append(tmp_path / name)
            files[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
        command = ["graph", str(files[0]), f"--machines={files[1]}", *flags]
        return CliRunner().invoke(cli, command, catch_exceptions=False).output

    return run


def test_it_shows_the_bound_the_orders_and_when_each_stage_runs(graph):
    told = graph("--share=1").splitlines()
    assert told[0].startswith("etl: 3 stages, 6 tasks on 1 machine")
    assert told[1].startswith("11.0 s by the order found")
    assert any(line.split()[:4] == ["map", "4", "1.0", "9.0"] for line in told)
    assert any(line.split()[:4] == ["long", "1", "1.0", "11.0"] for line in told)
    assert max(map(len, told)) <= 100


@pytest.mark.parametrize("demand", [{}, {"cpu": 0}])
def test_stages_that_demand_nothing_wait_for_their_parents_alone(graph, demand):
    stages = [
        {"name": "a", "tasks": 5, "seconds": 60, "demand": demand},
        {"name": "b", "seconds": 30, "demand": demand},
    ]
    told = graph(jobs=({"job": "j", "stages": [stages[0], stages[1] | {"parents": ["a"]}]},))
    assert "90.0 s by the order found (longest path), 0.0 % above what no order can pass" in told


def test_json_has_a_rank_and_a_beginning_for_each_task(graph):
    told = json.loads(graph("--json"))
    assert told["seconds"] == 11
    assert told["bounds"]["cp_len"] == 11
    assert {stage["stage"]: len(stage["ranks"]) for stage in told["stages"]} == {"map": 4, "first": 1, "long": 1}
    assert all(len(stage["begins"]) == len(stage["ranks"]) for stage in told["stages"])


def test_a_report_has_a_chart_of_the_stages_and_one_of_the_machines(graph, tmp_path):
    graph(f"--report={tmp_path / 'made' / 'page.html'}")
    page = (tmp_path / "made" / "page.html").read_text()
    assert page.count("<svg") == 2
    assert "11.0 s by the order found" in page


def test_one_of_several_jobs_is_named(graph):
    with pytest.raises(DovetailError, match="--job is missing: the workload has 2 jobs; accepted: one of etl, other"):
        graph(jobs=(JOB, {**JOB, "job": "other"}))
    with pytest.raises(DovetailError, match="--job other: the workload has 1 job; accepted: one of etl"):
        graph("--job=other")
    assert "other: 3 stages" in graph("--job=other", jobs=(JOB, {**JOB, "job": "other"}))


def test_machines_of_two_shapes_are_refused(graph):
    larger = {"name": "large", "allocatable": {"cpu": 4, "memory": "4Gi"}}
    with pytest.raises(DovetailError, match="they differ; accepted: machines of one shape"):
        graph(machines=(MACHINES, larger))


def test_a_cycle_is_named_with_its_line(graph):
    stages = [{**MAP, "parents": ["long"]}, {**LONG, "parents": ["map"]}]
    with pytest.raises(DovetailError, match=r"workload\.jsonl, line 1"):
        graph(jobs=({"job": "etl", "stages": stages},))


def test_a_query_is_not_there_where_the_traces_are_not(tmp_path):
    with pytest.raises(DovetailError, match="say with --traces where the traces are"):
        CliRunner().invoke(cli, ["graph", "tpch:q5-100g", f"--traces={tmp_path}"], catch_exceptions=False)


def test_a_truncated_trace_is_named_with_its_line(tmp_path):
    (tmp_path / "tpch_dags").mkdir()
    (tmp_path / "tpch_dags" / "tpch_dags.jsonl").write_text('{"job": "q1", "stages": []}\n{"job": "q2", "sta')
    with pytest.raises(DovetailError, match=r"tpch_dags\.jsonl, line 2: not a query"):
        CliRunner().invoke(cli, ["graph", "tpch:q2", f"--traces={tmp_path}"], catch_exceptions=False)


@pytest.mark.skipif(not (TRACES / "tpch_dags").is_dir(), reason="the traces are not there")
def test_a_tpch_query_runs_on_executors():
    command = ["graph", "tpch:q5-2g", "--share=10", f"--traces={TRACES}", "--json"]
    told = json.loads(CliRunner().invoke(cli, command, catch_exceptions=False).output)
    assert told["machines"] == 10
    assert told["bounds"]["tightest"] <= told["seconds"] <= told["tried"]["breadth-first"]


def test_a_stage_with_brackets_in_its_name_is_shown(graph):
    stages = [{"name": "save [/data/out]", "tasks": 4, "seconds": 2, "demand": {"cpu": 1}}]
    assert "save [/data/out]" in graph(jobs=({"job": "etl", "stages": stages},))


def test_control_characters_in_names_do_not_reach_the_terminal(graph):
    stages = [{**MAP, "name": "\x1b[2Jmap"}]
    told = graph(jobs=({"job": "etl\x1b[31m\x07", "stages": stages},))
    assert told.startswith(r"etl\x1b[31m\x07: 1 stage")
    assert r"\x1b[2Jmap" in told
    assert "\x1b" not in told


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_answer_is_printed_though_its_report_cannot_be_written(tmp_path):
    (tmp_path / "workload.jsonl").write_text(json.dumps(JOB))
    (tmp_path / "machines.jsonl").write_text(json.dumps(MACHINES))
    files = [str(tmp_path / "workload.jsonl"), f"--machines={tmp_path / 'machines.jsonl'}"]
    result = CliRunner().invoke(cli, ["graph", *files, "--report=/dev/full"])
    assert "the report /dev/full cannot be written" in str(result.exception)
    assert result.output.startswith("etl: 3 stages")
