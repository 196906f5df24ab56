"""How long jobs have waited for locality, from the process that knows to who asks."""

import math

import pytest

from extender.adapters.http.health import create_health_app
from extender.adapters.http.wait_report import WaitReport, read, written
from extender.errors import ClusterError
from extender.planner import LocalityWait

TOLD = WaitReport(
    True,
    (2.5, 4.0),
    {"q|a": LocalityWait(1, 0.75, math.inf), "q|b": LocalityWait(0, 2.0, 3.0)},
    age_seconds=0.25,
    reserved={"q|a||cpu=8": ["n1", "n2"]},
    kept_idle=0.03,
    held=True,
    held_why="somebody waits for room",
    idle={"q|a||cpu=8": "no node has enough"},
    rests={"uid-a": 4.5},
)


def test_what_is_written_is_what_is_read():
    assert read("here", written(TOLD).decode()) == TOLD


def test_the_process_says_it_at_a_path_of_its_own():
    client = create_health_app(
        live=lambda: None, ready=lambda: None, metrics=lambda: b"", waits=lambda: written(TOLD)
    ).test_client()
    reply = client.get("/locality")
    assert (reply.status_code, reply.mimetype) == (200, "application/json")
    assert read("here", reply.text) == TOLD


@pytest.mark.parametrize("text", ["", "<html>", "{}", '{"leads": true, "in_force": 5, "jobs": {}, "age_seconds": 0}'])
def test_what_does_not_say_it_is_a_cluster_error(text):
    with pytest.raises(ClusterError, match=r"^here: this does not say how long jobs have waited"):
        read("here", text)
