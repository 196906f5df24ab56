"""The demo from end to end, in its quick form: two seeds on one real control plane."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.own_control_plane


@pytest.mark.usefixtures("programs")
def test_the_quick_demo_ends_every_pod_and_dovetail_over_allocates_nothing(pytestconfig, tmp_path, tell):
    report, picture = tmp_path / "demo.html", tmp_path / "demo.png"
    minor = pytestconfig.getoption("--kubernetes")
    options = ["--quick", "--seeds=2", "--json", f"--kubernetes={minor}", f"--output={report}", f"--picture={picture}"]
    found = subprocess.run(
        [sys.executable, "-m", "extender", "demo", *options], capture_output=True, text=True, timeout=300, check=False
    )
    assert found.returncode == 0, found.stderr
    rows = {row["id"]: row["ours"] for row in json.loads(found.stdout)["rows"]}
    assert rows["pods_ended.stock"] == rows["pods_ended.dovetail"] == 120
    for group in ("disk", "network"):
        assert rows[f"over_percent.{group}.dovetail"] == 0
        assert rows[f"over_worst.{group}.dovetail"] <= 1
    assert rows["over_worst.network.stock"] > 1  # its network-heavy pods land by chance
    assert rows["slowdown_mean.dovetail"] < 1.05
    assert {"demo.makespan", "demo.mean_job_time"} <= rows.keys()
    assert "The median seed" in report.read_text()
    assert report.read_text().count("<svg") == 5
    assert picture.stat().st_size > 10_000
    tell(f"makespan {rows['makespan_s.stock']} s by the stock scheduler, {rows['makespan_s.dovetail']} s with Dovetail")
