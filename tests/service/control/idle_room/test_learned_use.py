"""What the service learns of classes from what was measured of their pods, and which pods it has measured for that."""

import numpy as np
import pytest

from extender.cluster.usage import Sample, Usage
from extender.control.idle_room.learned_use import LearnedUse, sampled
from tests.service.control.opportunistic.idle_scene import IdleScene, opportunistic, runs
from tests.service.control.scene import node

AT, WINDOW = 1000.0, 60.0
DEMAND = np.array([[400.0, 10, 0, 0, 0, 0]])


def scene_of(*pods):
    scene = IdleScene(node("n1", 1e6))
    scene.now = AT
    scene.see(*pods)
    return scene


def of_one_job(count, *, started=0.0, **more):
    return [runs(f"p{n}", 400, started=started, job="j", **more) for n in range(count)]


def usage_of(scene, cpu, *, names=None, window=WINDOW, at=AT):
    """Return a look by which these pods (all) used so much CPU in the mean over the window."""
    names = list(scene.pods) if names is None else names
    samples = {scene.pods[name].uid: Sample({"cpu": float(cpu), "memory": 4.0}, at - window, at) for name in names}
    return Usage(pods=samples, rate_seconds=window)


def expected(scene, learned, name="p0"):
    return learned.expected([scene.pods[name]], DEMAND)[0, :2].tolist()


def test_a_class_is_expected_to_use_what_enough_of_its_pods_were_measured_to_use():
    scene = scene_of(*of_one_job(5))
    learned = LearnedUse(scene.backlog)
    learned.take(usage_of(scene, 100, names=["p0", "p1", "p2", "p3"]))
    assert expected(scene, learned) == [400, 10]
    learned.take(usage_of(scene, 100))
    assert expected(scene, learned) == [100, 4]


def test_what_was_not_measured_of_a_pod_is_as_demanded():
    scene = scene_of(*of_one_job(5))
    learned = LearnedUse(scene.backlog)
    samples = {it.uid: Sample({"cpu": 100.0}, AT - WINDOW, AT) for it in scene.pods.values()}
    learned.take(Usage(pods=samples, rate_seconds=WINDOW))
    assert expected(scene, learned) == [100, 10]


@pytest.mark.parametrize(
    ("age", "measured", "counts"),
    [
        (30.0, 50, 400),  # two scrapes at most, which may miss half of it
        (45.0, 50, 100),  # 60 / (45 - 15) = 2 times
        (59.0, 350, 400),  # never more than it demands
        (59.0, 500, 500),  # unless that was measured
        (60.0, 50, 50),
    ],
)
def test_of_a_pod_that_ran_for_a_part_of_the_window_what_no_scrape_may_have_seen_is_added(age, measured, counts):
    scene = scene_of(*of_one_job(5, started=AT - age))
    learned = LearnedUse(scene.backlog)
    learned.take(usage_of(scene, measured))
    assert expected(scene, learned)[0] == pytest.approx(counts)


def test_where_rates_are_over_the_time_that_each_pod_ran_nothing_is_added():
    scene = scene_of(*of_one_job(5, started=AT - 40))
    learned = LearnedUse(scene.backlog)
    samples = usage_of(scene, 50).pods
    learned.take(Usage(pods=samples))
    assert expected(scene, learned)[0] == 50


def test_pods_that_have_ended_still_count_in_their_class():
    scene = scene_of(*of_one_job(6))
    learned = LearnedUse(scene.backlog)
    learned.take(usage_of(scene, 100))
    for name in ("p1", "p2", "p3", "p4"):
        scene.change(name, finished=True)
    learned.take(usage_of(scene, 160, names=["p5"]))
    # p0 to p4 used 100 at last, p5 160.
    assert expected(scene, learned)[0] == pytest.approx(110)


def test_a_class_is_forgotten_when_its_job_is_over():
    scene = scene_of(*of_one_job(5))
    learned = LearnedUse(scene.backlog)
    learned.take(usage_of(scene, 100))
    for name in list(scene.pods):
        scene.change(name, finished=True)
    learned.take(Usage())
    scene.see(runs("p9", 400, job="j"))
    assert expected(scene, learned, "p9") == [400, 10]
    assert not learned._class_rows.row_of
    assert not learned._pod_rows.row_of


def test_one_class_says_nothing_of_another():
    scene = scene_of(*of_one_job(5), runs("other", 400, job="k"))
    learned = LearnedUse(scene.backlog)
    learned.take(usage_of(scene, 100, names=["p0", "p1", "p2", "p3", "p4"]))
    assert expected(scene, learned, "other") == [400, 10]


def chosen(scene, **more):
    uids = sampled(scene.backlog, lambda: AT, WINDOW, **more)
    return {it.name for it in scene.pods.values() if it.uid in uids}


def test_the_young_and_the_oldest_of_each_class_are_measured_one_by_one():
    old = [runs(f"old{n}", 400, started=100.0 + n, created=float(n), job="j") for n in range(20)]
    young = [runs(f"young{n}", 400, started=AT - n, created=AT - 10 + n, job="j") for n in range(4)]
    names = chosen(scene_of(*old, *young))
    assert names == {f"old{n}" for n in range(10)} | {f"young{n}" for n in range(4)}


def test_the_young_are_found_after_a_restart_though_all_were_created_at_once():
    names = [f"p{n * 37 % 100:02}" for n in range(100)]  # names say nothing of who began when
    scene = scene_of(
        *(
            runs(name, 400, started=100.0 + n if n < 96 else AT - 100 + n, created=50.0, job="j")
            for n, name in enumerate(names)
        )
    )
    young = set(names[96:])
    assert young <= chosen(scene)
    scene.restart()
    assert young <= chosen(scene)


def test_the_young_are_found_behind_an_old_one_that_was_resized():
    old = [runs(f"old{n}", 400, started=100.0 + n, job="j") for n in range(40)]
    scene = scene_of(*old, runs("young", 400, started=AT, job="j"), runs("large", 800, started=50.0, job="j"))
    scene.change("large", demand=scene.pods["young"].demand)
    assert "young" in chosen(scene)


def test_opportunistic_pods_are_measured_in_any_case_and_need_no_sample():
    assert chosen(scene_of(opportunistic(runs("given", 400, started=AT)))) == set()


def test_no_more_than_a_bounded_number_is_sampled():
    old = [runs(f"old{n}", 400, started=1.0, created=1.0, job=f"j{n}") for n in range(10)]
    young = [runs(f"young{n}", 400, started=AT, created=AT, job="k") for n in range(10)]
    names = chosen(scene_of(*old, *young), most=10)
    assert len(names) == 10
    assert sum(name.startswith("young") for name in names) == 5
