"""The release loop on a cluster of events: whose turn it is, and that it does not matter where the last step ended."""

import dataclasses

import pytest

from extender.cluster.eligibility import Constraints, Taint
from extender.cluster.events import GroupSeen, NodeGone, NodeSeen, NodesListed, OwnerSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Group, Node, Owner
from extender.cluster.pods.opportunistic import ONLY
from extender.cluster.queues import Queue
from extender.control.release.slots import Pace
from extender.control.release.without_node import WithoutNode
from extender.planner import Policy
from tests.service.control.scene import LONG_SECONDS, Counted, Scene, node, pod

KUEUE = "kueue.x-k8s.io/admission"
FIFO = (Queue("q", fifo=True),)
REFUSED = {"gates": (), "unschedulable": True}


def test_a_held_pod_is_nominated_first_and_released_then():
    scene = Scene(node("n1"))
    scene.see(pod("a"))
    assert scene.step() == 1
    assert scene.written == [("nominate", "a", "n1"), ("release", "a")]
    assert (scene.told, scene.sent) == ([("a", "nominated", 100.0)], {"a": "n1"})


def test_a_pod_without_our_gate_is_left_alone():
    scene = Scene(node("n1"))
    scene.see(pod("free", gates=()), pod("others", gates=(KUEUE,)))
    scene.step()
    assert scene.written == []


def test_gates_of_others_are_waited_for():
    scene = Scene(node("n1"))
    scene.see(pod("a", gates=("dovetail.dev/hold", KUEUE)))
    scene.step()
    assert scene.written == []
    scene.change("a", gates=("dovetail.dev/hold",))
    scene.step(1)
    assert scene.released() == ["a"]


def test_only_as_many_are_released_as_fit():
    # 1,000 of CPU and pods of 300: three fit.
    scene = Scene(node("n1"))
    scene.see(*(pod(f"p{n}", 300) for n in range(5)))
    scene.step()
    scene.step(1)
    assert len(scene.released()) == 3


def test_what_was_released_counts_until_it_is_bound_and_from_then_on_as_running():
    scene = Scene(node("n1"))
    scene.see(pod("a", 600), pod("b", 600))
    scene.step()
    scene.step(1)
    (first,) = scene.released()
    scene.bind(first)
    scene.step(1)
    assert scene.released() == [first]
    scene.end(first)
    scene.step(1)
    assert len(scene.released()) == 2


def test_what_is_written_counts_while_the_watch_is_silent():
    scene = Scene(node("n1"))
    scene.see(pod("a", 600), pod("b", 600))
    scene.deaf = True
    scene.step()
    scene.step(1)
    assert len(scene.released()) == 1


def test_no_more_are_on_their_way_than_the_pace_allows():
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=4))
    scene.see(*(pod(f"p{n}") for n in range(10)))
    assert scene.step() == 4
    assert scene.step(1) == 0
    for name in scene.released()[:2]:
        scene.bind(name)
    assert scene.step(1) == 2


def test_with_fewer_than_a_quarter_of_the_pace_free_five_plans_a_second_are_made_and_with_more_one_at_once():
    # Eight may be on their way: one is less than a quarter of these, two are not.
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=8))
    scene.see(*(pod(f"p{n:02}") for n in range(20)))
    scene.step()
    scene.bind("p00")
    scene.step(0.15)
    assert len(scene.released()) == 8
    scene.step(0.15)
    assert len(scene.released()) == 9
    scene.bind("p01")
    scene.bind("p02")
    scene.step()
    assert len(scene.released()) == 11


def test_a_pod_that_kube_scheduler_refused_does_not_use_up_the_pace():
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=1))
    scene.see(pod("a", 100), pod("b", 200))
    scene.step()
    (first,) = scene.released()
    scene.change(first, unschedulable=True)
    scene.step(1)
    assert len(scene.released()) == 2


def test_a_release_that_is_refused_is_tried_again():
    scene = Scene(node("n1"))
    scene.refuse.add(("nominate", "a"))
    scene.see(pod("a"))
    scene.step()
    assert scene.written == []
    scene.refuse.clear()
    scene.step(0.5)
    assert scene.written == [], "left alone for a second: there may be news on its way"
    scene.step(1)
    assert scene.released() == ["a"]


def test_a_process_that_died_between_nomination_and_release_is_completed_by_the_next():
    scene = Scene(node("n1"), node("n2"))
    scene.refuse.add(("release", "a"))
    scene.see(pod("a"))
    scene.step()
    assert [verb for verb, *_ in scene.written] == ["nominate"]
    scene.refuse.clear()
    scene.restart()
    scene.step(1)
    assert [verb for verb, *_ in scene.written] == ["nominate", "release"]
    assert scene.told[-1][:2] == ("a", "completed")


def test_what_a_predecessor_left_undone_is_completed_once_and_says_how_near_its_input_the_pod_goes():
    scene = Scene(node("n1"), node("n2"))
    scene.see(pod("a", inputs=(("n1", 1.0),), nominated="n1", promised="n1"))
    scene.deaf = True
    scene.step()
    scene.step(1)
    assert (scene.written, scene.levels) == ([("release", "a")], {"a": ("node", None)})


@pytest.mark.parametrize("gone", ["gone", "cordoned", "full"])
def test_a_nomination_left_behind_for_a_node_that_will_not_do_is_cleared_and_made_anew(gone):
    scene = Scene(node("n1"))
    scene.refuse.add(("release", "a"))
    scene.see(pod("a", 600))
    scene.step()
    scene.refuse.clear()
    scene.apply(NodeSeen(node("n2")))
    scene.restart()
    if gone == "gone":
        scene.apply(NodeGone("n1"))
    elif gone == "cordoned":
        scene.apply(NodeSeen(node("n1", unschedulable=True)))
    else:
        scene.see(pod("late", 600, gates=(), node="n1"))
    scene.step(1)
    scene.step(2)
    assert scene.written[1:] == [("clear", "a"), ("nominate", "a", "n2"), ("release", "a")]


def test_the_nomination_of_a_released_pod_is_cleared_once_its_node_will_not_do():
    scene = Scene(node("n1"), node("n2"))
    scene.see(pod("a"))
    scene.step()
    where = scene.pods["a"].nominated
    scene.apply(NodeGone(where))
    scene.step(1)
    assert ("clear", "a") not in scene.written, "it may be bound yet: nobody has said otherwise"
    scene.change("a", unschedulable=True)
    scene.step(1)
    assert scene.written[-1] == ("clear", "a")
    assert scene.pods["a"].nominated is None


def test_a_nomination_that_is_not_ours_is_never_touched():
    scene = Scene(node("n1"), node("n2"))
    scene.see(pod("a", nominated="n2"), pod("b", gates=(), nominated="n9", unschedulable=True))
    scene.step()
    scene.step(1)
    assert scene.written == [("release", "a")]
    assert scene.pods["a"].nominated == "n2"


def test_a_nomination_that_somebody_else_changed_is_ours_no_more_and_the_release_is_told_to_go_there():
    scene = Scene(node("n1"), node("n2"))
    scene.see(pod("a", nominated="n2", promised="n1"))
    scene.step()
    assert scene.written == [("clear", "a"), ("release", "a")]
    assert scene.sent == {"a": "n2"}


def test_without_the_lease_nobody_writes_and_with_it_pods_go_at_once():
    scene = Scene(node("n1"))
    scene.see(pod("a"))
    scene.leading = False
    scene.step()
    assert scene.written == []
    scene.leading = True
    scene.step()
    assert scene.released() == ["a"]


def test_a_leader_that_was_paused_between_plan_and_write_writes_nothing():
    scene = Scene(node("n1"))
    late = []
    scene.run_soon = late.append
    scene.see(pod("a"))
    scene.step()
    scene.leading = False
    late[0]()
    assert scene.written == []


def test_restarted_at_every_point_nothing_is_released_twice_and_nothing_is_forgotten():
    for point in range(12):
        scene = Scene(node("n1"), node("n2"), pace=Pace(unbound_pods=2))
        scene.see(*(pod(f"p{n}", 400) for n in range(6)))
        for turn in range(12):
            scene.step(1)
            if turn == point:
                scene.restart()
            for name in scene.released():
                if turn % 2 and scene.pods[name].node is None:
                    scene.bind(name)
            for name in scene.released()[: turn // 4]:
                if scene.pods[name].node is not None:
                    scene.end(name)
            for where in ("n1", "n2"):
                there = [it for it in scene.pods.values() if where in (it.node, it.nominated) and not it.finished]
                assert sum(it.demand["cpu"] for it in there) <= 1000
        for name in list(scene.pods):
            if scene.pods[name].node is None and not scene.pods[name].gates:
                scene.bind(name)
            if scene.pods[name].node is not None:
                scene.end(name)
        scene.step(1)
        assert sorted(scene.released()) == sorted(scene.pods), f"restarted at {point}"


class TestWhoIsFirst:
    def test_queues_share_by_weight(self):
        # 12 places; weights 1, 2 and 3: 2, 4 and 6 of them.
        queues = (Queue("a", 1), Queue("b", 2), Queue("c", 3))
        scene = Scene(node("n1", cpu=1200), queues=queues, pace=Pace(unbound_pods=100), policy=Policy(fairness=0.99))
        scene.see(*(pod(f"{q}{n}", queue=q, job=f"job-{q}") for n in range(12) for q in "abc"))
        scene.step()
        assert [sum(name[0] == q for name in scene.released()) for q in "abc"] == [2, 4, 6]

    def test_shares_are_right_again_after_a_restart(self):
        # 12 places, weights 1 and 2: 4 and 8. Queue a has 8 of them when the process dies; whatever ends goes to b.
        queues = (Queue("a", 1), Queue("b", 2))
        scene = Scene(node("n1", cpu=1200), queues=queues, pace=Pace(unbound_pods=100))
        scene.see(*(pod(f"a{n}", queue="a", job="job-a", gates=(), node="n1") for n in range(8)))
        scene.see(*(pod(f"b{n}", queue="b", job="job-b", gates=(), node="n1") for n in range(4)))
        scene.see(*(pod(f"{q}-waits{n}", queue=q, job=f"job-{q}") for n in range(8) for q in "ab"))
        scene.step()
        scene.restart()
        for name in [f"a{n}" for n in range(4)]:
            scene.end(name)
        scene.step(1)
        assert [name[0] for name in scene.released()] == ["b"] * 4

    def test_a_higher_priority_goes_before_fairness(self):
        scene = Scene(node("n1", cpu=500), queues=(Queue("poor", 1), Queue("rich", 100)))
        scene.see(*(pod(f"poor{n}", queue="poor", priority=10) for n in range(4)))
        scene.see(*(pod(f"rich{n}", queue="rich") for n in range(4)))
        scene.step()
        assert sum(name.startswith("poor") for name in scene.released()) == 4

    def test_in_a_fifo_queue_the_older_job_goes_first(self):
        scene = Scene(node("n1", cpu=300), queues=FIFO)
        scene.see(*(pod(f"new{n}", job="new", created=50.0) for n in range(3)))
        scene.see(*(pod(f"old{n}", job="old", created=10.0) for n in range(2)))
        scene.step()
        assert [name[:3] for name in scene.released()] == ["old", "old", "new"]

    def test_the_job_with_less_left_goes_first_counting_what_its_owner_has_yet_to_make(self):
        scene = Scene(node("n1", cpu=100))
        scene.apply(OwnerSeen(Owner("big", left=50, total=50)))
        scene.apply(OwnerSeen(Owner("small", left=2, total=2)))
        scene.see(pod("b0", job="big", owner="big", duration=10.0), pod("b1", job="big", owner="big", duration=10.0))
        scene.see(*(pod(f"s{n}", job="small", owner="small", duration=10.0) for n in range(2)))
        scene.step()
        assert scene.released() == ["s0"]

    def test_pods_of_one_class_go_in_the_order_of_their_creation(self):
        scene = Scene(node("n1", cpu=200))
        scene.see(*(pod(f"p{n}", job="j", created=float(n)) for n in range(4)))
        scene.step()
        assert scene.released() == ["p0", "p1"]


class TestWhereAPodMayGo:
    def test_the_plan_follows_node_selectors_and_taints(self):
        scene = Scene(
            node("plain"), node("ssd", labels={"disk": "ssd"}), node("gpu", taints=(Taint("gpu", "", "NoSchedule"),))
        )
        scene.see(pod("a", 600, constraints=Constraints(selector=(("disk", "ssd"),))), pod("b", 600), pod("c", 600))
        scene.step()
        assert scene.nominated()["a"] == "ssd"
        assert sorted(scene.released()) in (["a", "b"], ["a", "c"])
        assert "gpu" not in scene.nominated().values()

    def test_a_pod_that_no_node_allows_stays_held(self):
        scene = Scene(node("n1"))
        scene.see(pod("a", constraints=Constraints(selector=(("disk", "ssd"),))))
        scene.step()
        assert scene.written == []
        scene.apply(NodeSeen(node("n2", labels={"disk": "ssd"})))
        scene.step(1)
        assert scene.nominated() == {"a": "n2"}


class TestGangs:
    def test_a_gang_is_released_only_whole_and_counts_as_one(self):
        scene = Scene(node("n1"), pace=Pace(unbound_pods=1))
        scene.apply(GroupSeen(Group("default/g", 3)))
        scene.see(*(pod(f"g{n}", 300, job="g", group="default/g") for n in range(2)))
        scene.step()
        assert scene.written == [], "one of three is not there yet"
        scene.see(pod("g2", 300, job="g", group="default/g"))
        scene.step(1)
        assert sorted(scene.released()) == ["g0", "g1", "g2"]

    def test_nobody_of_a_gang_goes_before_all_are_nominated_however_soon_writes_begin(self):
        scene = Scene(node("n1"))
        scene.see(*(pod(f"g{n}", 300, job="g", group="default/g", least=3) for n in range(3)))
        scene.step()
        assert [what for what, *_ in scene.written] == ["nominate"] * 3 + ["release"] * 3

    def test_a_gang_that_does_not_fit_whole_leaves_the_room_to_others(self):
        scene = Scene(node("n1"))
        scene.see(*(pod(f"g{n}", 400, job="g", group="default/g", least=3) for n in range(3)), pod("single", 400))
        scene.step()
        assert scene.released() == ["single"]

    def test_members_beyond_the_minimum_go_by_themselves(self):
        scene = Scene(node("n1"))
        scene.see(*(pod(f"g{n}", 400, job="g", group="default/g", least=2) for n in range(3)))
        scene.step()
        assert len(scene.released()) == 2
        for name in scene.released():
            scene.bind(name)
        scene.end(scene.released()[0])
        scene.step(1)
        assert len(scene.released()) == 3


class TestOutlets:
    def test_a_pod_that_outranks_what_runs_and_has_no_room_is_released_without_a_nomination(self):
        scene = Scene(node("n1"))
        scene.see(pod("low", 800, gates=(), node="n1"), pod("high", 500, priority=100))
        scene.step()
        assert scene.written == [("release", "high")]
        assert scene.told == [("high", "preempting", 100.0)]

    @pytest.mark.parametrize(
        ("low", "high"),
        [
            ({"priority": 100}, {"priority": 100}),
            ({}, {"priority": 100, "may_preempt": False}),
            ({}, {"priority": 100, "cpu": 1500}),
        ],
        ids=["no lower priority", "may not preempt", "would not fit then either"],
    )
    def test_who_cannot_preempt_stays_held(self, low, high):
        scene = Scene(node("n1"))
        scene.see(pod("low", 800, gates=(), node="n1", **low), pod("high", **{"cpu": 500, **high}))
        scene.step()
        assert scene.written == []

    def rates(self, network, *low):
        """Return a scene of one node of 1000 cpu and 100 network-in, with these pods on it, and one that outranks."""
        scene = Scene(Node("n1", {"cpu": 1000.0, "memory": 1000.0, "network-in": 100.0}))
        for number, (cpu, rate, more) in enumerate(low):
            demand = {"cpu": float(cpu), "network-in": float(rate)}
            scene.see(pod(f"low{number}", demand, gates=(), node="n1", **more))
        scene.see(pod("high", {"cpu": 400.0, "network-in": float(network)}, priority=100))
        return scene

    def test_who_is_short_of_network_only_stays_held_as_kube_scheduler_evicts_nobody_for_it(self):
        scene = self.rates(50, (200, 80, {}))
        scene.step()
        assert scene.written == []

    @pytest.mark.parametrize(
        ("first", "second", "released"),
        [
            ({"priority": 1}, {}, False),  # kube-scheduler evicts the second: 10 of network are free then, not 50
            ({}, {"priority": 1}, True),  # it evicts the first: 90 are
            ({"started": 1.0}, {"started": 2.0}, False),
            ({"started": 2.0}, {"started": 1.0}, True),
        ],
    )
    def test_who_is_short_of_cpu_is_released_where_those_that_kube_scheduler_evicts_for_it_leave_enough_network(
        self, first, second, released
    ):
        scene = self.rates(50, (500, 90, first), (500, 10, second))
        scene.step()
        assert scene.written == ([("release", "high")] if released else [])

    def test_who_is_short_of_network_gets_what_comes_free_before_those_of_lower_priority(self):
        scene = self.rates(100, (200, 50, {"started": 90.0}), (200, 50, {"started": 95.0}))
        scene.see(*(pod(f"wait{n}", {"cpu": 200.0, "network-in": 50.0}, job="w") for n in range(5)))
        scene.step()
        for name in ("low0", "low1"):
            scene.end(name)
            scene.step(1)
        assert scene.released() == ["high"]

    def test_one_preempts_at_a_time(self):
        scene = Scene(node("n1"), node("n2"))
        scene.see(*(pod(f"low{n}", 800, gates=(), node=f"n{n}") for n in (1, 2)))
        scene.see(pod("high1", 500, priority=100), pod("high2", 500, priority=100))
        scene.step()
        scene.step(1)
        assert len(scene.released()) == 1
        (first,) = scene.released()
        scene.change(first, unschedulable=True, nominated="n1")
        scene.step(1)
        assert len(scene.released()) == 2

    def scaling(self, **pace):
        scene = Scene(node("n1"), pace=Pace(**pace))
        scene.see(pod("runs", 800, gates=(), node="n1", queue="other"), pod("a", 500))
        scene.step()
        assert scene.written == []
        return scene

    def test_a_class_that_would_fit_an_empty_node_is_released_without_a_nomination_after_some_time(self):
        scene = self.scaling(scale_up_after=150.0)
        scene.step(60)
        assert scene.written == [("release", "a")]
        assert scene.told[-1][1] == "scale-up"

    def test_of_a_class_that_may_scale_up_only_the_first_pod_is_looked_at(self):
        scene = self.scaling(scale_up_after=150.0)
        scene.see(*(pod(f"a{n}", 500, job="a") for n in range(50)))
        task_class, phase = scene.backlog.find("uid-a")
        pods = task_class.pods[phase] = Counted(task_class.pods[phase])
        scene.step()
        assert pods.seen <= 2  # for how long it has waited, and where it stands

    def test_by_default_it_stays_held(self):
        scene = self.scaling()
        scene.step(10_000)
        assert scene.written == []

    def test_a_class_that_no_node_is_large_enough_for_stays_held(self):
        scene = Scene(node("n1"), pace=Pace(scale_up_after=10.0))
        scene.see(pod("a", 1500))
        scene.step(100)
        assert scene.written == []

    def test_nor_is_one_released_that_fits_only_without_the_pods_of_daemon_sets(self):
        scene = Scene(node("n1"), pace=Pace(scale_up_after=10.0))
        scene.see(pod("agent", 100, gates=(), node="n1", owner_kind="DaemonSet"), pod("a", 950))
        scene.step(100)
        assert scene.written == []

    def test_a_queue_beyond_its_share_does_not_scale_up(self):
        scene = Scene(node("n1"), pace=Pace(scale_up_after=10.0))
        scene.see(pod("mine", 800, gates=(), node="n1"), pod("a", 500), pod("other", 2000, queue="other"))
        scene.step(100)
        assert scene.written == []

    def full(self, *waiting, pace=64):
        """Return a scene of two full nodes of 1,000 of CPU where pods have waited for long enough."""
        scene = Scene(node("n1"), node("n2"), pace=Pace(unbound_pods=pace, scale_up_after=10.0))
        runs = (pod(f"runs{n}", 1000, gates=(), node=f"n{n}", queue="other") for n in (1, 2))
        scene.see(*runs, pod("others", 500, queue="other"), *waiting)
        scene.step(100)
        return scene

    def test_those_that_scale_up_at_once_count_with_each_other_for_their_queues_share(self):
        # Two queues, 2,000 of CPU: 1,000 each, which is twice 400. Those that have waited for longest go first.
        scene = self.full(*(pod(f"a{n}", 400, created=float(9 - n)) for n in range(5)))
        assert scene.released() == ["a4", "a3"]
        scene.step(1)
        assert scene.released() == ["a4", "a3"]

    def test_a_queue_that_has_nothing_scales_up_for_one_pod_that_is_larger_than_its_share(self):
        # Five queues, 2,000 of CPU: 400 each.
        large = (pod(f"a{n}", 700, queue=f"q{n // 2}", created=float(n)) for n in range(6))
        scene = self.full(pod("b", 700, queue="other"), pod("c", 100, queue="r"), *large)
        assert sorted(scene.released()) == ["a0", "a2", "a4", "c"]
        scene.step(1)
        assert sorted(scene.released()) == ["a0", "a2", "a4", "c"]

    def test_no_more_scale_up_than_the_pace_allows(self):
        scene = self.full(*(pod(f"a{n}", 100, created=float(n)) for n in range(5)), pace=2)
        assert scene.released() == ["a0", "a1"]
        scene.step(1)
        assert scene.released() == ["a0", "a1"]

    def test_that_kube_scheduler_refuses_those_that_scale_up_stops_none_like_them(self):
        scene = self.full(*(pod(f"a{n}", 100, job="j", created=float(n)) for n in range(3)))
        for _ in range(4):
            for name in scene.released():
                scene.change(name, unschedulable=True)
            scene.step(0.1)
        assert scene.released() == ["a0", "a1", "a2"]

    def test_no_pod_of_a_refused_gang_goes_alone_so_that_nodes_are_added(self):
        # The single pod of the same shape is refused; the gang needs more nodes than there are.
        alone = pod("alone", 400, gates=(), unschedulable=True, queue="q")
        scene = self.full(alone, *(pod(f"g{n}", 400, job="g", group="default/g", least=3) for n in range(3)))
        for _ in range(30):
            scene.step(1)
        assert not {name for name in scene.released() if name.startswith("g")}

    def test_nor_is_one_that_runs_on_idle_room_alone_released_for_that(self):
        scene = self.full(*(pod(name, 400, choice=ONLY, **more) for name, more in (("a", REFUSED), ("b", {}))))
        for _ in range(30):
            scene.step(1)
        assert scene.released() == []

    def test_what_runs_is_looked_at_once_for_each_priority(self):
        class Counting(Ledger):
            looks = 0

            def below(self, priority):
                self.looks += 1
                return super().below(priority)

        scene = Scene(node("n1"))
        ledger = scene.ledger = Counting(in_flight_seconds=15.0)
        scene.apply(NodesListed([node("n1")]))
        scene.see(pod("low", 800, gates=(), node="n1"))
        scene.see(*(pod(f"{level}-{n}", 1500 + n, priority=level) for level in (5, 9) for n in range(10)))
        snapshot = ledger.snapshot(scene.now)
        found = WithoutNode(ledger, scene.backlog, scene.releaser.input_builder).preempting(
            snapshot, scene.backlog.classes()
        )
        assert (found, ledger.looks) == ([], 2)


def test_the_nomination_of_a_pod_for_another_scheduler_is_cleared_once_that_refuses_it():
    scene = Scene(node("n1", cpu=100))
    scene.see(dataclasses.replace(pod("x", created=0.0), scheduler="default-scheduler"))
    scene.step()
    scene.change("x", unschedulable=True)
    scene.see(pod("y", queue="r", created=1.0))
    scene.step(1)
    scene.step(1)
    assert scene.pods["x"].nominated is None
    assert scene.released() == ["x", "y"]


def test_the_nomination_of_a_pod_whose_scheduler_does_not_run_keeps_its_room_for_a_minute():
    scene = Scene(node("n1", cpu=100))
    scene.see(dataclasses.replace(pod("x", created=0.0), scheduler="nobody-runs-this"))
    scene.step()
    scene.see(pod("y", 90, queue="r", created=1.0))
    scene.step(1)
    scene.step(59)
    assert scene.pods["x"].nominated == "n1"
    scene.step(1)
    scene.step(1)
    assert scene.pods["x"].nominated is None
    assert scene.released() == ["x", "y"]


@pytest.mark.parametrize("by_us", [True, False], ids=["by us", "by kube-scheduler"])
def test_the_nomination_of_a_deleted_pod_that_a_finalizer_keeps_keeps_no_room(by_us):
    scene = Scene(node("n1", cpu=100))
    scene.see(pod("x", 100, gates=(), nominated="n1", promised="n1" if by_us else None, leaving=True), pod("y", 100))
    scene.step()
    scene.step(1)
    assert scene.pods["x"].nominated == (None if by_us else "n1")
    assert scene.released() == ["y"]
    assert len(scene.told_to("clear")) == by_us


def test_a_pod_that_cannot_be_written_to_is_tried_for_ever_once_a_minute():
    scene = Scene(node("n1"))
    scene.see(pod("bad"))
    with scene.backlog.lock:
        for _ in range(5_000):
            scene.backlog.back_off("uid-bad", scene.now)  # 2 ** 4,999 is no float
    assert scene.backlog.writes.backoff == {"uid-bad": scene.now + 60}
    scene.step(60)
    assert scene.released() == ["bad"]


class Slow(Scene):
    """Writes wait until `write_next`."""

    def start(self):
        super().start()
        self.queue = []
        self.run_soon = self.queue.append

    def write_next(self, count=1):
        for _ in range(count):
            self.queue.pop(0)()


def test_a_write_that_waits_for_longer_than_its_claim_is_dropped_and_made_anew():
    scene = Slow(node("n1"))
    scene.see(pod("a"))
    scene.step()
    scene.step(16)  # a claim lasts for 15 s
    scene.write_next()
    assert (scene.written, scene.queue) == ([], [])
    scene.step(0.1)
    scene.write_next(2)
    assert scene.written == [("nominate", "a", "n1"), ("release", "a")]


def test_writes_do_not_pile_up_while_none_is_made():
    scene = Slow(node("n1", cpu=10_000), pace=Pace(unbound_pods=4))
    scene.see(*(pod(f"p{n}") for n in range(10)))
    for _ in range(100):
        scene.step(1)
    assert len(scene.queue) == 4


def test_a_pod_that_is_gone_is_not_written_to():
    scene = Slow(node("n1"))
    scene.see(pod("a"))
    scene.step()
    scene.remove("a")
    scene.write_next()
    assert scene.written == []


def test_with_order_by_filter_nothing_is_planned_while_nobody_is_held_or_refused_and_much_is_free():
    scene = Scene(node("n1"), by_filter=True)
    scene.see(pod("a", 300, gates=()))
    plans = counted_plans(scene)
    scene.step()
    assert plans == []
    scene.change("a", unschedulable=True)
    scene.step(1)
    assert len(plans) == 1
    scene.change("a", unschedulable=False, node="n1")
    scene.see(pod("held", 100))
    scene.step(1)
    assert len(plans) == 2
    assert scene.released() == ["held"]


def counted_plans(scene):
    """Return the list that grows by one with each plan from now on."""
    plans, plan = [], scene.releaser.planner.plan

    def counted(*args, **options):
        plans.append(args)
        return plan(*args, **options)

    scene.releaser.planner.plan = counted
    return plans


def test_without_a_free_slot_the_loop_rests_until_nothing_was_heard_for_long():
    scene = Scene(node("n1", cpu=100), pace=Pace(unbound_pods=1))
    scene.see(pod("a", cpu=10), pod("b", cpu=10))
    scene.step()
    scene.releaser.again_at = scene.now  # as a plan before had it
    scene.step(1)
    assert scene.releaser.unbound == 1
    assert scene.releaser.again_at == 100.0 + 15.0
    scene.step(60)
    assert scene.releaser.again_at > scene.now


def test_where_one_queue_takes_up_all_slots_others_get_some_of_their_own_after_two_seconds_and_then_once_a_second():
    # Eight may be on their way, and all are of a. b and c have none.
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=8))
    plans = counted_plans(scene)
    scene.see(*(pod(f"a{n}", queue="a") for n in range(20)))
    scene.step()
    scene.see(pod("b0", queue="b"))
    scene.step(1)
    assert (len(plans), scene.released()[8:]) == (1, [])
    scene.step(1.5)
    assert (len(plans), scene.released()[8:]) == (2, ["b0"])
    scene.see(pod("c0", queue="c"))
    scene.step(0.5)
    assert (len(plans), scene.released()[8:]) == (2, ["b0"])
    scene.step(0.6)
    assert (len(plans), scene.released()[8:]) == (3, ["b0", "c0"])
    scene.step(2)
    assert len(plans) == 3, "nobody waits but a"


def test_how_much_is_kept_idle_is_known_while_it_is():
    # The pod of 1,000 is due: what is free of the node is kept for it, and not given to the other.
    scene = Scene(node("n1"), policy=Policy(starved_after=10.0, reservable=1.0))
    scene.see(pod("large", 1_000))
    scene.now += LONG_SECONDS
    scene.see(pod("runs", 600, gates=(), node="n1", started=scene.now, duration=10.0), pod("small", duration=1_000.0))
    scene.step()
    assert scene.released() == []
    assert scene.releaser.kept_idle == pytest.approx(0.4)
    scene.remove("large")
    scene.remove("small")
    scene.step(1)
    assert scene.releaser.kept_idle == 0.0
