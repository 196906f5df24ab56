"""With gates a released pod that kube-scheduler refused waits for its turn again, and is nominated in it."""

import itertools
from dataclasses import replace

import pytest

from extender.cluster.events import PodsListed
from extender.control.backlog.backlog import Backlog
from extender.control.release.refusals import refused_pods
from extender.control.release.slots import Pace
from extender.explain.advice import changes_for
from extender.explain.pod_in_plan import case_of
from extender.explain.wait_reasons import IS_RESTING, IS_TRIED_AGAIN
from extender.planner import Policy
from tests.service.control.scene import OURS, Scene, node, pod
from tests.service.costs import calls_of


def refused(name, cpu=100, **more):
    """Return a pod that was released, and that kube-scheduler refuses."""
    return pod(name, cpu, **{"gates": (), "unschedulable": True, **more})


def give_up(scene, name):
    """Have kube-scheduler refuse a pod once more: it takes the nomination away, and the pod is as it was."""
    scene.change(name, nominated=None)


def test_in_its_turn_it_is_nominated_before_those_that_come_later():
    scene = Scene(node("n1", 100))
    scene.see(pod("runs", gates=(), node="n1", queue="r"), refused("first", created=1.0), pod("second", created=2.0))
    assert scene.step() == 0
    assert scene.why()["first"].kind == "no-room"
    scene.remove("runs")
    assert scene.why()["first"] == IS_TRIED_AGAIN
    scene.step(1)
    assert scene.written == [("nominate", "first", "n1")]
    scene.step(4)
    assert scene.pods["first"].nominated == "n1"
    assert scene.releaser.unbound == 0, "it has had its part in the pace"
    scene.bind("first")
    scene.end("first")
    scene.step(1)
    assert scene.released() == ["second"]


def test_one_that_no_autoscaler_helps_gets_the_room_that_is_kept_for_it_once_it_is_due():
    # Pods of 300 that end one at a time leave 500 only where the next of them has to wait.
    scene = Scene(node("n1"), pace=Pace(scale_up_after=10.0), policy=Policy(starved_after=60.0))
    running = [pod(f"runs{n}", 300, gates=(), node="n1", queue="a", job="small", created=0.0) for n in range(3)]
    scene.see(*running, pod("big", 500, queue="b", created=scene.now))
    scene.step(11)
    assert scene.told[-1][:2] == ("big", "scale-up")
    scene.change("big", unschedulable=True)
    scene.step(100)
    scene.see(*(pod(f"small{n}", 300, queue="a", job="small", created=scene.now) for n in range(5)))
    for n in range(2):
        scene.remove(f"runs{n}")
        scene.step(1)
    assert scene.told_to("nominate") == [("nominate", "big", "n1")]


@pytest.mark.parametrize("says", [True, False], ids=["that takes the nomination away", "that says nothing"])
def test_room_is_kept_for_one_that_is_refused_again_for_five_seconds_and_then_it_rests_longer_each_time(says):
    scene = Scene(node("n1", 100))
    scene.see(refused("a", created=1.0))
    nominated_at, kept, before = [], [], None
    for _ in range(1_500):
        scene.step(1)
        now = scene.pods["a"].nominated
        if now and not before:
            nominated_at.append(scene.now)
        if before and not now:
            kept.append(scene.now - nominated_at[-1])
        before = now
        if says and now:
            give_up(scene, "a")
    rests = [later - earlier for earlier, later in itertools.pairwise(nominated_at)]
    if says:
        assert rests == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    else:
        assert kept[:3] == [5, 5, 5]
        assert rests == [10, 15, 25, 45, 85, 165, 305, 305, 305]


def test_while_it_rests_its_room_is_for_others():
    scene = Scene(node("n1", 100))
    scene.see(refused("a", created=1.0), pod("b", 90, created=2.0))
    scene.step()
    give_up(scene, "a")
    assert scene.why()["a"] == IS_RESTING
    scene.step(0.1)
    assert scene.released() == ["b"]


def test_one_that_rests_is_told_until_when():
    scene = Scene(node("n1", 100))
    scene.see(refused("a", created=1.0))
    for _ in range(2):
        scene.step(5)
        give_up(scene, "a")
    scene.step(2)
    found = scene.view()
    assert changes_for(case_of(found, scene.pods["a"]), found.why["uid-a"])[1] == (
        "its next turn comes in 8 s at the earliest; before that it starts where kube-scheduler finds room"
    )


def test_one_that_is_refused_again_and_again_does_not_take_the_tries_of_those_like_it():
    # Each is a job of its own, and the refused one is the first of them.
    scene = Scene(node("n1", 10_000))
    scene.see(refused("own-fault", created=0.0), *(pod(f"p{n:02}", created=float(n + 1)) for n in range(20)))
    for _ in range(8):
        scene.step(1)
        for name in scene.released():
            scene.bind(name, "n1")
        if scene.pods["own-fault"].nominated:
            give_up(scene, "own-fault")
    assert len(scene.released()) == 20


def test_of_those_refused_in_one_class_the_next_gets_the_turn_that_one_did_not_use():
    scene = Scene(node("n1", 100))
    scene.see(*(refused(f"p{n}", job="j", created=float(n)) for n in range(3)))
    for _ in range(3):
        scene.step()
        give_up(scene, next(name for name, it in scene.pods.items() if it.nominated))
        scene.step(0.1)
    assert [name for _, name, _ in scene.told_to("nominate")] == ["p0", "p1", "p2"]


def test_many_that_are_refused_do_not_slow_down_others():
    scene = Scene(node("n1", 100_000), pace=Pace(unbound_pods=4))
    scene.see(*(refused(f"r{n}", 101 + n) for n in range(20)))
    for _ in range(6):
        scene.step(0.5)
    scene.see(*(pod(f"p{n}", queue="other") for n in range(4)))
    scene.step(0.5)
    scene.step(0.5)
    assert len(scene.released()) == 4


def test_that_it_is_still_refused_is_no_sign_that_kube_scheduler_runs():
    scene = Scene(node("n1", 10_000))
    scene.see(pod("waits"))
    scene.step()
    scene.see(refused("a", 200))
    for _ in range(40):
        scene.step(1)
    assert scene.pods["waits"].nominated == "n1"
    assert scene.releaser.cluster.passed_by == set()


def test_a_gang_of_which_all_are_refused_is_nominated_whole():
    scene = Scene(node("n1", 200), node("n2", 100))
    gang = {"job": "g", "group": "default/g", "least": 3}
    scene.see(pod("runs", 50, gates=(), node="n2"), *(refused(f"g{n}", **gang) for n in range(3)))
    scene.step()
    assert scene.written == []
    scene.remove("runs")
    scene.step(1)
    assert sorted(scene.nominated()) == ["g0", "g1", "g2"]


def test_a_nomination_that_failed_is_tried_again():
    scene = Scene(node("n1", 100))
    scene.see(refused("a"))
    scene.refuse.add(("nominate", "a"))
    scene.step()
    scene.refuse.clear()
    scene.step(1)
    assert scene.nominated() == {"a": "n1"}


def test_a_new_leader_takes_the_nomination_of_a_refused_pod_away_and_gives_it_another():
    scene = Scene(node("n1", 100))
    scene.see(refused("a"))
    scene.step()
    scene.restart()
    for _ in range(7):
        scene.step(1)
    assert [verb for verb, *_ in scene.written] == ["nominate", "clear", "nominate"]


def test_those_for_other_schedulers_wait_for_these():
    scene = Scene(node("n1", 100))
    scene.see(replace(refused("theirs", promised="n1"), scheduler="theirs"))
    scene.step()
    assert scene.written == []


def seconds_until_room_is_kept(scene):
    """Fill the first node, and return after how long room is kept for the pod `a`."""
    turn = scene.now
    scene.see(pod("other", gates=(), node="n1", queue="r", created=turn, started=turn))
    while not any(name.startswith("q|a|") for name in scene.releaser.planner.carried.reserved):
        scene.step(5)
    scene.remove("other")
    return scene.now - turn


def test_after_a_turn_in_vain_no_room_is_kept_for_it_for_longer_each_time():
    # Its queue has nothing, and another queue waits: so room is kept for it at once else.
    scene = Scene(node("n1", 100), node("n2", 100))
    scene.see(refused("a", created=1.0), pod("runs", gates=(), node="n2", queue="r"), pod("waits", queue="r"))
    waits = []
    for _ in range(4):
        while not scene.pods["a"].nominated:
            scene.step(5)
        give_up(scene, "a")
        waits.append(seconds_until_room_is_kept(scene))
    assert waits == [120, 240, 480, 960]


def test_days_of_turns_in_vain_stop_nobody_else():
    # A turn every 300 s, for two weeks.
    scene = Scene(node("n1", 100))
    scene.see(refused("a", 200, created=1.0), pod("b"))
    for _ in range(4_000):
        scene.backlog.back_off("uid-a", scene.now)
    scene.step(300)
    assert scene.released() == ["b"]


def test_no_room_is_kept_either_for_a_held_pod_that_cannot_be_written_to():
    # As above: each try that fails is one in vain.
    scene = Scene(node("n1", 100), node("n2", 100))
    scene.refuse.add(("nominate", "a"))
    scene.see(pod("a", created=1.0), pod("runs", gates=(), node="n2", queue="r"), pod("waits", queue="r"))
    waits = []
    for n in range(3):
        while len(scene.attempts) == n:
            scene.step(5)
        waits.append(seconds_until_room_is_kept(scene))
    assert waits == [120, 240, 480]


def test_of_many_held_pods_not_each_is_asked_whether_its_turns_were_in_vain():
    scene, asked = Scene(node("n1", 100)), []
    scene.see(*(pod(f"a{n}", job="a") for n in range(50)))
    task_class, _ = scene.backlog.find("uid-a0")
    scene.backlog.writes.failures = lambda uid: asked.append(uid) or 0
    assert not scene.backlog.in_vain(task_class, scene.now, held=True)
    assert asked == ["uid-a0"]


def auto_refused_in_its_turn(*more, cpu=1_000):
    """Return a scene in which some have no gate, and kube-scheduler refused `odd0`, which had one, on its node."""
    scene = Scene(node("n1", cpu), by_filter=True, pace=Pace(unbound_pods=1))
    scene.see(*(pod(f"odd{n}", job=f"j{n}", created=float(n)) for n in range(3)))
    scene.step()
    scene.change("odd0", unschedulable=True, nominated=None)
    scene.see(*more)
    scene.releaser.pace = Pace()
    return scene


def test_where_filter_keeps_the_order_none_like_one_that_was_refused_in_its_turn_goes_and_others_do():
    scene = auto_refused_in_its_turn(pod("larger", 200))
    scene.step(0.1)
    assert scene.released() == ["odd0", "larger"]
    scene.bind("odd0", "n1")
    scene.step(0.1)
    assert scene.released()[2:] == ["odd1", "odd2"]


def test_where_filter_keeps_the_order_those_like_one_that_waits_for_its_first_turn_go():
    scene = Scene(node("n1", 1_000), by_filter=True)
    scene.see(refused("first", job="j"), pod("p", job="k"))
    scene.step()
    assert scene.released() == ["p"]


def test_where_filter_keeps_the_order_one_that_was_refused_in_its_turn_is_nominated_in_the_next_and_rests_longer():
    scene, nominated_at = auto_refused_in_its_turn(), []
    for _ in range(80):
        scene.step(1)
        if scene.pods["odd0"].nominated:
            nominated_at.append(scene.now)
            give_up(scene, "odd0")
    assert [later - earlier for earlier, later in itertools.pairwise([100.0, *nominated_at])] == [5, 10, 20, 40]
    assert ("wake", "odd0") not in scene.written


def test_where_filter_keeps_the_order_one_that_has_had_no_turn_is_woken_in_it_and_not_nominated():
    scene = Scene(node("n1", 100), by_filter=True)
    scene.see(refused("first"))
    for _ in range(3):
        scene.step(1)
    assert scene.written[0] == ("wake", "first")
    assert scene.told_to("nominate") == []


def test_where_filter_keeps_the_order_a_new_leader_wakes_one_that_was_refused_in_a_turn_before_and_it_rests_no_more():
    scene = auto_refused_in_its_turn()
    scene.step(0.1)
    scene.restart()
    before = len(scene.written)
    for _ in range(100):
        scene.step(1)
    assert {verb for verb, name, *_ in scene.written[before:] if name == "odd0"} == {"wake"}
    assert scene.backlog.missed_turns() == []


def test_where_filter_keeps_the_order_one_that_rests_says_so():
    scene = auto_refused_in_its_turn()
    scene.step(0.1)
    assert scene.why()["odd0"] == IS_RESTING


def test_where_filter_keeps_the_order_a_step_does_not_look_for_refused_ones_among_all_that_never_had_a_gate():
    def calls(number):
        scene = auto_refused_in_its_turn(*(refused(f"p{n}", job="j") for n in range(number)))
        return calls_of(lambda: list(refused_pods(scene.backlog)))

    assert calls(50) == calls(5)


def test_where_filter_keeps_the_order_who_explains_is_told_who_rests_and_who_may_go_but_was_refused_in_its_turn():
    scene = auto_refused_in_its_turn()
    assert scene.backlog.rest_seconds(scene.now + 2) == {"uid-odd0": 3.0}
    scene.step(5)
    give_up(scene, "odd0")
    scene.remove("odd1")
    scene.see(pod("large", 1_000, gates=(), node="n1", queue="r"))
    scene.step(10)
    assert scene.backlog.rest_seconds(scene.now) == {"uid-odd0": 0.0}
    told = Backlog([OURS], by_filter=True)
    told.apply(PodsListed(list(scene.pods.values())), scene.now)
    told.note_rests({"uid-odd0": 0.0}, scene.now)
    assert [it.name for it in told.missed_turns()] == ["odd0"]
    assert not told.rests()
