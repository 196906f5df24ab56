"""The playground's commands, where no playground runs."""

import re

import click
import pytest
from click.testing import CliRunner

from extender.errors import ClusterError
from lab.playground.commands import _manifests, playground

KUBECONFIG = """
clusters: [{name: gone, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: gone, user: {}}]
contexts: [{name: gone, context: {cluster: gone, user: gone}}]
current-context: gone
"""


@pytest.mark.parametrize("words", [["pods"], ["fill"], ["apply", "-"]])
def test_without_a_playground_a_command_says_how_to_start_one(words, tmp_path):
    result = CliRunner().invoke(playground, [*words, f"--kubeconfig={tmp_path / 'none'}"], input="")
    assert isinstance(result.exception, ClusterError)
    assert "start `dovetail playground` in another terminal" in str(result.exception)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (KUBECONFIG, "^start `dovetail playground` in another terminal: GET http.*/version: .* refused"),
        ("[1", "is not a kubeconfig: it does not read as one; give another by --kubeconfig"),
        ("", "is not a kubeconfig: .* is empty; give another by --kubeconfig"),
    ],
)
def test_a_kubeconfig_that_leads_nowhere_is_named_in_one_line(text, said, tmp_path):
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    result = CliRunner().invoke(playground, ["pods", f"--kubeconfig={path}"])
    assert isinstance(result.exception, ClusterError)
    [line] = str(result.exception).splitlines()
    assert re.search(said, line)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: [1", "cannot be read as YAML: line 1, column 6: while parsing a flow sequence"),
        (b"\xff", "is not text: "),
        (b"--- \n{}\n---\njust words\n", "manifest 1; needed: apiVersion, kind and metadata.name"),
        (b"{apiVersion: v1, kind: Pod, metadata: {}}", "manifest 1; needed: apiVersion, kind and metadata.name"),
        (b"{kind: Pod, metadata: {name: a}}", "manifest 1; needed: apiVersion, kind and metadata.name"),
    ],
)
def test_what_is_no_manifest_is_refused_by_its_file(text, said, tmp_path):
    path = tmp_path / "manifests.yaml"
    path.write_bytes(text)
    with path.open(encoding="utf-8") as file, pytest.raises(click.BadParameter) as refused:
        _manifests(file)
    assert str(path) in refused.value.message
    assert said in refused.value.message


def test_manifests_are_read_without_empty_documents(tmp_path):
    path = tmp_path / "manifests.yaml"
    path.write_text("---\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a}}\n")
    with path.open(encoding="utf-8") as file:
        assert [manifest["metadata"]["name"] for manifest in _manifests(file)] == ["a"]


@pytest.mark.parametrize("option", ["--kubeconfig=none", "--nodes=2"])
def test_an_option_before_a_commands_name_is_refused_as_nobody_would_read_it(option):
    result = CliRunner().invoke(playground, [option, "pods"])
    assert result.exit_code == 2
    assert f"{option.partition('=')[0]} stands before pods; accepted: behind it, if pods takes it" in result.output


def test_where_no_kubeconfig_can_be_written_nothing_is_started(monkeypatch, tmp_path):
    monkeypatch.setattr("lab.playground.commands.provide", lambda _kubernetes: pytest.fail("it would start"))
    (tmp_path / "file").touch()
    result = CliRunner().invoke(playground, [f"--kubeconfig={tmp_path / 'file' / 'kubeconfig'}"])
    assert result.exit_code == 2
    assert f"{tmp_path / 'file' / 'kubeconfig'}: File exists" in result.output
