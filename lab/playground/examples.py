"""Pods to look at: three queues that want more than the playground's nodes have."""

from dataclasses import dataclass

from lab.controlplane import builders
from lab.controlplane.builders import Manifest

EXAMPLE_LABEL = "playground.dovetail.dev/example"
_GATE = {"name": "dovetail.dev/hold"}


@dataclass(frozen=True, slots=True)
class _Kind:
    """A queue's pods: what each requests, its disk and network, and how long it runs."""

    queue: str
    cpu: int
    memory: str
    demand: dict[str, str]
    seconds: float


_KINDS = (
    _Kind("research", 2, "2Gi", {"disk-read": "20M"}, 60.0),
    _Kind("analytics", 1, "6Gi", {"disk-write": "40M"}, 45.0),
    _Kind("reports", 1, "1Gi", {"network-in": "15M"}, 30.0),
)


def pods(pods_per_queue: int) -> list[Manifest]:
    """Return held pods, named after their queue: `research-00`, `analytics-00`, `reports-00`, `research-01`, ..."""
    return [_pod(kind, number) for number in range(pods_per_queue) for kind in _KINDS]


def _pod(kind: _Kind, number: int) -> Manifest:
    return builders.pod(
        f"{kind.queue}-{number:02d}",
        cpu=kind.cpu,
        memory=kind.memory,
        demand=kind.demand,
        duration=kind.seconds,
        scheduler_name="dovetail",
        labels={"dovetail.dev/queue": kind.queue, "dovetail.dev/job": kind.queue, EXAMPLE_LABEL: "backlog"},
        spec={"schedulingGates": [_GATE]},
    )
