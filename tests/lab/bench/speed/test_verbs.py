"""The extender benchmark in its quick form."""

import json

from click.testing import CliRunner

from extender.cli import cli
from lab.bench.speed.verbs import VERBS, VerbTiming, report


def test_the_quick_form_times_every_verb_at_every_size_and_prints_one_json_object():
    done = CliRunner().invoke(cli, ["bench", "extender", "--quick", "--json"])
    assert done.exit_code == 0, done.output
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    for scene in ("100", "500", "devices.500"):
        for verb in VERBS:
            assert 0 < rows[f"{verb}_p50_ms.{scene}"]["ours"] <= rows[f"{verb}_p99_ms.{scene}"]["ours"]
        assert rows[f"ratio.{scene}"]["paper"] is None
        assert rows[f"ratio.chosen.{scene}"]["ours"] > 0


def test_the_ratio_is_that_of_the_dearer_verb():
    # filter 2 ms, prioritize 3 ms, floor 2 ms: 3 / 2. filter that chooses, 5 ms: 5 / 2.
    p50s = {"filter": 0.002, "prioritize": 0.003, "chosen": 0.005, "floor": 0.002}
    found = report([VerbTiming(verb, 9, p50, 0.004) for verb, p50 in p50s.items()])
    rows = {row.id: row.ours for row in found.rows}
    assert rows["ratio.9"] == 1.5
    assert rows["ratio.chosen.9"] == 2.5
    assert rows["filter_p50_ms.9"] == 2.0
    assert rows["prioritize_p99_ms.9"] == 4.0
