"""`order: auto` on a real control plane: pods are held only while somebody waits for room."""

import os
import random
import signal
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import RequestRefused, request
from tests.integration.dovetail import control_on, dovetail_on, offers
from tests.integration.gating import (
    HOLD,
    HOLD_OBJECT,
    auto_policies,
    gates,
    hold_kind,
    is_gated,
    namespace,
    require_policies,
)
from tests.integration.history import History
from tests.integration.test_killed import REPLICAS, released

LEASE = {"seconds": 2, "renewSeconds": 1, "retrySeconds": 0.2}
AUTO = {"order": "auto", "control": {"lease": LEASE}}
NODES = 4


@pytest.fixture(scope="module")
def space(control_plane):
    """Make a managed namespace, with the kind and both policies."""
    require_policies(control_plane)
    with namespace(control_plane, "auto") as name, hold_kind(control_plane), auto_policies(control_plane, name):
        yield name


@contextmanager
def auto_on(control_plane):
    """Run Dovetail with `order: auto` and a short Lease; give the extender, and the address of control."""
    with (
        dovetail_on(control_plane, settings=AUTO) as dovetail,
        control_on(control_plane, lease=LEASE, order="auto") as url,
    ):
        workload.wait_until(lambda: held(dovetail.client) is False, 30, "new pods to pass")
        yield dovetail, url


def held(client):
    """Return what the Hold says; None where there is none."""
    try:
        return request(client, "GET", HOLD_OBJECT)["spec"]["held"]
    except RequestRefused:
        return None


def nodes(**more):
    return [builders.node(f"node-{number}", cpu=4, **more) for number in range(NODES)]


def pods(space, prefix, count, *, seconds, **more):
    return [
        builders.pod(f"{prefix}-{number:03d}", namespace=space, duration=seconds, **{"cpu": 1, **more})
        for number in range(count)
    ]


def asked(dovetail):
    """Return how often filter was asked, and how often it let a pod pass nowhere."""
    lines = dovetail.decisions("filter")
    return len(lines), sum("node" not in line and not line["passed"] for line in lines)


def test_pods_are_held_while_somebody_waits_and_pass_before_and_afterwards(control_plane, space, tell):
    client, figures = control_plane.client(), []
    with auto_on(control_plane) as (dovetail, url):
        control = ControlMetrics(url)
        workload.create_nodes(client, nodes())

        def phase(name, made):
            """Create pods; return which of them have the gate."""
            before = (*asked(dovetail), control.writes())
            held_pods = [pod for pod in workload.create_pods(client, made) if HOLD in gates(pod)]
            return name, len(made), len(held_pods), before

        def done(figure):
            """Wait until all pods have ended; note what the phase has cost."""
            name, count, gated, (calls, refusals, writes) = figure
            workload.wait_until(lambda: finished(client), 90, f"the pods of {name} to end")
            now = (*asked(dovetail), control.writes())
            figures.append((name, count, gated, now[0] - calls, now[1] - refusals, now[2] - writes))

        with History(client, offers(client)) as history:
            # 1. Room for all: nobody is held.
            done(phase("room", pods(space, "early", 12, seconds=2)))
            # 2. Twice as many as there is room for: who comes once that has shown is held.
            first = phase("backlog, created at once", pods(space, "burst", 32, seconds=4))
            workload.wait_until(lambda: held(client), 10, "new pods to be held")
            workload.wait_until(lambda: is_gated(client, space), 10, "the API server to know")
            second = phase("backlog, created later", pods(space, "late", 16, seconds=2))
            done(first)
            figures.append((*second[:3], 0, 0, 0))
            # 3. Room again: nobody is held any more.
            workload.wait_until(lambda: held(client) is False, 20, "new pods to pass")
            workload.wait_until(lambda: not is_gated(client, space), 10, "the API server to know")
            done(phase("room again", pods(space, "again", 12, seconds=2)))
            over, rebound = history.over, history.rebound
        flips, released = (control.metric(f"dovetail_{name}_total") for name in ("hold_changes", "releases"))

    for name, count, gated, calls, refusals, writes in figures:
        tell(
            f"{name}: {count} pods, {gated} held, filter asked {calls} times, {refusals} refusals, {writes:.0f} writes"
        )
    gated = {name: (count, gated) for name, count, gated, *_ in figures}
    assert gated["room"] == (12, 0)
    assert gated["backlog, created later"] == (16, 16)
    assert gated["room again"] == (12, 0)
    assert flips == 2
    assert (over, rebound) == (set(), set())
    # On a slow machine the last pods of the burst may come when the first already wait: they are held as well.
    assert released == sum(held_pods for _, held_pods in gated.values())


def test_new_pods_pass_once_control_has_been_gone_for_long_and_are_held_again_when_it_is_back(control_plane, space):
    client = control_plane.client()
    with auto_on(control_plane) as (dovetail, _):
        workload.create_nodes(client, nodes())
        workload.create_pods(client, pods(space, "runs", 16, seconds=40))
        workload.wait_until(lambda: len(workload.bound_pods(client)) == 16, 30, "the nodes to be full")
        workload.create_pods(client, pods(space, "waits", 4, seconds=1))
        workload.wait_until(lambda: is_gated(client, space), 10, "new pods to be held")

        control_plane.kill("dovetail-control")
        begun = time.monotonic()
        workload.wait_until(lambda: held(client) is False, 30, "serve to end it")
        seconds = time.monotonic() - begun
        why = request(client, "GET", HOLD_OBJECT)["spec"]["why"]
        control_plane.start("dovetail-control")
        workload.wait_until(lambda: held(client), 30, "control to hold pods again")

        workload.delete_all_pods(client)
        assert dovetail.metric("dovetail_ready") == 1

    assert seconds >= 6  # four times the Lease, less what had passed of its last term
    assert "has not been renewed for 8 s" in why


def test_pods_that_were_held_before_an_upgrade_from_gates_are_released_in_their_turn(control_plane, space):
    client = control_plane.client()
    before = {"order": "gates", "control": {"lease": LEASE}}
    held_pods = pods(space, "before", 24, seconds=4, scheduler_name="dovetail", spec={"schedulingGates": [HOLD]})
    workload.create_nodes(client, nodes())
    with History(client, offers(client)) as history:
        with dovetail_on(control_plane, settings=before), control_on(control_plane, lease=LEASE, order="gates"):
            workload.create_pods(client, held_pods)
            workload.wait_until(lambda: len(workload.bound_pods(client)) == 16, 30, "the nodes to be full")
            control_plane.kill("dovetail-control")
        waiting = sum(HOLD in gates(pod) for pod in workload.pods(client))

        with dovetail_on(control_plane, settings=AUTO), control_on(control_plane, lease=LEASE, order="auto"):
            workload.create_pods(client, pods(space, "after", 8, seconds=1))
            workload.wait_until(lambda: len(workload.pods(client)) == 32 and finished(client), 90, "all pods to end")
        over, regated, rebound = history.over, history.regated, history.rebound

    assert waiting > 0
    assert (over, regated, rebound) == (set(), set(), set())


def test_killed_and_paused_at_random_nobody_is_lost_stuck_or_released_twice(control_plane, space, tell):
    # By network four pods fit on a node, by CPU eight: only Dovetail keeps the others off.
    client, draw, count = control_plane.client(), random.Random(2), 84
    sizes = {"cpu": "500m", "demand": {"network-in": 250}}
    made = pods(space, "killed", count, seconds=3, **sizes)
    kills, pauses, gated = Counter(), 0, 0
    with auto_on(control_plane), control_on(control_plane, lease=LEASE, order="auto", name=REPLICAS[1]):
        workload.create_nodes(client, nodes(capacity={"network-in": 1000}))
        with History(client, offers(client)) as history:
            workload.create_pods(client, made[:24])
            workload.wait_until(lambda: is_gated(client, space), 20, "new pods to be held")
            waves = [made[start : start + 12] for start in range(24, count, 12)]
            begun = time.monotonic()
            while waves or (not finished(client) and time.monotonic() - begun < 60):
                if waves:
                    gated += sum(HOLD in gates(pod) for pod in workload.create_pods(client, waves.pop(0)))
                time.sleep(draw.uniform(0.2, 3))
                name = draw.choice((*REPLICAS, "dovetail"))
                if name in REPLICAS and draw.random() < 0.25:
                    pauses += 1
                    pid = control_plane.pids[name]
                    os.kill(pid, signal.SIGSTOP)
                    time.sleep(draw.uniform(0.5, 4))
                    os.kill(pid, signal.SIGCONT)
                    continue
                control_plane.kill(name)
                kills[name] += 1
                time.sleep(draw.uniform(0, 0.5))
                control_plane.start(name)
            workload.wait_until(lambda: finished(client), 120, "the last pods to end")
            there, over = workload.phases(client), history.over
            regated, rebound = history.regated, history.rebound
        workload.wait_until(lambda: held(client) is False, 30, "new pods to pass")
        twice = [uid for uid, times in released(control_plane).items() if times > 1]

    tell(f"{count} pods, {gated} of them held, kills: {dict(kills)}, {pauses} pauses; lost {count - len(there)}")
    assert len(there) == count
    assert set(there.values()) == {"Succeeded"}
    assert (over, regated, rebound) == (set(), set(), set())
    assert twice == []
    assert 0 < gated < count
    assert kills.keys() == {*REPLICAS, "dovetail"}
    assert sum(kills.values()) + pauses >= 5


def finished(client):
    """Say whether all pods that there are have ended well."""
    return set(workload.phases(client).values()) == {"Succeeded"}


class ControlMetrics:
    """What `dovetail control` counts."""

    def __init__(self, address):
        self._address = address

    def metric(self, name):
        """Return the sum of a metric's samples."""
        with urllib.request.urlopen(f"{self._address}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.split("{")[0].split(" ")[0] == name)

    def writes(self):
        """Return how many pods it has released or woken."""
        return self.metric("dovetail_releases_total") + self.metric("dovetail_wakeups_total")
