"""The small form of the simulator's benchmark: what it reports, never how fast."""

import json
import threading
import time

from click.testing import CliRunner

from extender.cli import cli
from lab.bench.speed.simulator import QUICK, steps


def test_the_small_form_reports_both_rates():
    result = CliRunner().invoke(cli, ["bench", "simulator", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    rows = {row["id"]: row for row in json.loads(result.stdout)["rows"]}
    for name in ("sim.events_per_s", "plan.placements_per_s"):
        assert rows[name]["unit"] == "1/s"
        assert rows[name]["ours"] > 0
    assert {name for name in rows if name.startswith("plan.placements_per_s.")} == {
        f"plan.placements_per_s.{matching}.{full}"
        for matching in ("machine", "pair", "bundle")
        for full in ("empty", "half-full")
    }


def test_it_says_where_the_time_goes():
    result = CliRunner().invoke(cli, ["bench", "simulator", "--quick"])
    assert result.exit_code == 0, result.output
    assert "Where a plan's time goes" in result.output
    assert "scores there" in result.output


def test_the_time_of_a_plan_is_known_while_other_threads_end_what_they_do():
    def deep(calls):
        if calls:
            deep(calls - 1)
        time.sleep(0.001)

    other = threading.Thread(target=deep, args=(900,))
    other.start()
    try:
        parts = [part for _, part in steps(QUICK)]
    finally:
        other.join()
    assert 0 <= sum(parts) <= 1
