"""Waits of locality that outlast plans: jobs without ready pods, refusals, nodes that cannot be used, starvation."""

from extender.cluster.eligibility import Constraints, Requirement
from extender.cluster.events import GroupSeen
from extender.cluster.model import Group, Node
from extender.control.filter_order.order import LOCALITY_WAITS
from extender.planner import Policy
from tests.service.control.filter_order.asked import Asked, free
from tests.service.control.locality.test_locality import WAITS, full, reader
from tests.service.control.scene import LONG_SECONDS, Scene, node, pod


def test_each_chance_that_others_take_counts_until_the_next_one_or_three_seconds():
    """One place of four frees up per second: a wait of 5 s lets 5 chances pass (D = W1 x rate); a plan every 50 ms."""
    scene = Scene(node("n1", 4000), node("n2"), policy=WAITS)
    scene.see(*[pod(f"b{number:02}", 1000, queue="b", created=98.0) for number in range(40)])
    scene.step()
    for name, where in scene.nominated().items():
        scene.bind(name, where)
    scene.see(reader("a", "n2", created=99.0, queue="a"))
    chances, begun = 0, scene.now
    while "a" not in scene.nominated() and chances < 20:
        scene.end(next(it.name for it in scene.pods.values() if it.node == "n1" and not it.finished))
        scene.step(0.01)
        chances += 1
        for name, where in scene.nominated().items():
            if scene.pods[name].node is None:
                scene.bind(name, where)
        for _ in range(20):
            scene.step(0.05)
    assert chances == 6  # the sixth comes 5.05 s after the first
    assert scene.nominated()["a"] == "n1"
    assert scene.now - begun < 7.0


def test_a_job_whose_pods_come_one_after_another_waits_once():
    """Parallelism 1: after a far start those that follow do not wait again (3.5.1)."""
    scene = Scene(node("n1", 2000), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("p1", "n2", job="scan"))
    scene.step()
    scene.step(5.0)
    assert scene.nominated() == {"p1": "n1"}
    scene.bind("p1")
    scene.step(1.0)
    scene.see(reader("p2", "n2", job="scan", created=106.0))
    scene.step(0.1)
    assert scene.nominated() == {"p1": "n1", "p2": "n1"}


def test_it_waits_once_also_while_something_else_waits_all_the_time():
    scene = Scene(node("n1", 2000), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("p1", "n2", job="scan"), pod("big", 5000))
    scene.step()
    scene.step(5.0)
    scene.bind("p1")
    scene.step(1.0)
    scene.see(reader("p2", "n2", job="scan", created=106.0))
    scene.step(0.1)
    assert scene.nominated() == {"p1": "n1", "p2": "n1"}


def test_a_pod_that_could_not_be_written_to_does_not_wait_again():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(full("n2"), reader("a", "n2"), pod("big", 5000))
    scene.step()
    scene.refuse.add(("nominate", "a"))
    scene.step(5.0)
    scene.refuse.clear()
    scene.step(0.5)  # rests for a second
    scene.step(1.0)
    assert scene.nominated() == {"a": "n1"}


def test_a_pod_without_known_nodes_is_not_called_node_local_for_what_its_class_mates_read():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.see(reader("a", "gone", job="scan"), reader("b", "n2", job="scan"))
    scene.step()
    assert scene.levels["b"][0] == "node"
    assert scene.levels["a"][0] == ""


def test_a_pod_without_known_nodes_leaves_near_room_to_those_that_have_their_input_there():
    scene = Scene(node("n1", 2000), node("n2"), policy=WAITS)  # n2 has more room, by parts, so it is looked at first
    scene.see(pod("half", 1000, node="n1", gates=()))
    scene.see(reader("a", "gone", job="scan", created=1.0), reader("b", "n2", job="scan", created=2.0))
    scene.step()
    assert scene.nominated() == {"a": "n1", "b": "n2"}


def test_of_the_nodes_that_a_pod_may_use_those_that_it_prefers_most_are_its_places():
    west, ssd = (Requirement("side", "In", ("west",)),), (Requirement("disk", "In", ("ssd",)),)
    nodes = [
        node("n1", 2000, labels={"pool": "a"}),
        node("n2", labels={"pool": "a", "side": "west"}),
        node("n3", labels={"pool": "b", "disk": "ssd"}),
    ]
    scene = Scene(*nodes, policy=WAITS)
    only = Constraints(selector=(("pool", "a"),))
    scene.see(pod("a", 1000, prefers=((10, ssd), (1, west)), constraints=only))
    scene.step()
    assert scene.nominated() == {"a": "n2"}


def test_a_starved_pod_is_released_after_its_waits_although_room_comes_seldom():
    """Room for it comes free on n1 every 100 s, and a small one takes a part of it."""
    policy = Policy(locality_waits=(30.0,), starved_after=50.0, reservable=1.0)
    scene = Scene(node("n1"), node("n2"), policy=policy)
    scene.see(full("n2"), full("n1"), reader("a", "n2", created=99.0))
    chances = 0
    for number in range(20):
        scene.see(pod(f"b{number}", 1000, queue="r", created=99.0 + number))
    scene.step()
    while "a" not in scene.nominated() and chances < 15:
        for _ in range(100):
            scene.step(1.0)
        running = next(it.name for it in scene.pods.values() if it.node == "n1")
        scene.end(running)
        scene.pods.pop(running)
        scene.step(0.0)
        chances += 1
        for name, where in scene.nominated().items():
            if name in scene.pods and scene.pods[name].node is None:
                scene.bind(name, where)
    # Due after 50 s, and twice as long as `full-n2` of its queue counts, which has run all the time; then one chance to
    # begin its wait, and the next to go.
    assert chances <= 6


def test_a_gang_with_inputs_waits_and_goes_whole():
    scene = Scene(node("n1"), node("n2"), policy=WAITS)
    scene.apply(GroupSeen(Group("g", 2, "x")))
    scene.see(*[reader(f"g{n}", "n2", job="g", group="g", least=2) for n in range(2)])
    scene.step()
    assert scene.released() == []
    scene.step(5.0)
    assert sorted(scene.nominated()) == ["g0", "g1"]


def test_a_pod_whose_only_near_node_is_cordoned_waits_for_nothing_though_its_class_mates_start_near():
    scene = Scene(node("n1"), node("n2"), node("n3", unschedulable=True), policy=WAITS)
    scene.see(reader("p", "n3", job="stream", created=1.0))
    scene.see(*[reader(f"m{number}", "n1", job="stream", created=2.0 + number) for number in range(3)])
    scene.step()
    assert scene.nominated() == {"m0": "n1", "p": "n2"}
    assert scene.levels == {"m0": ("node", 0.0), "p": ("", 0.0)}


def test_the_reason_counts_the_nodes_of_this_pod():
    scene = Scene(node("n1"), node("n2"), node("n3"), policy=WAITS)
    scene.see(full("n1"), full("n2"), reader("p1", "n1", job="scan"), reader("p2", "n2", job="scan"))
    assert scene.why()["p1"].text.startswith("waits for node-local room: 1 preferred node, full")


def test_the_reason_does_not_call_a_cordoned_node_full():
    scene = Scene(node("n1"), node("n2"), node("n3", unschedulable=True), policy=WAITS)
    scene.see(full("n2"), reader("p1", "n2", "n3"))
    assert scene.why()["p1"].text.startswith("waits for node-local room: 1 preferred node, full")


def test_control_wakes_a_pod_when_filter_lets_it_pass():
    """Filter sees the pod refused 50 ms after control has planned for it."""
    nodes = [node("n1"), node("n2")]
    scene, asked = Scene(*nodes, policy=WAITS, by_filter=True), Asked(*nodes, policy=WAITS)
    for it in (full("n2"), reader("a", "n2", gates=())):
        scene.see(it)
        asked.see(it)
    scene.step()
    asked.now += 0.05
    assert asked.ask("a") == LOCALITY_WAITS
    scene.change("a", unschedulable=True)
    asked.change("a", unschedulable=True)
    passed = None
    woken = 0
    while scene.now < 110.0 and passed is None:
        scene.step(0.01)
        asked.now = scene.now
        if len(scene.told_to("wake")) > woken:
            woken += 1
            if asked.ask("a") == "n1":
                passed = scene.now
    assert passed is not None
    assert passed < 105.3


class TestByFilter:
    def test_a_class_mate_gets_the_place_of_a_pod_that_never_comes(self):
        asked = Asked(node("n1"), policy=WAITS)
        asked.see(*[reader(name, "n1", job="scan", gates=(), created=at) for name, at in (("a", 1.0), ("b", 2.0))])
        assert asked.ask("b") == "n1"

    def test_a_pod_that_is_asked_about_seldom_waits_no_longer_than_its_waits(self):
        asked = Asked(node("n1", 10_000), node("n2"), policy=WAITS)
        asked.see(full("n2"), reader("a", "n2", gates=()))
        answers = []
        for second in range(100):
            name = f"other{second}"
            asked.see(free(name, 10))
            asked.ask(name)
            asked.bind(name, "n1")
            asked.change(name, finished=True)
            if second % 10 == 0:
                answers.append(asked.ask("a"))
                asked.change("a", unschedulable=True)
            asked.now += 1.0
        assert answers[:2] == [LOCALITY_WAITS, "n1"]  # asked again after 10 s; its wait was over after 5


def test_who_reads_from_another_node_leaves_its_disk_to_a_reservation_when_it_ends():
    """`v` runs on n2 for 10 s and reads from n1 at 60 of 100; n2's own disk is held at 60 for longer. `w` needs 60."""
    disks = [Node(name, {"cpu": 1000.0, "disk-read": 100.0, "network-in": 100.0}) for name in ("n1", "n2")]
    scene = Scene(*disks, policy=Policy(starved_after=10.0, reservable=1.0))
    reads = {"cpu": 100.0, "disk-read": 60.0}
    scene.see(pod("w", reads))
    now = scene.now = scene.now + LONG_SECONDS
    scene.see(pod("v", reads, node="n2", gates=(), started=now, duration=10.0, inputs=(("n1", 1.0),)))
    scene.see(pod("holder", reads, node="n2", gates=(), started=now, duration=1000.0))
    scene.step()
    assert [kept.nodes for kept in scene.releaser.planner.carried.reserved.values()] == [("n1",)]


def test_a_long_task_counts_where_it_runs_and_not_where_it_reads():
    policy = Policy(locality_waits=(5.0,), long_task=600.0)
    scene = Scene(node("n1"), node("n2"), node("n3"), policy=policy)
    reads = {"cpu": 100.0, "disk-read": 10.0}
    scene.see(pod("v", reads, node="n3", gates=(), started=100.0, duration=1000.0, inputs=(("n1", 1.0),)))
    scene.see(reader("a", "n1", duration=1000.0))
    scene.step()
    assert scene.nominated() == {"a": "n1"}
    assert scene.levels["a"][0] == "node"
