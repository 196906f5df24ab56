"""Asking the `control` that acts how long jobs have waited for locality, and what is said where nobody answers."""

import pytest

from extender.adapters.http.wait_report import WaitReport, written
from extender.app.inspection.known_waits import waits_of
from extender.app.inspection.reading import Reader, look
from extender.explain.findings import Silent
from extender.planner import LocalityWait
from extender.settings import Settings
from extender.settings.sections import LocalitySettings, QueueSetting
from tests.service.app.inspection.api_server import HELD, items, server
from tests.service.app.inspection.test_measured import Server

LEADS = WaitReport(True, (4.0,), {"q|d/a": LocalityWait(0, 1.0, 3.0)}, 0.5)
FOLLOWS = WaitReport(False, (5.0,))


def said(**told):
    return {name: it if isinstance(it, str) else written(it).decode() for name, it in told.items()}


class Pods(Server):
    """Pods of control that answer at /locality, by name: text, or the status of a refusal."""

    path = "locality"

    def __init__(self, **told):
        super().__init__(**told)
        del self.metrics["serve"]


def test_the_replica_that_leads_is_believed():
    assert waits_of(Reader(Pods(**said(one=FOLLOWS, two=LEADS)), "ours")) == LEADS


@pytest.mark.parametrize(
    ("pods", "why"),
    [
        ({}, "no pod of it runs in ours, labelled app.kubernetes.io/name=dovetail with a port control; try --control"),
        (said(one=FOLLOWS), "no replica of it leads"),
        ({"one": 403}, "its pods cannot be asked through the API server: you may not (403); try --control"),
        (
            {"one": 503},
            "its pods cannot be asked through the API server: pod ours/one: answer 503; a NetworkPolicy may forbid it; "
            "try --control",
        ),
    ],
)
def test_else_it_is_said_why_it_is_not_known(pods, why):
    assert waits_of(Reader(Pods(**pods), "ours")) == why


def test_only_a_lack_of_rights_is_noted_as_such():
    for status, unread in ((403, {"pods of control": "you may not (403)"}), (503, {})):
        reader = Reader(Pods(one=status), "ours")
        waits_of(reader)
        assert reader.unread == unread


def test_what_is_no_answer_is_said_as_such():
    assert waits_of(Reader(Pods(one="<html>"), "ours")).startswith(
        "pod ours/one: this does not say how long jobs have waited"
    )


def test_an_address_that_does_not_answer_is_said():
    told = waits_of(Reader(Pods(), "ours"), "http://127.0.0.1:9")
    assert told.startswith("http://127.0.0.1:9: ")
    assert isinstance(told, Silent)


def test_replicas_that_do_not_answer_leave_the_others_to_be_asked():
    assert waits_of(Reader(Pods(**said(two=LEADS), one=503), "ours")) == LEADS


def test_the_order_goes_on_from_what_control_told():
    # a's node is full. Settings say 9 s, control has computed 4: its job had waited 1 s, and half a second has passed.
    nodes = [{"metadata": {"name": n}, "status": {"allocatable": {"cpu": "1"}}} for n in ("near", "far")]
    runs = {"metadata": {"namespace": "d", "name": "r", "uid": "r"}, "spec": {**HELD["spec"], "nodeName": "near"}}
    del runs["spec"]["schedulingGates"], runs["spec"]["volumes"]
    labels, inputs = {"dovetail.dev/queue": "q", "dovetail.dev/job": "a"}, {"dovetail.dev/input": '{"near": "1Mi"}'}
    spec = {key: it for key, it in HELD["spec"].items() if key != "volumes"} | {"schedulerName": "dovetail"}
    waits = {"metadata": {**HELD["metadata"], "labels": labels, "annotations": inputs}, "spec": spec}
    there = server(**{"/api/v1/nodes": items(*nodes), "/api/v1/pods": items(runs, waits)})
    settings = Settings(locality=LocalitySettings(wait_seconds=(9.0,)), queues=(QueueSetting("q"),))

    def wait(told):
        (held,) = look(Reader(there), settings, "here", told).order.plan.held.values()
        return held.wait

    before, after = wait(None), wait(LEADS)
    assert (before.seconds, before.passed) == (9.0, 0.0)
    assert (after.seconds, after.passed) == (4.0, pytest.approx(1.5, abs=0.01))
