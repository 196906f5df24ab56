"""The delay experiment in its small form: every row is there, and every number came out of runs."""

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner

from extender.cli import cli
from lab.options import TRACES

ROWS = (
    "small.node_local.3",
    "small.node_local.10",
    "small.node_local.100",
    "sticky.locality.50",
    "sticky.throughput.50",
    "wait.node_local.4maps.1s",
    "wait.node_local.4maps.5s",
    "facebook.io.node_local_worst_bin",
    "facebook.cpu.job_time",
)


def asked(*arguments):
    return CliRunner().invoke(cli, ["experiment", "delay", "--quick", *arguments])


def rows(*arguments):
    result = asked("--json", *arguments)
    assert result.exit_code == 0, result.output
    return {row["id"]: row for row in json.loads(result.stdout)["rows"]}


def only(*parts):
    return [word for part in parts for word in ("--only", part)]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return tmp_path_factory.mktemp("delay") / "delay.html"


@pytest.fixture(scope="module")
def found(report):
    """Return the rows of all parts that need no traces; the report of the same run is written."""
    return rows("--report", str(report), *only("small", "sticky", "wait", "facebook-io", "facebook-cpu"))


@pytest.mark.slow
def test_the_small_form_has_every_row_and_a_report(found, report):
    for name in ROWS:
        assert math.isfinite(found[name]["ours"])
    assert found["sticky.throughput.50"]["unit"] == "x"
    assert found["small.node_local.3"]["paper"] == 75
    page = report.read_text(encoding="utf-8")
    assert page.count("<svg") >= 5
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.slow
def test_waiting_brings_tasks_to_their_input_where_others_do_not_wait(found):
    waits = [found[f"wait.node_local.4maps.{wait}s"]["ours"] for wait in (0, 1, 5)]
    assert waits == sorted(waits)
    assert waits[2] - waits[0] > 30
    assert found["sticky.locality.50"]["ours"] - found["sticky.locality_without.50"]["ours"] > 30


@pytest.mark.slow
def test_a_part_alone_in_one_process_gives_the_same_numbers_as_among_others(found):
    alone = rows(*only("wait"), "--processes", "1")
    assert alone == {name: row for name, row in found.items() if name.startswith("wait.")}


def test_where_there_are_no_traces_the_rest_is_done_and_the_reason_said(tmp_path):
    result = asked("--traces", str(tmp_path), *only("yahoo59", "wait"), "--processes", "1")
    assert result.exit_code == 0, result.output
    assert "yahoo59: skipped" in result.output
    assert "does not exist" in result.output
    assert "wait.node_local.4maps.1s" in result.output


@pytest.mark.traces
@pytest.mark.skipif(not Path(TRACES).is_dir(), reason=f"the traces are not at {TRACES}")
def test_yahoos_trace_runs_and_is_compared_with_what_was_realised():
    found = rows(*only("yahoo59"), "--processes", "1")
    assert found["yahoo59.node_local"]["paper"] == 3.9
    assert found["yahoo59.node_local"]["ours"] > 90


def test_a_part_that_does_not_exist_is_named_with_those_that_do():
    result = asked("--only", "smal")
    assert result.exit_code == 2
    assert "facebook-io" in result.output
