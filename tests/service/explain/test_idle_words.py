"""Why a held pod that may run on idle resources finds none, in words; 800 of 1,000 of CPU may be used of each node."""

from dataclasses import replace

import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.pods.opportunistic import NEVER
from extender.explain.idle_words import BARRED, ENOUGH, UNMEASURED, idle_reasons
from extender.explain.pod import explain
from tests.service.control.opportunistic.idle_scene import IdleScene, needs, runs
from tests.service.control.scene import node


def scene_of(*waiting, use):
    """Return a scene whose nodes are full by what is requested, and use so much of the CPU, after one step."""
    scene = IdleScene(*map(node, use), use=use)
    scene.see(*(runs(f"full-{name}", 1000, on=name) for name in use), *waiting)
    scene.step()
    return scene


def told(scene):
    """Return what is said of each class that is left."""
    return list(idle_reasons(scene.second_pass.left_over).values())


def test_it_names_what_is_short_on_most_nodes_and_the_node_that_has_most():
    # 100 of n1 and 300 of n2 may be used: 400 are too many.
    scene = scene_of(needs("a", 400), use={"n1": 700, "n2": 500})
    assert told(scene) == ["no node has enough: mostly cpu is short, the most is 0.3 cores on n2"]


def test_a_node_that_uses_more_than_the_threshold_has_none():
    assert told(scene_of(needs("a", 400), use={"n1": 900})) == [
        "no node has enough: mostly cpu is short, the most is 0 cores on n1"
    ]


def test_without_measurements_there_is_none():
    assert told(scene_of(needs("a", 400), use={"n1": None})) == [UNMEASURED]


def test_a_node_with_a_limit_of_what_is_not_measured_has_none_and_does_not_look_full():
    # 500 of the CPU are idle, and nobody knows of the disk.
    scene = IdleScene(replace(node("n1"), allocatable={**node("n1").allocatable, "disk-read": 1e6}), use={"n1": 300})
    scene.see(runs("full", 1000, on="n1"), needs("a", 400))
    scene.step()
    said = "of no node all is measured that limits pods there: mostly disk-read is not, as of n1"
    assert told(scene) == [said]


def test_nodes_with_a_limit_of_what_is_not_measured_are_named_beside_one_that_is_full():
    # n2 and n3 have 500 of the CPU idle, and nobody knows of their disks; n1 has 100.
    with_disk = [replace(node(n), allocatable={**node(n).allocatable, "disk-read": 1e6}) for n in ("n2", "n3")]
    scene = IdleScene(node("n1"), *with_disk, use={"n1": 700, "n2": 300, "n3": 300})
    scene.see(*(runs(f"full-{n}", 1000, on=n) for n in ("n1", "n2", "n3")), needs("a", 400))
    scene.step()
    left_out = "2 others are left out, as not all is measured that limits pods there: mostly disk-read is not, as of n2"
    assert told(scene) == [f"no node has enough: mostly cpu is short, the most is 0.1 cores on n1; {left_out}"]


def test_who_is_left_though_there_was_room_comes_after_others():
    # 500 are idle: one of 400 starts, of two.
    scene = scene_of(needs("a", 400, job="j"), needs("b", 400, job="j"), use={"n1": 300})
    assert (len(scene.on_idle_room()), told(scene)) == (1, [ENOUGH])


def test_nodes_that_a_pod_may_not_use_do_not_count():
    bound = Constraints(selector=(("disk", "ssd"),))
    assert told(scene_of(replace(needs("a", 400), constraints=bound), use={"n1": 300})) == [BARRED]


def test_nothing_is_said_of_who_may_not_or_was_started():
    assert told(scene_of(replace(needs("a", 400), choice=NEVER), use={"n1": 700})) == []
    assert told(scene_of(needs("a", 400), use={"n1": 300})) == []


@pytest.mark.parametrize(
    ("idle", "said"),
    [
        (None, ""),
        ({}, ""),
        ("pods of control cannot be asked", "only control knows: pods of control cannot be asked"),
    ],
)
def test_a_held_pod_says_what_is_known(idle, said):
    scene = scene_of(needs("a", 400), use={"n1": 700})
    assert explain(scene.view(), scene.pods["a"], scene.policy, (), idle=idle).no_idle == said


def test_a_held_pod_says_why_its_class_finds_none():
    scene = scene_of(needs("a", 400), runs("gone", 100, on="n1"), use={"n1": 700})
    idle = idle_reasons(scene.second_pass.left_over)
    found = explain(scene.view(), scene.pods["a"], scene.policy, (), idle=idle)
    assert found.no_idle == "no node has enough: mostly cpu is short, the most is 0.1 cores on n1"
    assert explain(scene.view(), scene.pods["gone"], scene.policy, (), idle=idle).no_idle == ""
