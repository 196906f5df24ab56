"""Where reports go."""

import errno
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from extender.errors import DovetailError
from lab.report.files import ReportFile, write_report


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


def test_an_empty_name_of_a_report_ends_the_command_before_its_work():
    found, done = ran("")
    assert found.exit_code == 2
    assert "'' is a folder; accepted: a file" in found.output
    assert done == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_report_that_does_not_fit_is_named():
    with pytest.raises(DovetailError, match="the report /dev/full cannot be written: No space left on device"):
        write_report(Path("/dev/full"), "text")


def test_no_part_of_a_report_stays_where_the_rest_does_not_fit(tmp_path, monkeypatch):
    def begin(path, text, encoding):
        path.write_bytes(text[:1].encode(encoding))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", begin)
    with pytest.raises(DovetailError, match=r"report\.html cannot be written"):
        write_report(tmp_path / "report.html", "text")
    assert list(tmp_path.iterdir()) == []
