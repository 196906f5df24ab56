"""The cluster benchmark from end to end, in its quick form, on a real control plane of its own."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from extender.cli import cli
from lab.bench.cluster.contenders import STOCK
from lab.bench.cluster.runs import ClusterSize, measure
from lab.errors import ControlPlaneError

pytestmark = pytest.mark.own_control_plane


@pytest.mark.timeout(700)
@pytest.mark.usefixtures("programs")
def test_the_quick_form_binds_every_pod_and_reports_every_row(pytestconfig, tell):
    minor = pytestconfig.getoption("--kubernetes")
    command = [sys.executable, "-m", "extender", "bench", "cluster", "--quick", "--json", f"--kubernetes={minor}"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert found.returncode == 0, found.stderr
    rows = {row["id"]: row["ours"] for row in json.loads(found.stdout)["rows"]}

    contenders = ("", ".stock", ".auto", ".filter")
    rates = {f"throughput{name}.200" for name in (*contenders, ".ratio", ".filter.ratio", ".auto.ratio")}
    assert rates | {"cpu_ms_per_pod.200", "cpu_ms_per_pod.stock.200"} <= rows.keys()
    over = {name for name in rows if name.startswith("over_allocated.")}
    assert over == {f"over_allocated{name}.200" for name in contenders}
    assert all(rows[name] == 0 for name in over)
    assert all(ours > 0 for name, ours in rows.items() if name.startswith(("throughput", "cpu_ms_per_pod")))
    assert rows["off_nominated.200"] == 0
    for process in ("etcd", "apiserver", "scheduler", "serve", "control", "client"):
        assert rows[f"cpu_ms.{process}.200"] > 0
    ways = {f"latency.{name}.{way}.200" for name in ("stock", "auto", "gates") for way in ("burst", "steady")}
    assert ways | {"latency.auto.mean_vs_stock", "latency.gates.mean_vs_stock"} <= rows.keys()
    assert all(rows[name] > 0 for name in ways)
    assert rows["writes_per_pod.200"] >= rows["writes_per_pod.stock.200"] + 0.5
    phases = {name for name in rows if name.startswith("phase.")}
    assert {f"phase.{name}.{what}" for name in ("room", "backlog") for what in ("gated", "refusals")} <= phases
    assert "order_error.auto" in rows
    tell(", ".join(f"{name} {rows[name]}" for name in sorted(rates)))


def test_pods_that_are_not_bound_in_time_end_the_run_with_how_many(programs, tmp_path, monkeypatch):
    # A node takes 110 pods: 3 of 113 stay.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # after an error the logs stay
    with pytest.raises(ControlPlaneError, match=r"3 of 113 pods were not bound"):
        list(measure(programs, ClusterSize(nodes=1, pods=113, jobs=1, runs=1, limit_seconds=12), lambda: None, [STOCK]))


@pytest.mark.usefixtures("programs")
def test_an_unknown_contender_is_refused_with_those_that_there_are():
    found = CliRunner().invoke(cli, ["bench", "cluster", "--contender", "nobody"])
    assert found.exit_code == 2
    assert "accepted: stock, stock_all, auto, gates, filter" in found.output
