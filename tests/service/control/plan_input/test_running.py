"""Until when what runs is expected to, for reservations: tasks of 60 s, as nobody says otherwise."""

import math

from extender.control.plan_input.running import RunningTasks
from tests.service.control.scene import LONG_SECONDS, Scene, node, pod


def ends(*running, later=0.0):
    """Return when pods on n1 are expected to end; another waits for so long that somebody asks."""
    scene = Scene(node("n1"))
    scene.see(pod("w", 2000))
    scene.now += LONG_SECONDS
    began = scene.now
    scene.see(*[make(began) for make in running])
    scene.now += later
    found = scene.releaser.input_builder.build(scene.ledger.snapshot(scene.now), scene.now).waiting.running
    return sorted((found.ends_at - began).tolist())


def task(began, name="t", **more):
    return pod(name, 100, node="n1", gates=(), job=name, started=began, **more)


def test_a_task_is_expected_to_take_what_its_like_take():
    assert ends(task, later=10.0) == [60.0]


def test_one_that_overran_that_is_expected_to_run_as_long_again():
    # After 100 s it is 40 s beyond the 60 that it declares: 40 s more.
    assert ends(lambda began: task(began, duration=60.0), later=60.0) == [60.0]
    (found,) = ends(lambda began: task(began, duration=60.0), later=100.0)
    assert found >= 100.0


def test_what_runs_until_somebody_deletes_it_never_ends():
    kinds = ("ReplicaSet", "StatefulSet", "Job")
    made = [lambda began, kind=kind: task(began, kind.lower(), owner_kind=kind) for kind in kinds]
    assert ends(*made, later=10.0) == [60.0, math.inf, math.inf]


def test_nothing_is_reserved_on_a_node_of_what_never_ends():
    scene = Scene(node("n1"))
    scene.see(pod("w", 1000))
    scene.now += LONG_SECONDS
    scene.see(task(scene.now, owner_kind="ReplicaSet"))
    scene.step()
    assert not scene.releaser.planner.carried.reserved


def test_what_has_ended_gives_its_room_once():
    # Daemons hold 100 of 1,000 for ever, so 1,000 are never free, whoever ends; looks are a few seconds apart.
    scene = Scene(node("n1"))
    scene.see(pod("w", 1000))
    scene.now += LONG_SECONDS
    scene.see(pod("daemon", 100, node="n1", gates=(), owner_kind="DaemonSet"))
    scene.see(*[task(scene.now, f"t{n}") for n in range(9)])
    for number in range(9):
        scene.step(0.2)
        assert not scene.releaser.planner.carried.reserved
        scene.end(f"t{number}")


def test_an_opportunistic_pod_frees_only_what_it_counts():
    scene = Scene(node("n1"))
    scene.see(pod("w", 2000))
    scene.now += LONG_SECONDS
    scene.see(task(scene.now, "regular"), task(scene.now, "opportunistic", opportunistic=True))
    snapshot = scene.ledger.snapshot(scene.now)
    running = scene.releaser.input_builder.build(snapshot, scene.now).waiting.running
    assert sorted(running.demand[:, 0].tolist()) == [0.0, 100.0]
    assert running.demand.sum(axis=0).tolist() == snapshot.allocated.sum(axis=0).tolist()


def test_what_is_kept_of_classes_is_what_a_first_look_says():
    # Of three classes one stays as it is, one pod of the second ends, one of the third becomes opportunistic.
    scene = Scene(node("n1", cpu=9000))
    began = scene.now
    scene.see(*[task(began, f"{name}{number}", duration=60.0) for name in "abc" for number in range(2)])
    layout = scene.ledger.snapshot(scene.now).layout
    kept = RunningTasks(scene.backlog)
    first = kept.at(scene.now, layout)
    assert len(first.node) == 6
    scene.end("b0")
    scene.see(task(began, "c0", duration=60.0, opportunistic=True, version=2))
    at_once, anew = kept.at(scene.now + 1, layout), RunningTasks(scene.backlog).at(scene.now + 1, layout)
    assert len(at_once.node) == len(anew.node) == 5
    assert rows(kept.at(scene.now + 90, layout)) == rows(RunningTasks(scene.backlog).at(scene.now + 90, layout))


def rows(running):
    columns = (running.node, running.ends_at, running.demand[:, 0], running.seconds)
    return [column.tolist() for column in columns]
