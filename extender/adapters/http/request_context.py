"""What the verbs share: the pod and the nodes that a request is about, and how a decision is counted and logged."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Protocol

import numpy as np
import structlog

from extender.adapters.http import wire
from extender.adapters.http.judging import Judged, NotReady, rows_of
from extender.adapters.kube.decoding import pod_from, version_number
from extender.adapters.kube.nodes import node_from
from extender.adapters.metrics.serve import ServeMetrics
from extender.arrays import Rows
from extender.cluster.ledger.flights import at_point
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import CapacityRule, Pod
from extender.cluster.pods.reading import away

UNKNOWN_NODE = "node unknown to Dovetail"
ANOTHER_CHOSEN = "another node was chosen"
NO_PROMISE = "opportunistic: no node with idle resources was chosen yet"
ANOTHER_PROMISED = "opportunistic: another node with idle resources was chosen"

LANDING_SECONDS = 1.0
"""A binding shows within this time or is not worth waiting for."""

log = structlog.get_logger()


class Readiness(Protocol):
    """Whether the caches can be trusted, and the time by which pods in flight grow old."""

    def wait(self, seconds: float) -> bool:
        """Wait until the caches are synced; False if they are not within the time."""

    def problem(self) -> str | None:
        """Return what keeps us from being ready; None when we are."""

    def flight_time(self) -> float:
        """Return the time in seconds at which what we know was current."""


class Warner(Protocol):
    """What tells the user of a broken annotation (an EventRecorder)."""

    def warn(self, kind: str, namespace: str, name: str, uid: str, message: str, owner: str = "") -> None:
        """Write a Warning event, once for each owner, else for each object and message."""


@dataclass(slots=True)
class LastPassed:
    """The nodes that the last filter call let pass, with their rows: prioritize mostly asks about the same.

    Any thread may call, so the three are replaced as one.
    """

    _last: tuple[Layout, Sequence[str], Rows] | None = None

    def keep(self, layout: Layout, names: Sequence[str], rows: Rows) -> None:
        """Remember the nodes that passed."""
        self._last = layout, names, rows

    def rows(self, layout: Layout, names: Sequence[str]) -> Rows | None:
        """Return the rows of these nodes; None where they are others, or the layout is another."""
        last = self._last
        return last[2] if last is not None and last[0] is layout and last[1] == names else None


@dataclass(frozen=True, slots=True)
class RequestContext:
    """What a verb needs for a request; `rules` give the capacity of nodes that come whole with it."""

    ledger: Ledger
    readiness: Readiness
    warner: Warner
    metrics: ServeMetrics
    rules: Sequence[CapacityRule]
    last_passed: LastPassed = field(default_factory=LastPassed)

    def require_ready(self) -> None:
        """Wait a moment for the caches to be synced. Raises NotReady."""
        if not self.readiness.wait(LANDING_SECONDS):
            raise NotReady(self.readiness.problem() or "not ready")

    def flight_time(self) -> float:
        """Return the time by which pods in flight grow old."""
        return self.readiness.flight_time()

    def pod(self, request: wire.Request) -> Pod:
        """Return the pod asked about: as the watch has shown it, or as the request says where it has not yet.

        A request that names another pod by that UID is answered, but changes nothing (`Ledger.contradicts`).
        """
        meta = request.pod.metadata
        known = self.ledger.pod(meta.uid)
        if known is None or (known.namespace, known.name) != (meta.namespace, meta.name):
            return self.ledger.counted(pod_from(request.pod))
        if known.resource_version >= version_number(meta.resource_version):
            return known
        return at_point(known, pod_from(request.pod))

    def view(self, base: Snapshot, request: wire.Request) -> tuple[Snapshot, Rows]:
        """Return the rows of the nodes asked about. Nodes that came whole and are unknown join the snapshot."""
        rows = rows_of(base, request)
        if request.whole is None or (rows >= 0).all():
            return base, rows
        unknown = compress(request.whole, (rows < 0).tolist())
        snapshot = base.with_nodes([node_from(wire.node_object(raw), self.rules) for raw in unknown])
        return snapshot, rows_of(snapshot, request)

    def warn(self, pod: Pod) -> None:
        """Tell the user where the annotations are broken of a pod that the watch has shown."""
        if (warning := pod.warning) is not None and self.ledger.pod(pod.uid) is not None:
            self.warner.warn("Pod", pod.namespace, pod.name, pod.uid, warning, pod.owner)

    def refused(self, judged: Judged, request: wire.Request, pod: Pod) -> dict[str, str]:
        """Return each refused node's reason, and count them; none where we chose, as nobody asks for them."""
        if judged.passed.all() or judged.chosen is not None:
            return {}
        if judged.waits is not None:
            self.metrics.refusals.labels(judged.waits).inc(len(judged.rows))
            return dict.fromkeys(request.names, judged.waits)
        if judged.elsewhere:
            return dict.fromkeys(compress(request.names, (~judged.passed).tolist()), ANOTHER_CHOSEN)
        dimensions, not_promised = judged.judgement.dimensions, NO_PROMISE if pod.promised is None else ANOTHER_PROMISED
        reasons = np.array([*judged.judgement.reasons(), UNKNOWN_NODE, not_promised], dtype=object)
        counted_as = [*(f"insufficient {name}" for name in dimensions), UNKNOWN_NODE, not_promised]
        known = judged.rows >= 0
        reason_of_node = np.where(known, judged.judgement.short[judged.rows] if known.any() else 0, len(dimensions))
        if judged.withheld is not None:
            reason_of_node[judged.withheld] = len(dimensions) + 1
        refused = ~judged.passed
        for index, count in zip(*np.unique(reason_of_node[refused], return_counts=True), strict=True):
            self.metrics.refusals.labels(counted_as[index]).inc(int(count))
        names = compress(request.names, refused.tolist())
        return dict(zip(names, reasons[reason_of_node[refused]].tolist(), strict=True))

    def log_judged(self, verb: str, pod: Pod, judged: Judged) -> None:
        """Log one line."""
        about = {"pod": pod.full_name, "nodes": len(judged.rows)}
        if judged.chosen is not None:
            log.info(verb, **about, node=judged.snapshot.layout.names[judged.chosen])
            return
        if judged.passed.all():
            log.info(verb, **about, passed=len(judged.rows))
            return
        if judged.waits is not None or judged.elsewhere:
            log.info(verb, **about, passed=int(judged.passed.sum()), waits=judged.waits)
            return
        open_rows = judged.open_rows
        known = open_rows[open_rows >= 0]
        log.info(
            verb,
            **about,
            passed=int(judged.passed.sum()),
            refused=judged.judgement.refusals(known),
            unknown=len(open_rows) - len(known),
            not_promised=len(judged.rows) - len(open_rows),
            short_of=_figures(judged, pod, known),
        )


def _figures(judged: Judged, pod: Pod, known: Rows) -> dict[str, dict[str, Any]]:
    """Return, for each short dimension, what was asked for and the most that any node asked about has free."""
    layout, figures = judged.snapshot.layout, {}
    for name in judged.judgement.refusals(known):
        column = layout.columns.get(name)
        free = layout.capacity[known, column] - judged.snapshot.allocated[known, column] if column is not None else None
        most = float(free.max()) if free is not None and np.isfinite(free).all() else None
        figures[name] = {"asked": pod.demand.get(name, away(pod).get(name)), "most_free": most}
    return figures
