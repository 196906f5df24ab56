"""What `dovetail control` tells of its writes."""

from dataclasses import replace

import pytest

from extender.adapters.metrics.control import ControlMetrics
from extender.app.control_reports import ControlListener
from extender.control.release.sending import COMPLETED, NOMINATED, OPPORTUNISTIC, Release
from extender.explain.events import Teller
from extender.explain.wait_reasons import Reason
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
