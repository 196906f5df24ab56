"""The command: what it refuses before it starts anything, and what importing it costs."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from extender.cli import cli
from lab.controlplane.configurations import dovetail_configuration, stock_configuration
from lab.demo.commands import demo
from lab.errors import MissingExtra

SHIPPED = Path(__file__).parents[3] / "manifests" / "scheduler.yaml"


def test_a_picture_of_another_form_is_refused_with_what_is_accepted():
    found = CliRunner().invoke(demo, ["--picture", "demo.pdf"])
    assert found.exit_code == 2
    assert "accepted: .png, .svg" in found.output


def test_a_missing_extra_is_named_with_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = CliRunner().invoke(demo, ["--quick"])
    assert isinstance(found.exception, MissingExtra)
    assert (
        str(found.exception)
        == "matplotlib is missing; run `make setup` in the checkout, or there: pip install '.[lab]'"
    )


def test_the_command_line_imports_nothing_of_the_extra():
    code = (
        "import sys, extender.cli; print([name for name in ('matplotlib', 'rich', 'trustme') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_demo_is_a_command_with_help():
    found = CliRunner().invoke(cli, ["demo", "--help"])
    assert found.exit_code == 0
    assert "--quick" in found.output


def test_dovetails_run_uses_the_configuration_that_is_shipped():
    shipped = _shipped()
    ours = dovetail_configuration("http://127.0.0.1:10351")
    for profile in (*shipped["profiles"], *ours["profiles"]):
        del profile["schedulerName"]  # pods of the demo are the default scheduler's, in both runs
    for key in ("apiVersion", "kind", "leaderElection"):  # one scheduler has nobody to compete with
        del shipped[key]
    assert ours == shipped


@pytest.mark.parametrize("configuration", [stock_configuration(), dovetail_configuration("http://127.0.0.1:1")])
def test_both_runs_have_the_same_client_rate(configuration):
    assert configuration["clientConnection"] == _shipped()["clientConnection"]


def _shipped():
    manifests = [it for it in yaml.safe_load_all(SHIPPED.read_text()) if it and it["kind"] == "ConfigMap"]
    (text,) = [it["data"]["kube-scheduler.yaml"] for it in manifests if "kube-scheduler.yaml" in it["data"]]
    return yaml.safe_load(text)
