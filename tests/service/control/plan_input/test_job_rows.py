"""What jobs have left to do."""

from extender.cluster.events import OwnerSeen
from extender.cluster.model import Owner
from tests.service.control.scene import LONG_SECONDS, Scene, node, pod


def due_in(owner_kind):
    """Return how long after its creation a pod of 60 s is due beside half a node of what began to run long ago."""
    scene = Scene(node("n1"))
    began, scene.now = scene.now, scene.now + LONG_SECONDS
    scene.see(pod("old", 500, node="n1", gates=(), started=began, owner_kind=owner_kind))
    scene.see(pod("new", 1000, created=scene.now, duration=60.0))
    created, scene.now = scene.now, scene.now + scene.policy.starved_after
    scene.step()
    (time,) = scene.releaser.planner.carried.due.values()
    return time.due - created


def test_however_long_a_service_has_run_nobody_of_its_queue_is_due_later_for_it():
    # The pod's own 60 s, twice. A task counts with all its seconds, which are more than a day: that is the most.
    assert due_in("ReplicaSet") == 120 + 2 * 60
    assert due_in("Job") == 120 + 86_400


def test_pods_of_a_service_that_wait_are_work():
    scene = Scene(node("n1"))
    service = {"job": "s", "owner": "s", "owner_kind": "ReplicaSet", "duration": 60.0}
    scene.see(pod("s0", 500, node="n1", gates=(), started=scene.now, **service), pod("s1", 500, **service))
    waiting = scene.releaser.input_builder.build(scene.ledger.snapshot(scene.now), scene.now).waiting
    assert waiting.jobs.work.tolist() == [30.0]


def test_a_gang_that_lacks_pods_makes_nobody_of_its_queue_due_later():
    scene = Scene(node("n1"))
    gang = [pod(f"g{n}", job="g", group="default/g", least=3, duration=3_600.0) for n in range(3)]
    scene.see(*gang[:2], pod("other", 500, duration=60.0))
    snapshot = scene.ledger.snapshot(scene.now)
    assert scene.releaser.input_builder.build(snapshot, scene.now).waiting.jobs.work.tolist() == [0.0, 30.0]
    scene.see(gang[2])
    assert scene.releaser.input_builder.build(snapshot, scene.now).waiting.jobs.work.tolist() == [1080.0, 30.0]


def test_pods_that_gates_of_others_hold_make_nobody_of_their_queue_due_later():
    scene = Scene(node("n1"))
    many = {"owner": "j", "owner_kind": "Job", "job": "j", "duration": 3_600.0}
    gates = ("dovetail.dev/hold", "example.com/quota")
    scene.see(pod("j0", gates=gates, **many), pod("j1", gates=gates[1:], **many), pod("other", 500, duration=60.0))
    scene.backlog.apply(OwnerSeen(Owner("j", 100, 100)), scene.now)
    snapshot = scene.ledger.snapshot(scene.now)
    assert scene.releaser.input_builder.build(snapshot, scene.now).waiting.jobs.work.tolist() == [0.0, 30.0]
    scene.see(pod("j0", **many))
    assert scene.releaser.input_builder.build(snapshot, scene.now).waiting.jobs.work.tolist() == [99 * 360.0, 30.0]


def test_a_job_of_few_long_tasks_does_not_come_last():
    scene = Scene(node("n1"))
    scene.see(*(pod(f"short{n}", 500, job=f"short{n}", duration=40.0) for n in range(10)))
    scene.see(pod("long", 40, job="long", duration=600.0))
    waiting = scene.releaser.input_builder.build(scene.ledger.snapshot(scene.now), scene.now).waiting
    assert waiting.left_seconds == 10 * 0.5 * 40 + 0.04 * 600  # of the node's CPU
    scene.step()
    scene.step(1)
    assert sorted(scene.released()) == ["long", "short0"]
