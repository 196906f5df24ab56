"""Reclaim and inputs: what an eviction frees of whose disk, and how near to its input the waiting pod gets room.

Nodes of 1,000 of CPU and 100 of each disk and link; pods of 100 of CPU that read at 60 unless they say otherwise.
"""

from random import Random

import pytest

from extender.cluster.eligibility import Constraints, Requirement
from extender.cluster.model import Node
from extender.cluster.queues import Queue
from extender.planner import Policy
from tests.service.control.reclaim.test_loop import ReclaimScene, runs, waits

RATES = {"disk-read": 100.0, "network-in": 100.0, "network-out": 100.0}
QUEUES = (Queue("a"), Queue("b", minimum=0.3))
LONG = Policy(locality_waits=(600.0,))
READS = {"cpu": 100.0, "disk-read": 60.0}


def node(name, **labels):
    return Node(name, {"cpu": 1000.0, "memory": 1000.0, **RATES}, labels={"host": name, **labels})


def on(*names):
    return tuple((name, 1000.0) for name in names)


def only(name):
    return Constraints(selector=(("host", name),))


def two_nodes(**more):
    return ReclaimScene(node("n1"), node("n2"), **{"queues": QUEUES, **more})


def filled(scene, *, on="n1", pods=10, cpu=100.0, prefix="a", **more):
    """Fill a node with pods of a, named after it, the first the oldest."""
    scene.see(*(runs(f"{prefix}{on}-{n}", cpu, on=on, started=float(n), **more) for n in range(pods)))


def test_who_reads_from_another_node_is_not_evicted_for_the_disk_of_its_own():
    # n2's disk has 100 - 60 = 40 to spare, and w needs 60 of it. Who comes back each time is the youngest.
    scene = two_nodes()
    scene.see(runs("holder", {"cpu": 10.0, "disk-read": 60.0}, on="n2", owner=""))
    filled(scene, on="n1")
    scene.see(waits("w", READS, constraints=only("n2")))
    for again in range(3):
        scene.see(runs(f"v{again}", READS, on="n2", inputs=on("n1"), started=scene.now))
        scene.run(60)
    assert scene.asked == []


def test_who_reads_where_it_runs_is_evicted_for_that_disk():
    scene = two_nodes()
    scene.see(runs("v", READS, on="n2", inputs=on("n2"), started=1.0), runs("young", 100, on="n2", started=9.0))
    filled(scene, on="n1")
    scene.see(waits("w", READS, constraints=only("n2")))
    scene.run(60)
    assert scene.evicted == ["v"]
    assert scene.nominated() == {"w": "n2"}


def test_who_reads_from_another_node_is_evicted_for_the_network_that_it_takes():
    # v takes 60 of n2's 100 network-in.
    scene = two_nodes()
    scene.see(runs("v", READS, on="n2", inputs=on("n1"), started=1.0), runs("young", 100, on="n2", started=9.0))
    filled(scene, on="n1")
    scene.see(waits("w", {"cpu": 100.0, "network-in": 60.0}, constraints=only("n2")))
    scene.run(60)
    assert scene.evicted == ["v"]


def test_for_a_reader_whose_disk_is_full_room_is_made_on_that_disk():
    # Five readers of 20 fill n1's disk: 60 are three of them. Those on n2 are younger, and free nothing of it.
    scene = two_nodes()
    for name, pods, started in (("n1", 5, 0.0), ("n2", 4, 50.0)):
        reads = {"cpu": 100.0, "disk-read": 20.0}
        scene.see(*(runs(f"{name}-{n}", reads, on=name, started=started + n) for n in range(pods)))
    scene.see(waits("w", READS, inputs=on("n1")))
    scene.run(60)
    assert scene.evicted == ["n1-4", "n1-3", "n1-2"]
    assert scene.nominated() == {"w": "n1"}


def test_nobody_goes_elsewhere_while_the_nodes_that_hold_the_input_cannot_lend_it():
    # w could read over the network on n2, but n1's disk and CPU are held by pods that nobody would make again.
    scene = two_nodes()
    scene.see(runs("holder", {"cpu": 1000.0, "disk-read": 60.0}, owner=""))
    filled(scene, on="n2")
    scene.see(waits("w", READS, inputs=on("n1")))
    scene.run(60)
    assert scene.asked == []


def test_who_reads_over_the_network_frees_the_disk_that_it_reads_from():
    # n1 can lend 100 - 50 - 20 = 30 and has no CPU. Of those on n2 only `far` reads from it; w needs 60: 30 + 50.
    scene = two_nodes()
    scene.see(runs("holder", {"cpu": 1000.0, "disk-read": 20.0}, owner=""))
    scene.see(runs("far", {"cpu": 100.0, "disk-read": 50.0}, on="n2", inputs=on("n1"), started=1.0))
    filled(scene, on="n2", pods=9)
    scene.see(waits("w", READS, inputs=on("n1")))
    scene.run(60)
    assert scene.evicted == ["far"]
    assert scene.sent["w"] == "n2"


def test_a_pod_that_will_read_over_the_network_goes_once_that_can_be_read():
    # Room of another size comes free on n2 meanwhile, but n1's disk is still read by the victim, which takes its time.
    scene = two_nodes()
    scene.slow = True
    scene.see(runs("holder", {"cpu": 1000.0, "disk-read": 20.0}, owner=""))
    scene.see(runs("far", {"cpu": 100.0, "disk-read": 50.0}, on="n2", inputs=on("n1"), started=1.0))
    filled(scene, on="n2", pods=9)
    scene.see(waits("w", READS, inputs=on("n1")))
    scene.run(40)
    scene.end("an2-8")
    scene.run(5)
    assert scene.evicted == ["far"]
    assert scene.released() == []
    scene.remove("far")
    scene.run(1)
    assert scene.released() == ["w"]


@pytest.mark.parametrize("policy", [Policy(), LONG])
def test_room_is_made_near_the_input_though_the_youngest_run_elsewhere(policy):
    scene = two_nodes(policy=policy)
    filled(scene, on="n1", prefix="old-")
    scene.see(*(runs(f"young{n}", on="n2", started=100.0 + n) for n in range(10)))
    scene.see(*(waits(f"w{n}", inputs=on("n1"), job="w") for n in range(2)))
    scene.run(60)
    assert scene.evicted == ["old-n1-9", "old-n1-8"]
    assert scene.nominated() == {"w0": "n1", "w1": "n1"}
    assert scene.levels == {"w0": ("node", 0.0), "w1": ("node", 0.0)}


def test_room_is_made_on_the_nodes_that_a_pod_prefers():
    scene = two_nodes()
    filled(scene, on="n1", prefix="old-")
    scene.see(*(runs(f"young{n}", on="n2", started=100.0 + n) for n in range(10)))
    scene.see(waits("w", prefers=((1, (Requirement("host", "In", ("n1",)),)),)))
    scene.run(60)
    assert scene.evicted == ["old-n1-9"]
    assert scene.levels["w"][0] == "node"


def test_room_in_the_rack_of_the_input_goes_before_room_anywhere():
    nodes = [node("n1", rack="r"), node("n2", rack="r"), node("n3", rack="other")]
    scene = ReclaimScene(*nodes, queues=QUEUES, levels=("rack",))
    filled(scene, on="n1", owner="")
    filled(scene, on="n2")
    scene.see(*(runs(f"young{n}", on="n3", started=100.0 + n) for n in range(10)))
    scene.see(waits("w", inputs=on("n1")))
    scene.run(40)
    assert scene.evicted == ["an2-9"]
    assert scene.levels["w"][0] == "rack"


def test_a_node_that_is_too_small_for_the_pod_is_not_what_it_waits_for():
    small = Node("n1", {"cpu": 50.0, "memory": 1000.0, **RATES}, labels={"host": "n1"})
    scene = ReclaimScene(small, node("n2"), node("n3"), queues=QUEUES, policy=LONG)
    filled(scene, on="n2")
    filled(scene, on="n3")
    scene.see(waits("w", inputs=on("n1")))
    scene.run(40)
    assert len(scene.evicted) == 1
    assert scene.levels["w"] == ("", 0.0)


def test_of_a_class_the_pod_goes_whose_input_is_where_room_can_be_made():
    scene = two_nodes(policy=LONG)
    filled(scene, on="n1", owner="")
    filled(scene, on="n2")
    scene.see(waits("w0", inputs=on("n1"), job="w"), waits("w1", inputs=on("n2"), job="w"))
    scene.run(120)
    assert scene.evicted == ["an2-9"]
    assert scene.nominated() == {"w1": "n2"}


def far_only(wait):
    """Return a scene of which only n2's pods can go, and two pods of b read on n1."""
    scene = two_nodes(policy=Policy(locality_waits=(wait,)), queues=(Queue("a"), Queue("b", minimum=0.1)))
    filled(scene, on="n1", owner="")
    filled(scene, on="n2")
    scene.see(*(waits(f"w{n}", inputs=on("n1"), job="w") for n in range(2)))
    return scene


def test_room_farther_away_is_made_after_the_wait_for_locality_and_for_the_next_pod_at_once():
    # 30 s below its share, then 20 s in which room could be made on n2: looked at every 5 s.
    scene = far_only(20.0)
    scene.run(50)
    assert scene.asked == []
    scene.run(10)
    assert scene.evicted == ["an2-9", "an2-8"]
    assert scene.nominated() == {"w0": "n2", "w1": "n2"}
    level, passed_over = scene.levels["w0"]
    assert level == "anywhere"
    assert passed_over == pytest.approx(20.0, abs=5.0)


@pytest.mark.parametrize(("before", "left"), [(0, 15), (40, 5)], ids=["from the start", "after half of the wait"])
def test_the_wait_does_not_pass_while_no_room_could_be_made(before, left):
    scene = far_only(20.0)
    scene.run(before)
    there = [name for name in scene.pods if name.startswith("an2")]
    for name in there:
        scene.change(name, owner="")
    scene.run(100)
    for name in there:
        scene.change(name, owner="replicas")
    scene.run(left)
    assert scene.asked == []
    scene.run(15)
    assert len(scene.evicted) == 2


def test_after_a_start_near_its_input_a_job_waits_anew():
    scene = far_only(20.0)
    scene.run(40)
    scene.see(runs("an1-9", on="n1", started=9.0, version=2))  # it has a controller now
    scene.run(10)
    assert scene.evicted == ["an1-9"]
    assert scene.levels["w0"][0] == "node"
    scene.run(10)
    assert scene.evicted == ["an1-9"], "though its first pod had waited for 10 of the 20 s"
    scene.run(20)
    assert scene.evicted == ["an1-9", "an2-9"]
    assert scene.levels["w1"][0] == "anywhere"


class Noted:
    """Evictions, and what was begun of them: which pod was to get which node, and how many victims there were."""

    def __init__(self, evictions):
        self.evictions, self.begun, self.victims = evictions, {}, 0

    def begin(self, pod, queue, why, choice):
        self.begun[pod.name] = choice.node
        self.victims += len(choice.victims)
        self.evictions.begin(pod, queue, why, choice)

    def __getattr__(self, name):
        return getattr(self.evictions, name)


def crowded(random):
    """Return a scene of four nodes full of pods of a, most of them readers, and twelve pods of b that wait."""
    names = [f"n{number}" for number in range(4)]
    policy = Policy(locality_waits=random.choice([(), (10.0, 5.0), (600.0, 600.0)]))
    nodes = [node(name, rack=f"r{number // 2}") for number, name in enumerate(names)]
    scene = ReclaimScene(*nodes, queues=QUEUES, levels=("rack",), policy=policy)

    def inputs():
        some = random.sample([*names, "gone"], random.choice([1, 1, 2]))
        return on(*sorted(some)) if random.random() < 0.7 else ()

    for number in range(48):
        demand = {"cpu": random.choice([50.0, 100.0, 200.0]), "disk-read": random.choice([0.0, 10.0, 20.0, 40.0])}
        owner = random.choice(["", *["replicas"] * 6])
        where = names[number % 4]
        scene.see(runs(f"a{number}", demand, on=where, started=float(number), inputs=inputs(), owner=owner))
        taken = scene.ledger.snapshot(scene.now)
        if (taken.allocated > taken.layout.capacity).any():
            scene.remove(f"a{number}")
    for job in range(3):
        demand = {"cpu": random.choice([100.0, 200.0, 400.0]), "disk-read": random.choice([20.0, 50.0, 80.0])}
        scene.see(*(waits(f"w{job}-{number}", demand, inputs=inputs(), job=f"w{job}") for number in range(4)))
    return scene


def let_go(scene, names):
    for name in names:
        scene.remove(name)


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_nobody_is_evicted_but_for_a_pod_that_then_starts_there(seed, slow):
    random = Random(seed)
    scene = crowded(random)
    scene.reclaimer.evictions = evictions = Noted(scene.reclaimer.evictions)
    scene.slow = slow
    for _ in range(70):
        scene.run(1)
        let_go(scene, [it.name for it in scene.pods.values() if it.leaving and random.random() < 0.15])
    scene.slow = False
    let_go(scene, [it.name for it in scene.pods.values() if it.leaving])
    scene.run(10)
    assert evictions.begun, "somebody is evicted"
    assert {name: scene.pods[name].node for name in evictions.begun} == evictions.begun
    assert len(scene.evicted) == evictions.victims
