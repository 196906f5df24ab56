"""The second pass in the release loop: one node of 1,000 of CPU, of which opportunistic pods may use up to 800."""

from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.events import NamespaceSeen
from extender.cluster.pods.opportunistic import NEVER, ONLY
from extender.cluster.usage import Sample, Usage
from extender.control.backlog.task_classes import name_of
from extender.control.opportunistic.second_pass import OpportunisticLimits, SecondPass
from extender.control.release.slots import Pace
from extender.planner.caps import Caps
from tests.service.control.opportunistic.idle_scene import REQUESTS, IdleScene, needs, opportunistic, runs
from tests.service.control.scene import node


def full(*waiting, use=300, nodes=("n1",), **more):
    """Return a scene whose nodes are full by what is requested, and use so much."""
    scene = IdleScene(*(node(name) for name in nodes), use=dict.fromkeys(nodes, use), **more)
    scene.see(*(runs(f"full-{name}", 1000, on=name) for name in nodes), *waiting)
    return scene


def test_what_the_regular_plan_leaves_is_started_on_what_others_do_not_use():
    scene = full(needs("a", 400))
    scene.step()
    assert scene.written == [("demote", "a"), ("nominate", "a", "n1"), ("release", "a")]
    assert scene.told == [("a", "opportunistic", 100.0)]
    assert scene.pods["a"].opportunistic


def test_no_more_is_started_than_the_threshold_leaves():
    # 800 - 300 = 500: one of 400, or two of 200.
    scene = full(*(needs(f"a{n}", 200) for n in range(5)))
    scene.step()
    scene.step(1)
    assert len(scene.on_idle_room()) == 2


def test_regular_room_comes_first():
    scene = IdleScene(node("n1"), node("n2"), use={"n1": 0, "n2": 0})
    scene.see(runs("full", 1000), needs("a", 400))
    scene.step()
    assert scene.nominated() == {"a": "n2"}
    assert not scene.pods["a"].opportunistic


def test_only_on_nodes_that_the_pod_may_use():
    scene = IdleScene(node("n1"), node("n2", labels={"disk": "ssd"}), use={"n1": 0, "n2": 300})
    scene.see(runs("full-n1", 1000), runs("full-n2", 1000, on="n2"))
    scene.see(needs("a", 400, constraints=Constraints(selector=(("disk", "ssd"),))))
    scene.step()
    assert scene.on_idle_room() == {"a": "n2"}


def test_nothing_is_started_by_a_plan_that_was_cut_short():
    # Two slots, and two regular turns: whether there are more nobody knows yet.
    scene = IdleScene(node("n1"), node("n2"), use={"n1": 0, "n2": 0}, pace=Pace(unbound_pods=2))
    scene.see(runs("full", 1000), *(needs(f"a{n}", 400, job="j") for n in range(4)))
    scene.step()
    assert scene.on_idle_room() == {}


@pytest.mark.parametrize("caps", [Caps(), Caps(queue=0.5)])
def test_at_most_as_many_are_started_as_there_are_slots(caps):
    scene = full(*(needs(f"a{n}", 10) for n in range(9)), pace=Pace(unbound_pods=4))
    terms = OpportunisticLimits(caps=caps)
    scene.second_pass = SecondPass(scene.cluster, scene.policy, scene.usage, terms, scene.stays_off, scene.history)
    scene.step()
    assert len(scene.on_idle_room()) == 4


def test_of_a_shape_that_kube_scheduler_refuses_one_pod_tries_at_a_time():
    refused = needs("refused", 50, job="j", gates=(), unschedulable=True)
    scene = full(refused, *(needs(f"a{n}", 50, job="j") for n in range(5)))
    scene.step()
    assert scene.on_idle_room() == {}
    scene.step(1.5)
    assert len(scene.on_idle_room()) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda scene: scene.use.clear(),
        lambda scene: scene.problems.update(n1="a window goes back"),
        lambda scene: setattr(scene, "frozen_at", scene.now - 91),
    ],
)
def test_what_was_not_measured_lately_is_not_idle(change):
    scene = full(needs("a", 100))
    change(scene)
    scene.step()
    assert scene.written == []


def test_a_class_that_says_never_stays_regular():
    scene = full(needs("a", 100, choice=NEVER), needs("b", 100))
    scene.step()
    assert scene.on_idle_room() == {"b": "n1"}


def test_a_namespace_that_says_never_keeps_its_pods_regular():
    scene = full(needs("a", 100))
    scene.apply(NamespaceSeen("default", {"dovetail.dev/opportunistic": "never"}))
    scene.step()
    assert scene.written == []
    scene.apply(NamespaceSeen("default", {}))
    scene.step(1)
    assert scene.on_idle_room() == {"a": "n1"}


def test_a_class_whose_pods_have_inputs_of_their_own_stays_regular():
    scene = full(needs("a", 100, inputs=(("n1", 1.0),)), needs("b", 100))
    scene.step()
    assert scene.on_idle_room() == {"b": "n1"}


def test_a_gang_stays_regular():
    scene = full(needs("a", 100, group="g", least=2), needs("b", 100, group="g", least=2))
    scene.step()
    assert scene.written == []


def test_an_evicted_class_does_not_come_back_to_its_node_for_a_while():
    scene = full(needs("a", 100), nodes=("n1", "n2"))
    scene.stays_off.note(name_of(scene.pods["a"]), "n1", scene.now)
    scene.step()
    assert scene.on_idle_room() == {"a": "n2"}


def test_a_class_that_is_refused_rests_and_may_try_again():
    scene = full(needs("a", 100), needs("b", 100))
    scene.refuse = {("demote", "a")}
    scene.step()
    scene.step(10)
    assert scene.asked["demote", "a"] == 1
    assert scene.count("demote") == {"b": 1}
    assert scene.pods["a"].held
    scene.refuse.clear()
    scene.step(299)
    scene.step(2)
    assert scene.count("demote") == {"a": 1, "b": 1}


def test_a_pod_that_stays_regular_waits_as_before():
    # A Deployment's: it is tried once, as only its object and its owner's say so. Meanwhile it has had no turn.
    scene = full(needs("a", 100))
    scene.refuse, scene.refused_with = {("demote", "a")}, 422
    task_class, _ = scene.backlog.find("uid-a")
    since = scene.backlog.waiting_since(task_class)
    scene.step()
    assert scene.attempts == [("demote", "a")]
    assert scene.backlog.waiting_since(task_class) == since
    assert scene.backlog.writes.failures("uid-a") == 0
    assert scene.cluster.flights() == set()
    scene.remove("full-n1")
    scene.step()
    assert scene.released() == ["a"]


@pytest.mark.parametrize(("verb", "status"), [("demote", 503), ("nominate", 422)])
def test_after_any_other_write_that_is_refused_a_pod_is_left_alone_for_a_second(verb, status):
    scene = full(needs("a", 100))
    scene.refuse, scene.refused_with = {(verb, "a")}, status
    for _ in range(3):
        scene.step(0.3)
    assert scene.attempts.count((verb, "a")) == 1
    assert scene.backlog.writes.failures("uid-a") == 1


def test_of_one_that_is_started_the_class_has_had_its_turn():
    scene = full(needs("a", 100, job="j"), needs("b", 100, job="j"), pace=Pace(unbound_pods=1))
    task_class, _ = scene.backlog.find("uid-b")
    scene.step()
    assert scene.on_idle_room() == {"a": "n1"}
    assert scene.backlog.waiting_since(task_class) == scene.now


def test_shares_of_opportunistic_resources_are_apart_from_regular_ones():
    # Queue a has all regular room, b nothing: of idle room a gets its half all the same.
    scene = full(*(needs(f"{queue}{n}", 100, queue=queue, job=queue) for queue in "ab" for n in range(8)), use=0)
    scene.see(replace(runs("full-n1", 1000, queue="a"), resource_version=2))
    scene.step()
    started = [name[0] for name in scene.on_idle_room()]
    assert (started.count("a"), started.count("b")) == (4, 4)


def test_of_one_queue_short_tasks_and_those_seldom_evicted_are_started_first():
    # There is room for one of them.
    scene = full(needs("long", 400, duration=900.0), needs("short", 400, duration=30.0))
    scene.step()
    assert list(scene.on_idle_room()) == ["short"]
    scene = full(needs("often", 400), needs("seldom", 400))
    scene.history.note_start(name_of(scene.pods["often"]))
    scene.history.note_eviction(name_of(scene.pods["often"]))
    scene.step()
    assert list(scene.on_idle_room()) == ["seldom"]


def test_a_queue_whose_turn_it_is_goes_first_however_long_its_tasks():
    scene = full(needs("long", 100, duration=900.0, queue="a"), needs("short", 100, duration=30.0, queue="b"))
    scene.see(replace(opportunistic(runs("b-before", 300, queue="b")), duration=30.0))
    scene.use["n1"] = 500
    scene.history.note_eviction(name_of(scene.pods["long"]))
    scene.releaser.pace = Pace(unbound_pods=1)
    scene.step()
    assert list(scene.on_idle_room()) == ["long"]


def test_starts_are_counted_by_class_and_forgotten_with_it():
    scene = full(needs("a", 100))
    scene.step()
    name = name_of(scene.pods["a"])
    scene.history.note_eviction(name)
    assert scene.history.evicted([name]).tolist() == [1.0]
    scene.remove("a")
    scene.see(needs("b", 100))
    scene.step(61)
    assert scene.history.evicted([name]).tolist() == [0.0]


def test_no_queue_has_more_than_its_cap_though_what_was_started_does_not_show_yet():
    # 200 of 1,000: one of 150 of each queue.
    scene = full(*(needs(f"{queue}{n}", 150, queue=queue) for queue in "ab" for n in range(3)), use=0)
    scene.second_pass = SecondPass(
        scene.cluster,
        scene.policy,
        scene.usage,
        OpportunisticLimits(caps=Caps(queue=0.2)),
        scene.stays_off,
        scene.history,
    )
    scene.late = True
    for _ in range(3):
        scene.step(1)
    scene.write_all()
    for _ in range(3):
        scene.step(1)
    scene.write_all()
    assert sorted(name[0] for name in scene.on_idle_room()) == ["a", "b"]


def test_what_was_started_counts_in_the_cap_of_its_queue_once():
    # 400 of 1,000: two of 150. The first is still on its way when the second comes.
    scene = full(needs("a0", 150, queue="a"), use=0)
    terms = OpportunisticLimits(caps=Caps(queue=0.4))
    scene.second_pass = SecondPass(scene.cluster, scene.policy, scene.usage, terms, scene.stays_off, scene.history)
    scene.step()
    scene.see(needs("a1", 150, queue="a"), needs("a2", 150, queue="a"))
    scene.step(1)
    scene.step(1)
    assert sorted(scene.on_idle_room()) == ["a0", "a1"]


def test_room_that_the_same_plan_gives_to_regular_pods_is_not_idle():
    # 600 are placed as regular now. 800 - 600 = 200 are left.
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(needs("regular", 600, priority=9), needs("a", 500))
    scene.step()
    assert scene.nominated() == {"regular": "n1"}


def test_room_of_regular_pods_on_their_way_is_not_idle():
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(needs("regular", 900))
    scene.step()
    scene.see(needs("a", 500))
    scene.step(1)
    assert scene.on_idle_room() == {}


def test_a_regular_pod_counts_with_its_demand_until_it_was_measured_for_half_a_minute():
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(runs("young", 900, started=90.0), needs("a", 500))
    scene.step()
    assert scene.on_idle_room() == {}
    scene.step(21)
    assert scene.on_idle_room() == {"a": "n1"}


def test_a_young_pod_is_seen_behind_one_of_its_class_that_was_slow_to_start():
    scene = IdleScene(node("n1"), use={"n1": 0})
    scene.see(runs("old", 100, job="j", started=-500.0), runs("young", 450, started=95.0, job="j"))
    scene.see(runs("other", 450, started=60.0, job="j"), needs("a", 500))
    scene.step()
    assert scene.on_idle_room() == {}


def test_a_pod_that_somebody_nominated_elsewhere_is_not_started_on_idle_room():
    scene = full(needs("a", 100, nominated="n2"), nodes=("n1", "n2"))
    scene.use["n2"] = 900
    scene.step()
    assert scene.on_idle_room() == {}


def test_a_pod_that_never_is_regular_gets_no_regular_room():
    scene = IdleScene(node("n1"), use={"n1": 300})
    scene.see(replace(needs("a", 400), choice=ONLY, opportunistic=True))
    scene.step()
    assert scene.written == [("nominate", "a", "n1"), ("release", "a")]
    assert scene.told == [("a", "opportunistic", 100.0)]


def test_a_pod_that_never_is_regular_is_not_released_to_no_node():
    scene = full(replace(needs("a", 400, priority=9), choice=ONLY, opportunistic=True), use=900)
    scene.releaser.pace = Pace(scale_up_after=1.0)
    scene.step()
    scene.step(5)
    assert scene.written == []


def test_a_pod_that_is_opportunistic_already_is_started_without_another_resize():
    scene = full(opportunistic(needs("a", 400)))
    scene.step()
    assert scene.written == [("nominate", "a", "n1"), ("release", "a")]


def test_a_pod_of_which_nobody_knows_what_it_requested_is_not_brought_back_in_vain():
    scene = IdleScene(node("n1"), use={"n1": 900})
    scene.see(replace(opportunistic(needs("a", 400)), regular_requests=None))
    scene.step()
    assert scene.written == [("nominate", "a", "n1"), ("release", "a")]


def test_without_the_lead_nothing_is_written():
    scene = full(needs("a", 400))
    scene.late = True
    scene.step()
    scene.leading = False
    scene.write_all()
    scene.step(1)
    assert scene.written == []


def test_what_a_pod_requested_is_known_of_all_that_were_made_opportunistic():
    scene = full(needs("a", 400))
    scene.step()
    assert scene.pods["a"].regular_requests == REQUESTS


def test_what_a_class_uses_is_learned_though_nobody_waits():
    scene = IdleScene(node("n1"))
    scene.now = 1000.0
    scene.see(*(opportunistic(runs(f"p{n}", 400, started=0.0, job="j")) for n in range(5)))
    pods, unknown = list(scene.pods.values()), np.zeros((5, 6))
    assert not scene.second_pass.usual(pods, unknown).any()
    look = Usage(pods={it.uid: Sample({"cpu": 100.0}, 940.0, 1000.0) for it in pods}, rate_seconds=60.0)
    second_pass = SecondPass(scene.cluster, scene.policy, lambda: look, OpportunisticLimits(), scene.stays_off)
    assert second_pass.usual(pods, unknown)[:, 0].tolist() == [100.0] * 5
