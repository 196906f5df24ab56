"""How long tasks count as: what was measured, else what was declared, within bounds. It buys nobody's place."""

import pytest

from tests.service.control.scene import Scene, node, pod

USUAL = 60.0


def ends(scene, name, after, **more):
    """Have a pod of job j run for so many seconds and end."""
    scene.see(pod(name, job="j", gates=(), node="n1", started=scene.now, **more))
    scene.now += after
    scene.end(name)


def seconds_of(scene, name):
    of, _ = scene.backlog.find(f"uid-{name}")
    return of.seconds(USUAL, scene.now)


@pytest.fixture
def scene():
    return Scene(node("n1", cpu=10_000))


def test_what_a_class_has_really_taken_counts_from_its_first_end(scene):
    scene.see(pod("next", job="j", duration=60.0))
    assert seconds_of(scene, "next") == 60.0
    ends(scene, "a", 300.0, duration=60.0)
    assert seconds_of(scene, "next") == 300.0
    ends(scene, "b", 100.0, duration=60.0)
    assert seconds_of(scene, "next") == 200.0


def test_one_that_failed_says_nothing_of_how_long_its_like_run(scene):
    scene.see(pod("next", job="j"), pod("a", job="j", gates=(), node="n1", started=scene.now))
    scene.now += 1.0
    scene.change("a", finished=True, failed=True)
    assert seconds_of(scene, "next") == USUAL


def test_what_declares_another_duration_is_corrected_by_how_wrong_its_job_has_been(scene):
    """300 s where 60 were declared: five times as long, so 40 s count as 200."""
    scene.see(pod("other", job="j", duration=40.0), pod("keeps-the-job", job="j", duration=60.0))
    ends(scene, "a", 300.0, duration=60.0)
    assert seconds_of(scene, "other") == 200.0


def test_what_declared_too_much_makes_nothing_shorter(scene):
    """One second instead of 1,000 counts alike on both sides: (300 + 1) / (60 + 1), times 61, is 301."""
    scene.see(pod("other", job="j", duration=61.0))
    ends(scene, "a", 300.0, duration=60.0)
    ends(scene, "long-said", 1.0, duration=1_000.0)
    assert seconds_of(scene, "other") == pytest.approx(301.0)


@pytest.mark.parametrize("declared", [0.0, 1e-300, 0.5])
def test_nothing_counts_as_shorter_than_a_second(scene, declared):
    scene.see(pod("a", job="j", duration=declared))
    assert seconds_of(scene, "a") == 1.0


def test_a_class_takes_at_least_what_one_of_its_pods_has_run_already(scene):
    scene.see(
        pod("next", job="j", duration=5.0), pod("runs", job="j", duration=5.0, gates=(), node="n1", started=100.0)
    )
    scene.now = 104.0
    assert seconds_of(scene, "next") == 5.0
    scene.now = 400.0
    assert seconds_of(scene, "next") == 300.0


def test_one_that_runs_long_counts_among_those_that_ended(scene):
    """Two took 10 s each, one runs for 100 s: (10 + 10 + 100) / 3 = 40."""
    scene.see(pod("next", job="j"))
    ends(scene, "a", 10.0)
    ends(scene, "b", 10.0)
    scene.see(pod("runs", job="j", gates=(), node="n1", started=scene.now))
    scene.now += 100.0
    assert seconds_of(scene, "next") == 40.0


def test_a_declared_duration_that_was_wrong_buys_no_place_any_more():
    """Equal pods of two jobs: the one that said 1 s and takes 300 goes after the one that says 100."""
    scene = Scene(node("n1", cpu=100))
    scene.see(pod("liar-0", job="liar", duration=1.0))
    scene.step()
    scene.change("liar-0", node="n1", started=scene.now)
    scene.see(pod("liar-1", job="liar", duration=1.0), pod("honest", job="honest", duration=100.0))
    scene.now += 300.0
    scene.end("liar-0")
    scene.step()
    assert scene.released() == ["liar-0", "honest"]


def test_a_stage_with_more_pods_than_it_says_has_no_last_ones():
    """Three of its four pods have ended; it says that it has one in all."""
    scene = Scene(node("n1", cpu=300))
    scene.see(*(pod(f"stage-{number}", job="stage", tasks=1) for number in range(4)))
    scene.step()
    for number in range(3):
        scene.bind(f"stage-{number}")
    for number in range(3):
        scene.end(f"stage-{number}")
    of, _ = scene.backlog.find("uid-stage-3")
    assert of.part_done() == 0.0


def test_a_stage_of_as_many_pods_as_it_says_is_done_by_those_that_ended():
    scene = Scene(node("n1", cpu=300))
    scene.see(*(pod(f"stage-{number}", job="stage", tasks=4, gates=(), node="n1") for number in range(4)))
    for number in range(3):
        scene.end(f"stage-{number}")
    of, _ = scene.backlog.find("uid-stage-3")
    assert of.part_done() == 0.75


def test_bare_pods_of_a_queue_go_in_the_order_of_their_creation():
    """Their jobs are their UIDs: z was created first."""
    scene = Scene(node("n1", cpu=300))
    scene.see(*(pod(name, job=f"uid-{name}", created=float(age)) for age, name in enumerate("zaym")))
    scene.step()
    assert scene.released() == ["z", "a", "y"]


# -- opportunistic pods


@pytest.mark.parametrize("more", [{}, {"node": "n1", "gates": (), "started": 100.0}])
def test_demotion_and_promotion_change_no_class(scene, more):
    scene.see(pod("a", job="j", duration=60.0, **more), pod("b", job="j", duration=60.0))
    before, _ = scene.backlog.find("uid-a")
    for opportunistic in (True, False):
        scene.change("a", opportunistic=opportunistic)
        assert scene.backlog.find("uid-a")[0] is before
        assert scene.backlog.find("uid-b")[0] is before
    assert len(scene.backlog.classes()) == 1


def test_what_ran_as_opportunistic_says_how_long_its_like_run(scene):
    scene.see(pod("next", job="j", duration=60.0))
    ends(scene, "a", 300.0, duration=60.0, opportunistic=True)
    assert seconds_of(scene, "next") == 300.0


def test_demotion_changes_no_remaining_work(scene):
    scene.see(*(pod(name, {"cpu": 100.0, "memory": 10.0}, job="j", node="n1", gates=()) for name in "ab"))
    scene.see(pod("c", {"cpu": 100.0, "memory": 10.0}, job="j"))
    before = scene.view().plan_input.waiting
    scene.change("a", opportunistic=True)
    after = scene.view().plan_input.waiting
    assert after.jobs.work.tolist() == before.jobs.work.tolist()
    assert before.jobs.work.all()
    assert (after.names, after.duration.tolist()) == (before.names, before.duration.tolist())
    assert after.demand.tolist() == before.demand.tolist()


def test_what_stands_for_a_class_is_regular_also_where_the_first_pod_seen_is_not(scene):
    """As after a restart: the class is planned by what its pods need."""
    scene.see(pod("a", job="j", node="n1", gates=(), opportunistic=True), pod("b", job="j"))
    task_class, _ = scene.backlog.find("uid-b")
    assert scene.backlog.find("uid-a")[0] is task_class
    assert task_class.template.counted == {"pods": 1.0, "cpu": 100.0}


def test_pods_whose_users_chose_otherwise_are_of_another_class(scene):
    scene.see(*(pod(str(choice), job="j", choice=choice) for choice in (None, "never", "only")))
    assert len({task_class.name for task_class in scene.backlog.classes()}) == 3


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"cpu": 2.0**40}, {"cpu": 2.0**40 + 2.0**20}),
        ({"group": "default/g1"}, {"group": "default/g2"}),
        ({"may_preempt": True}, {"may_preempt": False}),
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_classes_that_are_told_apart_have_names_of_their_own(scene, one, other):
    """The planner keeps by name what a class was promised."""
    scene.see(*(pod(name, job="j", **changes) for name, changes in (("p", one), ("q", other))))
    assert len({task_class.name for task_class in scene.backlog.classes()}) == 2
