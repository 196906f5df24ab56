"""The experiment in its small form: every row is there, and every number came out of runs."""

import json
import math

import pytest
from click.testing import CliRunner

from extender.cli import cli
from lab.experiments.peaks.predictors import PREDICTORS
from lab.experiments.peaks.trace import JOBS
from lab.options import TRACES
from tests.lab.experiments.peaks.surf import write


def asked(*arguments):
    return CliRunner().invoke(cli, ["experiment", "peaks", "--quick", "--processes", "1", *arguments])


def rows(*arguments):
    result = asked("--json", *arguments)
    assert result.exit_code == 0, result.output
    return {row["id"]: row["ours"] for row in json.loads(result.stdout)["rows"]}


@pytest.fixture
def folder(tmp_path):
    jobs = [(900 * number, 16, [0.2, 0.3, 0.9] * (5 + number % 7)) for number in range(100)]
    return write(tmp_path / "traces", *jobs)


def test_every_predictor_has_its_rows_in_percent(folder):
    found = rows("--only", "predictors", "--traces", str(folder))
    words = ("violations", "savings", "over_capacity", "evicted", "lost", "gained", "used")
    assert set(found) == {f"peak.{word}.{name}" for name in PREDICTORS for word in words}
    assert all(math.isfinite(value) for value in found.values())
    assert found["peak.violations.oracle"] == 0
    assert found["peak.savings.requests"] == pytest.approx(10)
    assert found["peak.violations.maximum"] <= min(found["peak.violations.sigma"], found["peak.violations.percentiles"])
    assert found["peak.savings.maximum"] <= min(found["peak.savings.sigma"], found["peak.savings.percentiles"])


def test_auto_is_shown_by_its_history_and_by_its_budget_and_the_report_has_the_plot(folder, tmp_path):
    found = rows("--traces", str(folder), "--report", str(tmp_path / "peaks.html"))
    assert {"peak.history.savings.30min_of_2h", "peak.budget.rate.0.2"} <= set(found)
    assert found["peak.budget.violations.1"] == found["peak.violations.auto"]
    page = (tmp_path / "peaks.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_without_the_trace_every_part_is_skipped_with_its_reason(tmp_path):
    result = asked("--traces", str(tmp_path))
    assert result.exit_code != 0
    skipped = [line for line in result.output.splitlines() if ": skipped: " in line]
    assert [line.partition(":")[0] for line in skipped] == ["predictors", "history", "budget"]
    assert all(f"seed 10: {tmp_path / 'opendc_usage'}" in line and "does not exist" in line for line in skipped)


def test_a_part_that_does_not_exist_is_named_with_those_that_do():
    result = asked("--only", "predictor")
    assert result.exit_code == 2
    assert "history" in result.output


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.skipif(not (TRACES / JOBS).is_file(), reason=f"SURF's jobs are not at {TRACES}")
def test_on_surf_the_prediction_is_passed_less_often_than_a_threshold_that_saves_as_much():
    found = rows("--only", "predictors")
    assert found["peak.violations.sigma"] < found["peak.violations.fixed.0.8"]
    assert found["peak.savings.sigma"] > found["peak.savings.fixed.0.8"]
    assert found["peak.over_capacity.auto"] < found["peak.over_capacity.fixed.0.8"]
