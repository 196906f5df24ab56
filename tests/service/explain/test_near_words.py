"""What pods that wait for room near their input are told of the nodes that they wait for."""

from extender.explain.advice import changes_for
from extender.explain.pod import explain
from extender.explain.pod_in_plan import case_of
from extender.planner import Policy
from tests.service.control.locality.test_locality import RACK, WAITS, full, racks, reader
from tests.service.control.scene import LONG_SECONDS, Scene, node, pod

IN_THE_END = "nothing: after its waits (locality.waitSeconds) it takes what there is"


def said(nodes):
    return f"waits for node-local room: {nodes}; anywhere from 5 s on"


def changes(scene, name="a"):
    found = scene.view()
    return changes_for(case_of(found, scene.pods[name]), found.why[f"uid-{name}"])


def six(*pods, policy=WAITS):
    """Return a scene of six nodes, all of whom but n0 and n1 are full."""
    scene = Scene(*[node(f"n{number}") for number in range(6)], policy=policy)
    scene.see(*[full(f"n{number}") for number in (2, 3, 4, 5)], *pods)
    return scene


def test_each_pod_of_a_class_is_told_of_its_own_nodes_whoever_waits_beside_it():
    scene = six(reader("a", "n2", job="j"), reader("b", "n3", "n4", "n5", job="j"))
    assert {name: it.text for name, it in scene.why().items()} == {
        "a": said("1 preferred node, full"),
        "b": said("3 preferred nodes, all full"),
    }
    scene.remove("a")
    assert scene.why()["b"].text == said("3 preferred nodes, all full")


def test_so_it_is_where_the_plan_places_another_of_the_class():
    scene = six(reader("a", "n1", job="j"), reader("b", "n3", "n4", "n5", job="j"))
    before = scene.why()["b"].text
    assert before == said("3 preferred nodes, all full")
    scene.step()
    assert scene.nominated() == {"a": "n1"}
    scene.bind("a")
    assert scene.why()["b"].text == before


def test_so_it_is_where_another_of_the_class_may_use_no_node_of_its_input():
    scene = six(reader("a", "gone", job="j"), reader("b", "n3", "n4", job="j"))
    assert scene.why()["b"].text == said("2 preferred nodes, all full")
    scene.step()
    assert [*scene.nominated()] == ["a"]
    assert scene.why()["b"].text == said("2 preferred nodes, all full")


def test_what_would_have_to_change_names_only_nodes_that_it_could_use():
    scene = Scene(node("n1"), node("n2", unschedulable=True), node("n3"), node("n4", 500), policy=WAITS)
    scene.see(full("n3"), reader("a", "n2", "n3", "n4"))
    assert scene.why()["a"].text == said("1 preferred node, full")
    assert changes(scene) == ["room must come free on n3", f"or {IN_THE_END}"]
    found = explain(scene.view(), scene.pods["a"], WAITS, [])
    assert found.preferred == ["n3"]
    assert {it.name: it.level for it in found.nodes} == {"n1": "anywhere", "n2": "", "n3": "node", "n4": ""}


def test_a_pod_that_runs_on_a_node_that_was_cordoned_since_runs_at_its_input():
    scene = Scene(node("n1"), node("n2", unschedulable=True), policy=WAITS)
    scene.see(reader("a", "n2", node="n2", gates=()))
    found = explain(scene.view(), scene.pods["a"], WAITS, [])
    assert (found.level, found.preferred) == ("node", ["n2"])


def test_where_all_nodes_hold_its_input_those_with_too_many_long_tasks_are_named_as_such():
    scene = Scene(node("n1"), node("n2"), policy=Policy(locality_waits=(5.0,), long_task=600.0))
    scene.see(
        pod("runs", 100, node="n1", gates=(), duration=1000.0), pod("short", 1000, node="n2", gates=(), duration=1.0)
    )
    scene.see(reader("a", "n1", "n2", cpu=500, duration=1000.0))
    assert scene.why()["a"].text == said("2 preferred nodes, all full or crowded by long tasks")
    assert changes(scene) == [
        "room must come free on n2",
        "or fewer long tasks must run on n1",
        f"or {IN_THE_END}",
    ]


def test_a_node_with_room_that_is_reserved_is_named_as_such():
    # big wants all of n2, of which 1,000 are free, and is due.
    scene = Scene(node("n1"), node("n2", 2000), policy=Policy(locality_waits=(5.0,), starved_after=10.0))
    scene.see(pod("big", 2000))
    scene.now += LONG_SECONDS
    scene.see(pod("f", 1000, node="n2", gates=(), started=scene.now), reader("a", "n2", created=scene.now))
    scene.step()
    assert scene.why()["a"].text == said("1 preferred node, reserved")
    assert changes(scene) == [
        "those for whom room is reserved must start, on n2",
        f"or {IN_THE_END}",
    ]


def test_at_the_rack_level_all_nodes_of_the_rack_are_named():
    scene = Scene(*racks(n1="r1", n2="r2", n3="r2"), policy=Policy(locality_waits=(5.0, 3.0)), levels=[RACK])
    scene.see(full("n2"), full("n3"), reader("a", "n2"))
    scene.step()
    scene.step(6.0)
    found = scene.view(0.0, scene.releaser.planner.carried)
    assert changes_for(case_of(found, scene.pods["a"]), found.why["uid-a"])[0] == "room must come free on n2, n3"
