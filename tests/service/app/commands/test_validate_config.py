"""`dovetail validate-config`: what it warns of."""

from click.testing import CliRunner

from extender.cli import cli

HEAD = "apiVersion: dovetail.dev/v1alpha1\nkind: DovetailConfiguration\n"


def test_it_warns_of_minimum_shares_that_are_scaled_down_and_the_file_is_valid(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text(HEAD + "queues: [{name: a, minimumShare: 0.9}, {name: b, minimumShare: 0.6}]\n")
    told = CliRunner().invoke(cli, ["validate-config", str(file)])
    assert told.exit_code == 0
    text = "the minimum shares of the highest queues add up to more than 1 (a 0.9, b 0.6); they count as a 0.6, b 0.4"
    assert told.stderr == f"{file}: warning: queues: {text}\n"
