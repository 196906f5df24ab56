"""Opportunistic pods on their way: what they request is brought back where they go as regular, or go nowhere."""

from dataclasses import replace

from extender.cluster.pods.opportunistic import ONLY
from extender.control.release.loop import Pace
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


def test_a_pod_that_goes_to_no_node_so_that_others_make_room_gets_its_requests_back_first():
    scene = IdleScene(node("n1"), use={"n1": 1000})
    scene.see(runs("low", 1000), opportunistic(needs("a", 400, priority=100)))
    scene.step()
    assert scene.written == [("restore", "a"), ("release", "a")]
    assert scene.told == [("a", "preempting", 100.0)]


def test_a_pod_without_a_limit_may_use_all_the_memory_that_its_node_offers():
    scene = IdleScene(node("n1", memory=2000), use={"n1": 300})
    scene.see(runs("full", 1000), needs("a", 400))
    limits, demote = [], scene.demote
    scene.demote = lambda pod, memory_bytes: limits.append(memory_bytes) or demote(pod, memory_bytes)
    scene.step()
    assert limits == [2000]
    assert scene.released() == ["a"]


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


def test_those_that_start_on_idle_room_count_with_those_of_the_plan_for_the_pace():
    scene = IdleScene(node("n1"), use={"n1": 100}, pace=Pace(unbound_pods=2))
    scene.see(runs("most", 900), *(needs(name, 100) for name in "abcd"))
    scene.step()
    assert (len(scene.released()), len(scene.told_to("demote"))) == (2, 1)


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


# -- a promise is looked at again before its pod goes


def promised(name, cpu, **more):
    """Return a held pod that gave its requests up and was nominated, as a process left it that ended then."""
    return opportunistic(needs(name, cpu, nominated="n1", promised="n1", **more))


def verbs(scene):
    return [(verb, name) for verb, name, *_ in scene.written]


def left_behind(*pods, use, **more):
    scene = IdleScene(node("n1"), use=use, **more)
    scene.see(runs("full", 1000), *pods)
    return scene


def test_a_pod_whose_node_is_used_more_by_now_is_not_released_there():
    # 800 - 500 = 300 are left of what was promised.
    scene = left_behind(promised("a", 400), use={"n1": 500})
    scene.step()
    scene.step(1)
    assert verbs(scene) == [("clear", "a")]
    assert scene.pods["a"].held


def test_a_nomination_is_not_cleared_by_who_no_longer_leads():
    scene = left_behind(promised("a", 400), use={"n1": 500})
    scene.late = True
    scene.step()
    scene.leading = False
    scene.write_all()
    assert scene.written == []


def test_of_several_promises_only_those_are_broken_that_the_room_does_not_hold():
    # 800 - 200 = 600: two of 300, in the order of their UIDs.
    scene = left_behind(*(promised(name, 300) for name in "abc"), use={"n1": 200})
    scene.step()
    assert sorted(verbs(scene)) == [("clear", "c"), ("release", "a"), ("release", "b")]


def test_a_released_pod_that_is_not_bound_loses_its_promise_where_use_rises_and_becomes_regular():
    scene = left_behind(needs("a", 400), use={"n1": 300})
    scene.step()
    scene.use["n1"] = 700
    scene.step(16)  # it is in flight for 15 seconds
    scene.step(1)
    assert [verb for verb, _ in verbs(scene)] == ["demote", "nominate", "release", "clear", "restore"]


def test_without_measurement_a_promise_is_neither_kept_nor_broken_for_a_while():
    scene = left_behind(promised("a", 400), use={"n1": None})
    for _ in range(29):
        scene.step(1)
    assert scene.written == []
    scene.use["n1"] = 300
    scene.step()
    assert verbs(scene) == [("release", "a")]


def test_a_promise_is_broken_once_nothing_was_measured_for_half_a_minute():
    scene = left_behind(promised("a", 400), use={"n1": None})
    scene.step()
    scene.step(30)
    assert verbs(scene) == [("clear", "a")]


def test_a_promise_is_not_broken_by_two_short_gaps_in_what_is_measured():
    scene = left_behind(needs("a", 400), use={"n1": 300})
    scene.step()
    scene.step(16)  # it is in flight for 15 seconds
    for used, seconds in ((None, 16), (300, 1), (None, 16)):
        scene.use["n1"] = used
        scene.step()
        scene.step(seconds)
    assert [verb for verb, _ in verbs(scene)] == ["demote", "nominate", "release"]


def test_a_pod_that_never_is_regular_and_has_no_gate_keeps_its_promise():
    scene = left_behind(replace(promised("a", 400, gates=()), choice=ONLY, regular_requests=None), use={"n1": 900})
    scene.step()
    assert scene.written == []


# -- switched off


def switched_off(*pods):
    """Return a scene of a node with room for a pod, whose process has been started anew without opportunistic pods."""
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(runs("half", 500), *pods)
    scene.enabled = False
    scene.restart()
    return scene


def test_switched_off_a_held_pod_gets_its_requests_back_before_it_is_released():
    scene = switched_off(opportunistic(needs("a", 400)))
    scene.step()
    assert verbs(scene) == [("restore", "a"), ("nominate", "a"), ("release", "a")]
    assert not scene.pods["a"].opportunistic


def test_switched_off_a_pod_that_was_promised_idle_room_is_released_as_a_regular_one_where_that_fits():
    scene = switched_off(promised("a", 400))
    scene.step()
    scene.step(1)
    assert verbs(scene) == [("clear", "a"), ("restore", "a"), ("nominate", "a"), ("release", "a")]


def test_switched_off_a_pod_without_regular_room_stays_held():
    scene = switched_off(promised("a", 600))
    for _ in range(40):
        scene.step(1)
    assert verbs(scene) == [("clear", "a")]
    assert scene.pods["a"].held


def test_switched_off_nobody_is_made_opportunistic_or_regular_again_who_runs():
    scene = switched_off(needs("a", 600), opportunistic(runs("b", 100)))
    for _ in range(40):
        scene.step(1)
    assert scene.written == []
