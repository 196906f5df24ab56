"""Opportunistic pods on their way: what they request is brought back where they go as regular, or go nowhere."""

from dataclasses import replace

from extender.cluster.pods.opportunistic import ONLY
from tests.service.control.opportunistic.idle_scene import IdleScene, needs, opportunistic, runs
from tests.service.control.scene import node


def released(name, cpu, **more):
    """Return an opportunistic pod that has no gate and no node."""
    return opportunistic(needs(name, cpu, gates=(), **more))


def test_a_pod_that_goes_as_a_regular_one_gets_its_requests_back_before_it_is_nominated():
    # A predecessor ended between demotion and nomination.
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(opportunistic(needs("a", 400)))
    scene.step()
    assert scene.written == [("restore", "a"), ("nominate", "a", "n1"), ("release", "a")]
    assert not scene.pods["a"].opportunistic


def test_a_pod_whose_requests_do_not_come_back_is_not_released_and_tried_again():
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(opportunistic(needs("a", 400)))
    scene.refuse = {("restore", "a")}
    scene.step()
    assert scene.written == []
    assert scene.cluster.flights() == set()
    scene.refuse.clear()
    scene.step(2)
    assert scene.released() == ["a"]


def test_a_pod_counts_as_regular_from_the_moment_that_its_turn_is_decided():
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.late = True
    scene.see(opportunistic(needs("a", 600)))
    scene.step()
    scene.see(needs("b", 600))
    scene.step(1)
    scene.write_all()
    assert scene.nominated() == {"a": "n1"}


def test_a_pod_that_is_nominated_already_is_released_as_it_is():
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(opportunistic(needs("a", 400, nominated="n1", promised="n1")))
    scene.step()
    assert scene.written == [("release", "a")]
    assert scene.told == [("a", "completed", 100.0)]
    assert scene.pods["a"].opportunistic


def test_a_regular_pod_of_the_same_plan_is_not_resized():
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(needs("a", 400))
    scene.step()
    assert scene.written == [("nominate", "a", "n1"), ("release", "a")]


def test_a_released_pod_that_no_node_is_promised_to_becomes_regular_once():
    scene = IdleScene(node("n1"))
    scene.see(runs("full", 1000), released("a", 400))
    for _ in range(40):
        scene.step(1)
    assert scene.written == [("restore", "a")]
    assert not scene.pods["a"].opportunistic


def test_a_write_that_does_not_show_is_not_made_at_every_step():
    scene = IdleScene(node("n1"))
    scene.see(runs("full", 1000), released("a", 400))
    scene.deaf = True
    for _ in range(14):
        scene.step(1)
    assert scene.count("restore") == {"a": 1}


def test_a_refused_pod_loses_its_nomination_and_then_becomes_regular():
    scene = IdleScene(node("n1"), use={"n1": 300})
    scene.see(runs("full", 1000), needs("a", 400))
    scene.step()
    scene.change("a", unschedulable=True)
    scene.step(1)
    scene.step(1)
    assert [verb for verb, name, *_ in scene.written] == ["demote", "nominate", "release", "clear", "restore"]


def test_a_pod_that_kube_scheduler_still_has_to_bind_is_left_alone():
    scene = IdleScene(node("n1"), use={"n1": 300})
    scene.see(runs("full", 1000), needs("a", 400))
    scene.step()
    scene.written.clear()
    for _ in range(30):
        scene.step(1)
    assert scene.written == []


def test_a_pod_that_never_is_regular_is_not_brought_back():
    scene = IdleScene(node("n1"))
    scene.see(replace(released("a", 400), choice=ONLY, regular_requests=None))
    scene.step()
    assert scene.written == []


def test_a_pod_of_which_nobody_knows_what_it_requested_is_left_alone():
    scene = IdleScene(node("n1"))
    scene.see(replace(released("a", 400), regular_requests=None))
    scene.step()
    assert scene.written == []


def test_a_failed_nomination_leaves_a_pod_that_the_next_step_goes_on_with():
    scene = IdleScene(node("n1"), use={"n1": 300})
    scene.see(runs("full", 1000), needs("a", 400))
    scene.refuse = {("nominate", "a")}
    scene.step()
    assert scene.pods["a"].opportunistic
    assert scene.pods["a"].held
    scene.refuse.clear()
    scene.restart()
    scene.step(2)
    assert [verb for verb, *_ in scene.written] == ["demote", "nominate", "release"]
