"""Room, a backlog of two queues, room again: what `order: auto` does in each phase, and to whom it gives room.

The same pods, plain ones in a namespace with the chart's policies, come with `order: gates` and with `order: auto`.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient

from charts.render import NAMESPACE
from extender.cluster.model import HOLD_GATE
from lab.controlplane import builders, workload
from lab.controlplane.builders import Manifest
from lab.controlplane.configurations import dovetail_configuration
from lab.controlplane.gating import gating
from lab.controlplane.launches import SCHEDULER
from lab.controlplane.requests import writes_to_pods
from lab.controlplane.rest import request
from lab.controlplane.running import ControlPlane
from lab.errors import ControlPlaneError

PHASES = ("room", "backlog", "room again")
_PROFILE = "dovetail"
_SLOTS_PER_NODE = 8
_EVERY_SECONDS = 0.5
_LIMIT_SECONDS = 300.0
_FREE_SECONDS = 90.0
_ATTEMPTS = re.compile(r'^scheduler_schedule_attempts_total\{.*result="unschedulable".*\} (\S+)$', re.MULTILINE)
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class ContestCase:
    """`few` pods come while there is room; `many` of each queue when they have to wait. Weights are the queues'.

    Pods take each of `seconds` in turn.
    """

    nodes: int = 6
    few: int = 24
    many: int = 240
    seconds: Sequence[float] = (4.0, 5.0, 6.0, 7.0, 8.0)
    weights: Mapping[str, float] = field(default_factory=lambda: {"research": 3.0, "beta": 1.0})

    @property
    def slots(self) -> int:
        """How many pods run at a time."""
        return self.nodes * _SLOTS_PER_NODE


@dataclass(frozen=True, slots=True)
class Phase:
    """What happened to the `pods` of a phase until they had ended.

    `gated` of them were held at creation; kube-scheduler was refused `refusals` times; `writes` to pods and events.
    """

    name: str
    pods: int
    gated: int
    refusals: int
    writes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Contest:
    """One order's run. `held` and `started` say how the queue of the most weight did in the backlog, in percent.

    Of the room in use, and of the pods that started, while pods of both queues waited.
    """

    order: str
    phases: Sequence[Phase]
    held: float
    started: float


def run(programs: Mapping[str, Path], order: str, case: ContestCase, progress: Callable[[], None]) -> Contest:
    """Run all phases with one order. Raises ControlPlaneError where pods do not end, or stay held without need."""
    with ControlPlane(programs) as plane, gating(plane, order):
        nodes = [builders.node(f"n{row}", cpu=_SLOTS_PER_NODE, memory="64Gi") for row in range(case.nodes)]
        workload.create_nodes(plane.client(), nodes, ready=120)
        _start(plane, order, case)
        few = dict.fromkeys(case.weights, case.few // 2)
        first, _ = _phase(plane, case, PHASES[0], few)
        crowded, looks = _phase(plane, case, PHASES[1], dict.fromkeys(case.weights, case.many))
        if order == "auto":
            workload.wait_until(
                lambda: not _is_gated(_pod("probe", "beta", 0, case), plane.client()), _FREE_SECONDS, "no hold"
            )
        last, _ = _phase(plane, case, PHASES[2], few)
        progress()
        return Contest(order, (first, crowded, last), *_of_the_first(looks, case))


def _start(plane: ControlPlane, order: str, case: ContestCase) -> None:
    queues = [{"name": name, "weight": weight} for name, weight in case.weights.items()]
    settings: dict[str, Any] = {
        "order": order,
        "placement": {"chosenBy": "filter"},
        "queues": queues,
        "control": {"lease": {"namespace": NAMESPACE}},
    }
    configuration = dovetail_configuration(plane.add_extender(settings))
    profiles = [{**profile, "schedulerName": _PROFILE} for profile in configuration["profiles"]]
    plane.add_scheduler({**configuration, "profiles": profiles})
    plane.add_control(settings)


@dataclass(frozen=True, slots=True)
class _Look:
    """Pods by queue: those that run now, and those that have ever started."""

    running: Counter[str]
    started: Counter[str]


def _phase(plane: ControlPlane, case: ContestCase, name: str, counts: Mapping[str, int]) -> tuple[Phase, list[_Look]]:
    """Create pods of the queues by turns, wait until all have ended, and delete them."""
    client = plane.client()
    refusals, writes = _refusals(plane), writes_to_pods(client)
    prefix = name.replace(" ", "-")
    most = max(counts.values())
    manifests = [
        _pod(f"{prefix}-{queue}-{number:04d}", queue, number, case)
        for number in range(most)
        for queue, count in counts.items()
        if number < count
    ]
    gated = sum(_has_gate(pod) for pod in workload.create_pods(client, manifests))
    looks = _watch(client, len(manifests))
    refused, written = _refusals(plane) - refusals, writes_to_pods(client) - writes
    workload.delete_all_pods(client)
    return Phase(name, len(manifests), gated, refused, written), looks


def _watch(client: ApiClient, pods: int) -> list[_Look]:
    """Look at the pods that have a node until all have ended."""
    looks: list[_Look] = []

    def all_ended() -> bool:
        bound = workload.pods(client, fieldSelector="spec.nodeName!=")
        started = Counter(pod["metadata"]["labels"]["dovetail.dev/queue"] for pod in bound)
        running = [pod for pod in bound if pod["status"]["phase"] not in _ENDED]
        looks.append(_Look(Counter(pod["metadata"]["labels"]["dovetail.dev/queue"] for pod in running), started))
        return len(bound) == pods and not running

    workload.wait_until(all_ended, _LIMIT_SECONDS, f"{pods} pods to end", every=_EVERY_SECONDS)
    return looks


def _of_the_first(looks: Sequence[_Look], case: ContestCase) -> tuple[float, float]:
    """Return the first queue's part of the room in use and of what started, in percent, while both queues waited.

    Raises ControlPlaneError where that was never seen with half of the room in use.
    """
    first = next(iter(case.weights))
    both = [look for look in looks if max(look.started.values(), default=0) < case.many]
    full = [look for look in both if look.running.total() >= case.slots / 2]
    if not full:
        raise ControlPlaneError("never was half of the room seen in use while both queues waited: is the machine busy?")
    held = sum(look.running[first] for look in full) / sum(look.running.total() for look in full)
    return 100 * held, 100 * both[-1].started[first] / both[-1].started.total()


def _refusals(plane: ControlPlane) -> int:
    """Return how often kube-scheduler has found no node for a pod so far."""
    address = f"https://127.0.0.1:{plane.ports[SCHEDULER]}/metrics"
    text = plane.client().rest_client.pool_manager.request("GET", address).data.decode()
    return sum(int(float(count)) for count in _ATTEMPTS.findall(text))


def _pod(name: str, queue: str, number: int, case: ContestCase) -> Manifest:
    return builders.pod(
        name,
        cpu=1,
        memory="1Gi",
        duration=case.seconds[number % len(case.seconds)],
        scheduler_name=_PROFILE,
        labels={"dovetail.dev/queue": queue, "dovetail.dev/job": f"{queue}-{number}"},
    )


def _is_gated(manifest: Manifest, client: ApiClient) -> bool:
    """Return whether a pod like this would be held now."""
    path = f"/api/v1/namespaces/{manifest['metadata']['namespace']}/pods"
    return _has_gate(request(client, "POST", path, manifest, dryRun="All"))


def _has_gate(pod: Manifest) -> bool:
    return {"name": HOLD_GATE} in pod["spec"].get("schedulingGates", [])
