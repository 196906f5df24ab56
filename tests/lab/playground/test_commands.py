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
