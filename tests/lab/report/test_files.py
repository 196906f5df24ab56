"""Where reports go."""

import click
import pytest
from click.testing import CliRunner

from lab.report.files import ReportFile


def ran(path):
    """Return how a command ended that takes a report's file, and whether it got to its work."""
    done = []

    @click.command()
    @click.option("--report", type=ReportFile())
    def measure(report):
        done.append(report)

    return CliRunner().invoke(measure, ["--report", str(path)]), done


def test_the_folder_of_a_report_is_made_before_anything_is_measured(tmp_path):
    found, done = ran(tmp_path / "new" / "report.html")
    assert found.exit_code == 0
    assert done[0].parent.is_dir()
    assert not done[0].exists()


@pytest.mark.parametrize("place", ["taken/report.html", "."])
def test_a_place_where_nothing_can_be_written_ends_the_command_before_its_work(tmp_path, place):
    (tmp_path / "taken").write_text("a file, not a folder")
    found, done = ran(tmp_path / place)
    assert found.exit_code == 2
    assert str(tmp_path / place) in found.output.replace("\n", "")
    assert done == []
