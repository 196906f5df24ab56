"""The playground's commands, where no playground runs."""

import pytest
from click.testing import CliRunner

from extender.errors import ClusterError
from lab.playground.commands import playground


@pytest.mark.parametrize("words", [["pods"], ["fill"], ["apply", "-"]])
def test_without_a_playground_a_command_says_how_to_start_one(words, tmp_path):
    result = CliRunner().invoke(playground, [*words, f"--kubeconfig={tmp_path / 'none'}"], input="")
    assert isinstance(result.exception, ClusterError)
    assert "start `dovetail playground` in another terminal" in str(result.exception)


@pytest.mark.parametrize("option", ["--kubeconfig=none", "--nodes=2"])
def test_an_option_before_a_commands_name_is_refused_as_nobody_would_read_it(option):
    result = CliRunner().invoke(playground, [option, "pods"])
    assert result.exit_code == 2
    assert f"{option.partition('=')[0]} stands before pods; accepted: behind it, if pods takes it" in result.output
