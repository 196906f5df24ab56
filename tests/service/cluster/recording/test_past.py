"""Where a recording stopped is read from its own lines."""

import gzip
from pathlib import Path

import pytest

from extender.cluster.recording.lines import (
    Begin,
    Checkpoint,
    Gap,
    NodeGoneLine,
    NodeLine,
    PodLine,
    Quiet,
    decoded,
    encoded,
    lines_in,
)
from extender.cluster.recording.past import Past, past_of
from extender.errors import TraceError

NODES = [NodeLine(10.0, "a", {"cpu": 1000.0}), NodeLine(10.0, "b", {"cpu": 2000.0})]


def pod(uid, **changes):
    return PodLine(uid, "team", uid, "team/job", "team", {"cpu": 1.0}, 5.0, **changes)


def test_a_recording_that_nobody_ended_is_gone_on_with_from_its_last_lines():
    lines = [
        Begin(10.0),
        Checkpoint(11.0, NODES, [pod("p"), pod("q")]),
        pod("p", ended=20.0, outcome="succeeded"),
        NodeGoneLine(30.0, "a"),
        pod("r", ended=31.5, outcome="failed"),
        Quiet(32.0),
    ]
    past = past_of(map(encoded, lines), "file")
    assert past == Past(32.0, (NODES[1],), (pod("q"),), frozenset({"r"}))


def test_every_line_is_read_as_it_was_written():
    for line in (Begin(1.0, "v1.36.2", True), Gap("pods", 1.0, 2.0), Checkpoint(3.0, NODES, [pod("p", node="a")])):
        assert decoded(encoded(line), "here") == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b'{"kind":"pod"', "file, line 1: .*accepted: one JSON object"),
        (b'{"kind":"quiet\xff"}', "file, line 1: .*accepted: one JSON object"),
        (b'{"kind":"cow","at":1}', "file, line 1: .*cow.*accepted: .*checkpoint"),
        (b'{"kind":"quiet","at":1}', "file, line 1: a recording begins with a line of the kind begin"),
        (
            gzip.compress(encoded(Begin(1.0)), mtime=0),
            "file, line 1: this is gzip; accepted: the file that gunzip makes of it",
        ),
        (b'{"kind":"begin","at":1,"format":9}', "file, line 1: format 9; accepted: 1"),
        (b'{"kind":"begin","at":1,"anonymous":true}', "its names are pseudonyms, whose key was not kept"),
    ],
)
def test_what_cannot_be_gone_on_with_is_said_with_its_line(text, said):
    with pytest.raises(TraceError, match=said):
        past_of([text], "file")


def test_blank_lines_at_the_end_are_left_out_and_others_are_none_of_a_recording():
    begin, quiet = encoded(Begin(1.0)), encoded(Quiet(5.0))
    assert past_of([begin, quiet, b"\n", b" \n"], "file").until == 5.0
    with pytest.raises(TraceError, match="file, line 2: "):
        past_of([begin, b"\n", quiet], "file")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file that never ends")
def test_a_line_that_does_not_end_is_refused_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("extender.cluster.recording.lines.LONGEST_LINE", 1000)
    said = "zero, line 1: longer than 1000 bytes; accepted: at most as many"
    with Path("/dev/zero").open("rb") as endless, pytest.raises(TraceError, match=said):
        list(lines_in(endless, "zero"))
