"""The UBIS experiment's part on a real control plane, from end to end, in its quick form."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.own_control_plane

NOBODY = (
    "regular_evicted",
    "evicted_twice",
    "evicted_guarded",
    "released_without_metrics",
    "evicted_without_metrics",
    "promoted.missed",
    "lost",
)


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("programs")
def test_the_quick_form_fills_evicts_promotes_and_does_nothing_unmeasured_while_processes_are_killed(tmp_path, tell):
    report = tmp_path / "real.html"
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "extender",
            "experiment",
            "ubis",
            "--only=real",
            "--quick",
            "--json",
            f"--report={report}",
        ],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    rows = {row["id"].removeprefix("real."): row["ours"] for row in json.loads(found.stdout)["rows"]}
    assert {name: rows[name] for name in NOBODY} == dict.fromkeys(NOBODY, 0)
    assert rows["used_after"] == pytest.approx(80, abs=2)
    assert rows["used_most"] < 95
    assert rows["evicted"] >= 8  # two at least in each of cpu, memory, disk, and after the outage
    assert rows["evicted.budget"] >= 2
    assert rows["refused"] >= 1
    assert rows["promoted"] >= 10
    assert rows["regular_without_metrics"] >= 1
    assert rows["released"] > rows["evicted"]
    assert rows["kills"] >= 3
    assert report.read_text().count("<svg") == 1
    tell(", ".join(f"{name} {value:g}" for name, value in rows.items()))
