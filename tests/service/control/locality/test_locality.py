"""Delay Scheduling on a cluster: whose pods wait for room near their input, for how long, and what they are told."""

import dataclasses
import math

import pytest

from extender.cluster.eligibility import Requirement
from extender.cluster.events import NodeGone, NodeSeen
from extender.cluster.model import Node
from extender.cluster.queues import Queue
from extender.control.filter_order.order import LOCALITY_WAITS, OTHERS_FIRST
from extender.explain.advice import changes_for
from extender.explain.pod import explain
from extender.explain.pod_in_plan import case_of
from extender.planner import Policy, WaitLeft
from tests.service.control.filter_order.asked import Asked
from tests.service.control.scene import LONG_SECONDS, Scene, node, pod

WAITS = Policy(locality_waits=(5.0,))
TWO_WAITS = Policy(locality_waits=(5.0, 3.0))
RACK, ZONE = "topology.example/rack", "topology.example/zone"


def on(*names):
    return tuple((name, 1000.0) for name in names)


def reader(name, *nodes, cpu=1000, **more):
    return pod(name, cpu, inputs=on(*nodes), **more)


def full(name):
    """Return a pod that fills a node."""
    return pod(f"full-{name}", 1000, node=name, gates=())


def racks(**rack_of):
    return [node(name, labels={RACK: rack}) for name, rack in rack_of.items()]


def test_a_pod_goes_to_the_node_that_has_its_input_although_others_suit_it_as_well():
    scene = Scene(node("n1"), node("n2"), node("n3"), policy=WAITS)
    scene.see(reader("a", "n2"))
    scene.step()
    assert scene.nominated() == {"a": "n2"}
    assert scene.levels == {"a": ("node", 0.0)}


def test_without_waits_it_goes_near_its_input_if_it_can_and_else_at_once_elsewhere():
    scene = Scene(node("n1"), node("n2"))
    scene.see(reader("a", "n2"), reader("b", "n2"))
    scene.step()
    assert scene.nominated() == {"a": "n2", "b": "n1"}


def test_pods_of_one_class_go_each_to_its_own_input():
    scene = Scene(*[node(f"n{number}") for number in range(1, 5)], policy=WAITS)
    scene.see(*[reader(f"p{number}", f"n{number}", job="scan") for number in (3, 1, 4, 2)])
    assert len(scene.backlog.classes()) == 1
    scene.step()
    assert scene.nominated() == {"p1": "n1", "p2": "n2", "p3": "n3", "p4": "n4"}


def test_a_pod_waits_as_long_as_settings_say_then_takes_what_there_is():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2"))
    scene.step()
    assert scene.released() == []
    assert scene.releaser.again_at == scene.now + 5.0
    scene.step(4.9)
    assert scene.released() == []
    scene.step(0.1)
    assert scene.nominated() == {"a": "n1"}
    assert scene.levels == {"a": ("anywhere", pytest.approx(5.0))}


def test_a_pod_that_waits_gets_the_near_node_as_soon_as_that_is_free():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2"))
    scene.step()
    scene.end("full-n2")
    scene.step(2.0)
    assert scene.nominated() == {"a": "n2"}
    assert scene.levels == {"a": ("node", pytest.approx(2.0))}
    assert scene.releaser.again_at == math.inf


def test_a_pod_that_waits_does_not_block_others():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2", created=1.0), pod("b", 1000, created=2.0))
    scene.step()
    assert scene.nominated() == {"b": "n1"}


def test_levels_follow_the_labels_of_nodes():
    scene = Scene(*racks(n1="r1", n2="r2", n3="r2"), policy=TWO_WAITS, levels=[RACK])
    scene.see(full("n2"), full("n3"), reader("a", "n2"))
    scene.step()
    assert scene.why()["a"].text == "waits for node-local room: 1 preferred node, full; rack level from 5 s on"
    scene.step(5.0)
    assert scene.released() == []  # its rack is full as well
    scene.end("full-n3")
    scene.step(1.0)
    assert scene.nominated() == {"a": "n3"}
    assert scene.levels["a"] == ("rack", pytest.approx(6.0))


def test_after_the_last_level_it_goes_anywhere():
    scene = Scene(*racks(n1="r1", n2="r2", n3="r2"), policy=TWO_WAITS, levels=[RACK])
    scene.see(full("n2"), full("n3"), reader("a", "n2"))
    for _ in range(3):
        scene.step(4.0)
    assert scene.nominated() == {"a": "n1"}


@pytest.mark.parametrize("near", [{"inputs": on("n2")}, {"prefers": ((10, (Requirement("node", "In", ("n2",)),)),)}])
def test_each_level_lies_within_the_next_wider_one(near):
    # n4 is in the rack of n2, n3 in its zone only, n1 in another zone.
    places = {"n1": ("r1", "z1"), "n2": ("r2", "z2"), "n3": ("r3", "z2"), "n4": ("r2", "z2")}
    nodes = [node(name, labels={RACK: rack, ZONE: zone, "node": name}) for name, (rack, zone) in places.items()]
    scene = Scene(*nodes, policy=Policy(locality_waits=(5.0, 3.0, 2.0)), levels=[RACK, ZONE])
    scene.see(full("n2"), *(pod(name, 1000, created=at, **near) for at, name in enumerate("abc", 1)))
    for seconds in (0.0, 5.0, 3.0, 2.0):
        scene.step(seconds)
    assert scene.nominated() == {"a": "n4", "b": "n3", "c": "n1"}
    assert scene.levels == {"a": ("rack", 5.0), "b": ("zone", 8.0), "c": ("anywhere", 10.0)}


def test_nodes_without_the_label_are_in_no_rack():
    scene = Scene(node("n1"), node("n2"), policy=TWO_WAITS, levels=[RACK])
    scene.see(full("n2"), reader("a", "n2"))
    scene.step()
    scene.step(5.0)
    assert scene.nominated() == {"a": "n1"}
    assert scene.levels["a"] == ("anywhere", 5.0)


def test_the_nodes_that_a_pods_affinity_prefers_most_are_its_places():
    ssd, west = (Requirement("disk", "In", ("ssd",)),), (Requirement("side", "In", ("west",)),)
    nodes = [node("n1"), node("n2", labels={"disk": "ssd"}), node("n3", labels={"disk": "ssd", "side": "west"})]
    scene = Scene(*nodes, policy=WAITS)
    scene.see(pod("a", 1000, prefers=((10, ssd), (1, west))), pod("b", 1000, prefers=((10, ssd), (1, west))))
    scene.step()
    assert scene.nominated() == {"a": "n3"}
    assert scene.why()["b"].text == "waits for node-local room: 1 preferred node, full; anywhere from 5 s on"
    scene.step(5.0)
    assert "b" in scene.nominated()


def test_an_input_goes_before_an_affinity():
    ssd = (Requirement("disk", "In", ("ssd",)),)
    scene = Scene(node("n1"), node("n2", labels={"disk": "ssd"}), policy=WAITS)
    scene.see(reader("a", "n1", prefers=((10, ssd),)))
    scene.step()
    assert scene.nominated() == {"a": "n1"}


def test_a_pod_whose_input_is_on_nodes_that_are_not_there_waits_for_nothing():
    scene = Scene(node("n1"), policy=WAITS)
    scene.see(reader("a", "gone"))
    scene.step()
    assert scene.nominated() == {"a": "n1"}
    assert scene.levels["a"] == ("", 0.0)


def test_nor_does_it_where_others_of_its_class_have_theirs():
    scene = Scene(node("n1", 2000), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "gone", job="scan"), reader("b", "n2", job="scan"))
    scene.step()
    assert scene.nominated() == {"a": "n1"}


def test_a_node_that_comes_back_has_the_input_again():
    scene = Scene(node("n1"), policy=WAITS)
    scene.see(full("n1"), reader("a", "n2"))
    scene.step()
    scene.apply(NodeSeen(node("n2")))
    scene.step(1.0)
    assert scene.nominated() == {"a": "n2"}


def test_an_input_that_changes_while_the_pod_waits_counts_from_then_on():
    scene = Scene(node("n1"), node("n2"), node("n3"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2"))
    scene.step()
    scene.change("a", inputs=on("n3"))
    scene.step(1.0)
    assert scene.nominated() == {"a": "n3"}


def test_a_restart_lets_a_job_wait_once_more_and_no_longer():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2"))
    scene.step()
    scene.step(4.0)
    scene.restart()
    scene.step(1.0)
    assert scene.released() == []
    scene.step(5.0)
    assert scene.nominated() == {"a": "n1"}


class TestNominatedByAPredecessor:
    """It nominated a to a node and died before it removed the gate."""

    def level(self, pod, *nodes, **options):
        scene = Scene(*nodes, policy=Policy(locality_waits=(0.0, 0.0)), levels=[RACK], **options)
        scene.refuse.add(("release", "a"))
        scene.see(full("n2"), pod)
        scene.step()
        scene.refuse.clear()
        scene.restart()
        assert scene.step(1) == 1
        assert scene.told[-1][:2] == ("a", "completed")
        return scene.levels["a"]

    @pytest.mark.parametrize(
        ("inputs", "level"), [(("n1",), "node"), (("n2",), "rack"), (("n3", "n2"), "node"), (("n1", "n2"), "node")]
    )
    def test_its_level_is_counted_but_not_how_long_it_waited(self, inputs, level):
        assert self.level(reader("a", *inputs), *racks(n1="r1", n2="r1", n3="r2")) == (level, None)

    def test_so_is_anywhere(self):
        assert self.level(reader("a", "n2"), *racks(n1="r1", n2="r2")) == ("anywhere", None)

    def test_so_is_a_preferred_node(self):
        prefers = ((10, (Requirement("disk", "In", ("ssd",)),)),)
        nodes = [node("n1"), node("n2"), node("n3", labels={"disk": "ssd"})]
        assert self.level(pod("a", 1000, prefers=prefers), *nodes) == ("node", None)

    def test_where_it_is_all_the_same_it_has_none(self):
        assert self.level(pod("a", 1000), node("n1"), node("n2")) == ("", None)
        # Its input is on a node that is too small for it: a plan counts that as none.
        small = [node("n1"), node("n2"), node("n3", 500)]
        assert self.level(reader("a", "n3"), *small) == ("", None)


def test_time_in_which_nobody_plans_passes_over_nobody():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2"))
    scene.step()
    scene.step(3.0)
    scene.now += 600  # without the Lease, or with caches that are too old to plan by
    scene.releaser.rest(scene.now)
    scene.step(1.9)
    assert scene.released() == []
    scene.step(0.1)
    assert scene.nominated() == {"a": "n1"}


def test_jobs_of_a_fifo_queue_wait_each_for_itself():
    scene = Scene(node("n1"), node("n2"), node("n3"), policy=WAITS, queues=[Queue("q", fifo=True)])
    scene.see(full("n2"), reader("a", "n2", created=1.0), reader("b", "n3", created=2.0))
    scene.step()
    assert scene.nominated() == {"b": "n3"}  # the first in line waits, the next goes
    scene.step(5.0)
    assert scene.nominated() == {"a": "n1", "b": "n3"}


def test_the_wait_of_a_job_in_a_line_is_kept_while_nothing_of_it_waits():
    # After 4 of its 5 s p1 is deleted, while another pod of the job runs; what the queue plans meanwhile is of others.
    scene = Scene(node("n1"), node("n2"), policy=WAITS, queues=[Queue("q", fifo=True)])
    scene.see(pod("runs", 1000, node="n2", gates=(), job="scan"), pod("big", 5000, created=1.0))
    scene.see(reader("p1", "n2", job="scan"))
    scene.step()
    scene.step(4.0)
    scene.remove("p1")
    scene.step()
    scene.step(10.0)
    scene.see(reader("p2", "n2", job="scan", created=114.0))
    scene.step()
    scene.step(0.75)
    assert scene.released() == []
    scene.step(0.25)
    assert scene.nominated() == {"p2": "n1"}


def test_explain_says_what_it_waits_for_and_how_near_each_node_is():
    scene = Scene(*racks(n1="r1", n2="r2", n3="r2"), policy=TWO_WAITS, levels=[RACK])
    scene.see(full("n2"), full("n3"), reader("a", "n2"))
    found = explain(scene.view(), scene.pods["a"], TWO_WAITS, [])
    assert found.reason.kind == "locality"
    assert found.reason.text == "waits for node-local room: 1 preferred node, full; rack level from 5 s on"
    assert found.preferred == ["n2"]
    assert {it.name: it.level for it in found.nodes} == {"n1": "anywhere", "n2": "node", "n3": "rack"}
    (rated,) = [it for it in found.nodes if it.score is not None]
    assert (rated.name, rated.remote) == ("n1", pytest.approx(0.9))


def test_explain_says_what_would_have_to_change():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2"))
    found = scene.view()
    assert changes_for(case_of(found, scene.pods["a"]), found.why["uid-a"]) == [
        "room must come free on n2",
        "or nothing: after its waits (locality.waitSeconds) it takes what there is",
    ]


def test_explain_says_that_control_may_have_computed_another_wait_where_there_is_a_target():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2"), pod("large", 1001))
    found = scene.view()
    case, why = case_of(found, scene.pods["a"]), found.why
    *others, passed, last = changes_for(case, why["uid-a"], unknown="nobody leads", by_target=True)
    assert others == changes_for(case, why["uid-a"], by_target=True)  # control has told which wait is in force
    assert [*others, passed] == changes_for(case, why["uid-a"], unknown="nobody leads")
    assert passed == (
        "it may be at a farther level by now: for how long its job has waited only control knows (nobody leads)"
    )
    assert last == (
        "its first wait may be another by now, computed by control for locality.target: "
        "dovetail_locality_wait_in_force_seconds"
    )
    large = case_of(found, scene.pods["large"])
    told = changes_for(large, why["uid-large"], unknown="nobody leads", by_target=True)
    assert told == changes_for(large, why["uid-large"])


class TestExplainWithWhatControlKnows:
    """n2 has the input and is full, n3 is in its rack and full, n1 is free."""

    def scene(self, *more, **options):
        policy = Policy(locality_waits=(5.0, 3.0))
        scene = Scene(*racks(n1="r1", n2="r2", n3="r2"), policy=policy, levels=[RACK], **options)
        scene.see(full("n2"), full("n3"), reader("a", "n2"), *more)
        return scene

    def explained(self, scene, seconds, **more):
        found = scene.view(seconds, scene.releaser.planner.carried)
        return explain(found, scene.pods["a"], scene.policy, [], **more)

    def test_it_says_what_is_left_of_the_wait(self):
        scene = self.scene()
        scene.step()
        found = self.explained(scene, 1.5)
        assert found.wait == WaitLeft("rack level", 5.0, pytest.approx(1.5), stays=True)
        assert found.wait.left == pytest.approx(3.5)
        assert found.reason.text.endswith("rack level from 5 s on")  # as its event says

    def test_it_says_at_which_level_its_job_is_by_now(self):
        scene = self.scene()
        scene.step()
        scene.step(4.0)
        found = self.explained(scene, 2.0)
        # At 6 s it may start in its rack, from 5 + 3 on anywhere.
        assert found.reason.text == "waits for rack-local room: 2 preferred nodes, all full; anywhere from 8 s on"
        assert found.wait == WaitLeft("anywhere", 8.0, pytest.approx(6.0), stays=True)

    def test_a_chance_that_others_took_counts_for_some_seconds_only(self):
        # n1 is free for one: a is first in line, b has it, and a has been passed over, which counts for 3 s.
        scene = self.scene(pod("b", 1000, created=1.0), queues=[Queue("q", fifo=True)])
        scene.step()
        assert scene.nominated() == {"b": "n1"}
        scene.bind("b")
        found = self.explained(scene, 2.0)
        assert (found.reason.kind, found.wait) == ("no-room", None)  # now nothing is free that it could pass over
        scene.end("b")
        found = self.explained(scene, 2.0)
        assert found.wait == WaitLeft("rack level", 5.0, pytest.approx(3.0), stays=True)

    def test_where_control_did_not_tell_it_says_nothing_of_it(self):
        scene = self.scene()
        scene.step()
        assert self.explained(scene, 1.0, waits_known=False).wait is None

    def test_it_is_only_of_who_waits_for_locality(self):
        scene = Scene(node("n1"), policy=WAITS)
        scene.see(full("n1"), reader("a", "n1"))
        scene.step()
        found = self.explained(scene, 1.0)
        assert (found.reason.kind, found.wait) == ("no-room", None)


def test_explain_says_how_near_to_its_input_a_pod_runs():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(reader("a", "n2", node="n1", gates=()))
    found = explain(scene.view(), scene.pods["a"], WAITS, [])
    assert (found.level, found.preferred) == ("anywhere", ["n2"])


def test_explain_compares_a_reader_with_what_it_takes_of_each_node():
    rates = {"cpu": 1000.0, "disk-read": 100.0, "network-in": 50.0, "network-out": 100.0}
    scene = Scene(Node("n1", rates), Node("n2", rates))
    scene.see(pod("a", {"cpu": 100.0, "disk-read": 80.0}, inputs=on("n2")))
    found = explain(scene.view(), scene.pods["a"], Policy(), [])
    assert {it.name: dict(it.short) for it in found.nodes} == {"n1": {"network-in": 30.0}, "n2": {}}  # 80 of 50


class TestByFilter:
    def test_a_pod_is_refused_while_it_waits_and_passes_when_its_wait_is_over(self):
        asked = Asked(node("n1"), node("n2"), policy=WAITS)
        asked.see(full("n2"), reader("a", "n2", gates=()))
        assert asked.ask("a") == LOCALITY_WAITS
        asked.now += 4.9
        assert asked.ask("a") == LOCALITY_WAITS
        asked.now += 0.2
        assert asked.ask("a") == "n1"

    def test_each_pod_of_a_class_gets_the_node_of_its_input(self):
        asked = Asked(node("n1"), node("n2"), policy=WAITS)
        asked.see(*[reader(f"p{number}", f"n{number}", job="scan", gates=()) for number in (2, 1)])
        assert asked.ask("p1") == "n1"
        assert asked.ask("p2") == "n2"

    def test_another_pod_of_the_class_does_not_get_a_place_that_is_not_its_own(self):
        asked = Asked(node("n1"), node("n2"), policy=WAITS)
        asked.see(full("n2"), *[reader(f"p{number}", f"n{number}", job="scan", gates=()) for number in (1, 2)])
        assert asked.ask("p2") in (LOCALITY_WAITS, OTHERS_FIRST)
        assert asked.ask("p1") == "n1"

    def test_control_wakes_the_pod_whose_wait_is_over(self):
        scene = Scene(node("n1"), node("n2"), policy=WAITS, by_filter=True)
        scene.see(full("n2"), reader("a", "n2", gates=(), unschedulable=True))
        scene.step()
        assert scene.told_to("wake") == []
        scene.step(5.0)
        assert scene.told_to("wake") == [("wake", "a")]


class TestAskedAboutASample:
    """Nodes n1 and n2 are in rack r1, n3 and n4 in r2, all free; the input is on n1, which the plan chooses."""

    POLICY = Policy(locality_waits=(5.0, 3.0))

    def asked(self, *pods, policy=POLICY):
        nodes = racks(n1="r1", n2="r1", n3="r2", n4="r2")
        asked = Asked(*nodes, policy=policy, levels=[RACK])
        asked.see(*pods or [reader("a", "n1", gates=())])
        return asked

    def test_a_pod_waits_for_a_sample_with_its_node(self):
        asked = self.asked()
        assert asked.ask("a", nodes=["n2", "n3"]) == LOCALITY_WAITS
        assert asked.ask("a", nodes=["n4", "n1"]) == "n1"
        assert asked.placed == ["node"]

    def test_another_node_of_its_input_does_as_well(self):
        asked = self.asked(reader("a", "n1", "n3", "n4", gates=()))
        chosen = asked.ask("a")
        asked.ledger.forget("uid-a")
        others = {"n1", "n3", "n4"} - {chosen}
        assert set(asked.ask("a", nodes=[*others, "n2"])) == others

    def test_after_its_waits_it_takes_the_nearest_there_is_level_by_level(self):
        asked = self.asked()
        assert asked.ask("a", nodes=["n2", "n3"]) == LOCALITY_WAITS
        asked.now += 4.9
        assert asked.ask("a", nodes=["n2", "n3"]) == LOCALITY_WAITS
        asked.now += 0.1
        assert asked.ask("a", nodes=["n3", "n4"]) == LOCALITY_WAITS
        assert asked.ask("a", nodes=["n2", "n3"]) == ["n2"]
        assert asked.placed == ["rack"]

    def test_after_all_of_them_it_goes_anywhere(self):
        asked = self.asked()
        assert asked.ask("a", nodes=["n3", "n4"]) == LOCALITY_WAITS
        asked.now += 7.9
        assert asked.ask("a", nodes=["n3", "n4"]) == LOCALITY_WAITS
        asked.now += 0.1
        assert asked.ask("a", nodes=["n3", "n4"]) == ["n3", "n4"]
        assert asked.placed == ["anywhere"]

    def test_it_does_not_wait_at_a_level_at_which_there_is_no_node(self):
        # n1 is alone in its rack but for n2, which is too small: after 5 s it goes anywhere.
        asked = Asked(*racks(n1="r1", n3="r2"), node("n2", 500, labels={RACK: "r1"}), policy=self.POLICY, levels=[RACK])
        asked.see(reader("b", "n1", cpu=800, gates=()))
        assert asked.ask("b", nodes=["n3"]) == LOCALITY_WAITS
        asked.now += 4.9
        assert asked.ask("b", nodes=["n3"]) == LOCALITY_WAITS
        asked.now += 0.1
        assert asked.ask("b", nodes=["n3"]) == ["n3"]

    def test_its_own_node_is_still_the_best_answer(self):
        asked = self.asked()
        asked.ask("a", nodes=["n3"])
        asked.now += 8.0
        assert asked.ask("a", nodes=["n3", "n1"]) == "n1"

    def test_those_of_its_job_that_follow_do_not_wait_anew(self):
        pods = [reader(name, "n1", cpu=400, job="scan", gates=()) for name in ("a", "b")]
        asked = self.asked(*pods)
        assert asked.ask("a", nodes=["n3"]) == LOCALITY_WAITS
        asked.now += 8.0
        assert asked.ask("a", nodes=["n3"]) == ["n3"]
        assert asked.ask("b", nodes=["n3"]) == ["n3"]

    def test_but_they_do_once_one_has_started_nearer(self):
        pods = [reader(name, "n1", cpu=300, job="scan", gates=()) for name in ("a", "b", "c")]
        asked = self.asked(*pods)
        assert asked.ask("a", nodes=["n3"]) == LOCALITY_WAITS
        asked.now += 8.0
        assert asked.ask("a", nodes=["n3"]) == ["n3"]
        assert asked.ask("b", nodes=["n1"]) == "n1"
        assert asked.ask("c", nodes=["n3"]) == LOCALITY_WAITS

    def test_each_pod_has_its_bound_whatever_others_of_its_job_do(self):
        pods = [reader(name, "n1", cpu=300, job="scan", gates=()) for name in ("a", "b")]
        asked = self.asked(*pods)
        assert asked.ask("a", nodes=["n3"]) == LOCALITY_WAITS
        asked.now += 7.9
        assert asked.ask("b", nodes=["n1"]) == "n1"
        asked.now += 0.1
        assert asked.ask("a", nodes=["n3"]) == ["n3"]

    def test_without_waits_it_goes_at_once_to_the_nearest_there_is(self):
        asked = self.asked(policy=Policy())
        assert asked.ask("a", nodes=["n2", "n3"]) == ["n2"]
        asked.ledger.forget("uid-a")
        assert asked.ask("a", nodes=["n3", "n4"]) == ["n3", "n4"]

    def test_while_it_waits_its_turn_goes_to_another_of_its_class_that_is_as_near_there(self):
        pods = [reader("a", "n1", job="scan", gates=()), reader("b", "n1", "n2", job="scan", gates=())]
        asked = self.asked(*pods)
        assert asked.ask("a", nodes=["n3"]) == LOCALITY_WAITS
        assert asked.ask("b", nodes=["n1"]) == "n1"

    def test_a_pod_without_an_input_goes_where_there_is_room(self):
        asked = self.asked(pod("a", 1000, gates=()))
        chosen = asked.ask("a")
        asked.ledger.forget("uid-a")
        assert asked.ask("a", nodes=sorted({"n1", "n2", "n3", "n4"} - {chosen})) is None


def test_a_long_task_keeps_off_a_node_that_runs_more_long_tasks_than_the_mean():
    long = {"duration": 1000.0}
    runs = [pod("runs", 100, node="n1", gates=(), **long), pod("short", 200, node="n2", gates=(), duration=30.0)]

    def goes_to(policy, **more):
        scene = Scene(node("n1"), node("n2"), policy=policy)
        scene.see(*runs, reader("a", "n1", "n2", cpu=500, **more))
        scene.step()
        return scene.nominated()["a"]

    assert goes_to(WAITS, **long) == "n1"  # it has most room
    apart = Policy(locality_waits=(5.0,), long_task=600.0)
    assert goes_to(apart, **long) == "n2"  # n1 runs one, n2 none: the mean is a half
    assert goes_to(apart, duration=30.0) == "n1"


def rates(**of):
    return {key.replace("_", "-"): float(value) for key, value in of.items()}


def disks(name, disk=100, link=100):
    made = node(name)
    limits = rates(disk_read=disk, network_in=link, network_out=link)
    return type(made)(name, {**made.allocatable, **limits})


def test_a_pod_that_starts_far_from_its_input_leaves_disk_and_link_of_its_holder_to_nobody_else():
    scene = Scene(disks("n1"), disks("n2"), disks("n3"), policy=Policy(locality_waits=(0.0,)))
    scene.see(pod("full-n1", 1000, node="n1", gates=()))
    scan = rates(cpu=100, disk_read=60)
    scene.see(*(pod(f"p{number}", scan, job="scan", inputs=on("n1")) for number in range(2)))
    scene.step()
    (name,) = scene.released()  # 60 of the 100 that n1's disk and link have: not enough for another
    scene.bind(name)
    scene.step(1.0)
    assert len(scene.released()) == 1
    scene.end(name)
    scene.step(1.0)
    assert len(scene.released()) == 2


def test_a_pod_far_from_its_input_does_not_take_its_own_nodes_disk():
    scene = Scene(disks("n1"), disks("n2"))
    scene.see(pod("full-n1", 1000, node="n1", gates=()))
    scene.see(pod("reads", rates(cpu=100, disk_read=60), inputs=on("n1")))
    scene.step()
    scene.bind("reads")
    scene.see(pod("scan", rates(cpu=100, disk_read=100)))
    scene.step()
    assert scene.nominated()["scan"] == "n2"


def test_a_pod_that_may_not_use_the_node_of_its_input_needs_network_and_no_disk_elsewhere():
    scene = Scene(dataclasses.replace(disks("n1"), unschedulable=True), disks("n2", link=50), disks("n3", disk=20))
    scene.see(pod("reads", rates(cpu=100, disk_read=60), inputs=on("n1")))
    scene.step()
    assert scene.nominated() == {"reads": "n3"}  # 60 over the network: n2 has 50; n3's disk of 20 does not matter


def test_a_pod_that_reads_faster_than_the_disk_of_its_input_gets_all_of_that_disk():
    scene = Scene(disks("n1", disk=20), disks("n2"))
    readers = [pod(name, rates(cpu=100, disk_read=60), inputs=on("n1"), created=n) for n, name in enumerate("ab")]
    scene.see(*(scene.ledger.counted(reader) for reader in readers))
    scene.step()
    assert scene.nominated() == {"a": "n1"}
    scene.bind("a")
    scene.step(1.0)
    assert "b" not in scene.nominated()
    scene.end("a")
    scene.step(1.0)
    assert scene.nominated()["b"] == "n1"


def test_no_more_pods_read_from_a_node_that_none_may_use_than_its_disk_serves():
    storage = dataclasses.replace(disks("n1"), unschedulable=True)
    scene = Scene(storage, disks("n2"), disks("n3"), policy=WAITS)
    scene.see(*(pod(name, rates(cpu=100, disk_read=40), job="scan", inputs=on("n1")) for name in "abc"))
    scene.step()
    assert set(scene.nominated()) == {"a", "b"}  # and at once: it makes no difference to them where they start
    scene.bind("a")
    scene.bind("b")
    scene.step(1.0)
    scene.end("a")
    scene.step(1.0)
    assert "c" in scene.nominated()


def test_a_pod_whose_inputs_node_is_gone_needs_the_disk_that_it_declares():
    scene = Scene(disks("n2", link=50), disks("n3", disk=20))
    scene.see(pod("reads", rates(cpu=100, disk_read=60), inputs=on("n1")))
    scene.step()
    assert scene.nominated() == {"reads": "n2"}


def test_each_pod_of_a_class_needs_what_its_own_input_takes():
    scene = Scene(dataclasses.replace(disks("n1"), unschedulable=True), disks("n2", link=50))
    scan = rates(cpu=100, disk_read=60)
    scene.see(pod("afar", scan, job="scan", inputs=on("n1")))
    scene.step()
    assert scene.released() == []
    scene.see(pod("nowhere", scan, job="scan", inputs=on("gone")))
    scene.remove("afar")
    scene.step()
    assert scene.nominated() == {"nowhere": "n2"}


@pytest.mark.parametrize(
    "nodes",
    [
        [node("n1"), node("n2")],
        racks(n1="r1", n2="r2"),
        [node("n1"), node("n3", 500, labels={RACK: "r2"}), *racks(n2="r2")],
    ],
    ids=["no racks", "alone in its rack", "its rack is too small"],
)
def test_nobody_waits_for_a_level_at_which_there_is_no_node(nodes):
    scene = Scene(*nodes, policy=TWO_WAITS, levels=[RACK])
    scene.see(full("n2"), reader("a", "n2", cpu=1000))
    scene.step()
    assert scene.why()["a"].text.endswith("anywhere from 5 s on")
    scene.step(4.9)
    assert scene.released() == []
    scene.step(0.1)
    assert scene.nominated() == {"a": "n1"}


def test_where_the_preferred_nodes_are_too_small_the_wait_begins_with_the_racks():
    ssd = ((10, (Requirement("disk", "In", ("ssd",)),)),)
    small = node("n2", 500, labels={RACK: "r2", "disk": "ssd"})
    scene = Scene(small, *racks(n1="r1", n3="r2"), policy=TWO_WAITS, levels=[RACK])
    scene.see(full("n3"), pod("a", 1000, prefers=ssd))
    scene.step()
    assert scene.why()["a"].text.endswith("anywhere from 3 s on")
    scene.step(3.0)
    assert scene.nominated() == {"a": "n1"}


def test_without_waits_a_start_beyond_the_rack_is_not_called_rack_local():
    scene = Scene(*racks(n1="r1", n2="r2"), levels=[RACK])
    scene.see(full("n2"), reader("a", "n2"))
    scene.step()
    assert scene.nominated() == {"a": "n1"}
    assert scene.levels["a"][0] == "anywhere"


def test_what_is_known_of_preferences_that_nobody_has_any_more_is_forgotten():
    scene = Scene(node("n1"), node("n2", labels={"disk": "ssd"}), policy=WAITS)
    for number in range(50):
        prefers = ((number + 1, (Requirement("disk", "In", ("ssd",)),)),)
        scene.see(pod(f"p{number}", 10, prefers=prefers))
        scene.step(1.0)
        scene.bind(f"p{number}")
        scene.end(f"p{number}")
    assert (
        len(scene.releaser.input_builder.preferred_nodes._preferred) <= 2 * 1 + 10 + 1
    )  # of one class, and the last that was asked for


def test_long_tasks_are_counted_on_the_nodes_that_there_are():
    policy = Policy(locality_waits=(5.0,), long_task=600.0)
    scene = Scene(node("n0"), node("n1"), node("n2"), policy=policy)
    scene.see(pod("runs", 100, node="n1", gates=(), duration=1000.0), pod("w", 5000, duration=1000.0))
    scene.step()
    scene.apply(NodeGone("n0"))
    scene.see(reader("a", "n1", "n2", cpu=500, duration=1000.0))
    scene.step(1.0)
    assert scene.nominated()["a"] == "n2"


def test_what_runs_is_of_the_nodes_that_there_are_when_a_task_has_waited_too_long():
    policy = Policy(starved_after=10.0, reservable=1.0)
    scene = Scene(node("n0"), node("n1"), node("n2"), policy=policy)
    scene.see(pod("w", 1000))
    scene.now += LONG_SECONDS
    scene.see(full("n2"), full("n0"), full("n1"))
    scene.step()
    scene.apply(NodeGone("n0"))
    scene.remove("full-n0")
    scene.step(1.0)
    (kept,) = scene.releaser.planner.carried.reserved.values()
    assert kept.nodes in (("n1",), ("n2",))


def test_a_pod_that_lost_its_gate_is_woken_when_its_wait_is_over():
    scene = Scene(node("n1"), node("n2"), policy=WAITS, by_filter=True)
    scene.see(full("n2"), reader("a", "n2"))
    scene.step()
    scene.change("a", gates=(), unschedulable=True)
    scene.step(0.1)
    scene.step(5.0)
    assert scene.told_to("wake") == [("wake", "a")]


def test_a_held_pod_has_a_reason_though_pods_of_its_class_without_a_gate_are_placed():
    scene = Scene(node("n1"), policy=WAITS, by_filter=True)
    scene.see(reader("u", "n1", job="scan", gates=()), reader("h", "n1", job="scan"))
    assert "h" in scene.why()
