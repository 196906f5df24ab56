"""What kube-scheduler refuses holds back what is like it, and nobody else."""

from dataclasses import replace

import pytest

from extender.cluster.events import NodeSeen
from extender.control.release.slots import Pace
from extender.explain.advice import changes_for
from extender.explain.pod_in_plan import case_of
from extender.explain.wait_reasons import IS_RESTING, Reason
from tests.service.control.scene import Scene, node, pod


def refuse(scene, *names):
    """Have kube-scheduler refuse pods; their nominations stay, as it leaves them."""
    for name in names:
        scene.change(name, unschedulable=True)


def refuse_all(scene):
    refuse(scene, *(it.name for it in scene.pods.values() if it.waits and not it.gates and not it.unschedulable))


def one_refused(*more, count=5, pace=1):
    """Return a scene with room for all, where the first of some pods of one job was released and refused."""
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=pace))
    scene.see(*(pod(f"p{n}", job="j", created=float(n)) for n in range(count)))
    scene.step()
    scene.see(*more)
    refuse(scene, "p0")
    scene.pace = scene.releaser.pace = Pace()
    scene.step()
    return scene


def test_while_a_pod_of_a_class_is_refused_no_more_of_it_is_released():
    scene = one_refused()
    scene.step(0.5)
    assert scene.released() == ["p0"]
    scene.bind("p0", "n1")
    scene.step(0.1)
    assert scene.released() == ["p0", "p1", "p2", "p3", "p4"]


def test_nor_of_those_that_ask_for_the_same_in_other_jobs_of_its_queue_and_all_others_go():
    alike = pod("alike", job="k")
    scene = one_refused(alike, pod("larger", 200, job="k"), pod("neighbour", queue="r"))
    assert set(scene.released()) == {"p0", "larger", "neighbour"}


def test_those_that_ask_nothing_of_other_pods_go_beside_refused_ones_that_do():
    scene = Scene(node("n1", cpu=10_000))
    scene.see(*(pod(f"apart{n}", job="service", created=float(n), asks_of_pods=True) for n in range(3)))
    scene.step()
    refuse_all(scene)
    scene.see(*(pod(f"p{n}") for n in range(3)), pod("apart3", asks_of_pods=True))
    scene.step()
    assert scene.released()[3:] == ["p0", "p1", "p2"]


def test_those_whose_device_claims_are_made_of_another_template_go_beside_refused_ones():
    scene = Scene(node("n1", cpu=10_000))
    scene.see(*(pod(f"never{n}", job="j", created=float(n), device_templates=("never",)) for n in range(3)))
    scene.step()
    refuse_all(scene)
    scene.see(*(pod(f"good{n}", job="j", device_templates=("good",)) for n in range(3)))
    scene.see(pod("never3", job="j", device_templates=("never",)))
    scene.step()
    assert scene.released()[3:] == ["good0", "good1", "good2"]


def test_room_is_not_kept_for_them():
    scene = Scene(node("n1", cpu=100))
    scene.see(pod("a", 100, created=0.0), pod("b", 100, created=1.0), pod("c", 50, created=2.0))
    scene.step()
    refuse(scene, "a")
    scene.step()
    scene.step(0.1)
    assert scene.released() == ["a", "c"]


def test_one_pod_tries_after_a_second_and_the_next_after_twice_as_long_up_to_five_minutes():
    scene = one_refused(count=12)
    tried_at = []
    while scene.now < 100 + 3_600:
        released = len(scene.released())
        scene.step(1)
        if len(scene.released()) > released:
            tried_at.append(scene.now - 100)
            assert len(scene.released()) == released + 1
            refuse_all(scene)
            scene.step()
    pauses = [later - earlier for earlier, later in zip([0.0, *tried_at], tried_at, strict=False)]
    assert pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_one_that_is_bound_lets_twice_as_many_try_at_once_and_one_that_is_refused_ends_that():
    scene = one_refused(count=20)
    gone = []
    for _ in range(4):
        before = set(scene.released())
        scene.step(1)
        now = [name for name in scene.released() if name not in before]
        gone.append(len(now))
        for name in now[:7]:
            scene.bind(name, "n1")
        refuse(scene, *now[7:])
    assert gone == [1, 2, 4, 8]
    scene.step()
    scene.step(1.5)
    assert len(scene.released()) == 16  # p0, and 1 + 2 + 4 + 8; the eighth of the last was refused: two seconds
    scene.step(0.5)
    assert len(scene.released()) == 17


def test_after_one_that_was_bound_the_next_refusal_costs_two_seconds_however_many_there_were_before():
    scene = one_refused(count=8)
    for seconds in (1, 2, 4):  # p1, p2 and p3
        scene.step(seconds)
        refuse_all(scene)
        scene.step()
    scene.step(8)
    scene.bind("p4", "n1")
    scene.step()
    refuse(scene, "p5", "p6")  # twice as many as before
    scene.step()
    scene.step(1.5)
    assert scene.released()[-1] == "p6"
    scene.step(0.5)
    assert scene.released()[-1] == "p7"


def test_what_tries_and_is_not_answered_lets_nobody_else_try():
    scene = one_refused()
    scene.step(1)
    for _ in range(600):
        scene.step(1)
    assert scene.released() == ["p0", "p1"]


def test_one_that_could_not_be_written_to_has_not_tried():
    scene = one_refused()
    scene.refuse.add(("nominate", "p1"))
    scene.step(1)
    scene.refuse.clear()
    scene.step(2)
    scene.step(0.1)
    assert scene.released() == ["p0", "p1"]


def test_a_pod_that_kube_scheduler_makes_room_for_is_not_refused():
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=1))
    scene.see(pod("p0", job="j", created=0.0), pod("p1", job="j", created=1.0))
    scene.step()
    scene.change("p0", unschedulable=True, nominated="n2")  # it preempts there
    scene.step(0.1)
    assert scene.released() == ["p0", "p1"]


def test_a_clock_that_is_set_back_lengthens_no_wait():
    scene = one_refused()
    scene.now -= 86_400
    scene.step()
    scene.step(1)
    assert scene.released() == ["p0", "p1"]


def test_those_that_wait_for_it_are_told_of_it():
    scene = one_refused(pod("alike", job="k"), count=2)
    found = scene.view()
    text = "kube-scheduler refuses pod default/p0, which asks for the same"
    assert scene.why() == {"p0": IS_RESTING, "p1": Reason("refused", text), "alike": Reason("refused", text)}
    case = case_of(found, scene.pods["p1"])
    assert changes_for(case, found.why["uid-p1"]) == [
        "pod default/p0 must be bound, or deleted: see its events; one more is released now and then, to try"
    ]


def test_released_pods_count_until_they_are_bound_however_long_that_takes():
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=3))
    scene.see(*(pod(f"p{n}", job="j", created=float(n)) for n in range(10)))
    for _ in range(600):
        scene.step(1)
    assert scene.released() == ["p0", "p1", "p2"]
    assert scene.releaser.unbound == 3
    scene.bind("p0", "n1")
    scene.step(1)
    assert scene.released() == ["p0", "p1", "p2", "p3"]


def test_a_pod_that_kube_scheduler_never_tries_is_not_on_its_way_once_it_bound_one_that_went_later():
    scene = Scene(node("n1"))
    scene.see(pod("stuck"))
    scene.step()
    scene.see(pod("good", 200))
    scene.step(16)
    scene.bind("good")
    scene.step(1)
    scene.step(15)
    assert (scene.releaser.unbound, scene.cluster.passed_by) == (0, {"uid-stuck"})
    scene.remove("stuck")
    scene.step(1)
    assert scene.cluster.passed_by == set()


def test_a_nomination_that_holds_no_more_for_two_reasons_is_cleared_once():
    # kube-scheduler passes the pod by, and its node is cordoned, when the loop looks next.
    scene = Scene(node("n1"))
    scene.see(pod("stuck"))
    scene.step()
    scene.see(pod("good", 200))
    scene.step(16)
    scene.bind("good")
    scene.step(1)
    scene.apply(NodeSeen(replace(node("n1"), unschedulable=True)))
    scene.step(15)
    assert [name for _, name, *_ in scene.told_to("clear")] == ["stuck"]


def test_pods_that_kube_scheduler_never_tries_stop_nobody_else():
    # Three of one queue never get an answer, as where their ResourceClaim is missing. Nobody else has a slot.
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=3))
    scene.see(*(pod(f"stuck{n}", job="stuck", created=float(n)) for n in range(9)))
    scene.step()
    for second in range(60):
        if second < 40 and second % 5 == 0:
            scene.see(pod(f"good{second // 5}", 200, queue="r", created=50.0))
        scene.step(1)
        for name in scene.released():
            if name.startswith("good") and scene.pods[name].node is None:
                scene.bind(name, "n1")
    assert {name for name in scene.released() if name.startswith("good")} == {f"good{n}" for n in range(8)}
    assert [scene.pods[f"stuck{n}"].nominated for n in range(3)] == [None] * 3, "they keep no room"
    assert scene.released().count("stuck0") == 1
    assert sum(name.startswith("stuck") for name in scene.released()) <= 3 + 4, "of their like a few try"


@pytest.mark.parametrize("lives", [10, 1000], ids=["deleted and made again", "there to stay"])
@pytest.mark.parametrize("more", [{}, {"claims": ("default/data",)}], ids=["never tried", "wait for volumes"])
def test_pods_of_one_queue_that_get_no_answer_take_no_turns_of_other_queues_whatever_they_demand(lives, more):
    scene, names = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=8)), iter(range(10_000))
    stuck = {}
    scene.see(*(pod(f"good{n}", 200, queue="r", job="good") for n in range(60)))
    for _ in range(60):
        for name in [name for name, since in stuck.items() if scene.now - since >= lives]:
            scene.remove(name)
            del stuck[name]
        while len(stuck) < 40:  # each of another demand, and so small that it is always the turn of its queue
            name = f"stuck{next(names)}"
            scene.see(pod(name, 1 + len(stuck) / 100, queue="q", **more))
            stuck[name] = scene.now
        scene.step(1)
        for name in scene.sent:
            if name.startswith("good") and scene.pods[name].node is None:
                scene.bind(name)
    assert sum(name.startswith("good") for name in scene.released()) == 60


def test_slots_of_its_own_give_a_queue_no_turn_of_another():
    # The other queue has more of the cluster, and all that is free goes to those that have no slot yet.
    scene = Scene(node("n1", cpu=1_500), pace=Pace(unbound_pods=2))
    scene.see(pod("runs", 1_000, gates=(), node="n1", queue="r"), pod("larger", 100, queue="r"))
    scene.see(*(pod(f"p{n}", job="j") for n in range(5)))
    for _ in range(10):
        scene.step(1)
    assert scene.released() == ["p0", "p1"]


def test_while_kube_scheduler_is_down_few_more_go_than_usual():
    scene = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=4))
    scene.see(*(pod(f"p{n}", 100 + n, queue=f"q{n}") for n in range(40)))
    for _ in range(250):
        scene.step(1)
        assert scene.releaser.again_at > scene.now
    assert len(scene.released()) == 8


def test_while_serve_does_not_answer_kube_scheduler_few_more_go_than_usual_and_none_of_them_rests():
    # kube-scheduler takes their nominations away, and tries them again by itself.
    scene = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=4))
    scene.see(*(pod(f"p{n}", 100 + n, queue=f"q{n}") for n in range(40)))
    for _ in range(60):
        scene.step(1)
        for name in scene.released():
            if scene.pods[name].nominated is not None:
                scene.change(name, nominated=None, errored=True)
    assert len(scene.released()) <= 8
    assert len(scene.written) == 2 * len(scene.released()), "nobody is nominated anew"
    assert not scene.backlog.writes.backoff
    tried = scene.released()
    for name in tried:
        scene.change(name, node="n1", errored=False)
    scene.step(1)
    assert len(scene.released()) == len(tried) + 4


def err(scene):
    """Have kube-scheduler's tries of those that were released end in errors: it takes their nominations away."""
    for it in list(scene.pods.values()):
        if it.nominated is not None and not it.gates and not it.name.startswith("good"):
            scene.change(it.name, nominated=None, errored=True)


def test_pods_whose_tries_end_in_errors_stop_nobody_of_their_queue():
    scene = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=4))
    scene.see(*(pod(f"bad{n}", 100 + n, created=float(n)) for n in range(7)))
    scene.see(*(pod(f"good{n}", 50, created=90.0, job="good") for n in range(20)))
    for _ in range(60):
        scene.step(5)
        err(scene)
        for name in scene.released():
            if name.startswith("good"):
                scene.change(name, node="n1")
    assert {f"good{n}" for n in range(20)} <= set(scene.released())
    assert not scene.backlog.writes.backoff


@pytest.mark.parametrize("shapes", [1, 40])
def test_while_serve_does_not_answer_for_long_one_more_goes_each_five_minutes(shapes):
    scene = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=4))
    scene.see(*(pod(f"p{n}", 100 + n % shapes) for n in range(40)))
    for _ in range(720):
        scene.step(5)
        err(scene)
    assert 4 < len(scene.released()) <= 2 * 4 + 12


def test_one_without_an_answer_lets_no_more_go_than_usual_while_another_has_just_gone():
    scene = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=2))
    scene.see(pod("first"))
    scene.step()
    scene.step(10)
    scene.see(*(pod(f"p{n}", 200 + n, queue="r") for n in range(9)))
    for _ in range(14):
        scene.step(1)
    assert len(scene.released()) == 2
    for _ in range(3):
        scene.step(1)
    assert len(scene.released()) == 3, "nothing was heard of either for 15 s"


def test_of_many_without_an_answer_one_a_minute_gives_its_room_up():
    scene = Scene(node("n1", cpu=1_000))
    scene.see(*(pod(f"p{n}") for n in range(10)))
    for _ in range(150):
        scene.step(1)
    assert len(scene.told_to("clear")) == 2  # after 60 s and after 120 s


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_set_changes_nothing_of_that(seconds):
    scene = Scene(node("n1", cpu=1_000))
    scene.see(*(pod(f"p{n}") for n in range(10)))
    for _ in range(65):
        scene.step(1)
    scene.now += seconds
    for _ in range(50):
        scene.step(1)
    assert len(scene.told_to("clear")) == 1
    for _ in range(15):
        scene.step(1)
    assert len(scene.told_to("clear")) == 2


def test_room_that_pods_without_an_answer_keep_is_given_back():
    # Nothing else fits, so nothing can be released to find out.
    scene = Scene(node("n1", cpu=1_000))
    scene.see(pod("stuck", 900), pod("good", 800, queue="r", created=50.0))
    scene.step()
    for _ in range(62):
        scene.step(1)
    assert scene.released() == ["stuck", "good"]


def test_jobs_like_one_that_kube_scheduler_never_tries_go_all_the_same():
    scene = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=4))
    scene.see(*(pod(f"stuck{n}", job="stuck", created=float(n)) for n in range(9)))
    scene.step()
    scene.see(*(pod(f"good{n}", job="good", created=50.0 + n) for n in range(8)))
    for _ in range(90):
        scene.step(1)
        for name in scene.released():
            if name.startswith("good") and scene.pods[name].node is None:
                scene.bind(name, "n1")
    assert {f"good{n}" for n in range(8)} <= set(scene.released())


def test_whether_kube_scheduler_runs_is_asked_by_a_pod_of_another_shape_first():
    # Each is a job of its own, and the older ones are never tried.
    scene = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=4))
    scene.see(*(pod(f"stuck{n:02}", created=float(n)) for n in range(30)))
    scene.step()
    scene.see(pod("good", 200, created=50.0))
    for _ in range(20):
        scene.step(1)
    assert "good" in scene.released()


@pytest.mark.parametrize("pace", [4, 8], ids=["slots of its own for each queue", "slots for none"])
def test_the_queue_that_had_the_last_answer_asks_first_whether_kube_scheduler_runs(pace):
    # The turn is always that of the others: they are many, each with one small pod that is never tried.
    scene = Scene(node("n1", cpu=100_000), pace=Pace(unbound_pods=pace))
    scene.see(pod("early", 200, queue="r"))
    scene.step()
    scene.bind("early")
    scene.step()
    scene.see(*(pod(f"stuck{n:02}", queue=f"q{n:02}", created=float(n)) for n in range(30)))
    scene.see(*(pod(f"good{n}", 200, queue="r", job="good") for n in range(4)))
    for _ in range(90):
        scene.step(1)
        for name in scene.sent:
            if name.startswith("good") and scene.pods[name].node is None:
                scene.bind(name)
    assert {f"good{n}" for n in range(4)} <= set(scene.released())


def one_after(*, between=20.0, after=15.0, answer=Scene.bind, **more):
    """Return a scene in which one pod has no answer, and another that was released later has one: it is bound."""
    scene = Scene(node("n1"), node("n2"))
    scene.see(pod("first", 900, **more))
    scene.step()
    for _ in range(int(between)):
        scene.step(1)
    scene.see(pod("second", 800, queue="r", created=scene.now))
    scene.step()
    answer(scene, "second")
    scene.step(1)
    scene.step(after)
    return scene


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ({}, False),
        ({"answer": refuse}, False),
        ({"between": 14.0}, True),
        ({"after": 14.0}, True),
        ({"claims": ("default/data",)}, True),
        ({"priority": -1}, True),
        ({"opportunistic": True, "choice": "only", "gates": (), "nominated": "n1", "promised": "n1"}, True),
    ],
    ids=[
        "passed by",
        "passed by for one that is refused",
        "too soon",
        "may still be tried",
        "waits for a volume",
        "of lower priority",
        "never regular",
    ],
)
def test_a_pod_loses_its_room_only_where_kube_scheduler_surely_passed_it_by(more, kept):
    scene = one_after(**more)
    assert (scene.pods["first"].nominated is not None) is kept


def test_a_release_that_is_not_written_yet_passes_nobody_by():
    scene, writes = Scene(node("n1"), node("n2")), []
    scene.see(pod("first", 900))
    scene.step()
    for _ in range(20):
        scene.step(1)
    scene.run_soon = writes.append
    scene.see(pod("second", 800, queue="r", created=scene.now))
    scene.step()
    scene.step(1)
    for write in writes:
        write()
    assert scene.told_to("nominate")[-1] == ("nominate", "second", "n2")
    assert not scene.told_to("clear")
    scene.run_soon = lambda write: write()
    scene.bind("second")
    scene.step(1)
    scene.step(15)
    assert scene.told_to("clear") == [("clear", "first")], "once that one is bound, though it was never seen to wait"


def test_a_later_answer_for_one_that_went_earlier_takes_nothing_back():
    scene = Scene(node("n1"))
    scene.see(pod("stuck"))
    scene.step()
    for name, seconds in (("early", 5), ("late", 20)):
        for _ in range(seconds):
            scene.step(1)
        scene.see(pod(name, 200, queue=name))
        scene.step()
    for name in ("late", "early"):
        scene.bind(name, "n1")
        scene.step(1)
    scene.step(15)
    assert scene.cluster.passed_by == {"uid-stuck"}


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_set_passes_nobody_by(seconds):
    scene = one_after(between=5.0)
    scene.now += seconds
    scene.see(pod("third", 50, queue="r", created=scene.now))
    scene.step()
    scene.bind("third")
    scene.step(1)
    assert scene.pods["first"].nominated is not None


def test_a_gang_keeps_its_room_while_nothing_is_heard():
    scene = Scene(node("n1", cpu=300))
    scene.see(*(pod(f"g{n}", 100, job="g", group="default/g", least=3) for n in range(3)))
    scene.step()
    scene.see(pod("other", 200, queue="r", created=50.0))
    for _ in range(200):
        scene.step(1)
    assert scene.released() == ["g0", "g1", "g2"]
    assert {scene.pods[f"g{n}"].nominated for n in range(3)} == {"n1"}


def test_a_trial_that_may_go_makes_no_turn_due():
    scene = one_refused(count=1)
    for _ in range(10):
        scene.step(1)
        assert scene.releaser.again_at > scene.now


def test_pods_for_schedulers_that_are_not_ours_do_not_stop_ours():
    scene = Scene(node("n1", cpu=10_000), pace=Pace(unbound_pods=1))
    scene.see(pod("theirs", created=0.0), pod("ours", queue="r", created=1.0))
    scene.change("theirs", scheduler="nobody-runs-this")
    scene.step()
    for _ in range(30):
        scene.step(1)
    assert sorted(scene.released()) == ["ours", "theirs"]


def test_while_serve_does_not_answer_no_more_go_than_have_room():
    # kube-scheduler takes their nominations away; they go there once serve answers.
    scene = Scene(node("n1", cpu=400), pace=Pace(unbound_pods=16))
    scene.see(*(pod(f"p{n}", 100, queue=f"q{n}") for n in range(16)))
    for _ in range(20):
        scene.step(1)
        err(scene)
    assert len(scene.released()) == 4


def test_one_whose_tries_end_in_errors_loses_its_room_once_it_is_passed_by():
    scene = Scene(node("n1", cpu=400), pace=Pace(unbound_pods=16))
    scene.see(*(pod(f"bad{n}", 100, queue="bad") for n in range(3)))
    scene.step(1)
    err(scene)
    scene.step(16)
    scene.see(pod("good0", 100))
    scene.step(1)
    scene.change("good0", node="n1")
    for _ in range(18):
        scene.step(1)
    assert [scene.pods[f"bad{n}"].promised for n in range(3)] == [None] * 3
    scene.see(*(pod(f"good{n}", 100) for n in range(1, 4)))
    scene.step(1)
    assert {"good1", "good2", "good3"} <= set(scene.released())


def erred(*late):
    """Return a scene with pods whose tries ended in errors, and others that were released 20 s after them."""
    scene = Scene(node("n1", cpu=400), pace=Pace(unbound_pods=16))
    scene.see(*(pod(f"p{n}", 100) for n in range(3)))
    scene.step(1)
    err(scene)
    scene.see(*(pod(name, 100, queue="r") for name in late))
    scene.step(20)
    return scene


def test_once_serve_answers_again_those_whose_tries_ended_in_errors_keep_their_room_until_they_are_tried():
    # kube-scheduler tries each again within ten seconds, and not in the order of their release.
    scene = erred("late", "more")
    scene.bind("late")
    for _ in range(10):
        scene.step(1)
    assert scene.released() == ["p0", "p1", "p2", "late"]
    assert [scene.pods[f"p{n}"].awaited for n in range(3)] == ["n1"] * 3


def test_and_while_it_does_not_answer_whoever_kube_scheduler_refuses_without_asking_it():
    scene = erred("late")
    refuse(scene, "late")
    for _ in range(20):
        scene.step(1)
    assert [scene.pods[f"p{n}"].awaited for n in range(3)] == ["n1"] * 3


@pytest.mark.parametrize("gang", [False, True])
def test_of_those_whose_tries_ended_in_errors_no_more_lose_their_room_than_one_that_went_elsewhere_took(gang):
    # Four are promised a node of 400. One that was promised another node is bound there.
    scene = Scene(node("n1", cpu=400), node("n2", cpu=1))
    more = {"job": "g", "group": "default/g", "least": 4} if gang else {}
    scene.see(*(pod(f"p{n}", 100, created=float(n), **more) for n in range(4)))
    scene.step(1)
    err(scene)
    scene.see(pod("other", 100, gates=(), node="n1"))
    scene.step(1)
    assert [scene.pods[f"p{n}"].awaited for n in range(4)].count("n1") == 3


def test_nor_does_any_where_the_room_that_a_refused_one_leaves_is_enough():
    scene = Scene(node("n1", cpu=400))
    scene.see(*(pod(f"p{n}", 100, created=float(n)) for n in range(4)))
    scene.step(1)
    err(scene)
    scene.change("p0", nominated="n1", errored=False, unschedulable=True)
    scene.see(pod("other", 100, gates=(), node="n1"))
    scene.step(1)
    assert [scene.pods[f"p{n}"].awaited for n in range(4)] == [None, "n1", "n1", "n1"]
