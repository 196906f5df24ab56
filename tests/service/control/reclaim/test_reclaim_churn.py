"""Reclaim under churn: pods come, end, are made anew and take their time to end; nodes come; kube-scheduler accepts."""

from random import Random

import pytest

from extender.cluster.events import NodeSeen
from extender.cluster.queues import Queue
from extender.control.reclaim.loop import Timeouts
from tests.service.control.reclaim.test_loop import ReclaimScene, runs, waits
from tests.service.control.reclaim.test_reclaim_inputs import Noted
from tests.service.control.scene import node

QUEUES = (Queue("a"), Queue("b", minimum=0.3), Queue("p", minimum=0.2), Queue("c", parent="p"), Queue("d", parent="p"))


class Watched(Noted):
    """Evictions; each is checked when it is begun: all of it is needed, and nobody falls below its share by it."""

    def __init__(self, evictions, scene):
        super().__init__(evictions)
        self.scene, self.victims_of = scene, {}

    def begin(self, pod, queue, why, choice):
        names = [victim.name for victim in choice.victims]
        self.check_room(pod, choice)
        self.check_whose(pod, choice)
        assert not set(names) & set(self.scene.evicted), "nobody is asked twice"
        self.victims_of[pod.name] = names
        super().begin(pod, queue, why, choice)

    def check_room(self, pod, choice):
        taken = {"cpu": 0.0, "memory": 0.0}
        kept = {
            eviction.pod.uid: eviction.pod for eviction in self.evictions._evictions if eviction.node == choice.node
        }
        going = {uid for eviction in self.evictions._evictions for uid in (victim.uid for victim in eviction.victims)}
        there = [it for it in self.scene.pods.values() if it.node == choice.node or it.nominated == choice.node]
        for it in [*kept.values(), *(it for it in there if not (it.finished or it.leaving or it.uid in going))]:
            for name in taken:
                taken[name] += it.demand.get(name, 0.0)
        offered = self.scene.backlog.nodes[choice.node].allocatable
        free = {name: offered[name] - taken[name] - pod.demand.get(name, 0.0) for name in taken}
        after = {name: free[name] + sum(it.demand.get(name, 0.0) for it in choice.victims) for name in free}
        assert min(after.values()) >= 0, "it fits once they have gone"
        for victim in choice.victims:
            without = [after[name] - victim.demand.get(name, 0.0) for name in after if pod.demand.get(name)]
            assert min(without) < 0, f"{victim.name} could stay"

    def check_whose(self, pod, choice):
        for victim in choice.victims:
            assert victim.owner
            assert victim.priority <= pod.priority
            assert victim.identity.queue != pod.identity.queue


def churned(random):
    names = [f"n{n}" for n in range(4)]
    timeouts = Timeouts(minimum_share=10, fair_share=20, per_minute=random.choice([30, 60_000]))
    scene = ReclaimScene(*map(node, names), queues=QUEUES, timeouts=timeouts)
    scene.slow, scene.made = True, 0
    scene.reclaimer.evictions = Watched(scene.reclaimer.evictions, scene)
    for name in names:
        filled = 0
        while filled < 1000:
            cpu = min(random.choice([50, 100, 200, 300]), 1000 - filled)
            filled += cpu
            add(scene, random, cpu, queue=random.choice("aaac"), on=name)
    return scene


def add(scene, random, cpu, *, queue, on=None):
    demand = {"cpu": float(cpu), "memory": float(random.choice([0, 10, 50]))}
    name, more = f"{queue}{scene.made}", {"queue": queue, "priority": random.choice([0, 0, 0, 1])}
    scene.made += 1
    if on is None:
        scene.see(waits(name, demand, created=scene.now, job=f"{queue}{random.randrange(6)}", **more))
    else:
        owner = random.choice(["", "replicas", "replicas", "replicas"])
        scene.see(runs(name, demand, on=on, owner=owner, started=scene.now - random.randrange(90), **more))


def go_on(scene, random):
    """Let a second pass: who goes away is made anew, some end, some come."""
    before = len(scene.evicted)
    scene.run(1)
    for _ in range(len(scene.evicted) - before):
        add(scene, random, random.choice([50, 100, 200]), queue="a")
    for name in [name for name, it in scene.pods.items() if it.leaving and random.random() < 0.2]:
        scene.remove(name)
    if random.random() < 0.4:
        add(scene, random, random.choice([50, 100, 150, 300, 400]), queue=random.choice("abbcd"))
    running = [name for name, it in sorted(scene.pods.items()) if it.node and not it.leaving]
    if running and random.random() < 0.1:
        scene.remove(random.choice(running))
    if random.random() < 0.01:
        scene.apply(NodeSeen(node(f"more{scene.made}", cpu=200)))


@pytest.mark.parametrize("seed", range(8))
def test_whoever_goes_goes_for_a_pod_that_then_starts_there_and_none_goes_who_could_stay(seed):
    random = Random(seed)
    scene = churned(random)
    evictions = scene.reclaimer.evictions
    for _ in range(100):
        go_on(scene, random)
    for _ in range(20):
        scene.run(1)
        for name in [name for name, it in scene.pods.items() if it.leaving]:
            scene.remove(name)
    assert evictions.begun, "somebody is evicted"
    assert scene.vain == []
    started = {name: scene.sent.get(name) for name in evictions.begun}
    assert started == evictions.begun
    assert sorted(scene.evicted) == sorted(name for names in evictions.victims_of.values() for name in names)
