"""`dovetail control` killed, paused and restarted at random: nothing lost, nothing stuck, nothing released twice."""

import json
import os
import random
import signal
import time
from collections import Counter

from lab.controlplane import builders, workload
from tests.integration.dovetail import control_on, dovetail_on, equal_nodes, offers
from tests.integration.history import History

LEASE = {"seconds": 2, "renewSeconds": 1, "retrySeconds": 0.2}
QUEUES = [{"name": "a", "weight": 1}, {"name": "b", "weight": 2}, {"name": "c", "weight": 3}]
REPLICAS = ("dovetail-control", "second-control")
PODS, NODES = 360, 6
LONGEST_SECONDS = 240


def pods(draw):
    """Return held pods of three queues that end after one to three seconds."""
    made = []
    for number in range(PODS):
        queue = "abc"[number % 3]
        made.append(
            builders.pod(
                f"{queue}-{number:03d}",
                cpu=draw.choice((1, 2, 4)),
                memory=f"{draw.randint(1, 8)}Gi",
                demand={"network-in": draw.randint(50, 300)},
                duration=draw.choice((1, 2, 3)),
                scheduler_name="dovetail",
                labels={"dovetail.dev/queue": queue, "dovetail.dev/job": f"{queue}{number % 5}"},
                spec={"schedulingGates": [{"name": "dovetail.dev/hold"}]},
            )
        )
    return made


def released(control_plane):
    """Return how often each pod was released, by the logs of both replicas in all their lives."""
    found = Counter()
    for name in REPLICAS:
        for line in control_plane.log(name).read_text().splitlines():
            if '"released"' in line:
                found[json.loads(line)["uid"]] += 1
    return found


def test_killed_paused_and_restarted_at_random_it_loses_nothing_and_releases_nothing_twice(control_plane, tell):
    client, draw = control_plane.client(), random.Random(5)
    kills = pauses = 0
    settings = {"order": "gates", "queues": QUEUES}
    with (
        dovetail_on(control_plane, settings=settings),
        control_on(control_plane, lease=LEASE, **settings),
        control_on(control_plane, lease=LEASE, **settings, name=REPLICAS[1]),
    ):
        workload.create_nodes(client, equal_nodes(builders, NODES))
        with History(client, offers(client)) as history:
            workload.create_pods(client, pods(draw))
            begun = time.monotonic()
            while not finished(history) and time.monotonic() - begun < LONGEST_SECONDS:
                time.sleep(draw.uniform(0.05, 0.8))
                name = draw.choice(REPLICAS)
                if draw.random() < 0.75:
                    control_plane.kill(name)
                    kills += 1
                    time.sleep(draw.uniform(0, 0.5))
                    control_plane.start(name)
                else:
                    pauses += 1
                    pid = control_plane.pids[name]
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(draw.uniform(0.5, 4))
                    os.kill(pid, signal.SIGCONT)
            seconds = time.monotonic() - begun
            workload.wait_until(lambda: finished(history), LONGEST_SECONDS, "the last pods to end")
        counts = released(control_plane)
        there = workload.phases(client)

    lost = PODS - len(there)
    stuck = sum(phase != "Succeeded" for phase in there.values())
    double = sum(count > 1 for count in counts.values()) + len(history.regated) + len(history.rebound)
    tell(
        f"{PODS} pods on {NODES} nodes in {seconds:.0f} s, {kills} kills, {pauses} pauses: lost {lost}, stuck {stuck}, "
        f"double {double}, over-allocated {len(history.over)}"
    )
    assert kills + pauses >= 6
    assert (lost, stuck, double, history.over) == (0, 0, 0, set())


def finished(history):
    return len(history.phases) == PODS and set(history.phases.values()) == {"Succeeded"}
