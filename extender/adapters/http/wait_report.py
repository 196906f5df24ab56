"""The report of what only the leading `dovetail control` knows: waits for locality, queues that are passed over.

`control` writes it as JSON, and the user's commands read it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from extender.cluster.resources import Amounts
from extender.errors import ClusterError
from extender.planner import LocalityWait

PATH = "locality"


@dataclass(frozen=True, slots=True)
class WaitReport:
    """Waits as a plan left them `age_seconds` ago; `leads` says whether the replica that wrote it leads.

    `in_force` are seconds at the node, then at each level; `jobs` are by `Waiting.waits_as`. `passed_over` says for how
    many seconds queues below their share have been passed over. `reserved` says on which nodes room is reserved, by
    class, and `kept_idle` which part of the cluster is free there. With `order: auto`, `held` says whether new pods are
    held, None where that is not known, and `held_why` why they are to be or not. `load` is what nodes, by name, use
    besides their pods, where the plan leaves room for that. `idle` says by class why pods that may run on idle
    resources find none, None: settings have no such pods. `rests` says for how many seconds more pods that were
    refused in their turn have none, by UID; 0: they may.
    """

    leads: bool
    in_force: tuple[float, ...] = ()
    jobs: Mapping[str, LocalityWait] = field(default_factory=dict)
    age_seconds: float = 0.0
    passed_over: Mapping[str, float] = field(default_factory=dict)
    reserved: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kept_idle: float = 0.0
    held: bool | None = None
    held_why: str = ""
    load: Mapping[str, Amounts] = field(default_factory=dict)
    idle: Mapping[str, str] | None = None
    rests: Mapping[str, float] = field(default_factory=dict)


class _Job(msgspec.Struct):
    """`counts` None is infinite, for which JSON has no number."""

    level: int
    seconds: float
    counts: float | None


class _Report(msgspec.Struct):
    leads: bool
    in_force: tuple[float, ...]
    jobs: dict[str, _Job]
    age_seconds: float
    passed_over: dict[str, float] = msgspec.field(default_factory=dict)
    reserved: dict[str, list[str]] = msgspec.field(default_factory=dict)
    kept_idle: float = 0.0
    held: bool | None = None
    held_why: str = ""
    load: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)
    idle: dict[str, str] | None = None
    rests: dict[str, float] = msgspec.field(default_factory=dict)


_decode = msgspec.json.Decoder(_Report).decode


def written(report: WaitReport) -> bytes:
    """Return a report as JSON; infinite numbers are null there."""
    return msgspec.json.encode(report)


def read(source: str, text: str) -> WaitReport:
    """Return the report in a JSON text. Raises ClusterError where it holds none."""
    try:
        report = _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ClusterError(f"{source}: this does not say how long jobs have waited: {error}") from None
    jobs = {
        name: LocalityWait(job.level, job.seconds, math.inf if job.counts is None else job.counts)
        for name, job in report.jobs.items()
    }
    return WaitReport(**{**msgspec.structs.asdict(report), "jobs": jobs})
