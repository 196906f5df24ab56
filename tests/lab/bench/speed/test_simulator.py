"""The small form of the simulator's benchmark: what it reports, never how fast."""

import json
import threading
import time
from types import SimpleNamespace

from click.testing import CliRunner
from rich.console import Console

from extender.cli import cli
from extender.planner import Policy
from lab.bench.speed.simulator import QUICK, PlanTiming, report, steps
from lab.sim.engine.outcome import Speed


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
    # 3 of 4 s in the planner; a fifth of a plan at a closer look, so four fifths are the rest.
    outcome = SimpleNamespace(workload="suite", machines="m", policy="tetris", speed=Speed(20, 10, 5, 4.0, 3.0))
    timings = [PlanTiming(Policy().matching, 0.5, 100, 0.1)]
    console = Console(width=80)
    with console.capture() as text:
        for table in report(outcome, timings, QUICK, [("a closer look at one node", 0.2)]).tables:
            console.print(table)
    parts = {line.split("│")[1].strip(): line.split() for line in text.get().splitlines() if "│" in line}
    assert "75%" in parts["planner"]
    assert "20%" in parts["a closer look at one node"]
    assert "80%" in parts["the rest"]


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
