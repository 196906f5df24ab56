"""Wake-ups: to the pods whose turn has come and that kube-scheduler sleeps on, and to nobody else."""

import dataclasses
from itertools import pairwise

import pytest

from extender.cluster.eligibility import Requirement
from extender.cluster.events import NodesListed, PodSeen
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.filter_order.waking import WakePolicy, Waker
from extender.errors import ClusterError
from extender.planner import Policy
from tests.service.control.filter_order.asked import free
from tests.service.control.scene import OURS, Counted, Scene, node, pod


class Night:
    """Pods of one class, and a Waker that is told how many of them have their turn; the cluster `stirred` at first."""

    def __init__(self, *pods, **calls):
        self.woken, self.refuse, self.leading, self.now, self.stirred = [], False, True, 100.0, 100.0
        self.counted = 0
        self.backlog = Backlog([OURS], by_filter=True)
        for it in pods:
            self.see(it)
        self.waker = Waker(
            self.backlog,
            self,
            lambda write: self.run_soon(write),
            lambda: self.leading,
            WakePolicy(**{"grace_seconds": 0.1, **calls}),
            self.count,
        )

    def count(self):
        self.counted += 1

    def run_soon(self, write):
        write()

    def see(self, seen):
        self.backlog.apply(PodSeen(seen), self.now)

    def step(self, count, seconds=0.0):
        """Take a step; return who was woken in it."""
        self.now += seconds
        before = len(self.woken)
        self.waker.step({self.backlog.classes()[0]: count} if count else {}, self.now, self.stirred)
        return self.woken[before:]

    def wake(self, sleeper):
        if self.refuse:
            raise ClusterError("no")
        self.woken.append(sleeper.name)


def refused(name, **more):
    return free(name, job="j", unschedulable=True, **more)


def test_the_oldest_refused_pods_are_woken_as_many_as_have_their_turn():
    night = Night(*(refused(f"p{n}") for n in range(3)))
    assert night.step(2) == []
    assert night.step(2, 0.1) == ["p0", "p1"]


def test_a_pod_that_has_its_node_before_its_call_is_written_is_not_written_to():
    night, writes = Night(refused("early"), refused("late")), []
    night.run_soon = writes.append
    night.step(2)
    night.step(2, 0.1)
    night.see(refused("early", node="n1", version=2))
    for write in writes:
        write()
    assert night.woken == ["late"]


def test_only_wake_ups_that_were_written_are_counted():
    night, writes = Night(refused("bound"), refused("fails"), refused("woken")), []
    night.run_soon = writes.append
    night.step(3)
    night.step(3, 0.1)
    night.see(refused("bound", node="n1", version=2))
    of_bound, of_fails, of_woken = writes
    of_bound()
    night.refuse = True
    of_fails()
    night.refuse, night.leading = False, False
    of_woken()
    assert night.counted == 0
    night.leading = True
    of_woken()
    assert (night.counted, night.woken) == (1, ["woken"])


def test_of_many_refused_pods_as_many_are_looked_at_as_have_their_turn():
    night = Night(*(refused(f"p{n}") for n in range(50)))
    (task_class,) = night.backlog.classes()
    pods = task_class.pods[PodPhase.UNGATED] = Counted(task_class.pods[PodPhase.UNGATED])
    night.step(2)
    assert pods.seen == 2


def test_pods_that_were_never_tried_need_no_wake_up_and_use_the_turns_first():
    night = Night(refused("old"), free("new", job="j"))
    night.step(1)
    assert night.step(1, 1.0) == []
    assert night.step(2) == ["old"]


def test_where_nothing_has_stirred_for_a_while_a_pod_is_woken_at_once():
    night = Night(refused("p"))
    night.now += 0.2
    assert night.step(1) == ["p"]


def test_while_the_cluster_stirs_nobody_is_woken_who_has_waited_for_less_than_a_second():
    night = Night(refused("p"), grace_seconds=0.25)
    night.step(1)
    for _ in range(7):
        night.stirred = night.now + 0.125
        assert night.step(1, 0.125) == []
    night.stirred = night.now + 0.125
    assert night.step(1, 0.125) == ["p"]


def test_a_turn_that_passes_by_itself_wakes_nobody():
    night = Night(refused("p"))
    night.step(1)
    night.step(0, 0.05)
    assert night.step(0, 1.0) == []


def test_a_wake_up_that_brings_nothing_is_repeated_at_growing_intervals():
    # Due after an eighth of a second, then 1, 2 and 4 s later.
    night, at = Night(refused("p"), grace_seconds=0.125), []
    for eighth in range(64):
        if night.step(1, 0.125 if eighth else 0.0):
            at.append(eighth / 8)
    assert at == [0.125, 1.125, 3.125, 7.125]


@pytest.mark.parametrize(
    ("preferred", "after"),
    [
        ({"inputs": (("n2", 1000.0),)}, [0.2, 0.6, 1.4]),
        ({"prefers": ((10, (Requirement("disk", "In", ("ssd",)),)),)}, [0.2, 0.6, 1.4]),
        ({}, [1.0]),
    ],
)
def test_it_is_repeated_sooner_where_filter_may_have_begun_to_count_a_wait_for_locality_later(preferred, after):
    # 0.2, 0.4 and 0.8 s after the one before; else 1 s, and 2 s after that.
    nodes = node("n1", 100), node("n2", 100, labels={"disk": "ssd"})
    scene, at = Scene(*nodes, policy=Policy(locality_waits=(5.0,)), by_filter=True), []
    scene.see(free("full", node="n2"), free("p", unschedulable=True, **preferred))
    while not at or scene.now < at[0] + 2.0:
        scene.step(0.01)
        at += [scene.now] * (len(scene.told_to("wake")) - len(at))
    assert [moment - at[0] for moment in at[1:]] == pytest.approx(after, abs=0.05)


@pytest.mark.parametrize(("nodes", "after_two_seconds"), [(100, 2), (500, 6)])
def test_on_more_nodes_than_one_try_is_about_the_next_tries_come_sooner(nodes, after_two_seconds):
    # In 2 s: at once and after 1 s; or at once and every 3/8 s.
    night = Night(refused("p"), try_seconds=0.375)
    night.backlog.apply(NodesListed([node(f"n{row}") for row in range(nodes)]), night.now)
    night.now += 1.0
    assert sum(len(night.step(1, 0.125)) for _ in range(16)) == after_two_seconds


def test_as_many_tries_come_soon_as_there_are_hundreds_of_nodes_for_each_sees_a_hundred():
    night, at = Night(refused("p"), try_seconds=0.25), []
    night.backlog.apply(NodesListed([node(f"n{row}") for row in range(901)]), night.now)
    night.now += 1.0
    for quarter in range(80):
        if night.step(1, 0.25 if quarter else 0.0):
            at.append(quarter / 4)
    assert at == [0.25 * number for number in range(11)]


def test_it_says_when_somebody_is_due():
    night = Night(refused("p"))
    assert night.waker.next_due() == float("inf")
    night.step(1)
    assert night.waker.next_due() == 100.1
    night.step(0)
    assert night.waker.next_due() == float("inf")


def test_wake_ups_are_bounded_by_a_rate():
    # 5 a second: five at once, and one more every 0.2 s.
    night = Night(*(refused(f"p{n}") for n in range(10)), per_second=5.0)
    night.step(10)
    assert len(night.step(10, 0.1)) == 5
    assert len(night.step(10, 0.2)) == 1
    assert len(night.step(10, 0.4)) == 2


def test_nobody_is_woken_by_who_does_not_lead_and_a_failure_is_tried_again():
    night = Night(refused("p"))
    night.leading = False
    night.step(1)
    night.step(1, 0.1)
    night.leading, night.refuse = True, True
    night.step(1, 1.0)
    assert night.woken == []
    night.refuse = False
    assert night.step(1, 2.0) == ["p"]


def test_a_turn_that_comes_and_goes_with_each_plan_is_called_no_more_often():
    night = Night(refused("p"))
    called = [step / 4 for step in range(18) if night.step(step % 2 == 0, 0.25)]
    assert called == [0.0, 1.0, 3.0]  # at once, and 1 and 2 s later


def test_a_class_whose_turns_nobody_uses_is_left_out_until_one_of_its_pods_starts():
    night = Night(refused("p"), refused("q"))
    night.step(1)
    night.step(1, 5.0)
    (name,) = night.waker.left_out(night.now)
    assert name == night.backlog.classes()[0].name
    night.see(dataclasses.replace(refused("p"), node="a", resource_version=2))
    night.step(1, 0.1)
    assert not night.waker.left_out(night.now)
    assert len(night.backlog.at(PodPhase.RUNNING)) == 1


def test_a_class_that_started_pods_once_is_left_out_for_longer_each_time_like_any_other():
    # Left out for 60, 120, 240 and 300 s, each time after a turn of 5 s.
    night, left_out = Night(free("first", job="j", node="a"), refused("p")), []
    (task_class,) = night.backlog.classes()
    task_class.released_at = 50.0
    for second in range(800):
        is_out = bool(night.waker.left_out(night.now))
        night.step(0 if is_out else 1, 1.0)
        if not is_out and night.waker.left_out(night.now):
            left_out.append(second)
    assert [later - earlier for earlier, later in pairwise(left_out)] == [67, 127, 247, 307]


def test_held_pods_are_released_and_others_woken_by_the_same_plan():
    # Two places, two queues: one place each.
    scene = Scene(node("a", 200), by_filter=True, policy=Policy(fairness=0.9))
    scene.see(*(pod(f"held-{n}", queue="h", job="h") for n in range(2)))
    scene.see(*(free(f"free-{n}", queue="f", job="f", unschedulable=True) for n in range(2)))
    scene.deaf = True
    scene.step()
    scene.step(0.25)
    scene.step(0.25)
    assert scene.released() == ["held-0"]
    assert [name for verb, name in scene.told_to("wake")] == ["free-0"]


def test_of_one_class_pods_without_a_gate_go_before_held_ones():
    scene = Scene(node("a", 100), by_filter=True)
    scene.see(pod("held", job="j"), free("free", job="j", created=5.0, unschedulable=True))
    scene.step()
    scene.step(0.25)
    assert scene.released() == []
    assert [name for verb, name in scene.told_to("wake")] == ["free"]


def test_a_class_that_never_starts_does_not_keep_held_pods_waiting():
    scene = Scene(node("a", 100), by_filter=True)
    scene.see(free("never", priority=10, unschedulable=True), pod("held"))
    scene.step()
    scene.step(4.9)
    assert scene.released() == []
    scene.step(0.1)
    scene.step(0.1)
    assert scene.released() == ["held"]


def test_held_pods_of_a_class_that_never_started_go_as_soon_as_one_of_its_pods_starts():
    # The class is left out after 5 s, for a minute: what it lacked, a device say, is there long before that.
    scene = Scene(node("a", 300), by_filter=True)
    scene.see(free("first", job="j", unschedulable=True))
    scene.step()
    scene.step(5.0)
    scene.see(pod("held", job="j", created=6.0))
    scene.step(0.1)
    assert scene.released() == []
    scene.change("first", node="a")
    scene.step(0.1)
    assert scene.released() == ["held"]


def test_a_held_pod_may_preempt_though_another_without_a_gate_outranks_it():
    scene = Scene(node("a", 100), by_filter=True)
    scene.see(pod("low", gates=(), node="a"), free("higher", priority=20, unschedulable=True), pod("high", priority=10))
    scene.step()
    assert scene.released() == ["high"]


def test_with_gates_pods_without_one_take_no_part_until_they_are_refused():
    scene = Scene(node("a", 100))
    scene.see(free("free", priority=10))
    assert scene.step() == 0
    scene.change("free", unschedulable=True)
    assert scene.step(1) == 1
    assert scene.written == [("nominate", "free", "a")]


def test_of_the_turns_of_a_class_those_without_a_gate_have_theirs_and_the_gated_ones_the_rest():
    scene = Scene(node("n1", cpu=300), by_filter=True)
    scene.see(free("free", job="j"), *(pod(f"held{number}", job="j") for number in range(4)))
    scene.step()
    assert scene.released() == ["held0", "held1"]


def test_one_that_missed_its_turn_does_not_keep_the_turns_of_those_after_it_while_it_rests():
    # There is room for one at a time: the older one was refused in its turn and rests, and the turn is the younger's.
    scene = Scene(node("n1", cpu=100), by_filter=True)
    scene.see(pod("older", job="j"))
    scene.step()
    scene.change("older", unschedulable=True, nominated=None)
    scene.see(free("younger", job="j", created=1.0, unschedulable=True))
    for _ in range(3):
        scene.step(1)
    assert scene.told_to("nominate") == [("nominate", "older", "n1")]
    assert scene.told_to("wake")[0] == ("wake", "younger")
