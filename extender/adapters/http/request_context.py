"""What the verbs have in common: the pod and the rows asked about, and how what was decided is told."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import structlog
from numpy.typing import NDArray

from extender.adapters.http import wire
from extender.adapters.kube.decoding import pod_from, version_number
from extender.adapters.metrics.serve import Metrics
from extender.arrays import Rows
from extender.cluster.ledger.flights import at_point
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Layout, Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.reading import away
from extender.errors import DovetailError
from extender.verdict import Judgement

UNKNOWN_NODE = "node unknown to Dovetail"
ANOTHER_CHOSEN = "another node was chosen"
MOST_TRIES = 20
"""How often a verb judges anew because another pod took off meanwhile: kube-scheduler asks one thing at a time."""

LANDING_SECONDS = 1.0
"""A binding shows within this time or is not worth waiting for."""

log = structlog.get_logger()


class NotReady(DovetailError):
    """The caches are not synced yet."""


class TooManyCalls(NotReady):
    """Other pods took off during every try to judge one."""

    def __init__(self) -> None:
        super().__init__(f"other pods were placed during each of {MOST_TRIES} tries; ask again")


class Readiness(Protocol):
    """Whether the caches can be trusted, and the time by which pods in flight grow old."""

    def wait(self, seconds: float) -> bool:
        """Wait until the caches are synced; False if they are not within the time."""

    def problem(self) -> str | None:
        """Return what keeps us from being ready; None when we are."""

    def flight_time(self) -> float:
        """Return the time in seconds at which what we know was current."""


class Warner(Protocol):
    """What tells the user of a broken annotation (a Recorder)."""

    def warn(self, kind: str, namespace: str, name: str, uid: str, message: str, owner: str = "") -> None:
        """Write a Warning event, once for each owner, else for each object and message."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was decided: which of the nodes asked about (`rows`, -1 where unknown) passed.

    `waits` is why the pod has to wait although some would pass, `elsewhere` that one was chosen of several that would.
    """

    snapshot: Snapshot
    judgement: Judgement
    rows: Rows
    passed: NDArray[np.bool_]
    waits: str | None = None
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Where questions come in and answers go out."""

    ledger: Ledger
    readiness: Readiness
    warner: Warner
    metrics: Metrics

    def require_ready(self) -> None:
        """Wait a moment for the caches to be synced. Raises NotReady."""
        if not self.readiness.wait(LANDING_SECONDS):
            raise NotReady(self.readiness.problem() or "not ready")

    def pod(self, asked: wire.Asked) -> Pod:
        """Return the pod asked about: as the watch has shown it, or as the request says where it has not yet.

        A request of another pod by that UID gets its answer, and nothing else comes of it (`Ledger.contradicts`).
        """
        meta = asked.pod.metadata
        known = self.ledger.pod(meta.uid)
        if known is None or (known.namespace, known.name) != (meta.namespace, meta.name):
            return self.ledger.counted(pod_from(asked.pod))
        if known.resource_version >= version_number(meta.resource_version):
            return known
        return at_point(known, pod_from(asked.pod))

    def warn(self, pod: Pod) -> None:
        """Tell the user, and count, where the annotations are broken of a pod that the watch has shown."""
        if (warning := pod.warning) is not None and self.ledger.pod(pod.uid) is not None:
            self.metrics.broken_annotations.labels("Pod").inc()
            self.warner.warn("Pod", pod.namespace, pod.name, pod.uid, warning, pod.owner)

    def refused(self, judged: Judged, asked: wire.Asked) -> dict[str, str]:
        """Return each refused node's reason, and count them."""
        if judged.passed.all():
            return {}
        if judged.waits is not None:
            self.metrics.refusals.labels(judged.waits).inc(len(judged.rows))
            return dict.fromkeys(asked.names, judged.waits)
        if judged.elsewhere:
            return dict.fromkeys(compress(asked.names, (~judged.passed).tolist()), ANOTHER_CHOSEN)
        dimensions = judged.judgement.dimensions
        reasons = np.array([*judged.judgement.reasons(), UNKNOWN_NODE], dtype=object)
        known = judged.rows >= 0
        which = np.where(known, judged.judgement.short[judged.rows] if known.any() else 0, len(dimensions))
        refused = ~judged.passed
        for index, count in zip(*np.unique(which[refused], return_counts=True), strict=True):
            self.metrics.refusals.labels(_counted_as(dimensions, index)).inc(int(count))
        return dict(zip(compress(asked.names, refused.tolist()), reasons[which[refused]].tolist(), strict=True))

    def log_judged(self, verb: str, pod: Pod, judged: Judged) -> None:
        """Log one line."""
        about = {"pod": f"{pod.namespace}/{pod.name}", "nodes": len(judged.rows)}
        if judged.passed.all():
            log.info(verb, **about, passed=len(judged.rows))
            return
        if judged.waits is not None or judged.elsewhere:
            log.info(verb, **about, passed=int(judged.passed.sum()), waits=judged.waits)
            return
        known = judged.rows[judged.rows >= 0]
        log.info(
            verb,
            **about,
            passed=int(judged.passed.sum()),
            refused=judged.judgement.refusals(known),
            unknown=len(judged.rows) - len(known),
            short_of=_figures(judged, pod, known),
        )


def _counted_as(dimensions: Sequence[str], index: int) -> str:
    """Return under which name a refusal is counted: one of few, whatever names users make up."""
    return f"insufficient {dimensions[index]}" if index < len(dimensions) else UNKNOWN_NODE


def rows_of(snapshot: Snapshot, asked: wire.Asked) -> Rows:
    """Return the row of each node asked about, -1 where unknown. Raises BadRequest where one is named twice."""
    rows = _find(snapshot.layout, asked.names)
    seen = np.zeros(len(snapshot.layout.names) + 1, dtype=np.bool_)
    seen[rows] = True
    if np.count_nonzero(seen) != len(rows):  # a node named twice, or more than one that is unknown
        wire.require_once(asked.names)
    return rows


def candidates(base: Snapshot, rows: Rows) -> NDArray[np.bool_]:
    """Mark these nodes among those of the snapshot [N]; what came whole and is not among them cannot be."""
    marked = np.zeros(len(base.layout.names), dtype=np.bool_)
    marked[rows[rows < len(marked)]] = True
    return marked


def passing(judgement: Judgement, rows: Rows) -> NDArray[np.bool_]:
    """Say which of the nodes asked about passed; an unknown one did not."""
    return (rows >= 0) & judgement.passed[rows] if len(judgement.short) else np.zeros(len(rows), dtype=np.bool_)


def _find(layout: Layout, names: Sequence[str]) -> Rows:
    if len(names) > 1:
        try:
            return np.array(itemgetter(*names)(layout.rows), dtype=np.intp)
        except KeyError:
            pass  # the slower way, which can do without
    return np.fromiter(map(layout.rows.get, names, repeat(-1)), dtype=np.intp, count=len(names))


def _figures(judged: Judged, pod: Pod, known: Rows) -> dict[str, dict[str, Any]]:
    """Return, for each short dimension, what was asked for and the most that any node asked about has free."""
    layout, figures = judged.snapshot.layout, {}
    for name in judged.judgement.refusals(known):
        column = layout.columns.get(name)
        free = layout.capacity[known, column] - judged.snapshot.allocated[known, column] if column is not None else None
        most = float(free.max()) if free is not None and np.isfinite(free).all() else None
        figures[name] = {"asked": pod.demand.get(name, away(pod).get(name)), "most_free": most}
    return figures
