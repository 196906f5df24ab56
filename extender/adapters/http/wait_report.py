"""What only the `dovetail control` that acts knows: how long jobs wait for locality, which queues are passed over.

As it tells them to who asks, and as they are read from what it says.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from extender.errors import ClusterError
from extender.planner import LocalityWait

PATH = "locality"


@dataclass(frozen=True, slots=True)
class WaitReport:
    """Waits as a plan left them `age_seconds` ago; `leads` says whether it is of the replica that acts.

    `in_force` are seconds at the node, then at each level; `jobs` are by `Waiting.waits_as`. `passed_over` says for how
    many seconds queues below their share have been passed over; `reserved` on which nodes room is reserved, by class,
    and `kept_idle` how much of the cluster is free there.
    """

    leads: bool
    in_force: tuple[float, ...] = ()
    jobs: Mapping[str, LocalityWait] = field(default_factory=dict)
    age_seconds: float = 0.0
    passed_over: Mapping[str, float] = field(default_factory=dict)
    reserved: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kept_idle: float = 0.0


class _Job(msgspec.Struct):
    """`counts` None is infinite, for which JSON has no number."""

    level: int
    seconds: float
    counts: float | None


class _Told(msgspec.Struct):
    leads: bool
    in_force: tuple[float, ...]
    jobs: dict[str, _Job]
    age_seconds: float
    passed_over: dict[str, float] = msgspec.field(default_factory=dict)
    reserved: dict[str, list[str]] = msgspec.field(default_factory=dict)
    kept_idle: float = 0.0


def written(told: WaitReport) -> bytes:
    """Return them as JSON; what is infinite is null there."""
    return msgspec.json.encode(told)


def read(source: str, text: str) -> WaitReport:
    """Return what a JSON text says. Raises ClusterError where it is none of these."""
    try:
        told = msgspec.json.decode(text, type=_Told)
    except msgspec.DecodeError as error:
        raise ClusterError(f"{source}: this does not say how long jobs have waited: {error}") from None
    jobs = {
        name: LocalityWait(it.level, it.seconds, math.inf if it.counts is None else it.counts)
        for name, it in told.jobs.items()
    }
    return WaitReport(
        told.leads, told.in_force, jobs, told.age_seconds, told.passed_over, told.reserved, told.kept_idle
    )
