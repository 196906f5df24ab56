"""The waits for locality as `dovetail control` tells them to who asks, and as they are read from what it says."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from extender.errors import ClusterError
from extender.planner import LocalityWait

PATH = "locality"


@dataclass(frozen=True, slots=True)
class WaitsTold:
    """Waits as a plan left them `age_seconds` ago; `leads` says whether it is of the replica that acts.

    `in_force` are seconds at the node, then at each level; `jobs` are by `Waiting.waits_as`.
    """

    leads: bool
    in_force: tuple[float, ...] = ()
    jobs: Mapping[str, LocalityWait] = field(default_factory=dict)
    age_seconds: float = 0.0


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


def written(told: WaitsTold) -> bytes:
    """Return them as JSON; what is infinite is null there."""
    return msgspec.json.encode(told)


def read(source: str, text: str) -> WaitsTold:
    """Return what a JSON text says. Raises ClusterError where it is none of these."""
    try:
        told = msgspec.json.decode(text, type=_Told)
    except msgspec.DecodeError as error:
        raise ClusterError(f"{source}: this does not say how long jobs have waited: {error}") from None
    jobs = {
        name: LocalityWait(it.level, it.seconds, math.inf if it.counts is None else it.counts)
        for name, it in told.jobs.items()
    }
    return WaitsTold(told.leads, told.in_force, jobs, told.age_seconds)
