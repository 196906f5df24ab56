"""What doctor's checks are given, and what they return. `app.inspection.checks` gathers the facts; checks are pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from extender.adapters.usage.report import UsageReport
from extender.cluster.model import Node, Pod
from extender.explain.amounts import seconds
from extender.explain.new_pods import NewPods
from extender.explain.planned_order import PlannedOrder

Level = Literal["ok", "warning", "problem"]
OK: Level = "ok"
WARNING: Level = "warning"
PROBLEM: Level = "problem"

MOST_SHOWN = 5
"""Of many findings of one check so many are shown, and how many more there are."""


class Silent(str):
    """Why a process that should answer does not. Where none was to be asked, it is a plain string that says why."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `advice` is what to do, empty where there is nothing."""

    check: str
    level: Level
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The Lease that `dovetail control` leads by: its holder (empty: nobody), the age of its renewal, its duration.

    The age is infinite where it was never renewed.
    """

    name: str
    holder: str
    age_seconds: float
    seconds: float


def why_unled(lease: LeaseState | None) -> str:
    """Return why no `dovetail control` leads, by its Lease (None: there is none); empty where one does."""
    if lease is None:
        return "no Lease: `dovetail control` has never led here"
    if not lease.holder:
        return f"nobody holds the Lease {lease.name}"
    if math.isinf(lease.age_seconds):
        return f"Lease {lease.name} of {lease.holder} was never renewed"
    if lease.age_seconds > lease.seconds:
        old = f"Lease {lease.name} of {lease.holder} was renewed {seconds(lease.age_seconds)} ago"
        return f"{old}, it lasts {seconds(lease.seconds)}"
    return ""


@dataclass(frozen=True, slots=True)
class FilterCalls:
    """What the metrics of `dovetail serve` count: filter calls, those that failed, nodes that it knows.

    `samples` are the calls that asked about more than one node, `sampled` the nodes of all these. `started` is since
    when all of it counts, in seconds since the epoch; 0: not known. `silent` says which other replicas do not answer.
    """

    source: str
    ready: bool
    nodes: int
    calls: int
    failed: int
    samples: int
    sampled: int
    started: float = 0.0
    silent: str = ""


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """What the KubeSchedulerConfiguration says: the extender's weight."""

    name: str
    weight: int


@dataclass(frozen=True, slots=True)
class Deadline:
    """A deadline of an owner that runs while its pods are held."""

    owner: str
    field: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Eligible:
    """How many held `pods` may be made opportunistic by their spec, and how many may not, by reason."""

    pods: int
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stated:
    """What settings state that checks go by: who waits by which `order`, and whether `filter` chooses the node.

    `always_held` is why pods are held at any time with `order: auto`, empty where they are not. `waits_nearby`: pods
    wait for room near their input.
    """

    order: str = "gates"
    chooses: bool = False
    always_held: str = ""
    waits_nearby: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """What could be read. Where a value is a string, it says why it could not (`Silent`); `unread` does so for lists.

    `later` is the order a few seconds after `order`: by the two one sees whether pods are released. `deadlines` are by
    the owner's UID, `leases` are the names of all Leases. `passed_over` says for how many seconds queues below their
    share have waited while room that they could have used went to others. `reserved` says on which nodes room is
    reserved, by class; `kept_idle` is the part of the cluster that is free there. `usage` is what `control`
    measures, None: settings have nothing measured. `eligible` is None where settings have no opportunistic pods.
    `new_pods` says whether the cluster holds them, None: the order is not auto. `held_why` is why they are to be or not
    as the `control` that leads has decided, empty: not known. `policy` says whether an admission
    policy goes by that, None: not known. `autoscalers` are what adds nodes for pods that look unschedulable.
    """

    schedulers: Sequence[str]
    lease: LeaseState | str | None
    filter_calls: FilterCalls | str
    configuration: SchedulerConfiguration | str
    order: PlannedOrder | None = None
    later: PlannedOrder | None = None
    pods: Sequence[Pod] = ()
    nodes: Sequence[Node] = ()
    deadlines: Mapping[str, Deadline] = field(default_factory=dict)
    leases: frozenset[str] = frozenset()
    unread: Mapping[str, str] = field(default_factory=dict)
    passed_over: Mapping[str, float] | str = field(default_factory=dict)
    reserved: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kept_idle: float = 0.0
    usage: UsageReport | str | None = None
    eligible: Eligible | None = None
    new_pods: NewPods | None = None
    new_pods_later: NewPods | None = None
    held_why: str = ""
    policy: bool | None = None
    autoscalers: Sequence[str] = ()
    stated: Stated = Stated()

    @property
    def held(self) -> list[Pod]:
        """The pods that our gate holds."""
        return [pod for pod in self.pods if pod.held and pod.waits]
