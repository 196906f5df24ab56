"""The report of what is measured: `control` writes it as JSON, and doctor reads it. It names a few nodes, never all."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from extender.adapters.usage.looks import MOST_NAMED
from extender.adapters.usage.reading import UsageReader
from extender.adapters.usage.trust import NO_SERIES
from extender.cluster.model import Node
from extender.cluster.resources import IO_DIMENSIONS
from extender.cluster.usage import Usage
from extender.errors import ClusterError

PATH = "usage"


class AutoReport(msgspec.Struct, frozen=True):
    """What is known of predicted peaks (T_alloc `auto`): of how many of `nodes` the history is as long as the warm-up.

    `failure` says why the history could not be read, None where it could. `sigmas` is N, None without a prediction.
    `room` is what the peaks leave of all nodes, by resource: of those alone that limit it, and state no threshold.
    """

    failure: str | None
    nodes: int
    known: int
    sigmas: float | None
    room: dict[str, float] = {}


class UsageReport(msgspec.Struct, frozen=True):
    """`failure` says why nothing could be read, None where it could. Ages are of the newest samples of nodes.

    `without_series` counts nodes of which nothing is said, `strangers` series that are of no node; some are named.
    `problems` counts nodes by what else is wrong with their measurements, `without_pressure` those measured of which it
    is not known whether regular pods wait for CPU, where evictions go by that. `without_rates` counts those measured by
    the rates that they declare and of which there is no series. `auto` is there where peaks are predicted.
    """

    on: bool
    source: str = ""
    failure: str | None = None
    measured: int = 0
    newest_seconds: float = 0.0
    oldest_seconds: float = 0.0
    without_series: int = 0
    without_series_named: tuple[str, ...] = ()
    strangers: int = 0
    strangers_named: tuple[str, ...] = ()
    problems: dict[str, int] = {}
    without_pressure: int = 0
    without_rates: dict[str, int] = {}
    auto: AutoReport | None = None


def report_of(reader: UsageReader, source: str, *, pressure: bool = False) -> UsageReport:
    """Return what the reader knows now. `pressure`: evictions go by how long regular pods wait for CPU."""
    look, usage, now = reader.last, reader.usage(), reader.clock()
    if look.failure is not None:
        return UsageReport(True, source, look.failure)
    ages = [max(now - sample.at, 0.0) for sample in usage.nodes.values()]
    bare = sorted(name for name, problem in usage.problems.items() if problem == NO_SERIES)
    return UsageReport(
        on=True,
        source=source,
        measured=len(usage.nodes),
        newest_seconds=min(ages, default=0.0),
        oldest_seconds=max(ages, default=0.0),
        without_series=len(bare),
        without_series_named=tuple(bare[:MOST_NAMED]),
        strangers=look.strangers,
        strangers_named=look.named,
        problems=_other_problems(usage),
        without_pressure=len(usage.nodes.keys() - usage.pressure.keys()) if pressure else 0,
        without_rates=_without_rates(usage, reader.nodes()),
    )


def _other_problems(usage: Usage) -> dict[str, int]:
    return dict(Counter(problem for problem in usage.problems.values() if problem != NO_SERIES))


def _without_rates(usage: Usage, nodes: Iterable[Node]) -> dict[str, int]:
    measured = [(node.allocatable, usage.nodes[node.name].amounts) for node in nodes if node.name in usage.nodes]
    missing = [[name for name in IO_DIMENSIONS if name in offers.keys() - known.keys()] for offers, known in measured]
    return dict(Counter(", ".join(names) for names in missing if names))


def written(report: UsageReport) -> bytes:
    """Return a report as JSON."""
    return msgspec.json.encode(report)


_decode = msgspec.json.Decoder(UsageReport).decode


def read(source: str, text: str) -> UsageReport:
    """Return the report in a JSON text. Raises ClusterError where it holds none."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ClusterError(f"{source}: this does not say what is measured: {error}") from None
