"""Held pods that surely find room lose their gate and get no node; in any other case a plan says who goes where."""

import dataclasses

import pytest

from extender.cluster.eligibility import Constraints, Requirement, Taint
from extender.control.release.slots import Pace
from tests.service.control.scene import Scene, node, pod

NODES = tuple(node(f"n{number}") for number in range(4))
"""Each has room for ten pods of 100."""


def scene_of(*pods, nodes=NODES, **options):
    scene = Scene(*nodes, chooses=True, **options)
    scene.see(*pods)
    return scene


def nominated(scene):
    return [name for verb, name, *_ in scene.written if verb == "nominate"]


def test_a_pod_that_surely_finds_room_is_released_without_a_node():
    scene = scene_of(pod("a"))
    assert scene.step() == 1
    assert scene.written == [("release", "a")]
    assert scene.told == [("a", "room-for-all", 100.0)]


def test_half_of_the_room_is_enough_for_all_and_more_is_planned():
    # 4,000 of CPU: 20 pods of 100 need half of it.
    enough = scene_of(*(pod(f"p{number}") for number in range(20)))
    enough.step()
    assert (len(enough.released()), nominated(enough)) == (20, [])
    more = scene_of(*(pod(f"p{number}") for number in range(21)))
    more.step()
    assert len(nominated(more)) == len(more.released()) == 21


def test_pods_on_their_way_to_no_node_yet_count_and_nobody_plans_until_their_nodes_are_known():
    scene = scene_of(*(pod(f"p{number}") for number in range(20)))
    scene.step()
    scene.see(pod("late"))
    scene.step(1)
    assert "late" not in scene.released()
    assert scene.releaser.again_at == scene.now + 0.2
    for number in range(20):
        scene.bind(f"p{number}", "n0" if number < 10 else "n1")
    scene.step()
    assert "late" in scene.released()


@pytest.mark.parametrize("refused", [False, True], ids=["silent", "refused"])
def test_a_pod_that_kube_scheduler_neither_binds_nor_refuses_is_not_waited_for_for_long(refused):
    scene = scene_of(pod("a"))
    scene.step()
    scene.see(pod("whole", 1000, inputs=(("n1", 1.0),)))
    scene.step(0.5)
    assert "whole" not in scene.released()
    if refused:
        scene.change("a", unschedulable=True)
    scene.step(0.1 if refused else 2)
    assert nominated(scene) == (["a", "whole"] if refused else ["whole"])


def test_bound_pods_leave_the_rest_of_the_room():
    scene = scene_of(*(pod(f"p{number}") for number in range(20)))
    scene.step()
    for number in range(20):
        scene.bind(f"p{number}", f"n{number % 4}")
    scene.see(*(pod(f"q{number}") for number in range(10)))
    scene.step(1)
    assert (len(scene.released()), nominated(scene)) == (30, [])


def test_what_another_scheduler_has_nominated_pods_for_is_not_room():
    theirs = [dataclasses.replace(pod(f"t{n}", 1000, gates=()), scheduler="another", nominated=f"n{n}") for n in (0, 1)]
    scene = scene_of(*theirs, *(pod(f"p{number}") for number in range(10)))
    scene.step()
    assert (len(scene.released()), nominated(scene)) == (10, [])
    tight = scene_of(*theirs, *(pod(f"p{number}") for number in range(11)))
    tight.step()
    assert len(nominated(tight)) == 11


def test_all_count_as_the_largest_in_each_resource():
    # Ten pods of 100 and one of 1,000: as if eleven wanted a node each, of four.
    scene = scene_of(pod("large", 1000), *(pod(f"p{number}") for number in range(10)))
    scene.step()
    assert len(nominated(scene)) == 11


def test_half_of_the_nodes_must_have_room_for_one_as_kube_scheduler_asks_about_a_sample():
    full = [pod(f"full{number}", 950, gates=(), node=f"n{number}") for number in range(3)]
    for cpu in (100, 1000):  # the two that are empty have room for ten, and for one
        scene = scene_of(*full[:2], pod("a", cpu))
        scene.step()
        assert (scene.released(), nominated(scene)) == (["a"], [])
    scene = scene_of(*full, pod("a"))
    scene.step()
    assert nominated(scene) == ["a"]


def test_who_may_run_nowhere_has_a_plan_made():
    scene = scene_of(pod("nowhere", constraints=Constraints(selector=(("disk", "ssd"),))), pod("a"))
    scene.step()
    assert nominated(scene) == ["a"]


def test_room_counts_where_a_pod_may_run():
    tainted = tuple(node(f"t{number}", taints=(Taint("only", "", "NoSchedule"),)) for number in range(40))
    scene = scene_of(*(pod(f"p{number}") for number in range(21)), nodes=NODES + tainted)
    scene.step()
    assert len(nominated(scene)) == 21


def test_pods_with_other_constraints_take_a_part_of_their_own():
    ssd = Constraints(selector=(("disk", "ssd"),))
    nodes = (*NODES, node("s", labels={"disk": "ssd"}))
    scene = scene_of(*(pod(f"p{number}") for number in range(12)), pod("on-ssd", constraints=ssd), nodes=nodes)
    scene.step()
    assert (len(scene.released()), nominated(scene)) == (13, [])
    for name in scene.released():
        scene.bind(name, "s" if name == "on-ssd" else "n0")
    scene.see(*(pod(f"q{number}", constraints=ssd) for number in range(5)))
    scene.step(1)
    assert len(nominated(scene)) == 5


SSD = (Requirement("disk", "In", ("ssd",)),)


@pytest.mark.parametrize(
    "particular",
    [{"group": "gang", "least": 1}, {"inputs": (("n1", 1.0),)}, {"prefers": ((10, SSD),)}, {"choice": "only"}],
    ids=["gang", "input", "preference", "idle room only"],
)
def test_where_it_matters_where_one_starts_or_with_whom_a_plan_is_made(particular):
    scene = scene_of(pod("special", **particular), pod("a"))
    scene.step()
    assert "a" in nominated(scene)


def test_where_those_run_that_were_started_before_makes_no_plan():
    scene = scene_of(pod("reader", gates=(), node="n0", inputs=(("n1", 1.0),)), pod("a"))
    scene.step()
    assert (scene.released(), nominated(scene)) == (["a"], [])


@pytest.mark.parametrize("preempts", [False, True])
def test_a_plan_is_made_where_one_that_was_released_is_nominated(preempts):
    scene = scene_of(pod("released", gates=(), nominated="n0", unschedulable=preempts), pod("a"))
    scene.step()
    assert nominated(scene) == ["a"]


def test_a_plan_is_made_where_a_held_pod_has_a_node_or_one_is_being_cleared_for_another():
    scene = scene_of(pod("promised", nominated="n0", promised="n0"))
    scene.refuse.add(("release", "promised"))
    scene.step()
    scene.see(pod("a"))
    scene.step(0.1)
    assert nominated(scene) == ["a"]
    cleared = scene_of(pod("a"))
    cleared.cluster.awaiting_evictions.add("uid-b")
    cleared.step()
    assert nominated(cleared) == ["a"]


def test_a_pod_of_another_scheduler_is_nominated_as_nobody_asks_filter_about_it():
    scene = scene_of(dataclasses.replace(pod("a"), scheduler="another"))
    scene.step()
    assert nominated(scene) == ["a"]


def test_where_one_that_was_released_is_refused_a_plan_is_made():
    scene = scene_of(pod("a"))
    scene.step()
    scene.change("a", unschedulable=True)
    scene.see(pod("b", 200))
    scene.step(1)
    assert nominated(scene) == ["a", "b"]


def test_no_more_are_on_their_way_than_the_pace_allows_and_each_class_gets_its_turn():
    many = [pod(f"m{number}", job="many") for number in range(6)]
    scene = scene_of(*many, pod("one", job="one"), pace=Pace(unbound_pods=3))
    scene.step()
    assert sorted(scene.released()) == ["m0", "m1", "one"]
    scene.step(1)
    assert len(scene.released()) == 3


def test_a_release_that_does_not_show_yet_is_not_made_again():
    scene = scene_of(pod("a"))
    scene.deaf = True
    for _ in range(10):
        scene.step(1)
    assert scene.written == [("release", "a")]


def test_a_release_whose_write_fails_is_tried_again_and_nobody_waits_for_it():
    scene = scene_of(pod("a"))
    scene.refuse.add(("release", "a"))
    scene.step()
    assert scene.released() == []
    scene.see(pod("whole", 1000, inputs=(("n1", 1.0),)))
    scene.step(0.5)
    assert nominated(scene) == ["whole"]
    scene.bind("whole")
    scene.refuse.clear()
    scene.step(2)
    assert (scene.released(), nominated(scene)) == (["whole", "a"], ["whole"])


def test_a_new_process_goes_on_where_the_last_one_ended():
    scene = scene_of(pod("a"), pod("b"))
    scene.refuse.add(("release", "b"))
    scene.step()
    scene.refuse.clear()
    scene.restart()
    scene.step(20)
    assert (sorted(scene.released()), nominated(scene)) == (["a", "b"], [])
