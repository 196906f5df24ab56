"""`dovetail bench`: where its options may stand."""

import pytest
from click.testing import CliRunner

from lab.bench import commands
from lab.report.rows import Report


@pytest.mark.parametrize("option", [["--quick"], ["--json"], ["--seeds", "2"]])
def test_an_option_before_a_benchmarks_name_is_refused_as_nobody_would_read_it(monkeypatch, option):
    monkeypatch.setattr(commands, "_order", lambda *_: Report([]))
    found = CliRunner().invoke(commands.bench, [*option, "order"])
    assert found.exit_code == 2
    assert f"{option[0]} stands before order; accepted: behind it, if order takes it" in found.output
