"""Reclaim: when a queue below its share gets room from others, whose room that is, and whose it never is.

One node of 1,000 of CPU unless it says otherwise, and pods of 100: a pod is a tenth of the cluster.
"""

import dataclasses

import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.events import GroupSeen, NodeGone, NodeSeen
from extender.cluster.model import Group
from extender.cluster.queues import Queue
from extender.control.eviction_requests import EvictionRequests
from extender.control.reclaim.evictions import Evictions
from extender.control.reclaim.locality_waits import LocalityWaits
from extender.control.reclaim.loop import Reclaimer, Timeouts
from tests.service.control.scene import Scene, node, pod

AFTER = Timeouts(minimum_share=30, per_minute=60_000)
FAIR = Timeouts(fair_share=30, per_minute=60_000)
MINIMUM = (Queue("a"), Queue("b", minimum=0.3))


class ReclaimScene(Scene):
    """`evicted`: for whom evictions went well, in order; `protected`: by a budget; `slow`: victims take their time."""

    def __init__(self, *nodes, timeouts=AFTER, **more):
        self.timeouts = timeouts
        self.evicted, self.asked, self.events, self.counted, self.vain = [], [], [], [], []
        self.protected, self.slow = set(), False
        super().__init__(*nodes, **more)

    def start(self):
        super().start()
        waits = LocalityWaits(self.releaser.planner)
        evictions = Evictions(self.cluster, self.sender, waits, EvictionRequests(self.cluster, self), self)
        self.reclaimer = Reclaimer(self.cluster, waits, evictions, self.timeouts)

    def step(self, seconds=0.0):
        self.now += seconds
        self.reclaimer.step(self.now)
        return self.releaser.step(self.now)

    def run(self, seconds):
        """Step every second; what is released is bound at once."""
        for _ in range(seconds):
            self.step(1)
            for name, it in list(self.pods.items()):
                if it.node is None and it.nominated and not it.gates:
                    self.bind(name)

    def evict(self, pod):
        self.asked.append(pod.name)
        if pod.name in self.protected:
            return False
        self.evicted.append(pod.name)
        if self.slow:
            self.change(pod.name, leaving=True)
        else:
            self.remove(pod.name)
        return True

    def tell(self, pod, reason, message):
        self.events.append((pod.name, reason, message))

    def note_reclaim(self, victim, queue, why):
        self.counted.append((victim.name, queue, why))

    def note_vain(self, vain):
        self.vain.append((vain.pod.name, vain.why))

    def running(self, queue):
        return sorted(it.name for it in self.pods.values() if it.node and it.identity.queue == queue)


def runs(name, cpu=100, *, on="n1", started=0.0, queue="a", owner="replicas", **more):
    return pod(name, cpu, queue=queue, gates=(), node=on, started=started, owner=owner, owner_kind="ReplicaSet", **more)


def waits(name, cpu=100, *, queue="b", **more):
    return pod(name, cpu, queue=queue, owner="other", owner_kind="ReplicaSet", **more)


def full(*nodes, **more):
    """Return a scene whose ten pods a0 (the oldest) to a9 fill the node; four pods of b wait."""
    scene = ReclaimScene(*nodes or [node("n1")], **{"queues": MINIMUM, **more})
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(10)))
    scene.see(*(waits(f"b{n}", job="b") for n in range(4)))
    return scene


def test_it_is_off_by_default():
    scene = full(timeouts=Timeouts())
    scene.run(600)
    assert scene.asked == []


def test_nothing_happens_before_the_time_has_run_out():
    scene = full()
    scene.run(30)
    assert scene.asked == []
    scene.run(5)
    assert scene.evicted


def test_a_queue_gets_its_minimum_share_from_the_youngest_pods_and_no_more_than_that():
    # b is sure of 0.3: three of ten pods.
    scene = full()
    scene.run(31)
    assert scene.evicted == ["a9"], "for one pod alone, as no other of its shape runs yet"
    scene.run(2)
    assert scene.evicted == ["a9", "a8", "a7"], "then at once, as far as the rate allows"
    scene.run(120)
    assert scene.evicted == ["a9", "a8", "a7"]
    assert scene.running("b") == ["b0", "b1", "b2"]
    assert scene.running("a") == [f"a{n}" for n in range(7)]


def test_each_victim_is_of_the_queue_that_is_furthest_above_its_share_without_those_before():
    # b is sure of 0.4, so a and c should have 0.3 each, and have 0.6 and 0.4. Two go of a. Then both have 0.4, and the
    # youngest is of c.
    scene = ReclaimScene(node("n1"), queues=(Queue("a"), Queue("b", minimum=0.4), Queue("c")))
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(6)))
    scene.see(*(runs(f"c{n}", queue="c", started=10.0 + n) for n in range(4)))
    scene.see(*(waits(f"b{n}", job="b") for n in range(3)))
    scene.run(40)
    assert scene.evicted == ["a5", "a4", "c3"]


def test_the_victim_is_told_why_and_the_eviction_counted():
    scene = full()
    scene.run(40)
    text = "evicted so that queue b gets its minimum share; queue a is above its fair share"
    assert scene.events[0] == ("a9", "Reclaimed", text)
    assert scene.counted[0] == ("a9", "b", "minimum-share")


def test_a_queue_below_its_fair_share_gets_it_and_nobody_falls_below_his():
    # Two queues of weight 1: half of the cluster each, though six of b wait.
    scene = full(timeouts=FAIR, queues=())
    scene.see(waits("b4", job="b"), waits("b5", job="b"))
    scene.run(120)
    assert scene.evicted == ["a9", "a8", "a7", "a6", "a5"]
    assert len(scene.running("b")) == 5
    assert {why for *_, why in scene.counted} == {"fair-share"}


def test_a_queue_whose_pods_all_wait_for_somebody_else_has_no_part_of_the_cluster():
    # As above; with c it would be a third each.
    scene = full(timeouts=FAIR, queues=())
    scene.see(waits("b4", job="b"), waits("c0", queue="c", gates=("dovetail.dev/hold", "kueue.x-k8s.io/admission")))
    scene.run(120)
    assert len(scene.running("b")) == 5


@pytest.mark.parametrize("more", [{"cpu": 1001}, {"cpu": 400, "group": "team/gang", "least": 3}], ids=["pod", "gang"])
def test_a_queue_whose_pods_no_nodes_could_hold_has_no_part_of_the_cluster(more):
    # As above. The gang of three needs 1,200 of the 1,000.
    scene = full(timeouts=FAIR, queues=())
    scene.see(waits("b4", job="b"), *(waits(f"c{number}", queue="c", job="c", **more) for number in range(3)))
    scene.run(120)
    assert len(scene.running("b")) == 5


def test_nobody_loses_a_share_that_pods_which_no_node_could_hold_seem_to_have_a_part_of():
    # a, b and c should have 400 of 1,200 each, and a has that beside b, which may use n1 alone. With d it would be 300.
    scene = ReclaimScene(node("n1", cpu=600, labels={"host": "n1"}), node("n2", cpu=600), timeouts=FAIR)
    n1 = Constraints(selector=(("host", "n1"),))
    scene.see(*(runs(f"a{n}") for n in range(4)), *(runs(f"b{n}", queue="b") for n in range(2)))
    scene.see(*(runs(f"c{n}", queue="c", on="n2") for n in range(6)))
    scene.see(waits("b2", constraints=n1), waits("d0", 601, queue="d"))
    scene.run(120)
    assert scene.evicted == []


def test_nobody_goes_where_there_is_room_by_itself_when_the_time_has_run_out():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.05)))
    scene.run(30)
    scene.apply(NodeSeen(node("n2", cpu=100)))
    scene.run(30)
    assert (scene.asked, scene.running("b")) == ([], ["b0"])


def test_a_queue_at_its_fair_share_loses_nothing_to_one_that_cannot_be_served_without():
    # Pods of 300 and 400: b would need 400, and a, with 600 of its half of 1,000, may lose 100.
    scene = ReclaimScene(node("n1"), timeouts=FAIR)
    scene.see(runs("a0", 300), runs("a1", 300), runs("b0", 300, queue="b"), waits("b1", 400))
    scene.run(120)
    assert scene.asked == []


def test_a_time_is_counted_while_it_is_below_its_share_without_a_break():
    scene = full()
    scene.run(25)
    for name in ("b0", "b1", "b2", "b3"):
        scene.remove(name)
    scene.run(2)
    scene.see(*(waits(f"c{n}") for n in range(4)))
    scene.run(29)
    assert scene.asked == []
    scene.run(5)
    assert scene.evicted


def test_after_a_restart_the_time_starts_again():
    scene = full()
    scene.run(25)
    scene.restart()
    scene.run(29)
    assert scene.asked == []
    scene.run(5)
    assert scene.evicted


def test_a_process_that_dies_while_victims_end_evicts_no_others_for_the_same_room():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(40)
    scene.restart()
    scene.run(100)
    assert scene.evicted == ["a9"]
    scene.remove("a9")
    scene.run(2)
    assert scene.released() == ["b0"], "by plan"
    scene.run(100)
    assert scene.evicted == ["a9"]


def test_time_without_the_lease_does_not_count():
    scene = full()
    scene.run(25)
    scene.leading = False
    scene.run(60)
    scene.leading = True
    scene.run(29)
    assert scene.asked == []


def test_without_the_lease_no_room_is_kept_for_anybody():
    scene = full()
    scene.slow = True
    scene.run(31)
    assert scene.evicted == ["a9"]
    assert scene.cluster.flights() == {"uid-b0"}
    scene.leading = False
    scene.run(1)
    assert scene.cluster.flights() == scene.cluster.awaiting_evictions == set()
    assert scene.reclaimer.evictions.awaited() == set(), "nor when it leads again"


def test_nobody_is_asked_to_go_once_the_lease_is_lost():
    scene = full()
    requests = []
    scene.run_soon = requests.append
    while not requests:
        scene.step(1)
    scene.leading = False
    requests.pop()()
    assert scene.asked == []


def test_a_victim_that_does_not_show_as_leaving_yet_is_waited_for():
    scene = full()
    scene.evict = lambda victim: scene.evicted.append(victim.name) is None
    scene.run(40)
    assert (scene.evicted, scene.vain) == (["a9"], [])
    scene.remove("a9")
    scene.run(1)
    assert scene.running("b") == ["b0"]


def test_a_victim_that_does_not_show_as_leaving_after_fifteen_seconds_is_waited_for_no_more():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.evict = lambda victim: scene.evicted.append(victim.name) is None
    scene.run(31 + 15)
    assert (scene.evicted, scene.vain) == (["a9"], [])
    scene.run(2)
    assert scene.vain == [("b0", "late")]
    assert scene.cluster.flights() == set()


def test_the_freed_room_goes_to_the_queue_that_it_was_freed_for():
    # The controller of a makes its pod anew at once, of a job with less left to run, which the plan would prefer.
    scene = full()
    made = 0
    for _ in range(120):
        scene.run(1)
        while len([it for it in scene.pods.values() if it.identity.queue == "a"]) < 10:
            scene.see(waits(f"again{made}", queue="a", job="short", duration=1.0))
            made += 1
    assert scene.evicted == ["a9", "a8", "a7"]
    assert scene.running("b") == ["b0", "b1", "b2"]


def test_while_a_victim_takes_its_time_no_other_is_asked_for_the_same_room_and_nobody_else_gets_it():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(100)
    scene.see(waits("another", 100, queue="a", job="short", duration=1.0))
    scene.run(10)
    assert scene.evicted == ["a9"]
    assert scene.released() == []
    scene.remove("a9")
    scene.run(2)
    assert scene.released() == ["b0"]
    assert scene.nominated() == {"b0": "n1"}


def test_how_near_to_its_input_a_pod_gets_its_room_is_known_and_for_how_long_its_job_was_passed_over():
    scene = full(node("n1"), node("n2", cpu=0), queues=(Queue("a"), Queue("b", minimum=0.1)))
    for number in range(4):
        scene.change(f"b{number}", inputs=(("n1", 1000.0),))
    scene.run(100)
    assert scene.released() == ["b0"]
    assert scene.levels["b0"] == ("node", 0.0)


@pytest.mark.parametrize("shows", [True, False], ids=["shown as leaving", "asked to go and not shown yet"])
def test_of_several_that_get_room_on_a_node_none_loses_it_because_his_victims_end_first(shows):
    # Until all three have gone their room counts for three: what a8 leaves is kept, and not for `another`.
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.4)))
    scene.end("a0")
    scene.see(runs("b", queue="b"))
    scene.slow = True
    if not shows:
        scene.evict = lambda victim: scene.evicted.append(victim.name) is None
    scene.run(35)
    scene.see(*(waits(f"another{n}", queue="a", job="short", duration=1.0) for n in range(3)))
    for victim in ("a8", "a9", "a7"):
        scene.remove(victim)
        scene.run(3)
    assert scene.evicted == ["a9", "a8", "a7"]
    assert scene.running("b") == ["b", "b0", "b1", "b2"]
    assert scene.vain == []


def test_pods_that_leave_anyhow_are_waited_for():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.change("a0", leaving=True)
    scene.run(100)
    assert scene.asked == []


def test_pods_that_leave_anyhow_are_not_waited_for_where_that_takes_longer_than_a_node_is_kept():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.change("a0", leaving=True, leaves_at=scene.now + 86_400)
    scene.run(60)
    assert scene.evicted == ["a9"]
    assert scene.running("b") == ["b0"]


def test_a_pod_that_is_still_there_long_after_its_grace_period_is_waited_for_no_more():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.change("a0", leaving=True, leaves_at=scene.now)
    scene.run(290)
    assert scene.asked == []
    scene.run(300)
    assert scene.evicted == ["a9"]
    assert scene.running("b") == ["b0"]


def test_nor_is_a_victim_that_is_still_there_long_after_its_grace_period():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(32)
    scene.change("a9", leaves_at=scene.now)
    scene.slow = False
    scene.run(290)
    assert scene.evicted == ["a9"]
    scene.run(300)
    assert scene.evicted == ["a9", "a8"]
    assert scene.running("b") == ["b0"]


def test_room_is_kept_for_a_pod_until_those_have_gone_that_leave_anyhow():
    # 200 are needed: a0 leaves anyhow, so only a9 is asked to go, and is gone first.
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.2)))
    for name in ("b0", "b1", "b2", "b3"):
        scene.remove(name)
    scene.see(waits("b4", 200))
    scene.change("a0", leaving=True)
    scene.run(40)
    assert (scene.evicted, scene.vain) == (["a9"], [])
    scene.remove("a0")
    scene.run(1)
    assert scene.running("b") == ["b4"]


def test_after_a_pause_of_ours_room_is_kept_as_before():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(40)
    scene.step(20)  # longer than what is promised lasts
    assert (scene.vain, scene.cluster.flights()) == ([], {"uid-b0"})
    scene.remove("a9")
    scene.run(1)
    assert scene.running("b") == ["b0"]


def test_nobody_goes_to_a_node_that_was_cordoned_while_its_victims_ended():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(40)
    scene.apply(NodeSeen(node("n1", unschedulable=True)))
    scene.remove("a9")
    scene.run(1)
    assert (scene.released(), scene.vain) == ([], [("b0", "taken")])


def test_a_node_that_goes_while_its_victims_end_is_kept_for_nobody():
    scene = full()
    scene.slow = True
    scene.run(31)
    scene.apply(NodeGone("n1"))
    scene.run(1)
    scene.remove("a9")
    scene.run(1)
    assert scene.vain == [("b0", "taken")]
    assert scene.cluster.flights() == set()


def test_victims_are_waited_for_however_long_they_take():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(32)
    scene.change("a9", leaves_at=scene.now + 86_400)
    scene.run(600)
    assert scene.evicted == ["a9"]


def test_a_pod_that_waits_for_its_room_does_not_use_up_the_pace():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(40)
    assert scene.cluster.awaiting_evictions == {"uid-b0"}
    scene.releaser.pace = type(scene.releaser.pace)(unbound_pods=1)
    scene.apply(NodeSeen(node("n2", cpu=100)))
    scene.step(1)
    assert scene.nominated() == {"b1": "n2"}


def test_room_that_something_else_leaves_meanwhile_is_used_at_once():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(100)
    scene.see(waits("another", queue="a", job="short", duration=1.0))
    scene.end("a0")
    scene.step(1)
    assert scene.nominated() == {"b0": "n1"}
    assert scene.evicted == ["a9"]


def test_victims_that_do_not_end_give_their_room_to_the_plan_after_a_while():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(40)
    scene.run(300)
    assert scene.cluster.awaiting_evictions == set()
    assert scene.evicted == ["a9"]


def test_a_waiting_pod_that_goes_frees_what_was_kept_for_it():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.slow = True
    scene.run(40)
    scene.remove("b0")
    scene.remove("a9")
    scene.run(2)
    assert scene.released() == ["b1"]
    assert scene.cluster.awaiting_evictions == set()


def test_pods_of_lower_priority_go_first_and_those_of_a_higher_one_never():
    scene = ReclaimScene(node("n1"), queues=(Queue("a"), Queue("b", minimum=0.6)))
    scene.see(*(runs(f"high{n}", started=9.0, priority=10) for n in range(5)))
    scene.see(*(runs(f"low{n}", started=1.0, priority=1) for n in range(3)))
    scene.see(*(runs(f"same{n}", started=5.0, priority=5) for n in range(2)))
    scene.see(*(waits(f"b{n}", job="b", priority=5, may_preempt=False) for n in range(6)))
    scene.run(120)
    assert scene.evicted[:3] == ["low0", "low1", "low2"]
    assert sorted(scene.evicted[3:]) == ["same0", "same1"]


def test_of_two_nodes_that_is_chosen_whose_most_important_victim_is_the_less_important():
    # A pod needs 200 of a node: on n1 two of priority 1 would go for it, on n2 one of 0 and one of 5.
    scene = ReclaimScene(node("n1", cpu=200), node("n2", cpu=200), queues=(Queue("a"), Queue("b", minimum=0.5)))
    scene.see(*(runs(f"low{n}", cpu=100, on="n1", started=1.0, priority=1) for n in range(2)))
    scene.see(runs("high", cpu=199, on="n2", started=9.0, priority=5), runs("least", cpu=1, on="n2", priority=0))
    scene.see(waits("b", cpu=200, priority=5, may_preempt=False))
    scene.run(120)
    assert sorted(scene.evicted) == ["low0", "low1"]


def test_queues_furthest_above_their_share_lose_first():
    # Thirds each: a has 0.6, c 0.4. c's pods are younger, yet a's go, until both are as far above.
    scene = ReclaimScene(node("n1"), timeouts=FAIR)
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(6)))
    scene.see(*(runs(f"c{n}", started=100.0 + n, queue="c") for n in range(4)))
    scene.see(*(waits(f"b{n}", job="b") for n in range(4)))
    scene.run(200)
    assert scene.evicted == ["a5", "a4"], "0.4 each; a third pod would bring either below a third"


@pytest.mark.parametrize("spared", ["no-controller", "gang", "other-scheduler"])
def test_some_pods_are_never_evicted(spared):
    scene = ReclaimScene(node("n1"), queues=MINIMUM)
    told = {"no-controller": {"owner": ""}, "gang": {"group": "g", "least": 10}, "other-scheduler": {}}[spared]
    pods = [runs(f"a{n}", started=float(n), **told) for n in range(10)]
    if spared == "other-scheduler":
        pods = [type(it)(**{name: getattr(it, name) for name in it.__slots__} | {"scheduler": "else"}) for it in pods]
    scene.see(*pods, waits("b0"))
    scene.run(120)
    assert scene.asked == []


def test_a_group_that_needs_no_two_together_is_no_gang():
    scene = full()
    scene.apply(GroupSeen(Group("default/g", 1)))
    scene.see(runs("a9", started=99.0, group="default/g", version=2))
    scene.run(40)
    assert "a9" in scene.evicted


def test_gangs_are_not_reclaimed_for():
    scene = ReclaimScene(node("n1"), queues=MINIMUM)
    scene.see(*(runs(f"a{n}") for n in range(10)))
    scene.see(*(waits(f"b{n}", group="g", least=2) for n in range(2)))
    scene.run(120)
    assert scene.asked == []


def test_only_on_nodes_that_the_waiting_pod_may_use():
    where = Constraints(selector=(("disk", "ssd"),))
    scene = ReclaimScene(node("n1"), node("n2", labels={"disk": "ssd"}), queues=MINIMUM)
    scene.see(*(runs(f"x{n}", started=90.0, on="n1") for n in range(10)))
    scene.see(*(runs(f"y{n}", started=float(n), on="n2") for n in range(10)))
    scene.see(waits("b0", constraints=where))
    scene.run(60)
    assert scene.evicted == ["y9"]


def test_not_for_pods_that_could_not_use_the_room():
    # It needs 1,100 of CPU, and a node has 1,000.
    scene = full()
    for name in ("b0", "b1", "b2", "b3"):
        scene.remove(name)
    scene.see(waits("large", 1_100))
    scene.run(120)
    assert scene.asked == []


def test_not_where_the_other_dimension_would_still_be_short():
    # Memory is all held by a pod without a controller.
    scene = ReclaimScene(node("n1"), queues=(Queue("a"), Queue("b", minimum=0.3)))
    scene.see(runs("holder", {"memory": 1_000}, owner=""))
    scene.see(*(runs(f"a{n}") for n in range(10)))
    scene.see(waits("b0", {"cpu": 100, "memory": 1}))
    scene.run(120)
    assert scene.asked == []


def test_not_where_there_is_room_already():
    scene = full()
    scene.refuse |= {("nominate", f"b{n}") for n in range(4)}
    scene.end("a0")
    scene.run(60)
    assert scene.asked == []


def test_as_few_as_needed_are_evicted():
    # 300 are needed: the youngest, of 100, would not have to go beside the next, of 300.
    scene = ReclaimScene(node("n1"), queues=MINIMUM)
    scene.see(runs("old", 600, started=1.0), runs("large", 300, started=2.0), runs("young", 100, started=3.0))
    scene.see(waits("b0", 300))
    scene.run(40)
    assert scene.evicted == ["large"]


def test_the_rate_of_evictions_is_limited():
    # Ten a minute: one at once, then one every six seconds.
    scene = full(timeouts=Timeouts(minimum_share=30, per_minute=10), queues=(Queue("a"), Queue("b", minimum=0.9)))
    scene.see(*(waits(f"more{n}", job="b") for n in range(6)))
    scene.run(31)
    assert len(scene.evicted) == 1
    scene.run(14)
    assert len(scene.evicted) == 3
    scene.run(60)
    assert len(scene.evicted) == 9, "b has its 0.9"


def test_a_pod_that_takes_many_evictions_is_served_whole_and_the_next_waits_for_it():
    # 300 for one pod: three of ten a minute at once; the debt is paid after 3 x 6 s.
    scene = full(timeouts=Timeouts(minimum_share=30, per_minute=10), queues=(Queue("a"), Queue("b", minimum=0.6)))
    for name in ("b0", "b1", "b2", "b3"):
        scene.remove(name)
    scene.see(waits("b4", 300), waits("b5", 300))
    scene.run(32)
    assert len(scene.evicted) == 3
    scene.run(12)
    assert len(scene.evicted) == 3
    scene.run(12)
    assert len(scene.evicted) == 6


def test_evictions_that_were_never_asked_for_do_not_count_in_the_rate():
    # 300 for one pod. The first of three is refused and counts, and the next three may go 6 s later, not 18.
    scene = full(timeouts=Timeouts(minimum_share=30, per_minute=10), queues=(Queue("a"), Queue("b", minimum=0.3)))
    for name in ("b0", "b1", "b2", "b3"):
        scene.remove(name)
    scene.see(waits("b4", 300))
    scene.protected = {"a9"}
    scene.run(31)
    assert scene.asked == ["a9"]
    scene.run(5)
    assert scene.asked == ["a9"]
    scene.run(3)
    assert scene.evicted == ["a8", "a7", "a6"]


def test_never_more_at_once_than_a_minute_allows():
    scene = full(timeouts=Timeouts(minimum_share=30, per_minute=2), queues=(Queue("a"), Queue("b", minimum=0.6)))
    for name in ("b0", "b1", "b2", "b3"):
        scene.remove(name)
    scene.see(waits("b4", 300))
    scene.run(300)
    assert scene.asked == []


def test_what_a_budget_protects_is_left_alone_for_a_while_and_others_are_asked():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.protected = {"a9", "a8"}
    scene.run(45)
    assert scene.evicted == ["a7"]
    assert scene.asked == ["a9", "a8", "a7"]


def test_where_a_budget_protects_all_it_is_tried_again_but_not_in_a_loop():
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.1)))
    scene.protected = {f"a{n}" for n in range(10)}
    scene.run(40)
    assert sorted(scene.asked) == [f"a{n}" for n in range(10)]
    scene.run(60)
    assert 10 < len(scene.asked) <= 30, "each of ten once in 30 s"
    assert scene.evicted == []
    assert scene.cluster.awaiting_evictions == set()


class SlowClocks(ReclaimScene):
    """Whoever looks at a clock takes a millisecond for it, as a real one does."""

    def flight_time(self):
        self.now += 0.001
        return self.now

    def step(self, seconds=0.0):
        self.now += seconds
        self.reclaimer.step(self.now)
        return self.releaser.step(self.now)


def test_a_pod_for_which_a_budget_lets_nobody_go_starts_once_there_is_room():
    scene = SlowClocks(node("n1"), queues=MINIMUM)
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(10)), waits("b0"))
    scene.protected = {f"a{n}" for n in range(10)}
    scene.run(40)
    assert scene.asked, "b0 was claimed for room of others"
    scene.end("a0")
    scene.run(2)
    assert scene.running("b") == ["b0"]


def test_where_a_budget_protects_one_of_two_on_each_node_nobody_goes_in_vain_again_and_again():
    # The youngest would be asked first, and go; the other is refused. On each further node the refused is asked first.
    nodes = [node(f"n{number}") for number in range(10)]
    scene = ReclaimScene(*nodes, timeouts=Timeouts(fair_share=30, per_minute=600), queues=(Queue("a"), Queue("b")))
    for number, it in enumerate(nodes):
        scene.see(runs(f"free{number}", 500, on=it.name, started=100.0, owner="free", job="free"))
        scene.see(runs(f"kept{number}", 500, on=it.name, started=1.0, owner="kept", job="kept"))
    scene.protected = {f"kept{number}" for number in range(10)}
    scene.see(waits("b0", 1000, job="b"))
    scene.run(600)
    assert len(scene.evicted) == 1
    assert scene.asked.count("kept0") >= 1


def test_a_move_that_a_budget_cuts_short_is_finished_with_another_victim():
    # 200 are needed: a9 goes, a8 is protected; a7 goes in its place, and a9 was not in vain.
    scene = full(queues=(Queue("a"), Queue("b", minimum=0.2)))
    for name in ("b0", "b1", "b2", "b3"):
        scene.remove(name)
    scene.see(waits("b4", 200), waits("small", 100, queue="c", job="short", duration=1.0))
    scene.remove("small")
    scene.protected = {"a8"}
    scene.run(60)
    assert scene.evicted == ["a9", "a7"]
    assert scene.running("b") == ["b4"]


def test_nobody_is_counted_twice_on_a_node_with_fewer_pods_than_another():
    # a may lose 445 of its 1,005. On n1 that is the one of 200 or the one of 400, on n2 all three of 135.
    queues = (Queue("a", weight=2.8), Queue("b", weight=2.2), Queue("c", weight=5.0))
    scene = ReclaimScene(node("n1"), node("n2"), timeouts=Timeouts(fair_share=30, per_minute=600), queues=queues)
    scene.see(runs("c0", 400, queue="c", owner=""), runs("c1", 595, on="n2", queue="c", owner=""))
    scene.see(runs("a0", 200, started=100.0, job="a0"), runs("a1", 400, started=1.0, job="a1"))
    scene.see(*(runs(f"a{n}", 135, on="n2", started=50.0, job=f"a{n}") for n in range(2, 5)))
    scene.see(waits("b0", 400))
    scene.run(40)
    assert sorted(scene.asked) == ["a2", "a3", "a4"]
    assert scene.running("b") == ["b0"]


def test_a_child_gets_what_its_parent_is_sure_of():
    # research is sure of 0.4. Its children have a fair share of 0.25 each, as weights go 1 : 1, and sales 0.5.
    queues = (Queue("research", minimum=0.4), Queue("nlp", parent="research"), Queue("vision", parent="research"))
    scene = ReclaimScene(node("n1"), queues=(*queues, Queue("sales")))
    scene.see(*(runs(f"s{n}", started=float(n), queue="sales") for n in range(8)))
    scene.see(*(runs(f"v{n}", started=50.0, queue="vision") for n in range(2)))
    scene.see(*(waits(f"n{n}", queue="nlp", job="nlp") for n in range(4)))
    scene.run(120)
    assert scene.evicted == ["s7", "s6"], "0.2 are vision's; two more make 0.4"
    assert len(scene.running("nlp")) == 2


def test_a_parent_is_not_brought_below_its_share_for_a_queue_outside():
    # research and sales: halves. nlp is above its quarter, but research as a whole is at its half.
    queues = (Queue("research"), Queue("nlp", parent="research"), Queue("vision", parent="research"), Queue("sales"))
    scene = ReclaimScene(node("n1"), queues=queues, timeouts=FAIR)
    scene.see(*(runs(f"n{n}", queue="nlp") for n in range(4)), runs("v0", queue="vision"))
    scene.see(*(runs(f"s{n}", queue="sales") for n in range(4)), runs("t0", queue="sales", owner=""))
    scene.see(waits("v1", queue="vision"))
    scene.run(60)
    assert scene.evicted == ["n0"], "for its sibling it may"
    scene.see(*(waits(f"more{n}", queue="sales") for n in range(2)))
    scene.run(120)
    assert scene.evicted == ["n0"], "sales has its half"


def test_minimum_shares_go_before_fair_shares():
    # b is below its minimum, c below its fair share; room is given up at one pod a step.
    timeouts = Timeouts(fair_share=30, minimum_share=30, per_minute=10)
    scene = full(timeouts=timeouts, queues=(Queue("a"), Queue("b", minimum=0.1), Queue("c", 5)))
    scene.see(*(waits(f"c{n}", queue="c", job="c") for n in range(4)))
    scene.run(32)
    assert scene.counted[0][1:] == ("b", "minimum-share")
    scene.run(12)
    assert scene.counted[1][1:] == ("c", "fair-share")


def test_an_opportunistic_pod_is_not_asked_to_go_as_that_frees_nothing():
    """The node is full of a's regular pods; a's opportunistic ones, though the youngest, stay."""
    scene = full()
    scene.see(*(runs(f"o{n}", started=50.0 + n, opportunistic=True) for n in range(3)))
    scene.run(120)
    assert scene.evicted == ["a9", "a8", "a7"]


def test_a_queue_with_opportunistic_pods_alone_gets_its_minimum_share():
    scene = full()
    scene.see(*(runs(f"o{n}", queue="b", opportunistic=True) for n in range(5)))
    scene.run(120)
    assert scene.evicted == ["a9", "a8", "a7"]


def test_nobody_goes_for_pods_that_run_on_idle_room_alone():
    scene = ReclaimScene(
        dataclasses.replace(node("n1"), allocatable={"cpu": 1000.0, "memory": 1000.0, "pods": 10.0}),
        timeouts=Timeouts(fair_share=30, per_minute=60_000),
        queues=(Queue("a"), Queue("b")),
    )
    scene.see(*(runs(f"a{n}", started=float(n)) for n in range(10)))
    scene.see(*(waits(f"only{n}", 500, job="o", opportunistic=True, choice="only") for n in range(8)))
    scene.run(300)
    assert (scene.evicted, scene.running("b")) == ([], [])


def test_opportunistic_pods_that_leave_give_no_queue_anything():
    scene = full()
    scene.see(*(runs(f"o{n}", opportunistic=True, leaving=True) for n in range(9)))
    scene.run(120)
    assert scene.evicted == ["a9", "a8", "a7"]


def test_a_write_that_may_take_an_hour_to_show_keeps_its_pod_claimed():
    scene = full()
    scene.assume_seconds = 3600.0
    scene.start()
    scene.backlog.claim("uid-b0", scene.now + scene.assume_seconds)
    scene.reclaimer.step(scene.now + 1.0)
    assert scene.backlog.writes.busy("uid-b0")
