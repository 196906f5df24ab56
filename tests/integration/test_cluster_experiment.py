"""The cluster experiment from end to end, in its quick form: two real control planes, one after the other."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.own_control_plane


@pytest.mark.usefixtures("programs")
def test_the_quick_form_ends_every_pod_once_on_both_and_tells_the_simulator_beside_them(pytestconfig, tmp_path, tell):
    report = tmp_path / "cluster.html"
    minor = pytestconfig.getoption("--kubernetes")
    options = ["--quick", "--json", f"--kubernetes={minor}", f"--report={report}"]
    found = subprocess.run(
        [sys.executable, "-m", "extender", "experiment", "cluster", *options],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    rows = {row["id"]: row["ours"] for row in json.loads(found.stdout)["rows"]}
    for whose in ("", ".stock"):
        for count in ("lost", "stuck", "double"):
            assert rows[f"cluster.{count}{whose}"] == 0
    for name in ("makespan_vs_stock", "mean_job_time_vs_stock", "sim_gap"):
        assert isinstance(rows[f"cluster.{name}"], float)
    for run in ("dovetail", "stock", "sim", "sim_kube"):
        assert rows[f"cluster.makespan.{run}"] > rows[f"cluster.mean_job_time.{run}"] > 0
        assert 0 < rows[f"cluster.node_local.{run}"] <= 100
    assert rows["cluster.turn_to_bound.p50"] < 1
    assert report.read_text().count("<svg") == 3
    tell(f"makespan {rows['cluster.makespan.stock']} s stock, {rows['cluster.makespan.dovetail']} s with Dovetail")
