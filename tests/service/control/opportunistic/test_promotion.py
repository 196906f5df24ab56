"""Promotion in place: one node of 1,000 of CPU, with opportunistic pods on it."""

import itertools
from dataclasses import replace

import pytest

from extender.cluster.pods.opportunistic import ONLY
from extender.cluster.queues import Queue
from extender.control.opportunistic.promotion import RESTS_SECONDS, SHOWS_SECONDS
from tests.service.control.opportunistic.idle_scene import IdleScene, needs, opportunistic, runs
from tests.service.control.scene import node


def given(name, cpu, **more):
    """Return an opportunistic pod on a node."""
    return opportunistic(runs(name, cpu, **more))


def scene_of(*pods, **more):
    scene = IdleScene(node("n1"), **more)
    scene.see(*pods)
    return scene


def promoted(scene):
    return [name for verb, name, *_ in scene.written if verb == "restore"]


def test_a_pod_becomes_regular_where_regular_room_appears():
    scene = scene_of(runs("full", 1000), given("a", 400))
    scene.step()
    assert promoted(scene) == []
    scene.end("full")
    scene.step(1)
    assert promoted(scene) == ["a"]
    assert not scene.pods["a"].opportunistic
    scene.step(1)
    assert scene.promoted == ["a"]


def test_who_has_run_longest_goes_first_and_no_more_than_fit():
    scene = scene_of(given("young", 600, started=50.0), given("old", 600, started=10.0))
    scene.step()
    scene.step(1)
    assert promoted(scene) == ["old"]


def test_it_goes_before_new_regular_work_of_the_same_queue():
    scene = scene_of(given("a", 600), needs("b", 600))
    scene.step()
    assert promoted(scene) == ["a"]
    assert scene.nominated() == {}


def test_not_before_a_pod_of_higher_priority_that_fits_there():
    scene = scene_of(given("a", 600), needs("b", 600, priority=1))
    scene.step()
    assert promoted(scene) == []
    assert scene.nominated() == {"b": "n1"}


@pytest.mark.parametrize(("cpu", "priority", "first"), [(600, 1, []), (600, 0, ["a"]), (1001, 1, ["a"])])
def test_not_before_a_pod_of_higher_priority_that_preempts_on_another_node_and_fits_there(cpu, priority, first):
    # kube-scheduler tries it wherever room shows, though it keeps that of its victims on n2 for it.
    scene = IdleScene(node("n1"), node("n2", 2000))
    scene.see(runs("full", 1000), given("a", 600), runs("victim", 2000, on="n2", leaving=True))
    scene.see(needs("p", cpu, gates=(), priority=priority, unschedulable=True, nominated="n2"))
    scene.end("full")
    scene.step()
    assert promoted(scene) == first
    scene.remove("p")
    scene.step(1)
    assert promoted(scene) == ["a"]


@pytest.mark.parametrize(
    "other", [{"unschedulable": False}, {"scheduler": "default-scheduler"}, {"opportunistic": True}], ids=str
)
def test_before_a_nominated_pod_that_was_not_tried_yet_is_not_ours_or_needs_no_room(other):
    scene = IdleScene(node("n1"), node("n2", 2000))
    scene.see(given("a", 600), runs("victim", 2000, on="n2", leaving=True))
    scene.see(replace(needs("p", 600, gates=(), priority=1, unschedulable=True, nominated="n2"), **other))
    scene.step()
    assert promoted(scene) == ["a"]


def test_not_before_a_pod_that_preempts_and_gets_the_room_while_the_loop_looks():
    scene = IdleScene(node("n1"), node("n2", 2000))
    scene.see(given("a", 600), runs("victim", 2000, on="n2", leaving=True))
    scene.see(needs("p", 600, gates=(), priority=1, unschedulable=True, nominated="n2"))
    before = scene.cluster.snapshot()
    scene.change("p", node="n1", nominated=None, unschedulable=False)
    scene.promoter.step(before, None, scene.now)
    assert promoted(scene) == []


def test_not_before_a_queue_that_has_less_of_its_share():
    scene = scene_of(runs("mine", 100), given("a", 600), needs("b", 600, queue="other"))
    scene.step()
    assert promoted(scene) == []
    assert scene.nominated() == {"b": "n1"}


def test_a_queue_without_a_share_comes_after_any_that_has_one():
    queues = (Queue("spare", weight=0.0), Queue("other"))
    scene = scene_of(given("a", 600, queue="spare"), needs("b", 600, queue="other"), queues=queues)
    scene.step()
    assert promoted(scene) == []
    assert scene.nominated() == {"b": "n1"}


def test_before_a_queue_that_has_more_of_its_share():
    scene = scene_of(runs("theirs", 100, queue="other"), given("a", 600), needs("b", 600, queue="other"))
    scene.step()
    assert promoted(scene) == ["a"]


@pytest.mark.parametrize("late", [False, True])
def test_many_pods_of_a_queue_pass_another_that_waits_by_one_at_most(late):
    # 1,000 come free. Each queue has a right to half of it: five pods.
    scene = scene_of(runs("full", 1000, queue="third"))
    scene.see(*(given(f"a{n}", 100, queue="a", started=10.0 + n) for n in range(10)))
    scene.see(*(needs(f"b{n}", 100, queue="b") for n in range(10)))
    scene.step()
    scene.end("full")
    scene.late = late
    for _ in range(3):
        scene.step(1)
    scene.write_all()
    assert len(promoted(scene)) == 5
    assert len(scene.nominated()) == 5


def test_large_pods_of_a_queue_become_regular_within_its_fair_share_while_another_waits_that_has_less():
    # Each queue has a right to 500: to one pod of 300.
    scene = scene_of(runs("full", 1000, queue="third"), *(given(f"a{n}", 300, queue="a") for n in range(3)))
    scene.see(*(needs(f"b{n}", 300, queue="b") for n in range(3)))
    scene.step()
    scene.end("full")
    scene.step(1)
    assert len(promoted(scene)) == 1
    assert len(scene.nominated()) == 2


def test_the_fair_share_of_a_queue_makes_none_of_its_pods_regular_before_another_that_has_less():
    # Each may have half; a has 400, and b nothing.
    scene = scene_of(runs("mine", 400, queue="a"), given("a0", 100, queue="a"), needs("b0", 600, queue="b"))
    scene.step()
    assert promoted(scene) == []
    assert scene.nominated() == {"b0": "n1"}


def test_nobody_waits_for_what_a_queue_has_beyond_its_share():
    scene = scene_of(runs("full", 1000, queue="b"), *(given(f"a{n}", 100, queue="a") for n in range(9)))
    scene.see(needs("b0", 2000, queue="b"))
    scene.step()
    scene.end("full")
    scene.step(1)
    assert len(promoted(scene)) == 9


def test_who_does_not_fit_there_keeps_nobody_waiting():
    scene = scene_of(runs("mine", 100), given("a", 300), needs("b", 950, queue="other", priority=5))
    scene.step()
    assert promoted(scene) == ["a"]


def test_who_never_is_regular_keeps_nobody_waiting():
    only = replace(needs("b", 100, priority=5), choice=ONLY, opportunistic=True)
    scene = scene_of(given("a", 300), only)
    scene.step()
    assert promoted(scene) == ["a"]


def test_who_waits_for_another_node_keeps_nobody_waiting():
    scene = IdleScene(node("n1"), replace(node("n2"), unschedulable=True))
    scene.see(given("a", 300, on="n2"), needs("b", 300, priority=5))
    scene.step()
    assert promoted(scene) == ["a"]


@pytest.mark.parametrize("change", [{"regular_requests": None}, {"choice": ONLY}, {"leaving": True}])
def test_a_pod_that_cannot_be_regular_or_leaves_stays_as_it_is(change):
    scene = scene_of(replace(given("a", 300), **change))
    scene.step()
    assert promoted(scene) == []


def test_a_pod_that_was_asked_to_go_is_not_promoted():
    scene = scene_of(given("a", 300), given("b", 300))
    scene.going = {"uid-a"}
    scene.step()
    assert promoted(scene) == ["b"]


def test_its_room_is_taken_once_while_it_is_under_way_and_once_it_shows():
    # 400 of a, and 600 that are left: one of b's fits beside it at any time.
    scene = scene_of(given("a", 400))
    scene.deaf = True
    scene.step()
    scene.see(needs("b0", 600), needs("b1", 600))
    scene.step(1)
    assert len(scene.nominated()) == 1
    scene.hear()
    scene.step(1)
    scene.step(1)
    assert len(scene.nominated()) == 1
    assert scene.count("restore") == {"a": 1}


def test_one_that_shows_to_the_backlog_first_keeps_its_room_and_is_counted_once():
    scene = scene_of(given("a", 400))
    before = scene.cluster.snapshot()
    scene.promoter.step(before, None, scene.now)
    taken = scene.promoter.step(before, None, scene.now)  # the ledger is a moment behind
    assert taken.allocated[0, 0] == 400
    assert scene.promoted == []
    scene.promoter.step(scene.cluster.snapshot(), None, scene.now)
    scene.promoter.step(scene.cluster.snapshot(), None, scene.now)
    assert scene.promoted == ["a"]
    assert promoted(scene) == ["a"]


def test_one_that_does_not_show_in_time_is_taken_back_and_rests():
    scene = scene_of(given("a", 400))
    scene.deaf = True
    scene.step()
    scene.change("a", opportunistic=True)  # the node cannot grant it
    scene.deaf = False
    scene.step(SHOWS_SECONDS - 1)
    assert scene.count("take back") == {}
    scene.step(1)
    assert scene.count("take back") == {"a": 1}
    scene.step(RESTS_SECONDS - 1)
    assert promoted(scene) == ["a"]
    scene.step(1)
    assert promoted(scene) == ["a", "a"]
    assert scene.promoted == []


def deferred(name, cpu):
    """Return a pod whose requests are back, and count, and that its node has not granted."""
    return replace(given(name, cpu), opportunistic=False, ungranted=True)


def test_one_that_its_node_defers_is_no_promotion_until_it_is_granted():
    scene = scene_of(given("a", 400))
    scene.deaf = True
    scene.step()
    scene.change("a", opportunistic=False, ungranted=True)
    scene.hear()
    scene.step(SHOWS_SECONDS - 1)
    assert scene.promoted == []
    scene.change("a", ungranted=False)
    scene.step(2)
    assert scene.promoted == ["a"]
    assert scene.count("take back") == {}


@pytest.mark.parametrize("infeasible", [False, True])
def test_one_that_a_predecessor_began_and_no_node_grants_is_taken_back_once_and_rests(infeasible):
    # There is no regular room for it, so it is not begun anew.
    scene = scene_of(runs("full", 900), replace(deferred("a", 400), opportunistic=infeasible))
    scene.restart()
    scene.step()
    scene.step(SHOWS_SECONDS - 1)
    assert scene.written == []
    scene.step(1)
    assert scene.written == [("take back", "a")]
    scene.change("a", opportunistic=True, ungranted=False)
    scene.step(RESTS_SECONDS)
    assert scene.written == [("take back", "a")]
    assert scene.promoted == []


def test_what_cannot_be_taken_back_is_tried_again_after_a_rest():
    scene = scene_of(runs("full", 900), deferred("a", 400))
    scene.refuse = {("take back", "a")}
    scene.step()
    for _ in range(4):
        scene.step(SHOWS_SECONDS)
    assert scene.asked["take back", "a"] == 1
    scene.refuse.clear()
    scene.step(RESTS_SECONDS)
    scene.step(SHOWS_SECONDS)
    assert scene.count("take back") == {"a": 1}


def test_what_could_not_be_written_is_tried_again_soon_and_after_rests_that_grow():
    scene = scene_of(given("a", 400))
    scene.refuse = {("restore", "a")}
    asked = []
    for _ in range(200):
        before = scene.asked["restore", "a"]
        scene.step(1)
        if scene.asked["restore", "a"] > before:
            asked.append(scene.now)
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert pauses == pytest.approx([15 + 15, 15 + 30, 15 + 60], abs=2)  # unsure whether it was written, then a rest
    assert scene.count("take back") == {}
    scene.refuse.clear()
    scene.step(120)
    assert promoted(scene) == ["a"]


def test_what_was_written_though_it_seemed_to_fail_has_as_long_as_any_other_to_be_granted():
    scene = scene_of(given("a", 400))
    scene.refuse = {("restore", "a")}
    scene.step()
    scene.change("a", opportunistic=False, ungranted=True)
    scene.step(SHOWS_SECONDS - 1)
    assert scene.count("take back") == {}
    scene.change("a", ungranted=False)
    scene.step(1)
    assert scene.promoted == ["a"]


def test_what_the_api_server_refuses_is_told_at_once_and_tried_again_after_rests_that_grow():
    scene = scene_of(given("a", 400))
    scene.refuse, scene.refused_with = {("restore", "a")}, 403
    asked = []
    for _ in range(2000):
        before = scene.asked["restore", "a"]
        scene.step(1)
        if scene.asked["restore", "a"] > before:
            asked.append(scene.now)
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked)]
    assert pauses == pytest.approx([RESTS_SECONDS, 2 * RESTS_SECONDS], abs=2)
    assert scene.refusals == [("a", "restore a is refused")] * 3
    assert scene.count("take back") == {}
    scene.remove("a")
    scene.step(1)
    assert not scene.promoter._failures


def test_the_room_of_a_refused_promotion_is_free_for_others():
    scene = scene_of(given("a", 400))
    scene.refuse, scene.refused_with = {("restore", "a")}, 403
    scene.step()
    scene.see(needs("b", 400))
    scene.step(1)
    assert scene.released() == ["b"]


def test_a_pod_is_not_taken_back_while_its_promotion_is_still_being_written():
    scene = scene_of(given("a", 400))
    scene.late = True
    scene.step()
    scene.step(2 * SHOWS_SECONDS)
    assert len(scene.queue) == 1


def test_a_pod_that_ends_meanwhile_frees_its_room_and_is_not_counted():
    scene = scene_of(given("a", 400))
    scene.late = True
    scene.step()
    scene.end("a")
    scene.see(needs("b", 1000))
    scene.step(1)
    scene.step(1)
    scene.write_all()
    assert scene.nominated() == {"b": "n1"}
    assert scene.promoted == []


def test_without_the_lead_nothing_is_written():
    scene = scene_of(given("a", 400))
    scene.late = True
    scene.step()
    scene.leading = False
    scene.write_all()
    assert scene.written == []


def test_what_was_not_written_as_we_did_not_lead_is_begun_again_as_soon_as_we_do():
    scene = scene_of(given("a", 400))
    scene.late = True
    scene.step()
    scene.leading = False
    scene.write_all()
    scene.leading, scene.late = True, False
    scene.step(1)
    assert promoted(scene) == ["a"]
    scene.step(1)
    assert scene.promoted == ["a"]
