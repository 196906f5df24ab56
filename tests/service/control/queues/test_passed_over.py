"""Who waits below its share while room that it could have used goes to others."""

import math

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.queues import Queue
from extender.control.backlog.task_classes import name_of
from extender.control.queues.passed_over import PassedOver, PassedOverNow, passed_over_in
from extender.planner import Assignments, Plan
from extender.planner.plan import Carried, Reservation
from tests.service.control.scene import Scene, node, pod


def outcome(scene, *given, reserved=()):
    """Return what is seen in a plan that gives each of these pods, by name, a node in this order.

    It keeps room for one pod each of what is `reserved`, by name, on a node.
    """
    snapshot = scene.ledger.snapshot(scene.now)
    made = scene.input_builder().build(snapshot, scene.now)
    rows = [made.row(scene.backlog.find(f"uid-{name}")[0], f"uid-{name}") for name, _ in given]
    nodes = [snapshot.layout.rows[where] for _, where in given]
    none = np.full(len(rows), -1)
    assignments = Assignments(np.array(rows, dtype=np.intp), np.array(nodes, dtype=np.intp), none, none)
    names = [(name_of(scene.pods[name]), where) for name, where in reserved]
    kept = {name: Reservation(((name, where, 1),), until=math.inf) for name, where in names}
    return passed_over_in(made.waiting, Plan(assignments, carried=Carried(reserved=kept)), snapshot)


def scene_of(*pods, nodes=("n1", "n2")):
    """Two nodes of 1,000; queue rich runs 1,000 of them, all of its half; poor runs nothing."""
    scene = Scene(*(node(name) for name in nodes))
    scene.see(pod("runs", 1000, queue="rich", gates=(), node="n1"), *pods)
    return scene


RICH = pod("r", 100, queue="rich")


def test_a_queue_below_its_share_is_passed_over_where_one_above_gets_room_that_it_could_have_used():
    scene = scene_of(RICH, pod("p", 900, queue="poor"))
    assert outcome(scene, ("r", "n2")) == PassedOverNow({"poor"}, {"poor"})


def test_it_is_not_where_the_other_has_less_than_its_share():
    scene = Scene(node("n1"), node("n2"))
    scene.see(pod("runs", 900, queue="rich", gates=(), node="n1"), RICH, pod("p", 900, queue="poor"))
    assert outcome(scene, ("r", "n2")) == PassedOverNow(set(), {"poor"})


def test_nor_by_what_the_other_gets_until_it_has_its_share():
    """The second of 100 takes rich from 1,000 to 1,100 of 2,000; the first brings it to its share."""
    scene = Scene(node("n1"), node("n2"))
    more = [pod(f"r{n}", 100, queue="rich") for n in range(2)]
    scene.see(pod("runs", 900, queue="rich", gates=(), node="n1"), *more, pod("p", 500, queue="poor"))
    assert outcome(scene, ("r0", "n2")).passed == set()
    assert outcome(scene, ("r0", "n2"), ("r1", "n2")).passed == {"poor"}


@pytest.mark.parametrize(
    ("could", "could_not"),
    [
        (pod("p", 400, queue="poor"), pod("p", 401, queue="poor")),
        (pod("p", {"memory": 300.0}, queue="poor"), pod("p", {"memory": 301.0}, queue="poor")),
        (pod("p", 400, queue="poor"), pod("p", 400, queue="poor", priority=-1)),
        (pod("p", 400, queue="poor"), pod("p", 400, queue="poor", group="g", least=1)),
        (pod("p", 400, queue="poor"), pod("p", 400, queue="poor", constraints=Constraints(selector=(("no", "node"),)))),
    ],
    ids=["too large", "beyond its share", "of lower priority", "of a gang", "not allowed there"],
)
def test_room_that_it_could_not_have_used_passes_over_nobody(could, could_not):
    """Rich gets 100 of a node of 400. Of 2,000 of memory poor has 700, and 1,000 is its share."""
    for waiting, passed in ((could, {"poor"}), (could_not, set())):
        scene = Scene(node("n1"), node("n2", cpu=400, memory=500), node("n3", cpu=600, memory=500))
        scene.see(pod("runs", 1000, queue="rich", gates=(), node="n1"), RICH, waiting)
        scene.see(pod("has", {"memory": 700.0}, queue="poor", gates=(), node="n1"))
        assert outcome(scene, ("r", "n2")).passed == passed


def test_room_that_is_reserved_passes_over_nobody_but_what_is_left_beside_it_does():
    """Rich gets 100 of the 1,000 of n2, of which 500 are kept for a pod of a third queue."""
    for cpu, passed in ((500, {"poor"}), (501, set())):
        scene = scene_of(RICH, pod("p", cpu, queue="poor"), pod("t", 500, queue="third"), nodes=("n1", "n2", "n3"))
        assert outcome(scene, ("r", "n2"), reserved=[("t", "n2")]).passed - {"third"} == passed


@pytest.mark.parametrize(("b2_has", "passed"), [(500, {"a2"}), (400, set())])
def test_between_queues_of_different_parents_it_is_the_parents_that_count(b2_has, passed):
    """Of 4,000 half is for a, half for b, a quarter for each of their queues. a2 has nothing and could take n3.

    b1 has 1,500, more than its quarter, and gets more. With 500 of b2 b has its half; with 400 it has not.
    """
    names = {"a": "", "a1": "a", "a2": "a", "b": "", "b1": "b", "b2": "b"}
    scene = Scene(
        *(node(name, cpu=cpu) for name, cpu in (("n1", 1500), ("n2", 1500), ("n3", 1000))),
        queues=tuple(Queue(name, parent=parent) for name, parent in names.items()),
    )
    scene.see(pod("x", 900, queue="a1", gates=(), node="n1"), pod("a2", 500, queue="a2"))
    scene.see(pod("y", 1500, queue="b1", gates=(), node="n2"), pod("more", 100, queue="b1"))
    scene.see(pod("too-large", 1001, queue="b2"), pod("z", b2_has, queue="b2", gates=(), node="n1"))
    assert outcome(scene, ("more", "n3")).passed == passed


def test_one_that_gets_as_much_as_it_wants_is_not_below():
    scene = scene_of(RICH, pod("p", 100, queue="poor"))
    assert outcome(scene, ("p", "n2"), ("r", "n2")) == PassedOverNow(set(), set())


def test_for_how_long_is_from_the_first_time_to_the_latest():
    passed = PassedOver()
    for now in (100.0, 130.0, 170.0):
        passed.note(PassedOverNow({"poor"}, {"poor"}), now)
    passed.note(PassedOverNow(set(), {"poor"}), 180.0)
    assert passed.seconds() == {"poor": 70.0}


@pytest.mark.parametrize(
    ("seen", "now"), [(PassedOverNow(set(), set()), 101.0), (PassedOverNow(set(), {"poor"}), 161.0)]
)
def test_it_ends_with_the_wait_and_when_nothing_was_given_away_for_a_minute(seen, now):
    passed = PassedOver()
    passed.note(PassedOverNow({"poor"}, {"poor"}), 100.0)
    passed.note(seen, now)
    assert passed.seconds() == {}


@pytest.mark.parametrize("waiting", [(RICH, pod("p", 900, queue="poor")), ()], ids=["it gets its room", "nobody waits"])
def test_it_ends_with_the_next_plan_that_passes_nobody_over(waiting):
    scene = scene_of(*waiting)
    scene.releaser.passed_over.note(PassedOverNow({"poor"}, {"poor"}), scene.now)
    scene.step(1)
    assert scene.releaser.passed_over.seconds() == {}
    assert scene.released() == [it.name for it in reversed(waiting)]


def test_nobody_is_passed_over_while_the_loop_rests():
    scene = scene_of(RICH)
    scene.releaser.passed_over.note(PassedOverNow({"poor"}, {"poor"}), scene.now)
    scene.releaser.rest(scene.now)
    assert scene.releaser.passed_over.seconds() == {}
