"""The experiment has a row for each order and rule on each cluster, and no row below the bound."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lab.experiments.commands import experiment
from lab.options import TRACES

CONTENDERS = ("arrival", "cpu", "memory", "sum", "bestfit", "default", "fgd", "dovetail", "lower_bound")


@pytest.mark.traces
@pytest.mark.slow
@pytest.mark.skipif(not Path(TRACES).is_dir(), reason=f"the traces are not at {TRACES}")
def test_the_small_form_has_every_row_and_nothing_beats_the_bound_of_its_draws():
    result = CliRunner().invoke(experiment, ["packing", "--quick", "--json", "--processes", "1"])
    assert result.exit_code == 0, result.output
    rows = {row["id"]: row["ours"] for row in json.loads(result.stdout)["rows"]}
    for cluster in ("openb", "google"):
        machines = [rows[f"{cluster}.machines.{name}"] for name in CONTENDERS]
        assert min(machines) >= 1
        assert rows[f"{cluster}.machines.arrival"] >= rows[f"{cluster}.machines.lower_bound"]
        assert 0 < rows[f"{cluster}.holes_cpu.arrival"] <= 100


def test_a_trace_that_is_missing_is_named(tmp_path):
    result = CliRunner().invoke(experiment, ["packing", "--quick", "--traces", str(tmp_path), "--only", "openb"])
    assert result.exit_code != 0
    assert "openb_node_list_gpu_node.csv does not exist" in result.output
