"""The small form of the benchmark of control's loops: what it reports, and that the loops did their work."""

import json

from click.testing import CliRunner

from extender.cli import cli
from lab.bench.speed import turns


def test_the_small_form_reports_the_ratio():
    result = CliRunner().invoke(cli, ["bench", "loops", "--quick", "--json"])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    assert row["id"] == "plan.ratio.100"
    assert row["ours"] > 0


def test_both_clusters_start_pods_and_only_one_has_them_on_idle_room():
    without, beside = turns.measure(turns.QUICK, 3, lambda: None)
    assert without.cluster.started > 0
    assert beside.cluster.started > without.cluster.started
    assert (without.cluster.promoted, without.cluster.evicted) == (0, 0)
    assert beside.cluster.promoted > 0
    assert beside.cluster.evicted > 0
    assert without.milliseconds(turns.IDLE_ROOM) == 0
    parts = sum(beside.milliseconds(part) for part in (turns.PREEMPTION, turns.PROMOTION, turns.IDLE_ROOM))
    assert 0 < parts < beside.milliseconds(turns.ALL)
