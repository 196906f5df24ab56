"""What `dovetail control` tells of its writes."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from extender.adapters.http.wait_report import read
from extender.adapters.metrics.control import ControlMetrics
from extender.app.control_reports import ControlListener, ControlReports
from extender.control.queues.passed_over import PassedOverNow
from extender.control.release.sending import COMPLETED, NOMINATED, OPPORTUNISTIC, Release
from extender.explain.events import Teller
from extender.explain.wait_reasons import Reason
from tests.service.control.opportunistic.idle_scene import IdleScene, needs, runs
from tests.service.control.scene import Scene, node, pod


class Paper:
    """Takes events as a recorder does."""

    def __init__(self):
        self.said = []

    def say(self, _pod, _reason, message, _key):
        self.said.append(message)


@pytest.mark.parametrize(
    ("how", "opportunistic", "idle"),
    [
        (OPPORTUNISTIC, False, True),  # as it was when it was planned
        (COMPLETED, True, True),  # a predecessor made it so
        (COMPLETED, False, False),
        (NOMINATED, True, False),  # its requests come back before it goes
    ],
)
def test_the_event_of_a_release_says_whether_the_pod_goes_on_idle_resources(how, opportunistic, idle):
    scene, paper = Scene(node("n1")), Paper()
    scene.see(pod("a"))
    (held,) = scene.pods.values()
    teller = Teller(paper, 0.0)
    teller.tell(scene.backlog, {held.uid: Reason("no-room", "no room")}, 100.0)
    release = Release(replace(held, opportunistic=opportunistic), "n1", how)
    ControlListener(ControlMetrics("1"), teller).note_release(release, "n1", 5.0)
    teller.tell(scene.backlog, {}, 101.0)
    assert paper.said[-1] == f"released to n1{', on its idle resources' if idle else ''}, after 5 s"


@pytest.mark.parametrize(("seconds", "said"), [(59, 1), (61, 0)])
def test_why_pods_find_no_idle_room_is_told_while_that_is_news(seconds, said):
    scene = IdleScene(node("n1"), use={"n1": 700})
    scene.see(runs("full", 1000), needs("a", 400))
    scene.step()
    leader, observer = SimpleNamespace(leads=lambda: True), SimpleNamespace(waits=SimpleNamespace(in_force=()))
    reports = ControlReports(
        leader,
        caches=None,
        backlog=scene.backlog,
        releaser=scene.releaser,
        observer=observer,
        now=lambda: scene.now + seconds,
        second_pass=scene.second_pass,
    )
    told = read("here", reports.waits().decode()).idle
    assert len(told) == said
    assert all(why.startswith("no node has enough: mostly cpu is short") for why in told.values())


@pytest.mark.parametrize(("leads", "shown"), [(True, ({"q": 70.0}, 1)), (False, ({}, 0))])
def test_who_leads_no_more_does_not_go_on_showing_what_its_last_steps_left(leads, shown):
    scene = Scene(node("n1"))
    for now in (0.0, 30.0, 70.0):
        scene.releaser.passed_over.note(PassedOverNow(passed={"q"}, below={"q"}), now)
    scene.releaser.unbound = 1
    seen = SimpleNamespace(held={}, ungated={}, shares={}, oldest={})
    load = SimpleNamespace(freed=0, seconds=0.0, typical=None)
    observer = SimpleNamespace(seen=seen, load=load, waits_by_level=dict)
    caches = SimpleNamespace(problem=lambda: None, ages=dict)
    leader = SimpleNamespace(leads=lambda: leads)
    gauges = ControlReports(leader, caches, scene.backlog, scene.releaser, observer, now=lambda: 100.0).gauges()
    assert (gauges.passed_over, gauges.in_flight) == shown
