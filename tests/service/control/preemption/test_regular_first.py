"""Regular pods that only opportunistic ones keep out: by places for pods, GPUs and the like, never by CPU."""

from dataclasses import replace

import pytest

from extender.cluster.model import Constraints, Node
from extender.cluster.pods.opportunistic import ONLY
from extender.control.backlog.task_classes import name_of
from extender.control.eviction_requests import EvictionRequests
from extender.control.preemption.loop import PreemptionLimits, Preemptor
from extender.control.preemption.overload import Limits
from extender.control.preemption.rates import Rates
from extender.control.preemption.regular_first import RegularFirst
from extender.control.release.loop import Releaser
from extender.control.release.slots import Pace
from extender.errors import ClusterError
from extender.planner import Planner
from tests.service.control.opportunistic.idle_scene import IdleScene, needs, opportunistic, runs
from tests.service.control.preemption.evictions import Evictions


def node(name, *, slots=3, cpu=1000, **more):
    return Node(name, {"cpu": float(cpu), "memory": 1000.0, "pods": float(slots), **more})


class FullScene(Evictions, IdleScene):
    def __init__(self, *nodes, rates=None, dry_run=False, **more):
        self.terms = PreemptionLimits(Limits.of(), rates or Rates(600, 600), dry_run=dry_run)
        self.promoting = set()
        super().__init__(*nodes, **more)

    def start(self):
        super().start()
        self.requests = EvictionRequests(self.cluster, self)
        self.preemptor = Preemptor(
            self.cluster, self.usage, self.requests, self, self.terms, self.stays_off, clock=lambda: self.now
        )
        first = RegularFirst(
            self.cluster, self.preemptor, self.requests, lambda: self.promoting, dry_run=self.terms.dry_run
        )
        self.releaser = Releaser(
            self.cluster, Planner(self.policy), self.sender, self.pace, idle=self, regular_first=first
        )

    def step(self, seconds=0.0):
        self.now += seconds
        self.preemptor.step(self.now)
        return self.releaser.step(self.now)


def with_gpu(it, count=1):
    """Return a pod that needs so many GPUs besides."""
    return replace(it, demand={**it.demand, "gpu": float(count)})


def on_idle(name, *, on="n1", started=0.0, gpus=0, **more):
    """Return a running opportunistic pod, perhaps with GPUs."""
    it = opportunistic(runs(name, 100, on=on, started=started, **more))
    return with_gpu(it, gpus) if gpus else it


def full(*waiting, **more):
    """Return a scene of one node with three places: a regular pod and two opportunistic ones, and 900 of CPU free."""
    scene = FullScene(node("n1"), **more)
    scene.see(runs("regular", 100), on_idle("old", started=0.0), on_idle("young", started=90.0), *waiting)
    return scene


def test_who_keeps_a_regular_pod_out_by_its_place_goes_at_once_and_the_pod_gets_the_node():
    scene = full(needs("a", 400))
    scene.step()
    assert scene.evicted == ["young"]  # it loses less work
    assert scene.counted == [("young", "pods", False)]
    assert scene.events == [("young", "Preempted", "it kept a regular pod such as a out: too little pods on node n1")]
    scene.step(1)
    assert scene.nominated() == {"a": "n1"}
    assert not scene.pods["a"].opportunistic


class Looked(list):
    """How many `times` somebody has read it."""

    times = 0

    def __iter__(self):
        self.times += 1
        return super().__iter__()


def test_where_a_plan_leaves_nobody_waiting_opportunistic_pods_are_not_looked_at():
    scene = FullScene(node("n1", slots=4))
    scene.see(on_idle("old"), needs("a", 400))
    scene.promoting = Looked()
    scene.step()
    assert (scene.nominated(), scene.promoting.times) == ({"a": "n1"}, 0)
    scene.see(needs("b", 10_000))
    scene.step(1)
    assert scene.promoting.times == 1


def test_nobody_goes_for_a_pod_that_would_not_fit_all_the_same():
    scene = full(needs("a", 950))
    scene.step()
    scene.step(5)
    assert scene.evicted == []


def test_nobody_goes_for_a_pod_that_fits_elsewhere():
    scene = FullScene(node("n1"), node("n2"))
    scene.see(runs("regular", 100), on_idle("x"), on_idle("y"), needs("a", 400))
    scene.step()
    assert (scene.evicted, scene.nominated()) == ([], {"a": "n2"})


def test_nobody_goes_in_vain_with_others_of_an_owner_whose_budget_has_refused():
    # Two of three have to go. The budget allows no pod of `db`: after x0 it is x2 that is asked before x1.
    scene = FullScene(node("n1", slots=9, gpu=3.0))
    scene.see(*(on_idle(f"x{n}", gpus=1, owner=owner) for n, owner in enumerate(("db", "batch", "db"))))
    scene.see(with_gpu(needs("a", 400), 2))
    scene.protected = {"x0", "x2"}
    for _ in range(20):
        scene.step(1)
    assert scene.evicted == []


def test_for_a_gang_nobody_goes_in_vain_on_another_node_than_that_of_whom_a_budget_has_refused():
    scene = FullScene(node("n1", slots=1), node("n2", slots=1))
    scene.see(on_idle("first", owner="batch"), on_idle("second", on="n2", owner="db"))
    scene.protected = {"second"}
    scene.see(*(needs(f"g{n}", 300, group="g", least=2, job="g") for n in range(2)))
    scene.step()
    assert scene.evicted == ["first"], "nobody knew of the budget"
    scene.see(on_idle("third", owner="batch"))
    for _ in range(70):
        scene.step(1)
    assert scene.evicted == ["first"]


def test_who_was_refused_is_asked_again_after_half_a_minute_and_then_twice_as_long_each_time():
    scene, asked = FullScene(node("n1", slots=2)), []
    scene.see(runs("regular", 100), on_idle("x"), needs("a", 400))
    scene.evict = lambda _: bool(asked.append(scene.now - 100.0))
    for _ in range(220):
        scene.step(1)
    assert asked == [1, 32, 93, 214]  # 30 s, 60 s and 120 s after the step that hears of the refusal


def test_an_eviction_that_was_decided_is_not_asked_for_once_we_lead_no_more():
    scene = full(needs("a", 400))
    scene.late = True
    scene.step()
    scene.leading = False
    scene.write_all()
    assert (scene.evicted, scene.counted) == ([], [])


def test_a_request_that_fails_is_no_eviction_and_another_goes():
    scene = full(needs("a", 400))
    evict = scene.evict

    def fail_once(victim):
        if victim.name == "young":
            raise ClusterError("the API server is gone")
        return evict(victim)

    scene.evict = fail_once
    scene.step()
    assert (scene.events, scene.counted) == ([], [])
    scene.step(1)
    assert scene.evicted == ["old"]


def test_who_was_asked_and_does_not_go_is_asked_again():
    scene = full(needs("a", 400))
    scene.evict = lambda victim: scene.evicted.append(victim.name) or True
    for _ in range(2):
        scene.step(scene.cluster.assume_seconds + 1)
    assert scene.evicted == ["young", "young"]


def test_room_that_the_plan_gives_to_one_pod_keeps_nobody_from_going_for_another():
    scene = FullScene(node("n1", slots=4))
    scene.see(runs("regular", 100), on_idle("old"), on_idle("young", started=90.0), needs("a", 400), needs("b", 300))
    scene.step()
    assert (len(scene.nominated()), scene.evicted) == (1, ["young"])


def test_nobody_goes_where_the_pod_may_not_run():
    scene = FullScene(node("n1"), replace(node("n2"), labels={"disk": "ssd"}))
    for name in ("n1", "n2"):
        scene.see(*(runs(f"{name}-{n}", 100, on=name) for n in range(2)))
    scene.see(on_idle("young", on="n1", started=90.0), on_idle("old", on="n2"))
    scene.see(needs("a", 400, constraints=Constraints(selector=(("disk", "ssd"),))))
    scene.step()
    assert scene.evicted == ["old"]


def test_nobody_goes_for_a_pod_that_never_is_regular():
    scene = full(replace(needs("a", 400), choice=ONLY, opportunistic=True))
    scene.step()
    assert scene.evicted == []


def test_while_a_victim_is_on_its_way_out_nobody_else_goes_for_the_same_pod():
    scene = full(needs("a", 400))
    scene.slow = True
    for _ in range(20):
        scene.step(1)
    assert scene.evicted == ["young"]


def test_as_many_go_as_pods_wait_that_fit_besides():
    # 900 of CPU: two of 400.
    scene = full(*(needs(f"a{n}", 400, job="a") for n in range(5)))
    scene.step()
    assert sorted(scene.evicted) == ["old", "young"]


def test_whoever_a_budget_protects_stays_and_the_next_one_goes():
    scene = full(needs("a", 400))
    scene.protected = {"young"}
    scene.step()
    scene.step(1)
    assert scene.evicted == ["old"]


def test_the_place_of_a_pod_that_is_deleted_counts_once():
    scene = full(needs("a", 400))
    scene.change("young", leaving=True)
    scene.step()
    assert scene.evicted == []
    scene.see(needs("b", 400))
    scene.step()
    assert scene.evicted == ["old"]


def test_the_place_of_a_pod_that_was_asked_to_go_counts_once():
    scene = full(needs("a", 400))
    scene.slow = scene.late = True
    scene.step()
    scene.see(needs("b", 400))
    scene.step()
    scene.write_all()
    assert scene.evicted == ["young", "old"]


def test_nobody_goes_who_was_asked_by_others_or_is_being_promoted():
    scene = full(needs("a", 400))
    scene.promoting = {"uid-young"}
    scene.step()
    assert scene.evicted == ["old"]


@pytest.mark.parametrize(("rates", "evicted"), [(Rates(1, 600), 1), (Rates(600, 1), 1), (Rates(60, 120), 1)])
def test_no_more_go_than_the_rates_allow(rates, evicted):
    scene = full(*(needs(f"a{n}", 400, job="a") for n in range(2)), rates=rates)
    scene.step()
    assert len(scene.evicted) == evicted


def test_where_gpus_are_short_the_fewest_go_on_the_node_where_that_is_one():
    scene = FullScene(node("n1", slots=9, gpu=2.0), node("n2", slots=9, gpu=2.0))
    scene.see(*(on_idle(f"one{n}", gpus=1) for n in range(2)), on_idle("two", on="n2", gpus=2))
    scene.see(with_gpu(needs("a", 400), 2))
    scene.step()
    assert scene.evicted == ["two"]
    assert scene.counted == [("two", "gpu", False)]


def test_a_gang_makes_room_for_all_that_it_lacks_or_nobody_goes():
    gang = [needs(f"g{n}", 300, group="g", least=2, job="g") for n in range(2)]
    scene = full(*gang)
    scene.step()
    assert sorted(scene.evicted) == ["old", "young"]
    scene.step(1)
    assert scene.nominated() == {"g0": "n1", "g1": "n1"}
    large = [needs(f"g{n}", 300, group="g", least=3, job="g") for n in range(3)]
    scene = full(*large)
    scene.step()
    assert scene.evicted == []


def test_a_gang_takes_what_is_free_before_anybody_goes():
    scene = FullScene(node("n1", slots=4))
    scene.see(runs("regular", 100), on_idle("old"), on_idle("young", started=90.0))
    scene.see(*(needs(f"g{n}", 300, group="g", least=2, job="g") for n in range(2)))
    scene.step()
    assert scene.evicted == ["young"]


def test_for_a_gang_no_more_go_than_it_lacks_to_begin():
    scene = full(*(needs(f"g{n}", 300, group="g", least=1, job="g") for n in range(2)))
    scene.slow = True
    scene.step()
    assert scene.evicted == ["young"]


def test_a_gang_of_two_shapes_gets_room_where_one_of_them_fits_on_another_node():
    scene = FullScene(node("n1"), node("n2", gpu=1.0))
    scene.see(runs("regular", 100), on_idle("old"), on_idle("young", started=90.0), runs("other", 600, on="n2"))
    scene.see(with_gpu(needs("driver", 300, group="g", least=2, job="g")))
    scene.see(needs("worker", 500, group="g", least=2, job="g"))
    scene.step()
    scene.step(1)
    assert (scene.evicted, scene.nominated()) == (["young"], {"driver": "n2", "worker": "n1"})


def test_a_gang_gets_room_where_more_than_one_goes_for_each_of_its_pods():
    scene = FullScene(node("n1", slots=9, gpu=4.0))
    scene.see(*(on_idle(f"x{n}", gpus=1) for n in range(4)))
    scene.see(*(with_gpu(needs(f"g{n}", 300, group="g", least=2, job="g"), 2) for n in range(2)))
    scene.step()
    scene.step(1)
    assert (len(scene.evicted), scene.nominated()) == (4, {"g0": "n1", "g1": "n1"})


def test_a_gang_that_cannot_begin_leaves_what_would_make_way_to_others():
    gang = [needs(f"g{n}", 300, group="g", least=3, job="g", priority=5) for n in range(3)]
    scene = full(*gang, needs("a", 400))
    scene.step()
    assert scene.evicted == ["young"]


def test_nobody_goes_for_a_gang_where_the_rates_do_not_allow_all_at_once():
    scene = full(*(needs(f"g{n}", 300, group="g", least=2, job="g") for n in range(2)), rates=Rates(1, 600))
    scene.step()
    assert scene.evicted == []


def test_of_higher_priority_goes_first_where_not_all_get_room():
    scene = FullScene(node("n1", slots=2))
    scene.see(runs("regular", 100), on_idle("x"), needs("a-low", 400), needs("b-high", 500, priority=5))
    scene.step()
    assert scene.events == [("x", "Preempted", "it kept a regular pod such as b-high out: too little pods on node n1")]
    scene.step(1)
    assert (scene.evicted, scene.nominated()) == (["x"], {"b-high": "n1"})


def test_a_dry_run_tells_once_of_each_and_asks_nobody():
    scene = full(needs("a", 400), dry_run=True)
    for _ in range(5):
        scene.step(1)
    assert scene.evicted == []
    assert scene.counted == [("young", "pods", True)]


def test_who_had_to_go_stays_off_the_node_for_a_while():
    scene = full(needs("a", 400))
    name = name_of(scene.pods["young"])
    scene.step()
    scene.step(1.0)
    assert scene.stays_off.barred([name], ["n1"], scene.now).tolist() == [[True]]


def test_nobody_goes_while_the_plan_was_cut_short_or_we_do_not_lead():
    scene = full(needs("a", 400))
    scene.leading = False
    scene.step()
    assert scene.evicted == []
    cut = FullScene(node("n1"), node("n2"), pace=Pace(unbound_pods=2))
    cut.see(runs("regular", 100), on_idle("x"), on_idle("y"), *(needs(f"a{n}", 400, job="a") for n in range(4)))
    cut.step()
    assert cut.evicted == []


def test_nobody_goes_for_a_shape_that_kube_scheduler_refuses():
    scene = full(needs("refused", 400, gates=(), unschedulable=True, job="a"), needs("a", 400, job="a"))
    for _ in range(9):
        scene.step(1)
    assert scene.evicted == []


def test_a_new_leader_asks_nobody_again_and_nobody_else_while_a_victim_is_on_its_way_out():
    scene = full(needs("a", 400))
    scene.slow = True
    scene.step()
    scene.restart()
    for _ in range(20):
        scene.step(1)
    assert scene.evicted == ["young"]
    scene.remove("young")
    scene.step(1)
    assert scene.nominated() == {"a": "n1"}
    assert scene.evicted == ["young"]


def test_a_leader_that_ends_before_it_has_asked_leaves_that_to_the_next():
    scene = full(needs("a", 400))
    scene.late = True
    scene.step()
    scene.restart()  # what was queued is lost
    scene.step()
    scene.write_all()
    assert scene.evicted == ["young"]
    assert "old" in scene.pods
