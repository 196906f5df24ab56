"""What queues hold is one figure, wherever it is shown or used."""

import dataclasses
import random

import pytest

from extender.cluster.queues import Queue
from extender.control.backlog.backlog import PodPhase
from extender.control.queues.fair_shares import shares_of
from extender.control.queues.standings import standings_of
from extender.control.queues.usage import held_by
from extender.control.reclaim.backlog_copy import BacklogCopier
from extender.explain.queues import queue_states
from extender.policy.shares import dominant_shares
from tests.service.control.scene import Scene, node, pod

QUEUES = (Queue("a", 2, minimum=0.2), Queue("b"), Queue("c", parent="b"), Queue("d", parent="b"))


def elsewhere(it):
    """Return a pod of another scheduler."""
    return dataclasses.replace(it, scheduler="default-scheduler")


def by_queue(scene):
    """Return what each place that shows or uses a queue's share says of it."""
    seen = scene.view()
    layout = seen.snapshot.layout
    sight = BacklogCopier(scene.backlog).copy(layout, ())
    standing = standings_of(sight, seen.input_builder.tree, layout)
    for it in sight.going():  # for reclaim these have gone already
        standing.gain(it.identity.queue, layout.vector(it.demand))
    reclaim = dominant_shares(standing.stays + standing.promised, layout.total)
    planned = {}
    jobs = seen.plan_input.waiting.jobs
    for row, allocated in zip(jobs.queue.tolist(), jobs.allocated, strict=True):
        name = jobs.queue_names[row]
        planned[name] = planned.get(name, 0.0) + allocated
    return {
        "queues": {it.name: it.share for it in queue_states(seen)},
        "explain": {name: share for name, (share, _) in shares_of(seen.plan_input, seen.snapshot).items()},
        "reclaim": dict(zip(standing.queues, reclaim.tolist(), strict=False)),
        "plan": {name: float(dominant_shares(held[None], layout.total)[0]) for name, held in planned.items()},
    }


def fair_by_queue(scene):
    seen = scene.view()
    layout = seen.snapshot.layout
    standing = standings_of(BacklogCopier(scene.backlog).copy(layout, ()), seen.input_builder.tree, layout)
    return {
        "queues": {it.name: it.fair for it in queue_states(seen)},
        "explain": {name: fair for name, (_, fair) in shares_of(seen.plan_input, seen.snapshot).items()},
        "reclaim": dict(zip(standing.queues, standing.fair.tolist(), strict=False)),
    }


def test_a_queue_holds_what_runs_and_what_is_on_its_way_but_not_what_kube_scheduler_refused():
    scene = Scene(node("n1", cpu=1000))
    scene.see(
        pod("runs", 100, gates=(), node="n1"),
        pod("on-its-way", 200, gates=()),
        pod("nominated", 50, nominated="n1", promised="n1"),
        pod("preempts", 25, gates=(), unschedulable=True, nominated="n1"),
        pod("refused", 300, gates=(), unschedulable=True),
        pod("held", 400),
        pod("gated", 500, gates=("dovetail.dev/hold", "other")),
    )
    expected = pytest.approx((100 + 200 + 50 + 25) / 1000)
    assert [found["q"] for found in by_queue(scene).values()] == [expected] * 4


def test_a_pod_being_released_counts_before_anything_of_it_shows():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("a", 100), pod("b", 100, job="j"))
    scene.deaf = True
    assert scene.step() == 2
    assert [found["q"] for found in by_queue(scene).values()] == [pytest.approx(0.2)] * 4


def test_a_pod_of_another_scheduler_counts_from_when_it_carried_our_gate():
    scene = Scene(node("n1", cpu=1000))
    held = elsewhere(pod("a", 200))
    scene.see(held, elsewhere(pod("stranger", 300, gates=(), node="n1")))
    scene.change("a", gates=(), node="n1")
    assert by_queue(scene)["queues"] == {"q": pytest.approx(0.2)}


def test_a_pod_of_another_scheduler_that_we_nominated_counts_after_a_restart():
    scene = Scene(node("n1", cpu=1000))
    scene.see(elsewhere(pod("a", 200)))
    scene.step()
    scene.bind("a")
    scene.restart()
    assert by_queue(scene)["queues"] == {"q": pytest.approx(0.2)}


def test_a_pod_of_another_scheduler_waits_for_no_turn_of_filter():
    scene = Scene(node("n1"), by_filter=True)
    scene.see(elsewhere(pod("a")))
    scene.change("a", gates=())
    assert scene.backlog.at(PodPhase.UNGATED) == []
    assert len(scene.backlog.at(PodPhase.PENDING)) == 1


def test_a_queue_with_nothing_but_refused_pods_takes_no_part():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("refused", 300, gates=(), unschedulable=True), pod("held", 400, queue="r"))
    assert fair_by_queue(scene) == {
        "queues": {"q": None, "r": 1.0},
        "explain": {"r": 1.0},
        "reclaim": {"r": 1.0},
    }


def drawn(draw, number):
    """Return a pod of random demand, somewhere on its way."""
    where = draw.choice(
        [
            {},
            {"gates": ("dovetail.dev/hold", "other")},
            {"nominated": "n1", "promised": "n1"},
            {"gates": ()},
            {"gates": (), "unschedulable": True},
            {"gates": (), "unschedulable": True, "nominated": "n2"},
            {"gates": (), "node": "n1", "started": 50.0},
            {"gates": (), "node": "n2", "leaving": True},
        ]
    )
    demand = {"cpu": float(draw.randrange(0, 90)), "memory": float(draw.randrange(1, 90))}
    return pod(f"p{number}", demand, queue=draw.choice("acdxy"), job=f"j{draw.randrange(6)}", **where)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_pods_do_all_say_the_same_of_each_queue(seed):
    draw = random.Random(seed)
    scene = Scene(node("n1"), node("n2"), queues=QUEUES)
    scene.see(*(drawn(draw, number) for number in range(40)))
    for name in list(scene.pods):
        if draw.random() < 0.2:
            scene.end(name)
    held = {name: float(of.max()) / 2000 for name, of in held_by(*_of(scene)).items()}
    for who, found in by_queue(scene).items():
        assert {name: found.get(name, 0.0) for name in held} == pytest.approx(held), who
    fair = fair_by_queue(scene)
    for name, part in fair["explain"].items():
        assert (fair["queues"][name], fair["reclaim"][name]) == (pytest.approx(part), pytest.approx(part))


def _of(scene):
    return scene.backlog, scene.backlog.classes(), scene.ledger.snapshot(scene.now).layout
