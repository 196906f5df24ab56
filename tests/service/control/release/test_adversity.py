"""What goes wrong between a plan and a bound pod: refused writes, half-started gangs, clocks, and who counts."""

import dataclasses
import itertools
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from extender.cluster.events import NodeSeen, OwnerSeen, OwnersListed
from extender.cluster.model import Owner
from extender.cluster.queues import Queue
from extender.control.release.slots import Pace
from extender.errors import ClusterError
from tests.service.control.scene import Scene, node, pod

KUEUE = "kueue.x-k8s.io/admission"


def gang(count, *, prefix="g", **more):
    return [pod(f"{prefix}{n}", job="g", group="default/g", least=count, **more) for n in range(count)]


def begins(scene, letter):
    return sum(name[0] == letter for name in scene.released())


class TestRefusedWrites:
    @pytest.mark.parametrize("verb", ["nominate", "release"])
    def test_pods_that_cannot_be_written_to_do_not_use_up_the_pace(self, verb):
        scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=4))
        scene.see(*(pod(f"bad{n}") for n in range(4)))
        scene.refuse = {(verb, f"bad{n}") for n in range(4)}
        scene.step()
        scene.see(*(pod(f"ok{n}", queue="other") for n in range(4)))
        for _ in range(20):
            scene.step(1)
        assert sorted(scene.released()) == ["ok0", "ok1", "ok2", "ok3"]

    def test_a_pod_that_cannot_be_released_is_tried_ever_more_rarely_and_its_room_is_given_back(self):
        scene = Scene(node("n1", cpu=100))
        scene.see(pod("bad"))
        scene.refuse = {("release", "bad")}
        for _ in range(20):
            scene.step(1)
        assert ("clear", "bad") in scene.written
        scene.see(pod("ok"))
        scene.step(1)
        assert scene.released() == ["ok"]
        before = len(scene.written)
        for _ in range(600):
            scene.step(1)
        assert len(scene.written) - before <= 2 * 600 / 60 + 2, "two writes a minute"

    def test_pods_whose_writes_came_too_late_for_the_lease_go_at_once_when_it_is_ours_again(self):
        scene = Scene(node("n1", cpu=1_000))
        scene.see(*(pod(f"p{n}") for n in range(4)))
        queued = []
        for _ in range(6):
            scene.run_soon = queued.append
            scene.step(1)
            scene.leading = False
            while queued:
                queued.pop(0)()
            scene.leading = True
        assert scene.written == []
        scene.run_soon = lambda write: write()
        scene.step(0.1)
        assert sorted(scene.released()) == ["p0", "p1", "p2", "p3"]

    @pytest.mark.parametrize(("status", "level"), [(404, "info"), (409, "info"), (403, "warning"), (None, "warning")])
    @pytest.mark.parametrize("verb", ["release", "clear"])
    def test_a_write_to_a_pod_that_is_gone_or_has_changed_is_no_warning(self, verb, status, level):
        scene = Scene(node("n1", cpu=1_000))
        scene.see(
            pod("p", nominated=None if verb == "release" else "gone", promised=None if verb == "release" else "n1")
        )
        refusal = ClusterError("refused")
        refusal.status = status

        def refuse(_pod):
            raise refusal

        setattr(scene, verb, refuse)
        with capture_logs() as logs:
            scene.step()
        assert [line["log_level"] for line in logs if "failed" in line["event"]] == [level]

    def test_a_nomination_that_cannot_be_cleared_is_tried_ever_more_rarely(self):
        scene = Scene(node("n1", cpu=100))
        scene.see(pod("bad"))
        scene.refuse = {("release", "bad"), ("clear", "bad")}
        for _ in range(1200):
            scene.step(0.1)
        # After 1, 2, 4 ... s: seven in two minutes.
        assert 2 <= scene.attempts.count(("clear", "bad")) <= 7

    @pytest.mark.parametrize("deleted", [False, True], ids=["its release fails", "it is being deleted"])
    def test_a_nomination_is_cleared_once_though_the_watch_does_not_show_it_yet(self, deleted):
        scene = Scene(node("n1", cpu=100))
        scene.see(pod("a"))
        if deleted:
            scene.step()
            scene.change("a", leaving=True)
        else:
            scene.refuse = {("release", "a")}
            while scene.backlog.writes.failures("uid-a") < 3:
                scene.step(1)
        scene.deaf = True
        for _ in range(100):
            scene.step(0.1)
        assert scene.attempts.count(("clear", "a")) == 1

    def test_the_wait_after_a_write_that_fails_late_begins_when_it_has_failed(self, monkeypatch):
        scene = Scene(node("n1", cpu=100))
        scene.see(pod("bad"))
        scene.refuse = {("nominate", "bad")}
        ticks = itertools.count(step=10.0)
        monkeypatch.setattr("extender.control.release.sending.time", SimpleNamespace(monotonic=lambda: next(ticks)))
        scene.step()
        uid = next(iter(scene.cluster.backlog.writes.backoff))
        assert scene.cluster.backlog.writes.backoff[uid] == scene.now + 10.0 + 1.0

    def test_a_pod_whose_room_others_take_before_its_gate_is_gone_keeps_the_gate_until_there_is_room(self):
        scene = taken_between_writes(pod("late"))
        assert scene.released() == []
        scene.run_soon = lambda write: write()
        scene.step(1)
        assert scene.told_to("clear") == [("clear", "late")]
        scene.end("other")
        scene.step()
        assert scene.released() == ["late"]

    def test_a_pod_that_others_have_nominated_for_a_full_node_is_released_in_its_turn(self):
        scene = Scene(node("n1", cpu=100), node("n2", cpu=100))
        scene.see(pod("other", gates=(), node="n1"), pod("a", nominated="n1"))
        scene.step()
        assert scene.released() == ["a"]

    def test_a_pod_of_a_gang_goes_though_its_room_was_taken(self):
        scene = taken_between_writes(pod("late", group="g", least=1))
        assert scene.released() == ["late"]

    def test_a_clock_that_is_set_back_frees_what_was_claimed(self):
        scene = Scene(node("n1"))
        scene.see(pod("a"))
        scene.refuse = {("nominate", "a")}
        scene.now = 10_000.0
        scene.step()
        scene.refuse.clear()
        scene.now -= 7_200
        scene.step(1)
        assert scene.released() == ["a"]

    def test_a_pod_that_kube_scheduler_refused_does_not_keep_its_room(self):
        scene = Scene(node("n1", cpu=100))
        scene.see(pod("x", created=1.0, may_preempt=False), pod("y", created=2.0))
        scene.step()
        scene.change("x", unschedulable=True)
        scene.step(1)
        scene.step(1)
        assert scene.released() == ["x", "y"]


def taken_between_writes(waiting):
    """Return a scene in which another pod takes a pod's room between its nomination and its release."""
    scene, writes = Scene(node("n1", cpu=100)), []
    scene.see(waiting)
    scene.run_soon = writes.append
    scene.step()
    writes.pop(0)()
    assert scene.nominated() == {waiting.name: "n1"}
    scene.see(pod("other", gates=(), node="n1"))
    while writes:
        writes.pop(0)()
    return scene


class TestBlindness:
    def test_room_is_not_given_twice_while_a_watch_is_down(self):
        # The writes work, but no news of them comes; flight time stands still.
        scene = Scene(node("n1", cpu=100))
        scene.see(pod("a", created=1.0), pod("b", created=2.0))
        scene.deaf, at = True, scene.now
        scene.flight_time = lambda: at
        for _ in range(50):
            scene.step(1)
        assert scene.released() == ["a"]
        # Once it is back, news may take as long as usual; then what never showed is tried again.
        back, scene.deaf = scene.now, False
        scene.flight_time = lambda: at + scene.now - back
        for _ in range(14):
            scene.step(1)
        assert scene.released() == ["a"]
        scene.bind("a", "n1")
        scene.end("a")
        scene.step(20)
        assert scene.released() == ["a", "b"]


class TestGangs:
    def test_a_replacement_is_released_though_the_others_have_ended(self):
        scene = Scene(node("n1"))
        scene.see(*gang(4, owner="job"))
        scene.step()
        for n in range(4):
            scene.bind(f"g{n}")
        for n in range(3):
            scene.end(f"g{n}")
        scene.change("g3", finished=True, failed=True)
        scene.see(pod("again0", job="g", group="default/g", least=4, created=200.0, owner="job"))
        scene.step(1)
        assert "again0" in scene.released()

    @pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted"])
    def test_who_comes_to_a_gang_that_had_started_waits_for_no_more_than_there_are(self, restarted):
        # A driver and its executors: these are deleted once they are idle, and later it asks for two again.
        scene = Scene(node("n1"))
        scene.see(*gang(4))
        scene.step()
        for n in range(4):
            scene.bind(f"g{n}")
        for n in (1, 2, 3):
            scene.end(f"g{n}")
            scene.remove(f"g{n}")
        if restarted:
            scene.restart()
        scene.see(*(pod(f"x{n}", job="g", group="default/g", least=4, created=200.0) for n in range(2)))
        scene.step(1)
        assert begins(scene, "x") == 2

    def test_a_gang_whose_pods_have_all_gone_starts_whole_again(self):
        scene = Scene(node("n1"))
        scene.see(*gang(4))
        scene.step()
        for n in range(4):
            scene.bind(f"g{n}")
            scene.change(f"g{n}", leaving=True)
        scene.see(*(pod(f"x{n}", job="g", group="default/g", least=4, created=200.0) for n in range(2)))
        scene.step(1)
        assert begins(scene, "x") == 0
        scene.see(*(pod(f"y{n}", job="g", group="default/g", least=4, created=201.0) for n in range(2)))
        scene.step(1)
        assert (begins(scene, "x"), begins(scene, "y")) == (2, 2)

    @pytest.mark.parametrize("owners", [("", ""), ("monday", "tuesday")], ids=["bare", "owned"])
    def test_pods_that_ended_in_an_earlier_run_of_the_group_do_not_count_as_started(self, owners):
        scene = Scene(node("n1", cpu=400))
        scene.see(*gang(4, owner=owners[0]))
        scene.step()
        for n in range(4):
            scene.bind(f"g{n}")
        for n in range(4):
            scene.end(f"g{n}")
        scene.see(pod("other", 200, job="other", gates=(), node="n1", queue="b"))
        scene.see(*gang(4, prefix="h", created=1000.0, owner=owners[1]))
        scene.step(900)
        assert begins(scene, "h") == 0

    @pytest.mark.parametrize("restarted", [False, True], ids=["", "restarted"])
    def test_those_that_ended_count_where_another_job_of_the_gang_makes_its_pod_again(self, restarted):
        scene = Scene(node("n1"))
        jobs = [Owner(uid, 1, 1, created=90.0) for uid in ("left", "right")]
        scene.apply(OwnersListed(jobs))
        scene.see(*(pod(job.uid, job="g", group="default/g", least=2, created=90.0, owner=job.uid) for job in jobs))
        scene.step()
        for job in jobs:
            scene.bind(job.uid)
            scene.change(job.uid, started=scene.now)
        scene.end("left")
        scene.change("right", finished=True, failed=True)
        scene.see(pod("again", job="g", group="default/g", least=2, created=150.0, owner="right"))
        if restarted:
            scene.restart()
            scene.apply(OwnersListed(jobs))
        scene.step(100)
        assert "again" in scene.released()

    def test_those_that_ended_do_not_count_for_a_job_that_was_made_later(self):
        scene = Scene(node("n1"))
        scene.see(*gang(2, owner="monday"))
        scene.step()
        for n in range(2):
            scene.bind(f"g{n}")
            scene.change(f"g{n}", started=scene.now)
            scene.end(f"g{n}")
        scene.apply(OwnerSeen(Owner("tuesday", 2, 2, created=150.0)))
        scene.see(gang(2, prefix="h", created=150.0, owner="tuesday")[0])
        scene.step(100)
        assert begins(scene, "h") == 0
        scene.change("g0")  # a label of it, say
        scene.step(100)
        assert begins(scene, "h") == 0

    def test_those_that_ended_count_though_there_is_news_of_the_only_one_that_runs(self):
        scene = Scene(node("n1"))
        scene.see(*gang(4))
        scene.step()
        for n in range(4):
            scene.bind(f"g{n}")
        for n in range(3):
            scene.end(f"g{n}")
        scene.change("g3", started=scene.now)
        assert scene.backlog.groups.ended("default/g") == 3

    def test_a_minimum_that_is_lowered_counts_at_once(self):
        scene = Scene(node("n1"))
        scene.see(*gang(4)[:2])
        scene.step()
        assert begins(scene, "g") == 0
        for n in range(2):
            scene.change(f"g{n}", identity=dataclasses.replace(scene.pods[f"g{n}"].identity, least=2))
        scene.step(1)
        assert begins(scene, "g") == 2

    def test_pods_that_failed_or_are_leaving_do_not_count_as_started(self):
        # 400 of CPU: three of the old gang are still there, so one new one would fit.
        scene = Scene(node("n1", cpu=400))
        scene.see(*gang(4))
        scene.step()
        for n in range(4):
            scene.bind(f"g{n}")
        scene.change("g0", finished=True, failed=True)
        for n in (1, 2, 3):
            scene.change(f"g{n}", leaving=True)
        scene.see(*gang(4, prefix="h", created=200.0))
        scene.step(1)
        assert begins(scene, "h") == 0

    def test_a_gang_that_was_half_nominated_when_the_process_died_starts_whole_or_not_at_all(self):
        scene = Scene(node("n1", cpu=400))
        scene.see(*gang(4))
        scene.refuse = {("nominate", "g2"), ("nominate", "g3"), ("release", "g0"), ("release", "g1")}
        scene.step()
        scene.refuse = set()
        scene.see(*(pod(f"o{n}", queue="b", job="o") for n in range(2)))
        scene.restart()
        for _ in range(10):
            scene.step(1)
        assert begins(scene, "g") == 0
        for name in scene.released():
            scene.bind(name)
            scene.end(name)
        scene.step(1)
        assert begins(scene, "g") == 4

    def test_a_member_whose_write_failed_keeps_its_room_while_it_is_tried_again(self):
        scene = Scene(node("n1", cpu=400))
        scene.see(*gang(4))
        scene.refuse = {("nominate", "g3")}
        scene.step()
        scene.refuse = set()
        scene.see(*(pod(f"o{n}", queue="b", job="o") for n in range(3)))
        for _ in range(6):
            scene.step(0.5)
        assert sorted(scene.released()) == ["g0", "g1", "g2", "g3"]

    @pytest.mark.parametrize("pace", [Pace(), Pace(scale_up_after=10.0)], ids=["preempting", "scaling up"])
    def test_no_member_goes_alone_to_preempt_or_to_have_a_node_made(self, pace):
        scene = Scene(node("n1", cpu=400), pace=pace)
        scene.see(*(pod(f"low{n}", gates=(), node="n1", queue="z") for n in range(4)))
        scene.see(*gang(4, priority=10))
        scene.step(60)
        assert scene.released() == []


def test_where_kube_scheduler_cannot_preempt_for_one_of_a_class_the_others_stay_held():
    scene = Scene(node("n1", cpu=400))
    scene.see(*(pod(f"low{n}", gates=(), node="n1") for n in range(4)))
    scene.see(*(pod(f"p{n}", job="p", priority=10) for n in range(5)))
    scene.step()
    (first,) = scene.released()
    scene.change(first, unschedulable=True)
    for _ in range(5):
        scene.step(1)
    assert scene.released() == [first]


class TestShares:
    @pytest.mark.parametrize(
        "more", [{"gates": (KUEUE,)}, {"gates": (), "unschedulable": True}], ids=["gated", "refused"]
    )
    def test_pods_that_hold_nothing_are_nobodys_share(self, more):
        # Ten places, two queues: five each.
        scene = Scene(node("n1"))
        scene.see(*(pod(f"k{n}", 90, queue="a", job="k", **more) for n in range(50)))
        scene.see(*(pod(f"{q}{n}", queue=q, job=q) for n in range(20) for q in "ab"))
        scene.step()
        assert (begins(scene, "a"), begins(scene, "b")) == (5, 5)

    def test_what_is_written_and_not_seen_yet_is_its_queues_share(self):
        scene = Scene(node("n1", cpu=100))
        scene.see(*(pod(f"{q}{n}", queue=q, job=q) for n in range(5) for q in "ab"))
        scene.deaf = True
        scene.step()
        for n in range(2, 5):
            scene.apply(NodeSeen(node(f"n{n}", cpu=100)))
            scene.step(0.3)
        assert (begins(scene, "a"), begins(scene, "b")) == (2, 2)

    def test_a_queue_whose_pods_others_hold_takes_no_part_of_its_parents_share(self):
        queues = (Queue("p"), Queue("c1", parent="p"), Queue("c2", parent="p"), Queue("r"))
        scene = Scene(node("n1"), queues=queues)
        scene.see(pod("x", queue="c2", gates=("dovetail.dev/hold", KUEUE)))
        scene.see(*(pod(f"c{n}", queue="c1", job="c") for n in range(20)))
        scene.see(*(pod(f"r{n}", queue="r", job="r") for n in range(20)))
        scene.step()
        assert (begins(scene, "c"), begins(scene, "r")) == (5, 5)

    def test_in_a_fifo_queue_a_job_keeps_its_place_by_its_owner_while_it_has_no_pod(self):
        scene = Scene(node("n1", cpu=100), queues=(Queue("q", fifo=True),))
        scene.apply(OwnerSeen(Owner("A", left=2, total=2, created=1.0)))
        scene.see(pod("A0", job="A", owner="A", created=1.0), *(pod(f"B{n}", job="B", created=2.0) for n in range(3)))
        scene.step()
        scene.bind("A0")
        scene.step(1)
        scene.end("A0")
        scene.see(pod("A1", job="A", owner="A", created=101.0))
        scene.step(1)
        assert scene.released() == ["A0", "A1"]


def test_a_held_pod_that_somebody_else_nominated_keeps_the_only_node_from_nobody():
    scene = Scene(node("n1", cpu=200))
    scene.see(pod("x", cpu=200, nominated="n1"))
    scene.step()
    assert scene.sent == {"x": "n1"}
    assert not scene.nominated(), "it goes where it is nominated"
    other = Scene(node("n1", cpu=200))
    other.see(pod("x", cpu=200, nominated="n1", gates=(KUEUE,)), pod("y", cpu=200))
    other.step()
    assert other.released() == ["y"]


def test_a_pod_that_somebody_else_nominated_counts_where_it_will_go():
    scene = Scene(node("n1", cpu=100), node("n2", cpu=100))
    scene.see(pod("x", nominated="n2"))
    scene.step()
    scene.see(pod("y"))
    scene.step(0.1)
    assert scene.nominated() == {"y": "n1"}
