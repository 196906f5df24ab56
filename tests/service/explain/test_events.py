"""Which events pods get: few, once, and only for those that have waited."""

import math
from dataclasses import replace

import pytest

from extender.cluster.pods.identity import Identity
from extender.control.locality.target_wait import Target, TargetWait
from extender.control.plan_input.builder import PlanInputBuilder
from extender.explain.events import Teller
from extender.explain.observing import MOST_QUEUES, Observer
from extender.explain.wait_reasons import Reason
from extender.planner import Carried, Policy
from tests.service.control.scene import Scene, node, pod

NO_ROOM = Reason("no-room", "no room")
GATES = Reason("gates", "waits for others")


class Paper:
    """Takes events as a recorder does."""

    def __init__(self):
        self.said, self.warned = [], []

    def say(self, pod, reason, message, key):
        self.said.append((pod.name, reason, message))

    def warn(self, kind, namespace, name, uid, message, owner=""):
        self.warned.append((name, message))


def scene_of(*pods):
    scene = Scene(node("n1"))
    scene.see(*pods)
    return scene, Paper()


def teller_of(scene, paper, **options):
    """Return one that has looked once already, when nobody was held: at 50, as seconds go here."""
    teller = Teller(paper, 10.0, **options)
    teller.tell(scene.backlog, {}, 50.0)
    return teller


def whys(scene, reason):
    return {it.uid: reason for it in scene.pods.values() if it.gates}


def test_a_pod_is_told_once_for_each_kind_of_reason():
    scene, paper = scene_of(pod("a"))
    teller = teller_of(scene, paper)
    for tens, why in enumerate((NO_ROOM, NO_ROOM, GATES, GATES, Reason("no-room", "other words"), NO_ROOM)):
        teller.tell(scene.backlog, whys(scene, why), 100.0 + 10 * tens)
    assert paper.said == [("a", "Held", "no room"), ("a", "Held", "waits for others")]


def test_a_reason_that_passes_is_not_told():
    scene, paper = scene_of(pod("a"))
    teller = teller_of(scene, paper)
    for second, why in ((100, NO_ROOM), (101, GATES), (110, GATES), (110.5, NO_ROOM)):
        teller.tell(scene.backlog, whys(scene, why), second)
    assert paper.said == [("a", "Held", "no room")]


def test_one_that_has_just_begun_waits_as_long_before_it_tells_of_what_it_finds():
    scene, paper = scene_of(pod("a"))
    teller = Teller(paper, 10.0)
    for second, why in ((100, GATES), (101, NO_ROOM), (110, NO_ROOM)):
        teller.tell(scene.backlog, whys(scene, why), second)
    assert paper.said == []
    teller.tell(scene.backlog, whys(scene, NO_ROOM), 111)
    assert paper.said == [("a", "Held", "no room")]


def test_a_pod_that_hardly_waited_is_told_nothing_not_even_that_it_was_released():
    scene, paper = scene_of(pod("a", created=95.0))
    teller = teller_of(scene, paper)
    teller.tell(scene.backlog, whys(scene, NO_ROOM), 104.9)
    teller.note_release(scene.pods["a"], "n1", 9.9)
    teller.tell(scene.backlog, {}, 106.0)
    assert paper.said == []


def test_a_pod_that_was_told_that_it_is_held_is_told_that_it_was_released():
    scene, paper = scene_of(pod("a"))
    teller = teller_of(scene, paper)
    teller.tell(scene.backlog, whys(scene, NO_ROOM), 100.0)
    teller.note_release(scene.pods["a"], "n1", 101.4)
    teller.note_release(scene.pods["a"], "n1", 101.4)
    teller.tell(scene.backlog, {}, 102.0)
    assert paper.said[1:] == [("a", "Released", "released to n1, after 101 s")]


def test_a_release_to_idle_resources_says_so():
    scene, paper = scene_of(pod("a"))
    teller = teller_of(scene, paper)
    teller.tell(scene.backlog, whys(scene, NO_ROOM), 100.0)
    teller.note_release(scene.pods["a"], "n1", 101.4, idle=True)
    teller.tell(scene.backlog, {}, 102.0)
    assert paper.said[-1][2] == "released to n1, on its idle resources, after 101 s"


def test_a_release_without_a_node_says_so():
    scene, paper = scene_of(pod("a"))
    teller = teller_of(scene, paper)
    teller.tell(scene.backlog, whys(scene, NO_ROOM), 100.0)
    teller.note_release(scene.pods["a"], None, 101.4)
    teller.tell(scene.backlog, {}, 102.0)
    assert paper.said[-1][2] == "released without a node, for kube-scheduler to find one, after 101 s"


def test_no_more_are_told_than_the_rate_allows_and_the_oldest_first():
    # 2 a second, 25 in a burst: 25 at first, then 2 more after a second, however many wait.
    scene, paper = scene_of(*(pod(f"p{n:02}", created=float(n)) for n in reversed(range(40))))
    teller = teller_of(scene, paper, per_second=2.0)
    teller.tell(scene.backlog, whys(scene, NO_ROOM), 100.0)
    assert [name for name, *_ in paper.said] == [f"p{n:02}" for n in range(25)]
    teller.tell(scene.backlog, whys(scene, NO_ROOM), 101.0)
    assert len(paper.said) == 27


def test_releases_keep_to_the_same_rate_and_none_is_forgotten():
    scene, paper = scene_of(*(pod(f"p{n:02}") for n in range(25)))
    teller = teller_of(scene, paper, per_second=2.0)
    teller.tell(scene.backlog, whys(scene, NO_ROOM), 100.0)
    for it in scene.pods.values():
        teller.note_release(it, "n1", 100.0)
    for second in range(1, 6):
        teller.tell(scene.backlog, {}, 100.0 + second)
        assert len(paper.said) == 25 + 2 * second


def test_a_pod_that_is_held_no_longer_is_not_told():
    scene, paper = scene_of(pod("a"))
    why = whys(scene, NO_ROOM)
    scene.change("a", gates=())
    teller_of(scene, paper).tell(scene.backlog, why, 100.0)
    assert paper.said == []


def test_broken_annotations_of_held_pods_are_warned_of_in_the_words_of_serve():
    scene, paper = scene_of(pod("a", problem="broken"), pod("b", gates=(), problem="broken", node="n1"))
    Teller(paper, 1e9).tell(scene.backlog, whys(scene, NO_ROOM), 100.0)
    assert paper.warned == [("a", scene.pods["a"].warning)]


def test_pods_that_wait_are_warned_of_a_queue_that_they_do_not_get_with_the_gate_or_without():
    astray = Identity(job="default/j", queue="nosuch", named="nosuch")
    scene = Scene(node("n1"), by_filter=True)
    scene.see(replace(pod("a"), identity=astray), replace(pod("b", gates=()), identity=astray))
    paper = Paper()
    Teller(paper, 1e9).tell(scene.backlog, dict.fromkeys(("uid-a", "uid-b"), NO_ROOM), 100.0)
    told = "there is no queue nosuch; it counts in default"
    assert sorted(paper.warned) == [("a", told), ("b", told)]


def test_of_pods_with_one_owner_one_is_warned_of():
    owners = {"a": "x", "b": "x", "c": "y", "d": "", "e": ""}
    scene, paper = scene_of(*(pod(name, owner=owner, problem="broken") for name, owner in owners.items()))
    Teller(paper, 1e9).tell(scene.backlog, whys(scene, NO_ROOM), 100.0)
    assert sorted(name for name, _ in paper.warned) == ["a", "c", "d", "e"]


def observer_of(scene, paper, after=10.0, **more):
    input_builder = PlanInputBuilder(scene.backlog, scene.queues, starved_after=120.0)
    usual = {"input_builder": input_builder, "policy": scene.policy, "carried": Carried}
    return Observer(
        ledger=scene.ledger,
        backlog=scene.backlog,
        teller=Teller(paper, after),
        flight_time=lambda: scene.now,
        **{**usual, **more},
    )


def test_the_observer_counts_reasons_shares_and_the_oldest_wait_and_tells():
    # Of 1,000 of CPU q holds 900; the only queue's fair share is all.
    scene, paper = scene_of(pod("runs", 900, gates=(), node="n1"), pod("a", 200, created=40.0), pod("b", 200))
    observer = observer_of(scene, paper)
    assert observer.look(100.0) >= 1.0
    assert observer.seen.held["no-room"] == 2
    assert set(observer.seen.ungated.values()) == {0}
    assert observer.seen.shares == {"q": (0.9, 1.0)}
    assert observer.seen.oldest == {"q": 100.0}
    assert paper.said == [], "it has just begun: who knows for how long the reason has been there"
    observer.look(110.0)
    assert {name for name, *_ in paper.said} == {"a", "b"}
    observer.look_away()
    assert (observer.seen.held, observer.seen.shares, observer.seen.oldest) == ({}, {}, {})


def test_only_so_many_queues_are_shown_those_with_most_pods_first():
    scene, paper = scene_of(*(pod(f"p{n}", queue=f"q{n:04}") for n in range(MOST_QUEUES + 5)))
    scene.see(pod("one-more", queue=f"q{MOST_QUEUES + 4:04}"))
    observer = observer_of(scene, paper, after=1e9)
    observer.look(100.0)
    assert len(observer.seen.shares) == len(observer.seen.oldest) == MOST_QUEUES
    assert f"q{MOST_QUEUES + 4:04}" in observer.seen.shares


def test_the_observer_measures_how_fast_room_frees_up_while_pods_wait_for_it():
    # Two run and a third waits: from 0 to 10 s one ends. Then nobody waits any more: the second end does not count.
    scene, paper = scene_of(*(pod(f"r{n}", 500, gates=(), node="n1") for n in range(2)), pod("a", 200))
    seconds = iter([0.0, 0.0, 10.0, 10.0, 20.0, 20.0])
    observer = observer_of(scene, paper, clock=lambda: next(seconds))
    observer.look(100.0)
    scene.end("r0")
    observer.look(110.0)
    scene.end("r1")
    observer.look(120.0)
    assert (observer.load.freed, observer.load.seconds) == (1, 10.0)


def test_a_wait_that_was_computed_is_what_the_observer_and_the_release_loop_plan_by():
    # n1 is full of 20 pods, which all end from 0 to 10 s while a waits: 2 per second. D = -1 / 1 ln(0.5 / 1.5) = 1.099.
    scene, paper = scene_of(
        *(pod(f"r{n}", 50, gates=(), node="n1") for n in range(20)), pod("a", 1000, inputs=(("n1", 1.0),))
    )
    seconds, adopted = iter([0.0, 0.0, 10.0, 10.0]), []
    observer = observer_of(
        scene,
        paper,
        clock=lambda: next(seconds),
        policy=Policy(locality_waits=(5.0, 3.0), srtf=0.5),
        input_builder=PlanInputBuilder(scene.backlog, (), starved_after=120.0, levels=["example.com/rack"]),
        waits=TargetWait((5.0, 3.0), Target(0.5, 30.0)),
        plan_by=adopted.append,
    )
    observer.look(100.0)
    assert (adopted, observer.waits_by_level()) == ([], {"node": 5.0, "rack": 3.0})
    for n in range(20):
        scene.end(f"r{n}")
    observer.look(110.0)
    wait = pytest.approx(math.log(3) / 2)
    assert observer.waits_by_level() == {"node": wait, "rack": 3.0}
    assert adopted == [observer.policy]
    assert observer.policy == Policy(locality_waits=(observer.waits.in_force[0], 3.0), srtf=0.5)


def test_the_observer_tells_at_which_level_the_release_loop_has_a_job_by_now():
    # Its node n2 and the other of its rack are full, n1 is free: after 6 s the rack would do, from 5 + 3 s on anywhere.
    policy, levels = Policy(locality_waits=(5.0, 3.0)), ["example.com/rack"]
    nodes = (node(name, labels={"example.com/rack": rack}) for name, rack in (("n1", "r1"), ("n2", "r2"), ("n3", "r2")))
    scene, paper = Scene(*nodes, policy=policy, levels=levels), Paper()
    scene.see(*(pod(f"runs-{name}", 1000, gates=(), node=name) for name in ("n2", "n3")))
    scene.see(pod("a", 1000, inputs=(("n2", 1.0),), created=90.0))
    scene.step()
    scene.step(6.0)
    carried = scene.releaser.planner.carried
    observer = observer_of(scene, paper, after=0.0, input_builder=scene.input_builder(), carried=lambda: carried)
    observer.look(scene.now)
    assert paper.said == [("a", "Held", "waits for rack-local room: 2 preferred nodes, all full; anywhere from 8 s on")]


def test_a_typical_job_is_remembered_when_it_no_longer_waits():
    scene, paper = scene_of(pod("a", inputs=(("n1", 1.0), ("n2", 1.0))))
    observer = observer_of(scene, paper)
    observer.look(100.0)
    scene.remove("a")
    observer.look(110.0)
    observer.look_away()
    assert (observer.load.typical.tasks, observer.load.typical.replicas) == (1, 2)


def test_what_ends_while_another_replica_acts_is_not_measured():
    scene, paper = scene_of(pod("r", 1000, gates=(), node="n1"), pod("a", 1000))
    seconds = iter([0.0, 0.0, 10.0, 10.0])
    observer = observer_of(scene, paper, clock=lambda: next(seconds))
    observer.look(100.0)
    observer.look_away()
    scene.end("r")
    observer.look(110.0)
    assert (observer.load.freed, observer.load.seconds) == (0, 0.0)
