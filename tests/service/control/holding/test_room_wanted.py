"""Who counts as waiting for room, by what plans of the release loop leave."""

import pytest

from extender.arrays import times_fits
from extender.cluster.eligibility import Constraints, Toleration
from extender.cluster.events import NodeSeen
from extender.control.holding.decision import Holding
from extender.control.holding.room_wanted import RoomWanted
from extender.control.release.loop import Releaser
from extender.control.release.slots import Pace
from extender.planner import Planner, gangs
from tests.service.control.scene import Scene, node, pod

FREE = ()


class Held(Scene):
    """A scene whose release loop tells who waits; `held` says whether new pods would be held."""

    def __init__(self, *nodes, **more):
        super().__init__(*nodes, by_filter=True, **more)
        self.holding, self.changes = Holding(), []
        allowed = self.cluster.input_builder.allowed_nodes
        self.room_wanted = RoomWanted(allowed, self.holding, lambda: self.changes.append(self.holding.held))
        self.releaser = Releaser(
            self.cluster,
            Planner(self.policy),
            self.sender,
            self.pace,
            self.releaser.waker,
            room_wanted=self.room_wanted,
        )

    def held(self, seconds=0.0):
        self.step(seconds)
        return self.holding.held


@pytest.mark.parametrize("gates", [FREE, ("dovetail.dev/hold",)])
def test_new_pods_pass_while_there_is_room_for_all(gates):
    scene = Held(node("n1", cpu=1000))
    scene.see(*(pod(f"p{number}", cpu=100, gates=gates) for number in range(5)))

    assert not scene.held()
    assert scene.changes == []


@pytest.mark.parametrize("gates", [FREE, ("dovetail.dev/hold",)])
def test_new_pods_are_held_once_a_plan_leaves_somebody(gates):
    scene = Held(node("n1", cpu=100))
    scene.see(pod("first", cpu=100, gates=gates), pod("second", cpu=100, gates=gates))

    assert scene.held()
    assert scene.changes == [True]


def test_they_pass_again_some_time_after_the_last_one_has_found_room():
    scene = Held(node("n1", cpu=100))
    scene.see(pod("first", cpu=100, node="n1", gates=FREE), pod("second", cpu=100))
    assert scene.held()

    scene.end("first")

    assert scene.held(seconds=1.0)
    assert scene.released() == ["second"]
    assert scene.held(seconds=3.0)
    assert not scene.held(seconds=3.0)
    assert scene.changes == [True, False]


def test_who_fits_on_no_node_even_an_empty_one_holds_nobody_else():
    scene = Held(node("n1", cpu=100))
    scene.see(pod("huge", cpu=101))

    assert not scene.held()

    scene.see(pod("running", cpu=100, node="n1", gates=FREE), pod("waits", cpu=100))
    assert scene.held()


@pytest.mark.parametrize("owner", ["DaemonSet", "Node"])
def test_who_fits_only_without_the_pods_that_a_node_has_of_its_own_holds_nobody_else_until_these_are_gone(owner):
    scene = Held(node("n1", cpu=1000))
    scene.see(pod("of-node", cpu=100, gates=FREE, node="n1", owner_kind=owner), pod("large", cpu=950))
    assert not scene.held()
    scene.see(pod("fits", cpu=900), pod("runs", cpu=500, gates=FREE, node="n1"))
    assert scene.held(1)
    scene.remove("fits")
    assert not scene.held(60)
    scene.remove("of-node")
    assert scene.held(60)


def test_a_node_that_is_too_small_for_its_own_pods_makes_no_one_hopeless():
    scene = Held(node("n1", cpu=100), node("shrunk", cpu=100))
    scene.see(pod("of-node", cpu=500, gates=FREE, node="shrunk", owner_kind="DaemonSet"))
    scene.see(pod("runs", cpu=100, gates=FREE, node="n1"), pod("waits", cpu=100))

    assert scene.held()


def test_what_gangs_of_the_same_shapes_would_find_is_looked_up_once(monkeypatch):
    # Each gang of 12 is too large for the ten places of 100. The plan asks once for each gang what fits now.
    scene, looks = Held(node("n1", cpu=1000)), []
    monkeypatch.setattr(gangs, "times_fits", lambda room, demand: looks.append(demand) or times_fits(room, demand))
    scene.see(*(pod(f"g{g}-{n}", job=f"g{g}", group=f"default/g{g}", least=12) for g in range(9) for n in range(12)))
    assert not scene.held()
    assert len(looks) <= 9 + 1


def test_who_was_hopeless_counts_once_a_node_is_large_enough():
    scene = Held(node("n1", cpu=100))
    scene.see(pod("huge", cpu=200), pod("runs", cpu=150, node="n2", gates=FREE))
    assert not scene.held()

    scene.apply(NodeSeen(node("n2", cpu=200)))

    assert scene.held(seconds=1.0)


def test_who_was_hopeless_counts_once_a_nodes_label_lets_it_in():
    scene = Held(node("n1", cpu=100))
    scene.see(pod("ssd", constraints=Constraints(selector=(("disk", "ssd"),))))
    scene.see(pod("runs", cpu=100, node="n1", gates=FREE))
    assert not scene.held()

    scene.apply(NodeSeen(node("n1", cpu=100, labels={"disk": "ssd"})))

    assert scene.held(seconds=1.0)


def test_a_gang_of_which_pods_are_missing_holds_nobody_else():
    scene = Held(node("n1", cpu=100))
    scene.see(pod("runs", cpu=100, node="n1", gates=FREE), pod("half", cpu=100, group="g", least=2))

    assert not scene.held()


def test_a_gang_that_is_all_there_and_waits_for_room_does():
    scene = Held(node("n1", cpu=200))
    scene.see(pod("runs", cpu=100, node="n1", gates=FREE))
    scene.see(*(pod(f"part-{number}", cpu=100, group="g", least=2) for number in range(2)))

    assert scene.held()


def test_a_gang_for_which_the_whole_cluster_is_too_small_holds_nobody_else_until_there_is_a_node_more():
    scene = Held(node("n1", cpu=200))
    scene.see(*(pod(f"part-{number}", cpu=100, group="g", least=3) for number in range(3)))

    assert not scene.held()

    scene.see(pod("runs", cpu=100, node="n2", gates=FREE))
    scene.apply(NodeSeen(node("n2", cpu=100)))
    assert scene.held(seconds=1.0)


def test_who_is_in_no_gang_counts_whatever_gangs_there_are():
    scene = Held(node("n1", cpu=200))
    scene.see(*(pod(f"part-{number}", cpu=100, group="g", least=3) for number in range(3)))
    scene.see(pod("runs", cpu=200, node="n1", gates=FREE), pod("alone", cpu=100))

    assert scene.held()


@pytest.mark.parametrize(
    "other",
    [
        {"asks_of_pods": True},
        {"constraints": Constraints(tolerations=(Toleration("gpu", "Exists"),))},
    ],
    ids=["affinity to pods", "a toleration of no taint here"],
)
def test_it_is_too_small_also_where_pods_of_the_gang_differ_in_what_gives_them_no_other_nodes(other):
    # Two places for three pods. `explain` says so, of each of them.
    scene = Held(node("n1", cpu=200))
    scene.see(pod("odd", cpu=100, group="g", least=3, **other))
    scene.see(*(pod(f"part-{number}", cpu=100, group="g", least=3) for number in range(2)))

    assert not scene.held()
    assert {reason.kind for reason in scene.why().values()} == {"too-large"}


def test_who_wants_only_what_others_do_not_use_holds_nobody_else():
    scene = Held(node("n1", cpu=100))
    scene.see(pod("runs", cpu=100, node="n1", gates=FREE), pod("scavenger", cpu=100, choice="only"))

    assert not scene.held()


def test_a_burst_that_is_released_at_its_pace_is_no_backlog():
    scene = Held(node("n1", cpu=1000), pace=Pace(unbound_pods=2))
    scene.see(*(pod(f"p{number}", cpu=100) for number in range(10)))

    assert not scene.held()
    assert len(scene.released()) == 2


def test_who_is_left_by_a_plan_that_came_to_its_end_counts_at_any_pace():
    scene = Held(node("n1", cpu=100), pace=Pace(unbound_pods=2))
    scene.see(*(pod(f"p{number}", cpu=100) for number in range(10)))

    assert scene.held()


def test_pods_stay_held_while_the_pace_of_the_release_hides_who_waits_and_for_five_seconds_more():
    scene = Held(node("n1", cpu=100), pace=Pace(unbound_pods=2))
    scene.see(*(pod(f"p{number}", cpu=100) for number in range(10)))
    assert scene.held()

    scene.apply(NodeSeen(node("n2", cpu=1000)))  # room for all, two at a time: the plans are cut
    for _ in range(5):  # four cut plans, and one that sends the last pod on its way
        for name in scene.released():
            scene.bind(name)
        assert scene.held(seconds=4.0)
    assert len(scene.released()) == 10
    assert not scene.held(seconds=2.0)


def test_what_is_kept_of_shapes_that_are_gone_is_bounded(monkeypatch):
    monkeypatch.setattr("extender.control.plan_input.empty_nodes._MOST_KEPT", 3)
    scene = Held(node("n1", cpu=100))
    scene.see(pod("large", cpu=100, node="n1", gates=FREE))
    for number in range(10):  # each of a shape of its own; the one before is gone
        scene.see(pod(f"p{number}", cpu=50 + number))
        assert scene.held(2)
        assert 1 <= len(scene.room_wanted._empty_nodes._places) <= 3
        scene.remove(f"p{number}")
