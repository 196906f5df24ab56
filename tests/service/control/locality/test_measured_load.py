"""How fast room frees up: what counts, and when."""

import dataclasses

from extender.cluster.events import OwnersListed, PodsListed
from extender.cluster.model import Owner
from extender.control.locality.measured_load import LEAST_FREED, ROOM_KINDS, MeasuredLoad, Typical, typical
from extender.planner import WaitReason
from tests.service.control.scene import Scene, node, pod

FULL = [WaitReason("no-room", "no room")]
IDLE = []


def looked(*looks):
    """Return what came of looks, each (what is held, pods that have left so far, seconds)."""
    load = MeasuredLoad()
    for held, left, now in looks:
        load.look(held, left, now)
    return load


def of(load):
    return load.freed, load.seconds


def test_what_leaves_between_two_looks_counts_if_the_first_found_somebody_waiting():
    # 10 -> 15 in 2 s while some wait, 15 -> 95 in 8 s while none does, 95 -> 98 in 1 s while some do.
    load = looked((FULL, 10, 100.0), (IDLE, 15, 102.0), (FULL, 95, 110.0), (FULL, 98, 111.0))
    assert of(load) == (5 + 3, 2.0 + 1.0)


def test_nothing_counts_before_the_second_look():
    assert of(looked((FULL, 10, 100.0))) == (0, 0.0)


def test_what_happens_while_nobody_looks_does_not_count():
    load = looked((FULL, 10, 100.0), (FULL, 12, 101.0))
    load.look_away()
    load.look(FULL, 50, 200.0)
    load.look(FULL, 53, 201.0)
    assert of(load) == (2 + 3, 1.0 + 1.0)


def test_who_could_never_run_is_no_load():
    for kind in ("no-nodes", "barred", "too-large"):
        assert of(looked(([WaitReason(kind, "")], 0, 0.0), (FULL, 9, 9.0))) == (0, 0.0)


def test_who_waits_for_room_near_its_input_is_load():
    assert "locality" in ROOM_KINDS
    assert of(looked(([WaitReason("barred", ""), WaitReason("locality", "")], 0, 0.0), (IDLE, 9, 3.0))) == (9, 3.0)


def test_the_rate_is_what_freed_up_in_the_time_under_load():
    # 30 in 10 s under load, then 100 s idle: 3 per second.
    assert looked((FULL, 0, 0.0), (IDLE, 30, 10.0), (IDLE, 90, 110.0)).rate() == 3.0


def test_no_rate_is_known_of_few_ends():
    assert MeasuredLoad().rate() is None
    assert looked((FULL, 0, 0.0), (FULL, LEAST_FREED - 1, 10.0)).rate() is None
    assert looked((FULL, 0, 0.0), (FULL, LEAST_FREED, 10.0)).rate() == 2.0


def test_the_rate_is_that_of_the_last_hour():
    # A look a minute, under load: 60 leave in each minute of the first hour, 600 in each of the second.
    load = MeasuredLoad()
    for minute in range(121):
        load.look(FULL, 60 * minute + 540 * max(minute - 60, 0), 60.0 * minute)
        if minute == 60:
            assert load.rate() == 1.0
        if minute == 90:  # half an hour of each: (30 x 60 + 30 x 600) / 3,600 s
            assert load.rate() == 5.5
    assert load.rate() == 10.0
    assert load.seconds == 7200.0, "the counters are of the whole time"


def test_the_rate_of_a_second_is_counted_as_exactly():
    # A look a second for two hours: one leaves each second, then two.
    load = MeasuredLoad()
    for second in range(7201):
        load.look(FULL, second + max(second - 3600, 0), float(second))
    assert load.rate() == 2.0


def test_a_rate_is_forgotten_after_an_hour_without_load():
    load = looked((FULL, 0, 0.0), (IDLE, 30, 10.0), (IDLE, 30, 3600.0))
    assert load.rate() == 3.0
    load.look(IDLE, 30, 3601.0)
    assert load.rate() is None


def test_pods_leave_their_nodes_once_by_ending_by_deletion_and_unseen():
    scene = Scene(node("n1"))
    scene.see(*(pod(name, gates=(), node="n1") for name in ("ends", "goes", "unseen", "stays")), pod("waits"))
    scene.end("ends")
    assert scene.backlog.left == 1
    scene.remove("ends")
    assert scene.backlog.left == 1, "it had left already"
    scene.change("goes", leaving=True)
    assert scene.backlog.left == 1, "it holds its room until it is gone"
    scene.remove("goes")
    scene.remove("waits")
    assert scene.backlog.left == 2, "who waited held no room"
    scene.apply(PodsListed([scene.pods["stays"]]))
    assert scene.backlog.left == 3


def test_pods_of_others_do_not_count():
    scene = Scene(node("n1"))
    scene.see(dataclasses.replace(pod("a", gates=(), node="n1"), scheduler="theirs"))
    scene.remove("a")
    assert scene.backlog.left == 0


def on(*names):
    return tuple((name, 1.0) for name in names)


def test_a_typical_job_is_the_median_of_those_with_inputs_that_wait():
    # Jobs a, b and c have 1, 2 and 4 tasks with inputs on 3, 2 and 3 nodes; d has no inputs, e runs.
    scene = Scene(node("n1"))
    for job, tasks, where in (("a", 1, on("x", "y", "z")), ("b", 2, on("x", "y")), ("c", 4, on("x", "y", "z"))):
        scene.see(*(pod(f"{job}{n}", job=job, inputs=where) for n in range(tasks)))
    scene.see(*(pod(f"d{n}", job="d") for n in range(9)))
    scene.see(*(pod(f"e{n}", job="e", gates=(), node="n1", inputs=on("x")) for n in range(9)))
    assert typical(scene.backlog) == Typical(tasks=2, replicas=3)


def test_pods_of_classes_without_inputs_are_not_looked_at():
    class Unread(dict):
        def values(self):
            raise AssertionError("the pods are looked at")

    scene = Scene(node("n1"))
    scene.see(pod("a"))
    (task_class,) = scene.backlog.classes()
    task_class.pods = {phase: Unread(pods) for phase, pods in task_class.pods.items()}
    assert typical(scene.backlog) is None


def test_without_jobs_that_have_inputs_none_is_typical():
    scene = Scene(node("n1"))
    scene.see(pod("a"))
    assert typical(scene.backlog) is None


def test_tasks_that_have_started_or_ended_are_of_the_job_too():
    scene = Scene(node("n1"))
    scene.see(*(pod(f"p{n}", job="a", inputs=on("x")) for n in range(4)))
    scene.change("p0", gates=(), node="n1")
    scene.change("p1", gates=(), node="n1")
    scene.end("p1")
    assert typical(scene.backlog) == Typical(tasks=4, replicas=1)


def test_what_a_pod_or_its_owner_says_of_the_size_goes_before_what_was_seen():
    scene = Scene(node("n1"))
    scene.apply(OwnersListed([Owner("o", left=7, total=8)]))
    scene.see(pod("p", inputs=on("x"), owner="o", owner_kind="Job"))
    assert typical(scene.backlog) == Typical(tasks=8, replicas=1)
    scene.remove("p")
    scene.see(pod("p", inputs=on("x"), owner="o", owner_kind="Job", tasks=30))
    assert typical(scene.backlog) == Typical(tasks=30, replicas=1)


def test_nodes_with_much_less_of_the_input_than_another_are_no_copies():
    scene = Scene(node("n1"))
    scene.see(pod("p", inputs=(("x", 128.0), ("y", 64.0), ("z", 63.0))))
    assert typical(scene.backlog) == Typical(tasks=1, replicas=2)
