"""The extender benchmark in its quick form."""

import json

from click.testing import CliRunner

from extender.cli import cli
from lab.bench.speed.verbs import VERBS, Timing, report


def test_the_quick_form_times_every_verb_at_every_size_and_prints_one_json_object():
    done = CliRunner().invoke(cli, ["bench", "extender", "--quick", "--json"])
    assert done.exit_code == 0, done.output
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    for nodes in (100, 500):
        for verb in VERBS:
            assert 0 < rows[f"{verb}_p50_ms.{nodes}"]["ours"] <= rows[f"{verb}_p99_ms.{nodes}"]["ours"]
        assert rows[f"ratio.{nodes}"]["paper"] is None


def test_the_ratio_is_that_of_the_dearer_verb():
    # filter 2 ms, prioritize 3 ms, floor 2 ms: 3 / 2.
    found = report(
        [Timing("filter", 9, 0.002, 0.002), Timing("prioritize", 9, 0.003, 0.004), Timing("floor", 9, 0.002, 0.1)]
    )
    rows = {row.id: row.ours for row in found.rows}
    assert rows["ratio.9"] == 1.5
    assert rows["filter_p50_ms.9"] == 2.0
    assert rows["prioritize_p99_ms.9"] == 4.0
