"""The shares of two queues with a standing backlog of one-pod jobs, on a real control plane.

What a minute of a demo does not show: whether the queues keep their shares once the backlog is old.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.client import ApiClient
from rich.table import Table

from charts.render import NAMESPACE
from lab.controlplane import builders, workload
from lab.controlplane.configurations import dovetail_configuration
from lab.controlplane.gating import gating
from lab.controlplane.rest import request
from lab.controlplane.running import ControlPlane
from lab.report.rows import Report, Row

_GATE = {"name": "dovetail.dev/hold"}
_OVER = ("Succeeded", "Failed")
_SETTLING_SECONDS = 30.0
_EVERY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class LiveCase:
    """Queues with their weights, of which `backlog` jobs wait all the time; tasks take between these `seconds`.

    With `order` auto pods are created without our gate, in a namespace with the chart's policies; with gates they have
    it, with filter none has. `more` are settings beside the queues.
    """

    backlog: int = 1_200
    nodes: int = 20
    slots_per_node: int = 8
    seconds: tuple[float, float] = (10.0, 30.0)
    weights: Mapping[str, float] = field(default_factory=lambda: {"research": 3.0, "beta": 1.0})
    minimums: Mapping[str, float] = field(default_factory=lambda: {"research": 0.25})
    order: str = "auto"
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""
        return self.nodes * self.slots_per_node

    @property
    def settings(self) -> dict[str, Any]:
        """What `serve` and `control` are told."""
        queues = [
            {"name": name, "weight": weight, "minimumShare": self.minimums.get(name, 0.0)}
            for name, weight in self.weights.items()
        ]
        lease = {"namespace": NAMESPACE if self.order == "auto" else "default"}
        control = {**self.more.get("control", {}), "lease": lease}
        placement = {"chosenBy": "filter"}
        return {"queues": queues, "order": self.order, "placement": placement, **self.more, "control": control}

    @property
    def gates(self) -> list[dict[str, str]]:
        """What pods are created with."""
        return [_GATE] if self.order == "gates" else []

    def fair(self, queue: str) -> float:
        """Return the queue's fair share; the minimums here are below it."""
        return self.weights[queue] / sum(self.weights.values())


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen `at` so many seconds: pods that run, by queue, and for how long the oldest has waited."""

    at: float
    running: Mapping[str, int]
    oldest: Mapping[str, float]

    @property
    def total(self) -> int:
        """How many pods run."""
        return sum(self.running.values())


def watch(programs: Mapping[str, Path], case: LiveCase, seconds: float, tell: Callable[[Look], None]) -> list[Look]:
    """Run the case on a control plane of its own for so long, and return what was seen each second."""
    with ControlPlane(programs) as plane:
        return watch_on(plane, case, seconds, tell)


def watch_on(plane: ControlPlane, case: LiveCase, seconds: float, tell: Callable[[Look], None]) -> list[Look]:
    """Do the same on a control plane that runs; its nodes and processes are left there."""
    client = plane.client()
    nodes = [builders.node(f"n{row}", cpu=case.slots_per_node, memory="64Gi") for row in range(case.nodes)]
    workload.create_nodes(client, nodes, ready=120)
    configuration = dovetail_configuration(plane.add_extender(case.settings))
    configuration["profiles"] = [{**profile, "schedulerName": "dovetail"} for profile in configuration["profiles"]]
    plane.add_scheduler(configuration)
    with gating(plane, case.order) if case.order == "auto" else nullcontext():
        plane.add_control(case.settings)
        return _looks(client, case, seconds, tell)


def _looks(client: ApiClient, case: LiveCase, seconds: float, tell: Callable[[Look], None]) -> list[Look]:
    """Keep the backlog up for so long, and return what was seen each second."""
    draw = random.Random(1)  # noqa: S311 - a workload, not a secret
    waiting: dict[str, dict[str, float]] = {queue: {} for queue in case.weights}
    created_counts: Counter[str] = Counter()
    looks: list[Look] = []
    begin = time.monotonic()
    while (at := time.monotonic() - begin) < seconds:
        look = _look(client, at, waiting)
        looks.append(look)
        tell(look)
        _fill_up(client, case, at, waiting, created_counts, draw)
        time.sleep(max(_EVERY_SECONDS - (time.monotonic() - begin - at), 0.0))
    return looks


def _look(client: ApiClient, at: float, waiting: Mapping[str, dict[str, float]]) -> Look:
    """Return what is there; pods that have ended are deleted, and who has a node waits no more.

    Only pods with a node are asked for: every second a list of all would take its time from what is measured.
    """
    running = Counter[str]()
    for pod in workload.pods(client, fieldSelector="spec.nodeName!="):
        queue, name = pod["metadata"]["labels"]["dovetail.dev/queue"], pod["metadata"]["name"]
        waiting[queue].pop(name, None)
        if pod["status"]["phase"] in _OVER:
            request(client, "DELETE", f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})
        else:
            running[queue] += 1
    oldest = {queue: at - min(created.values()) for queue, created in waiting.items() if created}
    return Look(at, {queue: running[queue] for queue in waiting}, oldest)


def _fill_up(
    client: ApiClient,
    case: LiveCase,
    at: float,
    waiting: Mapping[str, dict[str, float]],
    created_counts: Counter[str],
    draw: random.Random,
) -> None:
    """Create what is missing of each queue's backlog."""
    fresh = []
    for queue, created in waiting.items():
        for _ in range(case.backlog - len(created)):
            created_counts[queue] += 1
            name = f"{queue}-{created_counts[queue]:06d}"
            created[name] = at
            fresh.append(
                builders.pod(
                    name,
                    cpu=1,
                    memory="1Gi",
                    duration=draw.uniform(*case.seconds),
                    scheduler_name="dovetail",
                    labels={"dovetail.dev/queue": queue, "dovetail.dev/job": name},
                    spec={"schedulingGates": case.gates},
                )
            )
    workload.create_pods(client, fresh)


@dataclass(frozen=True, slots=True)
class LiveShares:
    """The largest distance of a queue's mean share from its fair one, in percent points, and the slots in use."""

    error: float
    in_use: float


def shares_of(case: LiveCase, looks: Sequence[Look], after: float = _SETTLING_SECONDS) -> LiveShares:
    """Return what was held in the mean, once the cluster had filled up for so many seconds."""
    counted = [look for look in looks if look.at >= after and look.total]
    error = 0.0
    for queue in case.weights:
        mean = sum(look.running[queue] / look.total for look in counted) / len(counted)
        error = max(error, abs(mean - case.fair(queue)))
    return LiveShares(100 * error, 100 * sum(look.total for look in counted) / len(counted) / case.slots)


def report(case: LiveCase, looks: Sequence[Look]) -> Report:
    """Return the rows, and a table of the shares by half minutes."""
    shares = shares_of(case, looks)
    about = f"{case.backlog:,} one-pod jobs of each queue wait all the time, {looks[-1].at:.0f} s"
    rows = [
        Row("live.share_error", round(shares.error, 2), "points", note=f"from the fair share, in the mean; {about}"),
        Row("live.slots_in_use", round(shares.in_use, 2), "%", note=f"of {case.slots}, after the first half minute"),
    ]
    table = Table(title=f"Shares of {case.slots} slots in percent (fair: {_fair_words(case)})")
    for heading in ("seconds", *case.weights, "in use", "oldest waits"):
        table.add_column(heading, justify="right")
    for begin in range(0, int(looks[-1].at) + 1, int(_SETTLING_SECONDS)):
        some = [look for look in looks if begin <= look.at < begin + _SETTLING_SECONDS and look.total]
        if some:
            parts = [sum(look.running[queue] / look.total for look in some) / len(some) for queue in case.weights]
            used = sum(look.total for look in some) / len(some) / case.slots
            oldest = max((seconds for look in some for seconds in look.oldest.values()), default=0.0)
            table.add_row(
                str(begin), *(f"{100 * share:.1f}" for share in parts), f"{100 * used:.1f}", f"{oldest:.0f} s"
            )
    return Report(rows, [table])


def _fair_words(case: LiveCase) -> str:
    return ", ".join(f"{queue} {100 * case.fair(queue):.0f}" for queue in case.weights)
