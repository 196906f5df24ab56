"""Which pods an autoscaler takes for unschedulable in a burst with `order: auto`: how many, and for how long."""

import threading
import time
from collections import defaultdict

import pytest

from lab.controlplane import builders, workload
from lab.controlplane.rest import request
from tests.integration.dovetail import control_on, dovetail_on
from tests.integration.gating import HOLD, auto_policies, gates, hold_kind, namespace, require_policies
from tests.integration.test_auto import LEASE, held, pods

ROOM = 100
TASK_SECONDS = 10
EVERY_SECONDS = 0.25
CLASHES = 0.05


def create(client, made, per_second=None):
    """Create pods as fast as eight connections do, or at a rate."""
    if per_second is None:
        return workload.create_pods(client, made)
    begun, tenth, there = time.monotonic(), per_second // 10, []
    for number in range(0, len(made), tenth):
        time.sleep(max(begun + number / per_second - time.monotonic(), 0.0))
        there += workload.create_pods(client, made[number : number + tenth])
    return there


def unschedulable(client, space):
    """Return the names of the pods that wait, and of those that look unschedulable."""
    selector = "spec.nodeName=,status.phase=Pending"
    found = request(client, "GET", f"/api/v1/namespaces/{space}/pods", fieldSelector=selector)["items"]
    return len(found), {it["metadata"]["name"] for it in found if _refused(it)}


def _refused(pod):
    return any(it.get("reason") == "Unschedulable" for it in pod["status"].get("conditions", []))


def watched(client, space, made, per_second=None):
    """Create these pods, and look until all have a node; return them, and when each looked unschedulable."""
    there, seen = [], defaultdict(list)
    creating = threading.Thread(target=lambda: there.extend(create(client, made, per_second)))
    creating.start()
    waiting = 1
    while creating.is_alive() or waiting:
        waiting, names = unschedulable(client, space)
        for name in names:
            seen[name].append(time.monotonic())
        time.sleep(EVERY_SECONDS)
    creating.join()
    return there, seen


@pytest.mark.timeout(600)
def test_of_a_burst_few_but_pods_that_came_before_the_hold_look_unschedulable(control_plane, tell):
    require_policies(control_plane)
    client, settings = control_plane.client(), {"order": "auto", "control": {"lease": LEASE}}
    with (
        namespace(control_plane, "burst") as space,
        hold_kind(control_plane),
        auto_policies(control_plane, space),
        dovetail_on(control_plane, settings=settings),
        control_on(control_plane, lease=LEASE, order="auto"),
    ):
        workload.wait_until(lambda: held(client) is False, 30, "new pods to pass")
        workload.create_nodes(client, [builders.node(f"node-{number:02d}", cpu=4) for number in range(ROOM // 4)])
        for prefix, count, per_second in (("once", 500, None), ("rate", 200, 50)):
            there, seen = watched(client, space, pods(space, prefix, count, seconds=TASK_SECONDS), per_second)
            gated = {it["metadata"]["name"] for it in there if HOLD in gates(it)}
            lasted = sorted(times[-1] - times[0] for times in seen.values())
            at_once = max(sum(times[0] <= now <= times[-1] for times in seen.values()) for (now, *_) in seen.values())
            tell(
                f"{count} pods, {f'{per_second} a second' if per_second else 'at once'}, {len(gated)} held; "
                f"looked unschedulable: {len(seen)} ({len(gated & seen.keys())} of those held), at once {at_once}, "
                f"for {lasted[len(lasted) // 2]:.1f} s (median), {lasted[-1]:.1f} s (longest)"
            )
            # A held pod may be released to the very room that `serve` gives to one without a gate at that moment.
            assert len(gated & seen.keys()) <= len(gated) * CLASHES, sorted(gated & seen.keys())
            assert len(seen) < (count - ROOM) / 2, "most came later, and were held"
            workload.wait_until(lambda: held(client) is False, 60, "new pods to pass again")
