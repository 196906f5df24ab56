"""One moment's order."""

from extender.control.plan_input.builder import PlanInputBuilder
from extender.explain.planned_order import planned_order
from extender.planner import Carried, Planner
from tests.service.control.scene import Scene, node, pod


def test_pods_of_one_class_have_the_places_of_their_age():
    # 1,000 of CPU: three of 300 fit.
    scene = Scene(node("n1"))
    scene.see(*(pod(f"p{n}", 300, job="j", created=float(n)) for n in range(4)))
    found = scene.view()
    assert [found.places(scene.pods[f"p{n}"]) for n in range(4)] == [(0, "n1"), (1, "n1"), (2, "n1"), None]


def test_it_goes_on_with_what_the_planner_carries():
    scene, planner = Scene(node("n1")), Planner(explain=True)
    planner.carried = Carried(reserved={"somebody": "n1"})
    input_builder = PlanInputBuilder(scene.backlog, (), starved_after=120.0)
    found = planned_order(scene.backlog, input_builder, planner, scene.ledger.snapshot(0.0), 100.0)
    assert found.carried == Carried(reserved={"somebody": "n1"})


def test_an_empty_cluster_without_pods_has_an_empty_order():
    found = Scene().view()
    assert (len(found.plan.assignments), dict(found.why)) == (0, {})


def test_looking_changes_nothing_of_what_the_release_loop_does_next():
    scene = Scene(node("n1"))
    scene.see(*(pod(f"p{n}", 300, job="j", created=float(n)) for n in range(4)))
    scene.view()
    scene.step()
    assert scene.released() == ["p0", "p1", "p2"]
