"""A recording goes on in its file, behind its last whole line."""

import gzip
import io
import itertools

import pytest

from extender.app.recording import Recording, go_on
from extender.cluster.events import NodeGone, NodesListed
from extender.cluster.model import Pod
from extender.cluster.recording.lines import Begin, Checkpoint, Quiet, decoded, encoded
from extender.cluster.recording.observed import Moments, PodsObserved
from extender.cluster.recording.past import NOTHING
from extender.errors import DovetailError, TraceError
from extender.settings import Settings


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


def test_checkpoints_and_quiet_lines_go_on_though_the_clock_is_set_back_by_a_day():
    now, output = 1_000_000.0, io.BytesIO()
    recording = Recording(None, output, Settings(), clock=lambda: now)
    recording._put(NodesListed([]))
    recording._put(PodsObserved([], []))
    for back in (0.0, 86_400.0):
        now -= back
        for _ in range(61):  # an hour, minute by minute, in which nothing is to be written
            recording._step()
            now += 60.0
            recording._put(NodeGone("unknown"))
    lines = [decoded(line, "") for line in output.getvalue().splitlines(keepends=True)]
    assert sum(isinstance(line, Quiet) for line in lines) > 110
    checkpoints = [line.at for line in lines if isinstance(line, Checkpoint)]
    assert checkpoints == [1_000_000.0, 1_003_600.0, 917_260.0, 920_860.0]


def test_it_says_how_many_pods_ended_and_how_often_it_missed_something():
    recording = Recording(None, io.BytesIO(), Settings())
    pods = [Pod(uid, "team", uid, {}, node="n", finished=True) for uid in "ab"]
    recording._put(NodesListed([]))
    recording._put(PodsObserved(pods[:1], [Moments()]))
    recording._step()
    assert recording.summary == "1 pod ended while it was recorded"
    recording._put(PodsObserved(pods, [Moments(), Moments()]))
    recording._step()
    assert recording.summary == "2 pods ended while it was recorded, with 1 gap"


def test_a_line_that_was_just_written_is_followed_by_no_quiet_one():
    ticks, output = itertools.count(1_000_000.0, 0.001), io.BytesIO()
    recording = Recording(None, output, Settings(), clock=lambda: next(ticks))
    recording._put(NodesListed([]))
    recording._put(PodsObserved([], []))
    recording._step()
    lines = [decoded(line, "") for line in output.getvalue().splitlines(keepends=True)]
    assert [type(line) for line in lines] == [Checkpoint]
