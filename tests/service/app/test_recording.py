"""A recording goes on in its file, behind its last whole line."""

import gzip

import pytest

from extender.app.recording import go_on
from extender.cluster.recording.lines import Begin, Quiet, encoded
from extender.cluster.recording.past import NOTHING
from extender.errors import DovetailError, TraceError


def test_a_file_that_is_not_there_or_is_empty_has_no_past(tmp_path):
    file = tmp_path / "recording"
    assert go_on(file) is NOTHING
    file.touch()
    assert go_on(file) is NOTHING


def test_a_last_line_that_was_cut_off_is_taken_away(tmp_path):
    file = tmp_path / "recording"
    whole = encoded(Begin(1.0)) + encoded(Quiet(5.0))
    file.write_bytes(whole + b'{"kind":"po')
    assert go_on(file).until == 5.0
    assert file.read_bytes() == whole


def test_blank_lines_at_the_end_are_taken_away_so_that_none_stands_before_others(tmp_path):
    file = tmp_path / "recording"
    whole = encoded(Begin(1.0)) + encoded(Quiet(5.0))
    file.write_bytes(whole + b"\n \n")
    assert go_on(file).until == 5.0
    assert file.read_bytes() == whole


def test_a_recording_that_was_cut_off_in_its_first_line_begins_again(tmp_path):
    file = tmp_path / "recording"
    file.write_bytes(encoded(Begin(1.0))[:-9])
    assert go_on(file) == NOTHING
    assert file.read_bytes() == b""


@pytest.mark.parametrize(
    "content", [b"dear\nfriend", b"dear friend", gzip.compress(encoded(Begin(1.0)), mtime=0), b'{"a": 1}']
)
def test_a_file_that_is_no_recording_is_left_as_it_is(tmp_path, content):
    file = tmp_path / "letter"
    file.write_bytes(content)
    with pytest.raises(TraceError, match="letter, line 1"):
        go_on(file)
    assert file.read_bytes() == content


def test_a_folder_cannot_be_gone_on_with(tmp_path):
    with pytest.raises(DovetailError, match="give a file"):
        go_on(tmp_path)
