"""The whole experiment in its small form: every row is there, and every number came out of runs."""

import json
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from extender.cli import cli
from lab.options import TRACES

SUITE = (
    "suite.makespan_vs_capacity",
    "suite.makespan_vs_drf",
    "suite.makespan_vs_exact_drf",
    "suite.median_job_time_vs_drf",
    "suite.median_job_time_vs_capacity",
    "suite.median_job_time_vs_exact_drf",
    "suite.upper_bound_share",
    "suite.slowed_jobs",
    "suite.slowed_jobs_vs_fair",
    "suite.slowed_jobs_vs_capacity",
    "suite.slowed_by_vs_drf",
    "suite.slowed_by_vs_fair",
    "suite.slowed_by_vs_capacity",
)
FACEBOOK = (
    "facebook.mean_job_time_vs_fair",
    "facebook.mean_job_time_vs_drf",
    "facebook.mean_job_time_vs_exact_drf",
    "facebook.makespan_vs_fair",
    "facebook.makespan_vs_drf",
    "facebook.makespan_vs_exact_drf",
    "facebook.upper_bound_share",
    "facebook.slowed_jobs",
    "facebook.slowed_jobs_vs_drf",
    "facebook.slowed_by_vs_fair",
    "facebook.slowed_by_vs_drf",
)
OF_OURS_ALONE = ("exact_drf", "slowed_jobs_vs", "slowed_by")
BESIDE = ("", ".loss_0", ".paper_policy")
ONE_SEED = ("--first-seed", "35", "--seeds", "1")
"""One that draws small jobs: the runs of others take several times as long."""


def rows(*arguments: str) -> dict[str, dict[str, object]]:
    result = CliRunner().invoke(cli, ["experiment", "tetris", "--quick", "--json", *arguments])
    assert result.exit_code == 0, result.output
    return {row["id"]: row for row in json.loads(result.stdout)["rows"]}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return tmp_path_factory.mktemp("tetris") / "tetris.html"


@pytest.fixture(scope="module")
def found(report):
    """Return the rows of all parts; the report of the same run is written."""
    return rows("--report", str(report), *ONE_SEED)


@pytest.mark.slow
@pytest.mark.skipif(not Path(TRACES).is_dir(), reason=f"the traces are not at {TRACES}")
def test_the_small_form_has_every_row_and_a_report(found, report):
    for name in (*SUITE, *FACEBOOK):
        for row in (found[f"{name}{beside}"] for beside in BESIDE):
            assert row["unit"] == "%"
            assert isinstance(row["paper"], int | float) or any(part in name for part in OF_OURS_ALONE)
            assert math.isfinite(row["ours"])
            if "_time_vs_" in name or "makespan_vs_" in name:
                assert row["ours"] <= row["attainable"] < 100
            else:
                assert "attainable" not in row
    for name in ("suite.fit", "facebook.fit"):
        assert 0 < found[name]["ours"] < 1
    page = report.read_text(encoding="utf-8")
    assert page.count("<svg") >= 4
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.slow
def test_a_part_alone_in_one_process_gives_the_same_numbers_as_among_others(found):
    alone = rows("--only", "ablation", "--processes", "1", *ONE_SEED)
    assert set(alone) == {name for name in found if name.startswith("ablation.")} != set()
    assert alone == {name: found[name] for name in alone}


@pytest.mark.slow
@pytest.mark.skipif(not Path(TRACES).is_dir(), reason=f"the traces are not at {TRACES}")
def test_the_small_form_has_two_seeds_and_a_row_is_their_mean():
    found = rows("--only", "facebook", "--first-seed", "38", "--processes", "1")
    del found["facebook.fit"]  # the largest miss of the mean of both
    assert set(found) == {f"{name}{beside}" for name in FACEBOOK for beside in BESIDE}
    for row in found.values():
        low, high = map(float, re.match(r"(\S+) to (\S+) over 2 seeds", row["note"]).groups())
        assert row["ours"] == pytest.approx((low + high) / 2, abs=0.06)


def test_a_part_that_does_not_exist_is_named_with_those_that_do():
    result = CliRunner().invoke(cli, ["experiment", "tetris", "--quick", "--only", "sweet"])
    assert result.exit_code != 0
    assert "sweet" in result.output
    assert "suite" in result.output
