"""What the watches say, by class and job."""

import dataclasses
import gc
import threading

import pytest

from extender.cluster.events import (
    GroupGone,
    GroupSeen,
    GroupsListed,
    NamespaceSeen,
    NamespacesListed,
    NodeSeen,
    NodesListed,
    OwnerGone,
    OwnerSeen,
    OwnersListed,
    PodGone,
    PodSeen,
    PodsListed,
)
from extender.cluster.model import Group, Node, Owner
from extender.control.backlog.backlog import Backlog, PodPhase, phase_of
from extender.control.backlog.task_classes import MOST_ENDED
from tests.service.control.scene import Scene, node, pod
from tests.service.costs import calls_of


@pytest.fixture
def backlog():
    return Backlog(["dovetail"])


def see(backlog, *pods, now=100.0):
    for it in pods:
        backlog.apply(PodSeen(it), now)


def later(it, **changes):
    return dataclasses.replace(it, resource_version=it.resource_version + 1, **changes)


@pytest.mark.parametrize(
    ("more", "stage"),
    [
        ({}, PodPhase.READY),
        ({"gates": ("dovetail.dev/hold", "other")}, PodPhase.GATED),
        ({"promised": "n1", "nominated": "n1"}, PodPhase.NOMINATED),
        ({"gates": ()}, PodPhase.PENDING),
        ({"gates": (), "node": "n1"}, PodPhase.RUNNING),
    ],
)
def test_a_pod_is_so_far_on_its_way_as_it_says(more, stage):
    assert phase_of(pod("a", **more)) == stage


def test_pods_that_ask_for_the_same_are_one_class_and_others_are_not(backlog):
    see(backlog, pod("a", job="j"), pod("b", job="j"), pod("c", 200, job="j"), pod("d", job="k"))
    assert sorted(it.unfinished for it in backlog.classes()) == [1, 1, 2]
    assert len(backlog.jobs) == 2


def test_a_job_whose_pods_are_gone_leaves_nothing_that_only_a_look_for_cycles_frees(backlog):
    pods = [pod("a", job="j"), pod("b", 200, job="j")]
    gc.collect()
    gc.disable()
    try:
        see(backlog, *pods)
        for it in pods:
            backlog.apply(PodGone(it.uid), 100.0)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_pod_moves_on_with_its_news_and_is_in_one_place(backlog):
    a = pod("a")
    see(backlog, a)
    see(backlog, later(a, gates=(), node="n1"))
    assert backlog.at(PodPhase.READY) == []
    assert [it.name for it in backlog.at(PodPhase.RUNNING)] == ["a"]
    assert len(backlog.jobs) == 1


def test_older_news_and_duplicates_change_nothing(backlog):
    a = pod("a")
    bound = later(a, gates=(), node="n1")
    see(backlog, bound, a, bound)
    assert len(backlog.at(PodPhase.RUNNING)) == 1
    assert backlog.at(PodPhase.READY) == []


def test_a_job_without_pods_is_forgotten(backlog):
    see(backlog, pod("a"))
    backlog.apply(PodGone("uid-a"), 100.0)
    assert backlog.jobs == {}


def test_daemons_and_pods_of_other_schedulers_take_no_turn(backlog):
    see(
        backlog,
        dataclasses.replace(pod("other", gates=()), scheduler="default-scheduler"),
        pod("daemon", gates=(), owner="d", owner_kind="DaemonSet"),
    )
    assert backlog.classes() == []


def test_a_held_pod_takes_its_turn_whatever_its_scheduler(backlog):
    see(backlog, dataclasses.replace(pod("a"), scheduler="default-scheduler"))
    assert len(backlog.at(PodPhase.READY)) == 1


def test_a_list_replaces_all_and_orders_by_creation(backlog):
    see(backlog, pod("gone"))
    backlog.apply(PodsListed([pod("late", job="j", created=2.0), pod("early", job="j", created=1.0)]), 100.0)
    assert [it.name for it in backlog.at(PodPhase.READY)] == ["early", "late"]


def test_a_taken_pod_is_not_ready_again_until_its_time_is_over_or_there_is_news(backlog):
    see(backlog, pod("a"))
    (only,) = backlog.classes()
    assert backlog.take(only, 100.0, until=115.0).name == "a"
    assert backlog.take(only, 100.0, until=115.0) is None
    assert backlog.ready(only) == 0
    backlog.writes.expire(114.9)
    assert backlog.ready(only) == 0
    backlog.writes.expire(115.0)
    assert backlog.ready(only) == 1


def test_a_class_counts_the_refused_of_its_pods_without_a_gate_wherever_they_go():
    backlog = Backlog(["dovetail"], by_filter=True)
    a, b, c = (pod(name, job="j", gates=(), unschedulable=name != "c") for name in "abc")
    see(backlog, a, b, c)
    (only,) = backlog.classes()
    assert (only.refused, only.untried) == (2, 1)
    see(backlog, later(a, unschedulable=False), later(a, unschedulable=False))
    assert (only.refused, only.untried) == (1, 2)
    see(backlog, later(b, unschedulable=False, node="n1"), later(c, unschedulable=True))
    assert (only.refused, only.untried) == (1, 1)
    see(backlog, later(later(c), demand={"cpu": 7.0}, unschedulable=True))
    assert [(it.refused, it.untried) for it in backlog.classes()] == [(0, 1), (1, 0)]
    backlog.apply(PodGone(c.uid), 101.0)
    assert (only.refused, only.untried) == (0, 1)
    assert [it.refused for it in backlog.classes()] == [0]


def test_our_own_nomination_coming_back_is_no_news_but_the_gate_going_is(backlog):
    a = pod("a")
    see(backlog, a)
    backlog.take(*backlog.classes(), 100.0, until=115.0)
    nominated = later(a, nominated="n1", promised="n1")
    see(backlog, nominated)
    assert "uid-a" in backlog.writes.in_progress
    see(backlog, later(nominated, gates=()))
    assert backlog.writes.in_progress == {}


def test_how_long_tasks_run_is_learned_from_their_like_and_else_from_all(backlog):
    running = pod("a", job="j", gates=(), node="n1", started=100.0)
    see(backlog, running, pod("b", job="j"))
    assert backlog.classes()[0].seconds(backlog.usual_seconds(), 100.0) == 60.0
    see(backlog, later(running, finished=True), now=130.0)
    see(backlog, pod("other", 200, job="k"))
    like, other = sorted(backlog.classes(), key=lambda it: it.job.name)
    assert like.seconds(1.0, 130.0) == 30.0
    assert other.seconds(backlog.usual_seconds(), 100.0) == 30.0


def test_a_declared_duration_counts_before_what_was_learned(backlog):
    see(backlog, pod("a", duration=5.0))
    assert backlog.classes()[0].seconds(60.0, 100.0) == 5.0


def test_pod_groups_of_one_kind_are_listed_without_losing_those_of_another(backlog):
    backlog.apply(GroupSeen(Group("ns/a", 2, "x")), 0.0)
    backlog.apply(GroupSeen(Group("ns/b", 3, "y")), 0.0)
    backlog.apply(GroupsListed("x", [Group("ns/c", 4, "x")]), 0.0)
    assert sorted(backlog.groups.declared) == ["ns/b", "ns/c"]
    backlog.apply(GroupGone(Group("ns/b", 3, "y")), 0.0)
    assert sorted(backlog.groups.declared) == ["ns/c"]


def test_a_job_that_never_runs_dry_keeps_only_its_latest_classes(backlog):
    see(backlog, pod("keeper", job="ci"))
    for number in range(3 * MOST_ENDED):
        it = pod(f"p{number}", job="ci", gates=(), node="n1", duration=90.0 + number)
        see(backlog, it, later(it, finished=True))
    (job,) = backlog.jobs.values()
    assert len(job.classes) == MOST_ENDED + 1
    assert max(of.template.duration for of in job.classes.values() if of.finished) == 90.0 + 3 * MOST_ENDED - 1


def test_a_class_that_came_again_stays_however_many_others_end_after_it(backlog):
    see(backlog, pod("keeper", 1, job="ci"))
    again = pod("first", job="ci", gates=(), node="n1")
    see(backlog, again, later(again, finished=True), pod("again", job="ci"))
    for number in range(2 * MOST_ENDED):
        it = pod(f"p{number}", job="ci", gates=(), node="n1", duration=90.0 + number)
        see(backlog, it, later(it, finished=True))
    assert backlog.find("uid-again")[0] in backlog.classes()


def test_a_class_that_comes_again_knows_how_long_its_like_ran(backlog):
    see(backlog, pod("keeper", 1, job="ci"))
    first = pod("a", job="ci", gates=(), node="n1", started=100.0)
    see(backlog, first)
    see(backlog, later(first, finished=True), now=130.0)
    see(backlog, pod("b", job="ci"))
    assert backlog.find("uid-b")[0].seconds(60.0, 130.0) == 30.0


def test_a_job_arrived_with_its_first_owner_though_that_is_gone(backlog):
    see(backlog, pod("a", job="j", owner="o", created=50.0), pod("b", job="j", created=60.0))
    backlog.apply(OwnerSeen(Owner("o", left=1, total=2, created=40.0)), 100.0)
    backlog.apply(PodGone("uid-a"), 100.0)
    backlog.apply(OwnerGone("o"), 100.0)
    (job,) = backlog.jobs.values()
    assert job.arrived == 40.0


def test_a_job_arrived_with_its_first_pod_whichever_is_seen_first(backlog):
    see(backlog, pod("late", job="j", created=60.0), pod("early", job="j", created=50.0))
    assert backlog.jobs["q", "j"].arrived == 50.0


def test_a_job_arrived_with_an_owner_that_was_known_before_its_pods(backlog):
    backlog.apply(OwnersListed([Owner("o", left=2, total=2, created=40.0)]), 100.0)
    see(backlog, pod("a", job="j", owner="o", created=50.0))
    assert backlog.jobs["q", "j"].arrived == 40.0


def test_a_pod_that_is_adopted_counts_with_its_new_owner(backlog):
    backlog.apply(OwnerSeen(Owner("o", left=1, total=1, created=40.0)), 100.0)
    orphan = pod("a", job="j", created=50.0)
    see(backlog, orphan, later(orphan, owner="o"))
    assert backlog.jobs["q", "j"].arrived == 40.0
    backlog.apply(PodGone("uid-a"), 100.0)
    assert backlog.jobs == {}


def test_an_owner_without_pods_is_forgotten(backlog):
    see(backlog, pod("keeper", job="ci"))
    for number in range(5):
        it = pod(f"p{number}", job="ci", gates=(), node="n1", owner=f"o{number}")
        see(backlog, it, later(it, finished=True))
    assert backlog._job_table._jobs_of_owner == {}  # what no caller asks for must not be kept either


def test_a_deleted_pod_costs_the_same_however_many_groups_there_are():
    def cost(groups):
        backlog = Backlog(["dovetail"])
        see(backlog, *(pod(f"p{n}", group=f"g{n}", job=f"g{n}", gates=(), node="n", finished=True) for n in groups))
        return calls_of(lambda: backlog.apply(PodGone("uid-p0"), 100.0))

    assert cost(range(200)) == cost(range(2))


def test_a_pod_costs_the_same_however_many_jobs_its_owner_has():
    def cost(jobs):
        backlog = Backlog(["dovetail"])
        backlog.apply(OwnerSeen(Owner("o", left=1, total=1, created=40.0)), 100.0)
        see(backlog, *(pod(f"p{n}", job=f"j{n}", owner="o") for n in range(jobs)))
        return calls_of(lambda: see(backlog, pod("last", job="last", owner="o")))

    assert cost(200) == cost(2)


def test_of_what_pods_ask_for_only_names_that_a_node_ever_offered_are_kept(backlog):
    see(backlog, pod("a", {"cpu": 100.0, "example.com/a": 1.0}))
    backlog.apply(NodesListed([node("n1")]), 100.0)
    see(backlog, pod("b", {"cpu": 300.0, "example.com/b": 1.0}))
    backlog.apply(NodeSeen(Node("n2", {"example.com/b": 8.0})), 100.0)
    see(backlog, pod("c", {"cpu": 500.0, "example.com/b": 2.0, "example.com/c": 1.0}))
    assert backlog.arrived() == {"cpu": 800.0, "example.com/b": 2.0}


def test_what_a_pod_asks_for_counts_once_however_often_it_is_seen_and_not_where_it_runs_already(backlog):
    backlog.apply(NodesListed([node("n1")]), 100.0)
    see(backlog, pod("a", {"cpu": 100.0}), pod("a", {"cpu": 100.0}, version=2), pod("runs", gates=(), node="n1"))
    assert backlog.arrived() == {"cpu": 100.0}


class Name(str):
    """A name of which each look-up is a call."""

    __slots__ = ()

    def __hash__(self):
        return super().__hash__()


def test_news_of_a_namespace_whose_labels_stay_costs_the_same_however_many_pods_and_namespaces_there_are():
    def cost(size):
        backlog, names = Backlog(["dovetail"]), [Name(f"n{n}") for n in range(size)]
        backlog.apply(NamespacesListed({name: {} for name in names}), 100.0)
        see(backlog, *(dataclasses.replace(pod(f"p-{name}"), namespace=name) for name in names))
        return calls_of(lambda: backlog.apply(NamespaceSeen("n0", {}), 100.0))

    assert cost(200) == cost(2)


class TestDates:
    """Whatever clock is set while the process runs: how long a pod has waited, or run, is by our own clock."""

    def one(self, **more):
        scene = Scene(node("n1"))
        scene.now = 50_000.0
        scene.see(pod("a", **more))
        return scene, scene.backlog.classes()[0]

    def test_a_pod_that_says_that_it_is_from_the_future_waits_from_now_on(self):
        scene, task_class = self.one(created=57_200.0)
        scene.now += 10
        scene.change("a", unschedulable=True)
        assert scene.backlog.waiting_since(task_class) == 50_000.0

    def test_a_new_pod_that_says_that_it_is_hours_old_waits_from_now_on(self):
        assert self.one(created=42_800.0)[0].backlog.pod("uid-a").created == 50_000.0

    def test_a_pod_that_is_listed_may_be_hours_old(self):
        scene, _ = self.one(created=50_000.0)
        scene.apply(PodsListed([pod("b", created=42_800.0)]))
        assert scene.backlog.pod("uid-b").created == 42_800.0

    def test_what_started_in_the_future_has_run_since_it_was_seen_to_run(self):
        scene, task_class = self.one(created=50_000.0)
        scene.change("a", gates=(), node="n1", started=57_200.0)
        scene.now += 30
        scene.change("a", finished=True, started=57_200.0)
        assert task_class.seconds(60.0, scene.now) == 30.0

    @pytest.mark.parametrize("ours", [("dovetail.dev/hold",), ()])
    def test_a_pod_that_gates_of_others_held_waits_from_when_they_are_gone(self, ours):
        scene, task_class = self.one(gates=(*ours, "kueue.x-k8s.io/admission"))
        scene.now += 7_200
        scene.change("a", gates=ours, unschedulable=not ours)
        assert scene.backlog.waiting_since(task_class) == 57_200.0
        scene.now += 10
        scene.change("a", priority=0)
        assert scene.backlog.waiting_since(task_class) == 57_200.0


class Interrupted(dict):
    """Places of pods; after each look another thread does something, if it can before the looker goes on."""

    def __init__(self, places, interrupt):
        super().__init__(places)
        self.interrupt = interrupt

    def get(self, uid, default=None):
        place = super().get(uid, default)
        thread = threading.Thread(target=self.interrupt)
        thread.start()
        thread.join(0.1)
        return place


def test_a_refused_pod_may_be_deleted_while_somebody_asks_whether_it_is_idle():
    backlog = Backlog(["dovetail"], by_filter=True)
    see(backlog, pod("a", gates=(), unschedulable=True))
    places = backlog._where
    backlog._where = Interrupted(places, lambda: backlog.apply(PodGone("uid-a"), 100.0))
    assert backlog.is_idle("uid-a")
