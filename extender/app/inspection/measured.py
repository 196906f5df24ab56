"""What `dovetail locality` learns of a cluster from the metrics of `dovetail control`, by address or through pods."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from extender.adapters.kube.api import Refused, connect
from extender.adapters.metrics.scraping import (
    CONTROL_PORT,
    EXTENDER_PORT,
    NAME_LABEL,
    Scrape,
    by_address,
    of_pods,
    our_pods,
)
from extender.app.inspection.reading import Reader, in_short
from extender.errors import ClusterError, DovetailError

_FREED, _SECONDS = "dovetail_room_freed_total", "dovetail_loaded_seconds_total"
_NODES, _TASKS, _REPLICAS = "dovetail_nodes", "dovetail_locality_job_tasks", "dovetail_locality_replicas"
_PLACEMENTS = "dovetail_placements_total"
_NEAREST, _FARTHEST = "node", "anywhere"


class NotMeasured(DovetailError):
    """The metrics of the cluster do not hold the figure that the question needs."""


@dataclass(frozen=True, slots=True)
class Measured:
    """`freed` pods left their nodes in `loaded_seconds`, None where the metrics lack them; `placements` by level."""

    source: str
    freed: int | None = None
    loaded_seconds: float | None = None
    nodes: int = 0
    tasks: int | None = None
    replicas: int | None = None
    placements: Mapping[str, int] = field(default_factory=dict)

    def rate(self) -> float:
        """Return how many places freed up per second under load. Raises NotMeasured."""
        if self.freed is None or self.loaded_seconds is None:
            raise NotMeasured(
                f"{self.source}: there is no {_FREED} and {_SECONDS}: these are not the metrics of a `dovetail "
                "control` that measures its load; give --rate"
            )
        if not self.loaded_seconds:
            raise NotMeasured(
                f"{self.source}: nothing has waited for room since it began to act, so how fast room frees up under "
                "load is not known; ask again under load, or give --rate"
            )
        if not self.freed:
            seconds = f"{self.loaded_seconds:,.0f} s"
            raise NotMeasured(f"{self.source}: no room freed up in {seconds} under load; ask again, or give --rate")
        return self.freed / self.loaded_seconds

    def known_nodes(self) -> int:
        """Return how many nodes take pods. Raises NotMeasured."""
        if not self.nodes:
            raise NotMeasured(f"{self.source}: {_NODES} does not say how many nodes there are; give --nodes")
        return self.nodes


def by_metrics(url: str) -> Measured:
    """Return what the metrics at an address say. Raises ClusterError."""
    return measured([by_address(url)])


def by_cluster(kubeconfig: Path | None, context: str, install_namespace: str) -> Measured:
    """Return what the pods of `dovetail control` say, asked through the API server. Raises ClusterError."""
    return of_cluster(Reader(connect(kubeconfig, context), install_namespace))


def of_cluster(reader: Reader) -> Measured:
    """Return what a connected cluster's pods measured. `serve` counts placements too. Raises ClusterError."""
    api = reader.api
    reader.find_release()
    try:
        pods = our_pods(api, reader.namespace)
        controls, serves = of_pods(api, pods, CONTROL_PORT), of_pods(api, pods, EXTENDER_PORT)
    except Refused as refusal:
        why = in_short(refusal)
        raise ClusterError(f"its pods cannot be asked through the API server: {why}; try --metrics") from None
    if not controls:
        wanted = f"labelled {NAME_LABEL} with a port {CONTROL_PORT}"
        raise ClusterError(f"no pod of dovetail control runs in {reader.namespace}, {wanted}; try --install-namespace")
    return measured(controls, serves)


def measured(scrapes: Sequence[Scrape], serves: Sequence[Scrape] = ()) -> Measured:
    """Return the sum of what all replicas of control counted, and the figures of the one that leads.

    With `order: auto` the replicas of `serve` count placements too, with `filter` they alone do.
    """
    first, *others = sorted(scrapes, key=lambda scrape: -scrape.of("dovetail_leader"))
    freed, seconds = _sum(scrapes, _FREED), _sum(scrapes, _SECONDS)
    return Measured(
        source=f"{first.source} and {len(others)} more" if others else first.source,
        freed=None if freed is None else int(freed),
        loaded_seconds=seconds,
        nodes=int(first.of(_NODES)),
        tasks=_median(first, _TASKS),
        replicas=_median(first, _REPLICAS),
        placements=_placements([*scrapes, *serves]),
    )


def _sum(scrapes: Sequence[Scrape], name: str) -> float | None:
    return sum(scrape.of(name) for scrape in scrapes) if any(scrape.knows(name) for scrape in scrapes) else None


def _median(scrape: Scrape, name: str) -> int | None:
    """Return a median, rounded: half a task makes no job."""
    return max(1, round(scrape.of(name))) if scrape.knows(name) else None


def _placements(scrapes: Sequence[Scrape]) -> dict[str, int]:
    """Return how many pods started at each level, the nearest first."""
    counts = Counter[str]()
    for labels, value in (sample for scrape in scrapes for sample in scrape.each(_PLACEMENTS)):
        counts[labels.get("level", "")] += int(value)
    return dict(sorted(counts.items(), key=lambda pair: (pair[0] != _NEAREST, pair[0] == _FARTHEST)))
