"""What queues have is one figure, wherever it is shown or used."""

import dataclasses
import random

import numpy as np
import pytest

from extender.cluster.events import NodeSeen
from extender.cluster.model import Node
from extender.cluster.queues import Queue
from extender.control.backlog.backlog import PodPhase
from extender.control.queues.standings import standings_of
from extender.control.reclaim.backlog_copy import BacklogCopier
from extender.control.release.slots import Pace
from extender.explain.pod import explain
from extender.explain.queues import queue_states
from extender.planner import Policy
from extender.policy.shares import dominant_shares
from tests.service.control.scene import Scene, node, pod

QUEUES = (Queue("a", 2, minimum=0.2), Queue("b"), Queue("c", parent="b"), Queue("d", parent="b"))


def elsewhere(held):
    """Return the same pod for another scheduler."""
    return dataclasses.replace(held, scheduler="default-scheduler")


def standings(scene, order):
    """Return where queues stand for reclaim."""
    layout, tree = order.snapshot.layout, order.input_builder.tree
    sight = BacklogCopier(scene.backlog).copy(layout, ())
    return standings_of(sight.usage(tree, order.snapshot, order.input_builder.claims), (), tree, layout)


def explained(scene, order):
    """Return the share and the fair share that `explain pod` says of the queue of each pod."""
    pods = (scene.backlog.pod(pod.uid) for pod in scene.pods.values())
    return {
        pod.identity.queue: (found.share, found.fair_share)
        for pod in pods
        if pod is not None
        for found in (explain(order, pod, Policy(), ()),)
    }


def by_queue(scene):
    """Return what each place that shows or uses a queue's share says of it."""
    order = scene.view()
    total, standing, builder = order.snapshot.layout.total, standings(scene, order), scene.input_builder()
    reclaim = dominant_shares(standing.stays + standing.coming, total)
    jobs = order.plan_input.waiting.jobs
    allocated = np.zeros((len(jobs.queue_names), len(total)))
    np.add.at(allocated, jobs.queue, jobs.allocated)
    return {
        "queues": {state.name: state.share for state in queue_states(order)},
        "explain": {name: share for name, (share, _) in explained(scene, order).items() if share is not None},
        "reclaim": dict(zip(standing.queues, reclaim.tolist(), strict=False)),
        "plan": dict(zip(jobs.queue_names, dominant_shares(allocated, total).tolist(), strict=True)),
        "now": {name: share for name, (share, _) in builder.usage(order.snapshot).by_queue().items()},
    }


def fair_by_queue(scene):
    """Return what each place that shows or uses a queue's fair share says of it."""
    order = scene.view()
    standing = standings(scene, order)
    jobs = order.plan_input.waiting.jobs
    return {
        "queues": {state.name: state.fair for state in queue_states(order)},
        "explain": {name: fair for name, (_, fair) in explained(scene, order).items()},
        "reclaim": dict(zip(standing.queues, standing.fair.tolist(), strict=False)),
        "plan": dict(zip(jobs.queue_names, jobs.queue_weight.tolist(), strict=True)),
    }


def test_a_queue_with_nothing_but_pods_that_no_node_could_hold_has_no_fair_share_and_is_told_why_it_waits():
    # n1's agent leaves 900; the gang needs 1,200; another gang lacks two pods; and no node is labelled.
    scene = Scene(node("n1", cpu=1000))
    scene.see(
        pod("agent", 100, gates=(), node="n1", owner_kind="DaemonSet"),
        pod("large", 901, queue="large"),
        *(pod(f"gang{n}", 400, job="gang", group="default/gang", least=3, queue="gang") for n in range(3)),
        pod("short", 100, group="default/short", least=3, queue="short"),
        pod("fits", 900, queue="fits"),
        pod("also", 901, queue="fits"),
    )
    shares = {"fits": 1.0, "gang": 0.0, "large": 0.0, "short": 0.0}
    assert [*fair_by_queue(scene).values()] == [shares] * 4
    why = {name: reason.kind for name, reason in scene.why().items()}
    assert (why["large"], why["gang0"], why["short"]) == ("too-large", "too-large", "gang")


def test_a_queue_that_holds_room_has_a_fair_share_whatever_waits_in_it():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("runs", 100, gates=(), node="n1"), pod("large", 1001), pod("fits", 100, queue="r"))
    assert [*fair_by_queue(scene).values()] == [{"q": 0.5, "r": 0.5}] * 4


def minimum_by_queue(scene):
    """Return what each place that shows or uses a queue's minimum share says of it."""
    order = scene.view()
    groups, standing = order.plan_input.waiting.jobs.groups, standings(scene, order)
    return {
        "queues": {state.name: state.minimum for state in queue_states(order)},
        "reclaim": dict(zip(standing.queues, standing.minimum.tolist(), strict=False)),
        "plan": dict(zip(order.plan_input.waiting.jobs.queue_names, groups.minimum[groups.leaf].tolist(), strict=True)),
    }


def test_a_queue_holds_what_runs_and_what_is_nominated_but_not_what_is_released_to_no_node():
    scene = Scene(node("n1", cpu=1000))
    scene.see(
        pod("runs", 100, gates=(), node="n1"),
        pod("on-its-way", 200, gates=(), nominated="n1", promised="n1"),
        pod("error", 10, gates=(), promised="n1", errored=True),
        pod("silent", 80, gates=()),
        pod("nominated", 50, nominated="n1", promised="n1"),
        pod("preempts", 25, gates=(), unschedulable=True, nominated="n1"),
        pod("refused", 300, gates=(), unschedulable=True),
        pod("held", 400),
        pod("gated", 500, gates=("dovetail.dev/hold", "other")),
    )
    expected = pytest.approx((100 + 200 + 10 + 50 + 25) / 1000)
    assert [found["q"] for found in by_queue(scene).values()] == [expected] * 5


def test_a_released_pod_that_kube_scheduler_never_tries_counts_until_it_loses_its_room():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("silent", 100))
    scene.step()
    scene.see(pod("tried", 100, queue="r"))
    scene.step(16)
    scene.bind("tried")
    scene.step(1)
    assert [found["q"] for found in by_queue(scene).values()] == [pytest.approx(0.1)] * 5
    scene.step(16)
    assert scene.told_to("clear") == [("clear", "silent")]
    assert [found.get("q", 0.0) for found in by_queue(scene).values()] == [0.0] * 5


def test_a_pod_being_released_counts_before_anything_of_it_shows():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("a", 100), pod("b", 100, job="j"))
    scene.deaf = True
    assert scene.step() == 2
    assert [found["q"] for found in by_queue(scene).values()] == [pytest.approx(0.2)] * 5


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


def test_a_queue_whose_pods_write_where_no_rate_is_declared_keeps_its_turn():
    """Three nodes with 100 to write in the mean: q has 120 of 300, r 1,500 of 3,000 millicores. n3 has room for one."""
    declaring = Node("n1", {"cpu": 1000.0, "memory": 1000.0, "disk-write": 100.0})
    scene = Scene(declaring, node("n2"), node("n3"))
    writing = {"cpu": 100.0, "disk-write": 60.0}
    scene.see(*(pod(f"q-{on}", writing, gates=(), node=on) for on in ("n2", "n3")))
    scene.see(*(pod(f"r-{on}", 750, queue="r", gates=(), node=on) for on in ("n1", "n2")))
    assert [found["q"] for found in by_queue(scene).values()] == [pytest.approx(0.4)] * 5
    scene.see(pod("next-q", 800), pod("next-r", 800, queue="r"))
    scene.step()
    assert scene.released() == ["next-q"]


def test_a_queue_with_nothing_but_refused_pods_that_rest_takes_no_part():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("refused", 300, gates=(), unschedulable=True), pod("held", 400, queue="r"))
    scene.backlog.back_off("uid-refused", scene.now)
    assert fair_by_queue(scene) == {
        "queues": {"q": None, "r": 1.0},
        "explain": {"q": None, "r": 1.0},
        "reclaim": {"r": 1.0},
        "plan": {"r": 1.0},
    }


def test_what_would_be_on_its_way_besides_counts_for_its_queue_alone():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("a", 100, gates=(), node="n1"), pod("b", 200, queue="r", gates=(), node="n1"))
    snapshot = scene.ledger.snapshot(scene.now)
    layout, before = snapshot.layout, scene.input_builder().usage(snapshot)
    after = before.with_more([("q", layout.vector({"cpu": 50.0})), ("nobody's", layout.vector({"cpu": 50.0}))])
    assert (after.share({"q"}), after.share({"r"}), after.share({"q", "r"})) == pytest.approx((0.15, 0.2, 0.35))
    assert before.share({"q"}) == pytest.approx(0.1), "what was asked for is another usage"
    assert (after.fair_share({"q"}), after.fair_share({"nobody's"})) == (0.5, None)


@pytest.mark.parametrize(("cpu", "released"), [(300, ["small", "large"]), (400, ["small"])])
def test_a_pod_that_is_being_released_counts_before_another_is_released_for_a_new_node(cpu, released):
    """Half of 2,000 is for q. 300 and the 700 of large are within that, 400 and 700 are not."""
    scene = Scene(node("n1"), node("n2"), pace=Pace(scale_up_after=10.0))
    scene.see(pod("r1", 1000, queue="r", gates=(), node="n1"), pod("r2", 500, queue="r", gates=(), node="n2"))
    scene.see(pod("small", cpu), pod("large", 700))
    scene.step(100)
    assert scene.released() == released


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


def committed_by_hand(scene):
    """Return the dominant share of each queue, with those below it, of two nodes of 1,000: one pod after the other."""
    committed, parents = {}, {queue.name: queue.parent for queue in QUEUES}
    known = (scene.backlog.pod(pod.uid) for pod in scene.pods.values())
    for it in filter(None, known):
        if it.node or it.nominated:
            for queue in filter(None, (it.identity.queue, parents.get(it.identity.queue))):
                cpu, memory = committed.get(queue, (0.0, 0.0))
                committed[queue] = (cpu + it.demand["cpu"], memory + it.demand["memory"])
    return {queue: max(amounts) / 2000 for queue, amounts in committed.items() if max(amounts)}


@pytest.mark.parametrize("seed", range(20))
def test_whatever_pods_do_all_say_the_same_of_each_queue(seed):
    draw = random.Random(seed)
    scene = Scene(node("n1"), node("n2"), queues=QUEUES)
    scene.see(*(drawn(draw, number) for number in range(40)))
    for name in list(scene.pods):
        if draw.random() < 0.2:
            scene.end(name)
    shares, fair, minimums = by_queue(scene), fair_by_queue(scene), minimum_by_queue(scene)
    expected = committed_by_hand(scene)
    for who, found in shares.items():
        assert found == pytest.approx({name: expected.get(name, 0.0) for name in found}), who
        assert expected.keys() - {"b"} <= found.keys(), who  # only `queues` shows parents
    for who, found in fair.items():
        assert {name: found[name] for name in fair["plan"]} == pytest.approx(fair["plan"]), who
    for who, found in minimums.items():
        assert {name: found[name] for name in minimums["plan"]} == pytest.approx(minimums["plan"]), who


# -- the two books

GPU = "a.b/gpu"


def opportunistic(name, demand, **more):
    return pod(name, demand, opportunistic=True, **{"gates": (), "node": "n1", **more})


def usage_now(scene):
    return scene.input_builder().usage(scene.ledger.snapshot(scene.now))


def test_opportunistic_pods_have_a_share_of_their_own():
    """Of 1,000: 100 as regular, 200 and 300 (on its way) as opportunistic."""
    scene = Scene(node("n1", cpu=1000))
    scene.see(
        pod("regular", 100, gates=(), node="n1"),
        opportunistic("runs", 200),
        opportunistic("coming", 300, node=None, nominated="n1", promised="n1"),
        opportunistic("refused", 50, node=None, unschedulable=True),
        opportunistic("other", 400, queue="r"),
    )
    usage = usage_now(scene)
    assert [found["q"] for found in by_queue(scene).values()] == [pytest.approx(0.1)] * 5
    assert usage.opportunistic_share({"q"}) == pytest.approx(0.5)
    assert (usage.share({"r"}), usage.opportunistic_share({"r"})) == pytest.approx((0.0, 0.4))
    assert (usage.share({"q", "r"}), usage.opportunistic_share({"q", "r"})) == pytest.approx((0.1, 0.9))
    jobs = scene.view().plan_input.waiting.jobs
    layout = scene.ledger.snapshot(scene.now).layout
    amounts = [(committed[0], more[0]) for committed, more in zip(jobs.allocated, jobs.opportunistic, strict=True)]
    assert dict(zip(jobs.names, amounts, strict=True)) == {
        "q|regular": (100, 0),
        "q|runs": (0, 200),
        "q|coming": (0, 300),
        "q|refused": (0, 0),
        "r|other": (0, 400),
    }
    assert jobs.opportunistic.shape == (5, len(layout.axis))


def test_what_no_resize_frees_is_in_the_regular_share():
    """Two of four GPUs, and 900 of 1,000 CPU, which the pod has given up."""
    scene = Scene(node("n1", cpu=1000, memory=1000), node("n2"))
    scene.apply(NodeSeen(Node("n1", {"cpu": 1000.0, "memory": 1000.0, GPU: 4.0})))
    scene.apply(NodeSeen(Node("n2", {})))
    scene.see(opportunistic("p", {"cpu": 900.0, GPU: 2.0}))
    usage = usage_now(scene)
    assert (usage.share({"q"}), usage.opportunistic_share({"q"})) == pytest.approx((0.5, 0.9))


def test_a_queue_whose_pods_are_all_opportunistic_has_its_whole_fair_share_to_come():
    scene = Scene(node("n1", cpu=1000))
    scene.see(opportunistic("a", 600, queue="a"), pod("b", 600, queue="b", gates=(), node="n1"))
    usage = usage_now(scene)
    assert dict(usage.by_queue()) == {"a": (0.0, 0.5), "b": (pytest.approx(0.6), 0.5)}


def test_without_opportunistic_pods_jobs_have_no_second_book():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("a", 100, gates=(), node="n1"))
    assert scene.view().plan_input.waiting.jobs.opportunistic is None
    assert not usage_now(scene).opportunistic.any()


def test_demotion_and_promotion_move_a_pod_from_book_to_book():
    scene = Scene(node("n1", cpu=1000))
    scene.see(pod("a", 100, gates=(), node="n1"))
    shares = []
    for changes in ({"opportunistic": True}, {"opportunistic": False}, {"opportunistic": True}, {"finished": True}):
        scene.change("a", **changes)
        usage = usage_now(scene)
        shares.append((usage.share({"q"}), usage.opportunistic_share({"q"})))
    assert shares == [(0, pytest.approx(0.1)), (pytest.approx(0.1), 0), (0, pytest.approx(0.1)), (0, 0)]


@pytest.mark.parametrize("seed", range(10))
def test_whoever_is_opportunistic_all_say_the_same_and_both_books_together_are_all_that_is_committed(seed):
    draw = random.Random(seed)
    scene = Scene(node("n1"), node("n2"), queues=QUEUES)
    scene.see(*(drawn(draw, number) for number in range(40)))
    everything = usage_now(scene)
    for name in list(scene.pods):
        if draw.random() < 0.4:
            scene.change(name, opportunistic=True)
        if draw.random() < 0.2:
            scene.change(name, opportunistic=False)
    usage = usage_now(scene)
    assert usage.opportunistic[:, :2].any()
    assert usage.queues == everything.queues
    assert (usage.regular + usage.opportunistic)[:, :2].tolist() == everything.regular[:, :2].tolist()
    shares = by_queue(scene)
    for who, found in shares.items():
        assert {name: found[name] for name in shares["plan"]} == pytest.approx(shares["plan"]), who
