"""Reclaim for pods that kube-scheduler refuses: each costs somebody a running pod, so it is tried ever more rarely.

One node of 1,000 of CPU, ten pods of 100 of queue a on it; queue b is sure of three.
"""

import pytest

from extender.cluster.eligibility import Constraints, Requirement
from extender.cluster.queues import Queue
from extender.control.pod_shapes import queue_of, shape_of
from extender.control.reclaim.loop import Timeouts
from extender.control.reclaim.trials import Trials
from tests.service.control.reclaim.test_loop import MINIMUM, ReclaimScene, runs, waits
from tests.service.control.scene import node

HOUR = 3_600


class Cluster(ReclaimScene):
    """kube-scheduler binds where there is room, but `refuses` pods by name, or never `tries` them.

    Who is evicted is made again, held.
    """

    def __init__(self, refuses, tries=lambda _name: True, **more):
        super().__init__(node("n1"), queues=MINIMUM, timeouts=Timeouts(minimum_share=30, per_minute=10), **more)
        self.refuses, self.tries, self.made = refuses, tries, 10
        self.see(*(runs(f"a{n}", started=float(n)) for n in range(10)))

    def go_on(self, seconds, each=None, pause=1):
        for second in range(0, seconds, pause):
            if each is not None:
                each(self, second)
            self.step(pause)
            for _ in range(len(self.evicted) + 10 - self.made):
                self.see(waits(f"a{self.made}", queue="a", job="a", created=self.now))
                self.made += 1
            for it in [it for it in self.pods.values() if it.node is None and not it.gates and self.tries(it.name)]:
                self.schedule(it)

    def schedule(self, it):
        used = sum(other.demand["cpu"] for other in self.pods.values() if other.node)
        if self.refuses(it.name):
            if not it.unschedulable:
                self.change(it.name, unschedulable=True)
        elif used + it.demand["cpu"] <= 1000:
            self.change(it.name, node="n1", nominated=None, started=self.now, unschedulable=False)

    def events_of(self, reason):
        return [(name, message) for name, why, message in self.events if why == reason]


def of_b(name):
    return name.startswith("b")


def nobody(_name):
    return False


def each_minute(grows=0):
    """Make a pod of b a minute, each a job of its own; it asks for 40 of CPU, and for more each time."""

    def make(scene, second):
        if second % 60 == 0:
            minute = second // 60
            scene.see(waits(f"b{minute}", 40 + grows * minute, job=f"b{minute}", created=scene.now))

    return make


def test_new_pods_of_a_shape_that_is_refused_cost_fewer_and_fewer_their_place():
    # After 30 s, and rests of 1, 2, 4, 8, 16 min: six in the first hour.
    scene = Cluster(refuses=of_b)
    scene.go_on(HOUR, each_minute(), pause=5)
    assert 0 < len(scene.evicted) <= 6
    assert scene.running("b") == []


def test_nor_do_shapes_that_are_all_different():
    # The queue rests for 15, 30, 60 ... s: after 30 s and these, nine in an hour at most.
    scene = Cluster(refuses=of_b)
    scene.go_on(HOUR, each_minute(grows=1), pause=5)
    assert 0 < len(scene.evicted) <= 9


@pytest.mark.parametrize("others_run", [False, True], ids=["its queue is new", "others of its queue run"])
def test_of_many_that_would_be_refused_one_is_tried(others_run):
    scene = Cluster(refuses=of_b)
    scene.slow = True
    if others_run:
        scene.end("a0")
        scene.see(runs("small", 50, queue="b"))
    scene.see(*(waits(f"b{n}", job=f"b{n}") for n in range(3)))
    scene.go_on(120)
    assert scene.evicted == ["a9"], "while it ends, nobody else is asked to"


def test_pods_that_differ_by_their_volumes_alone_are_not_tried_at_once():
    # Another of the queue runs; of these none has been bound or refused yet.
    scene = Cluster(refuses=of_b, tries=nobody)
    scene.end("a0")
    scene.see(runs("small", 50, queue="b"))
    for n in range(3):
        volume = Constraints(volumes=(((Requirement("disk", "NotIn", (f"d{n}",)),),),))
        scene.see(waits(f"b{n}", job=f"b{n}", constraints=volume))
    scene.go_on(40)
    assert scene.evicted == ["a9"]


def test_several_that_are_refused_at_once_make_their_shape_rest_once():
    trials = Trials()
    rests = [trials.fail(waits(f"b{n}"), 1, "refused", 100.0 + n).rests_seconds for n in range(3)]
    assert rests == [60.0, 59.0, 58.0]


def test_it_is_counted_logged_and_the_pod_is_told():
    scene = Cluster(refuses=of_b)
    scene.see(waits("b0"))
    scene.go_on(60)
    assert scene.vain == [("b0", "refused")]
    text = "room was made for it, and kube-scheduler refuses it; nobody is evicted for its like for 60 s"
    assert scene.events_of("ReclaimedInVain") == [("b0", text)]


def test_a_shape_that_was_refused_more_than_an_hour_ago_rests_as_if_it_never_had():
    scene = Cluster(refuses=of_b)
    scene.see(waits("b0"))
    scene.go_on(60)
    scene.remove("b0")
    scene.step(2 * HOUR)
    scene.see(waits("b1"))
    scene.go_on(60)
    assert [message[-4:] for _, message in scene.events_of("ReclaimedInVain")] == ["60 s", "60 s"]


def test_a_pod_that_loses_its_gate_while_its_victims_end_is_followed_like_one_that_we_release():
    scene = Cluster(refuses=of_b)
    scene.slow = True
    scene.see(waits("b0"))
    scene.go_on(31)
    scene.change("b0", gates=())
    scene.go_on(2)
    assert (scene.evicted, scene.vain) == (["a9"], [("b0", "refused")])
    assert scene.cluster.awaiting_evictions == set()


def test_nothing_was_in_vain_where_a_budget_kept_everybody_and_the_pod_found_room_first():
    # a9 is asked to go for b0; a0 ends meanwhile, and b0 goes there. Then a9's eviction is refused, and b0, too.
    scene = ReclaimScene(node("n1"), queues=MINIMUM)
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(10)), waits("b0"))
    scene.protected = {"a9"}
    given = []
    scene.run_soon = given.append
    while not given:
        scene.step(1)
    scene.end("a0")
    scene.step(1)
    for write in given:
        write()
    scene.run_soon = lambda write: write()
    scene.step(1)
    assert scene.nominated() == {"b0": "n1"}
    scene.change("b0", gates=(), unschedulable=True)
    scene.step(1)
    assert (scene.asked, scene.evicted, scene.vain) == (["a9"], [], [])


def test_others_of_its_queue_are_tried_soon():
    # b0 rests for a minute with its shape, its queue for 15 s.
    scene = Cluster(refuses=lambda name: name == "b0")
    scene.see(waits("b0", 100, job="b0", created=1.0), waits("b1", 90, job="b1", created=2.0))
    scene.go_on(60)
    assert scene.running("b") == ["b1"]


def test_a_pod_that_kube_scheduler_never_tries_keeps_no_room_from_others_of_its_queue():
    scene = Cluster(refuses=nobody, tries=lambda name: name != "b0")
    scene.see(*(waits(f"b{n}", 100 + n, job=f"b{n}", created=float(n)) for n in range(3)))
    scene.go_on(600, pause=5)
    assert scene.running("b") == ["b1", "b2"]
    assert scene.vain == [("b0", "late")]


class TestRests:
    """b0's shape was refused at 0 s: it rests for 60 s, its queue for 15."""

    def refused(self, times=1):
        trials, pod, ends = Trials(), waits("b0"), 0.0
        for _ in range(times):
            ends += trials.fail(pod, 1, "refused", ends).rests_seconds
        trials.note_running([])
        return trials, shape_of(pod, volumes=False), ends

    def may(self, trials, shape, time, *, runs=(), under_way=()):
        return trials.may_try(shape, runs, under_way, time)

    def test_they_double_up_to_an_hour(self):
        # 60 x (1 + 2 + ... + 32) = 3,780 s for six; the tenth is not 30,720 s but an hour.
        assert self.refused(times=6)[2] == 3_780.0
        assert self.refused(times=10)[2] - self.refused(times=9)[2] == 3_600.0

    def test_others_of_the_queue_are_tried_before_it_is(self):
        trials, shape, _ = self.refused()
        other = shape_of(waits("b1", 200), volumes=False)
        assert [self.may(trials, other, time) for time in (14.0, 15.0)] == [False, True]
        assert [self.may(trials, shape, time) for time in (59.0, 60.0)] == [False, True]

    def test_a_pod_of_the_shape_that_starts_ends_them(self):
        trials, shape, _ = self.refused(times=9)
        trials.note_running([(shape, [runs("b1", queue="b")])])
        assert self.may(trials, shape, 0.0)

    def test_what_ran_all_along_and_other_shapes_do_not(self):
        trials, shape, ends = self.refused(times=2)
        trials.note_running([(shape_of(waits("c0", 200), volumes=False), [runs("c1")])])
        assert not self.may(trials, shape, ends - 1)

    def test_a_shape_that_was_refused_is_tried_alone_until_one_has_started(self):
        trials, shape, ends = self.refused()
        known = {shape, queue_of(shape)}
        assert self.may(trials, shape, ends, runs=known)
        assert not self.may(trials, shape, ends, runs=known, under_way=known)
        trials.note_running([(shape, [runs("b1", queue="b")])])
        assert self.may(trials, shape, ends, runs=known, under_way=known)


def test_a_pod_that_goes_away_once_room_is_made_for_it_does_not_get_others_evicted_for_the_next():
    # Whoever makes and deletes pods costs others no more than who makes pods that are refused.
    scene = Cluster(refuses=nobody)
    scene.slow = True

    def fickle(scene, second):
        if second % 10 == 0:
            scene.see(waits(f"b{second}", job=f"b{second}", created=scene.now))
        for name in [
            name for name, it in scene.pods.items() if of_b(name) and scene.cluster.awaiting_evictions == {it.uid}
        ]:
            scene.remove(name)
        for name in [name for name, it in scene.pods.items() if it.leaving and second % 20 == 0]:
            scene.remove(name)

    scene.go_on(HOUR // 2, fickle, pause=5)
    assert 0 < len(scene.evicted) <= 6, "one each time that its shape has rested"
    assert {why for _, why in scene.vain} == {"gone"}


def test_where_others_take_the_room_each_time_it_is_made_ever_more_rarely():
    scene = Cluster(refuses=nobody)
    scene.slow = True
    scene.see(*(waits(f"b{n}", job=f"b{n}") for n in range(3)))

    def foreign(scene, second):
        for name in [name for name, it in scene.pods.items() if it.leaving]:
            scene.remove(name)
            scene.see(runs(f"foreign{second}", queue="a", owner="", started=scene.now))

    scene.go_on(HOUR // 2, foreign, pause=5)
    assert 0 < len(scene.evicted) <= 5
    assert {why for _, why in scene.vain} == {"taken"}
    assert scene.events_of("ReclaimedInVain") == [], "it is not kube-scheduler that refuses them"


def test_a_restart_costs_one_eviction_more_for_a_shape_that_is_refused():
    scene = Cluster(refuses=of_b)
    scene.go_on(600, each_minute(), pause=5)
    before = len(scene.evicted)
    scene.restart()
    scene.go_on(80, lambda scene, second: each_minute()(scene, second + 600))
    assert len(scene.evicted) - before == 1


@pytest.mark.parametrize("jump", [7_200.0, -7_200.0])
def test_a_clock_that_jumps_brings_nobodys_time_nearer_by_more_than_a_pause(jump):
    # b's 30 s have run for 9 when the clock is set. A pause counts as 10 s at most: 11 s to go, or 20 and one.
    scene = ReclaimScene(node("n1"), queues=MINIMUM)
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(10)), waits("b0"))
    scene.run(10)
    scene.now += jump
    scene.run(10)
    assert scene.asked == []
    scene.run(15)
    assert scene.evicted == ["a9"]


def test_who_was_asked_to_go_is_not_asked_again_while_the_watch_is_down():
    scene = ReclaimScene(node("n1"), queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(10)), waits("b0"))
    scene.slow, scene.blind = True, 0.0
    flight_time = scene.flight_time
    scene.flight_time = lambda: flight_time() - scene.blind
    scene.run(30)
    scene.deaf = True
    for _ in range(40):
        scene.blind += 1
        scene.run(1)
    assert scene.asked == ["a9"]


def test_who_must_not_be_evicted_is_asked_ever_more_rarely():
    # At 30 s, then after rests of 30, 60, 120, 240 and 480 s: six times in 20 minutes.
    scene = ReclaimScene(node("n1"), queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.see(*(runs(f"a{n}", owner="" if n else "replicas") for n in range(10)), waits("b0"))
    scene.protected = {"a0"}
    scene.run(1_200)
    assert 4 <= len(scene.asked) <= 6


def test_who_was_not_to_be_evicted_long_ago_is_asked_as_often_as_at_first():
    # At 30 and 60 s; the rest of 60 s is forgotten 16 minutes after its end. Then at once, and after 30 s again.
    scene = ReclaimScene(node("n1"), queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.see(*(runs(f"a{n}", owner="" if n else "replicas") for n in range(10)), waits("b0"))
    scene.protected = {"a0"}
    scene.run(95)
    assert len(scene.asked) == 2
    scene.step(1_500)
    scene.run(60)
    assert len(scene.asked) == 4


def test_evictions_that_are_forbidden_count_in_the_rate():
    scene = Cluster(refuses=nobody)
    scene.see(waits("b0"))
    scene.protected = {f"a{n}" for n in range(10)}
    scene.go_on(30 + 60)
    assert len(scene.asked) <= 11, "ten a minute, and one at once"


def test_many_jobs_of_one_shape_cost_one_look():
    scene = ReclaimScene(node("n1"), queues=MINIMUM)
    scene.see(*(runs(f"a{n}", owner="" if n else "replicas") for n in range(10)))
    scene.see(*(waits(f"b{n}", 200, job=f"b{n}") for n in range(200)))
    scene.run(30)
    asked, allowed = [], scene.releaser.input_builder.allowed_nodes.allowed
    scene.releaser.input_builder.allowed_nodes.allowed = lambda pod, layout: (
        asked.append(pod.name) or allowed(pod, layout)
    )
    scene.reclaimer.step(scene.now + 1)
    assert set(asked) == {"b0"}


def test_those_who_cannot_be_helped_keep_nobody_from_being_helped():
    # Forty shapes that fit no node, all older than the one that can be helped.
    scene = ReclaimScene(node("n1"), queues=MINIMUM)
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(10)))
    scene.see(*(waits(f"b{n}", 1_100 + n, job=f"b{n:02}", created=float(n)) for n in range(40)))
    scene.see(waits("small", created=99.0))
    scene.run(60)
    assert scene.evicted == ["a9"]
    assert scene.running("b") == ["small"]


def test_a_queue_whose_pods_others_hold_takes_no_part_of_what_may_be_reclaimed():
    # c's pods wait for a gate of others: a and b have a half each, not a third.
    scene = ReclaimScene(node("n1"), timeouts=Timeouts(fair_share=30, per_minute=60_000))
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(5)))
    scene.see(*(runs(f"b{n}", queue="b") for n in range(4)), runs("other", owner="", queue="b", cpu=50))
    scene.see(runs("c", 50, queue="a", owner=""), waits("b9", 100))
    scene.see(waits("gated", queue="c", gates=("dovetail.dev/hold", "others")))
    scene.run(60)
    assert scene.asked == []
