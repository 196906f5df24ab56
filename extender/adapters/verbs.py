"""The verbs, filter, prioritize and preempt: each decodes, asks `verdict`, encodes.

`filter` and `preempt` put the pod in flight to the nodes that passed (see `cluster.state`); `prioritize` changes
nothing.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, compress, repeat
from operator import itemgetter
from typing import Any, Protocol

import numpy as np
import structlog
from numpy.typing import NDArray

from extender.adapters import wire
from extender.adapters.kinds import node_from, pod_from, version_number
from extender.adapters.metrics import Metrics
from extender.adapters.refused import RefusedPods
from extender.cluster.model import CapacityRule, Pod
from extender.cluster.resources import IO_DIMENSIONS
from extender.cluster.snapshot import Layout, Rows, Snapshot
from extender.cluster.state import Ledger
from extender.errors import DovetailError
from extender.verdict import Judgement, Ranker, judge, once_gone

UNKNOWN_NODE = "node unknown to Dovetail"
_LANDING_SECONDS = 1.0
"""A binding shows within this time or is not worth waiting for."""

_LAG_SECONDS = 0.05
"""Our watch is hardly ever further behind kube-scheduler's."""

log = structlog.get_logger()


class NotReady(DovetailError):
    """The caches are not synced yet."""


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

    def warn(self, kind: str, namespace: str, name: str, uid: str, message: str) -> None:
        """Write a Warning event, once."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What filter decided: which of the nodes asked about (`rows`, -1 where unknown) passed."""

    snapshot: Snapshot
    judgement: Judgement
    rows: Rows
    passed: NDArray[np.bool_]


@dataclass(slots=True)
class Verbs:
    """The three verbs, over the ledger."""

    ledger: Ledger
    ranker: Ranker
    rules: tuple[CapacityRule, ...]
    readiness: Readiness
    warner: Warner
    metrics: Metrics
    wait_seconds: float
    _refused_pods: RefusedPods = field(default_factory=RefusedPods, init=False)
    _refused_preemptors: RefusedPods = field(default_factory=RefusedPods, init=False)
    _last_table: tuple[Layout, wire.ScoreTable] | None = field(default=None, init=False)
    _last_passed: tuple[Layout, Sequence[str], Rows] | None = field(default=None, init=False)

    def filter(self, body: bytes) -> bytes:
        """Return ExtenderFilterResult for ExtenderArgs. Raises BadRequest, NotReady."""
        asked = wire.decode(body)
        self._require_ready()
        pod = self._pod(asked)
        self._warn(pod)
        self.metrics.filter_nodes.observe(len(asked.names))
        judged = self._judge_and_assume(pod, asked)
        refused = self._refused(judged, asked)
        self._log_judged("filter", pod, judged)
        passed = list(compress(asked.names, judged.passed.tolist())) if refused else asked.names
        self._last_passed = (judged.snapshot.layout, passed, judged.rows[judged.passed] if refused else judged.rows)
        awaited = self._awaited(pod, judged.snapshot, refused)
        unresolvable = {name: refused[name] for name in refused.keys() - awaited.keys()} if awaited else refused
        return wire.encode(_reply(asked, judged.passed, passed, awaited, unresolvable))

    def prioritize(self, body: bytes) -> bytes:
        """Return a HostPriorityList for ExtenderArgs; an unknown node gets 0. Raises BadRequest, NotReady."""
        asked = wire.decode(body)
        self._require_ready()
        pod = self._pod(asked)
        snapshot, rows = self._rows_to_rank(asked)
        known = rows >= 0
        unknown = [] if known.all() else list(compress(asked.names, (~known).tolist()))
        rows = np.sort(rows[known])  # the reply has no order, and memory is faster in its own
        levels = self.ranker.rank(snapshot, pod, rows)
        self._log_prioritize(pod, snapshot.layout, rows, levels)
        return self._table(snapshot.layout).encode(rows, levels, unknown)

    def preempt(self, body: bytes) -> bytes:
        """Return ExtenderPreemptionResult for ExtenderPreemptionArgs. Raises BadRequest, NotReady.

        A node stays, with the victims as they came, where filter would pass the pod once they are gone.
        """
        asked = wire.decode_preemption(body)
        self._require_ready()
        pod = self._pod(asked)
        self._warn(pod)
        judged = self._judge_once_gone(pod, asked)
        self._refused(judged, asked)
        self._log_judged("preempt", pod, judged)
        kept = compress(asked.victims.items(), judged.passed.tolist())
        return wire.encode(wire.PreemptReply(dict(kept)))

    def _rows_to_rank(self, asked: wire.Asked) -> tuple[Snapshot, Rows]:
        """Return the rows of the nodes asked about: mostly those that filter has just let pass, in that order."""
        base, last = self.ledger.snapshot(self.readiness.flight_time()), self._last_passed
        if last is not None and last[0] is base.layout and last[1] == asked.names:
            return base, last[2]
        return self._view(base, asked)

    def _table(self, layout: Layout) -> wire.ScoreTable:
        """Return the ready-made pieces for these nodes; kept until the nodes change."""
        last = self._last_table
        if last is None or last[0] is not layout:
            last = self._last_table = (layout, wire.ScoreTable(layout.names))
        return last[1]

    def _log_prioritize(self, pod: Pod, layout: Layout, rows: Rows, levels: NDArray[np.int64]) -> None:
        if len(rows):
            best = int(levels.argmax())
            log.info(
                "prioritize",
                pod=f"{pod.namespace}/{pod.name}",
                nodes=len(rows),
                rule=self.ranker.placement.rule,
                node=layout.names[rows[best]],
                score=int(levels[best]),
            )

    def _require_ready(self) -> None:
        if not self.readiness.wait(_LANDING_SECONDS):
            raise NotReady(self.readiness.problem() or "not ready")

    def _pod(self, asked: wire.Asked) -> Pod:
        """Return the pod asked about; the watch has mostly brought it already, at the same version."""
        meta = asked.pod.metadata
        return self.ledger.pod(meta.uid, version_number(meta.resource_version)) or pod_from(asked.pod)

    def _warn(self, pod: Pod) -> None:
        if pod.problem is not None:
            self.metrics.broken_annotations.labels("Pod").inc()
            self.warner.warn("Pod", pod.namespace, pod.name, pod.uid, f"{pod.problem}; placed by its requests")

    def _judge_and_assume(self, pod: Pod, asked: wire.Asked) -> Judged:
        """Judge until no other pod took off meanwhile; wait a moment where only pods in flight stand in the way."""
        self.ledger.forget(pod.uid)
        started = time.monotonic()
        while True:
            base = self.ledger.snapshot(self.readiness.flight_time())
            snapshot, rows = self._view(base, asked)
            judgement = judge(snapshot, pod)
            passed = _passed(judgement, rows)
            if not passed.any():
                if self._wait_for_news(pod, snapshot, rows, started, self._refused_pods.woken_by_cluster(pod)):
                    continue
                self._refused_pods.remember(pod)
            if self.ledger.assume(pod, _candidates(base, rows[passed]), base, self.readiness.flight_time()):
                self.metrics.wait_seconds.observe(time.monotonic() - started)
                return Judged(snapshot, judgement, rows, passed)

    def _judge_once_gone(self, pod: Pod, asked: wire.AskedToPreempt) -> Judged:
        """Judge as if each node's victims were gone; wait as filter does, and put the pod in flight.

        Else another that preempts a moment later would count on the same room. Where the pod has a nomination already,
        that counts: no news would end its flight if kube-scheduler chose the same node again.
        """
        self.ledger.forget(pod.uid)
        started = time.monotonic()
        uids = {name: [victim.uid for victim in victims.pods or ()] for name, victims in asked.victims.items()}
        while True:
            base, known = self.ledger.snapshot_with(chain.from_iterable(uids.values()), self.readiness.flight_time())
            view = once_gone(base, {name: [known[uid] for uid in of if uid in known] for name, of in uids.items()})
            rows, judgement = _rows(view, asked), judge(view, pod)
            passed = _passed(judgement, rows)
            if not passed.any():
                if self._wait_for_news(pod, view, rows, started, self._refused_preemptors.know(pod)):
                    continue
                self._refused_preemptors.remember(pod)
            candidates = _candidates(base, rows[passed] if pod.nominated is None else rows[:0])
            if self.ledger.assume(pod, candidates, base, self.readiness.flight_time(), preempts=True):
                return Judged(view, judgement, rows, passed)

    def _wait_for_news(self, pod: Pod, view: Snapshot, rows: Rows, started: float, again: bool) -> bool:
        """Wait for news that may yet make the pod fit; False where there is nothing to wait for, or none came.

        Either a pod in flight stands in the way, and its binding may show any moment. Or kube-scheduler asks because
        room has appeared, and heard of it before we did: refused then, the pod would sleep for minutes with room there.
        So it may be where it asks `again` about a pod that it has no other reason to ask about.
        """
        landing = started + self.wait_seconds - time.monotonic()
        if landing > 0 and self._may_land(pod, view, rows):
            return self.ledger.wait_past(view, landing)
        lagging = started + _LAG_SECONDS - time.monotonic()
        return lagging > 0 and (again or self._may_be_behind(pod, view, rows)) and self._wait_for_lag(view, lagging)

    def _may_be_behind(self, pod: Pod, view: Snapshot, rows: Rows) -> bool:
        """Say whether kube-scheduler may have heard what we have not.

        It must have where CPU, memory or an extended resource is short: it counts these itself, and has just let these
        nodes pass.
        """
        short = judge(view, pod, in_flight=False).short[rows[rows >= 0]]
        theirs = [view.layout.axis.index(name) for name in view.layout.axis if name not in IO_DIMENSIONS]
        return bool(np.isin(short, theirs).any())

    def _wait_for_lag(self, view: Snapshot, seconds: float) -> bool:
        started = time.monotonic()
        if not self._refused_pods.may_wait(started):
            return False
        came = self.ledger.wait_past(view, seconds)
        self._refused_pods.waited(time.monotonic() - started)
        return came

    def _may_land(self, pod: Pod, snapshot: Snapshot, rows: Rows) -> bool:
        """Say whether only pods in flight stand in the way, one so young that its binding may show any moment."""
        if not snapshot.flights or not judge(snapshot, pod, in_flight=False).passed[rows[rows >= 0]].any():
            return False
        newest = self.ledger.newest_flight_since()
        return newest is not None and self.readiness.flight_time() - newest < _LANDING_SECONDS

    def _view(self, base: Snapshot, asked: wire.Asked) -> tuple[Snapshot, Rows]:
        """Return the rows of the nodes asked about; a node that came whole and is unknown is taken from the request."""
        rows = _rows(base, asked)
        if asked.whole is None or (rows >= 0).all():
            return base, rows
        strangers = [node_from(wire.node_object(raw), self.rules) for raw in compress(asked.whole, (rows < 0).tolist())]
        view = base.with_nodes(strangers)
        return view, _rows(view, asked)

    def _refused(self, judged: Judged, asked: wire.Asked) -> dict[str, str]:
        """Return each refused node's reason, and count them."""
        if judged.passed.all():
            return {}
        dimensions = judged.judgement.dimensions
        reasons = np.array([*judged.judgement.reasons(), UNKNOWN_NODE], dtype=object)
        known = judged.rows >= 0
        which = np.where(known, judged.judgement.short[judged.rows] if known.any() else 0, len(dimensions))
        refused = ~judged.passed
        for index, count in zip(*np.unique(which[refused], return_counts=True), strict=True):
            self.metrics.refusals.labels(reasons[index]).inc(int(count))
        return dict(zip(compress(asked.names, refused.tolist()), reasons[which[refused]].tolist(), strict=True))

    def _awaited(self, pod: Pod, snapshot: Snapshot, refused: Mapping[str, str]) -> dict[str, str]:
        """Return the refusal that preemption can cure: of the node that pods are leaving for this one.

        Called unresolvable, it would make kube-scheduler evict others elsewhere meanwhile. No other refusal is curable:
        kube-scheduler asks us only where it sees room itself, and there it finds no victim (docs/preemption.md).
        """
        name = pod.nominated
        if name is None or name not in refused or name not in snapshot.layout.rows:
            return {}
        leaving = self.ledger.leaving(name, below=pod.priority)
        curable = leaving and judge(once_gone(snapshot, {name: leaving}), pod).passed[snapshot.layout.rows[name]]
        return {name: refused[name]} if curable else {}

    def _log_judged(self, verb: str, pod: Pod, judged: Judged) -> None:
        about = {"pod": f"{pod.namespace}/{pod.name}", "nodes": len(judged.rows)}
        if judged.passed.all():
            log.info(verb, **about, passed=len(judged.rows))
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


def _rows(snapshot: Snapshot, asked: wire.Asked) -> Rows:
    """Return the row of each node asked about, -1 where unknown. Raises BadRequest where one is named twice."""
    rows = _find(snapshot.layout, asked.names)
    seen = np.zeros(len(snapshot.layout.names) + 1, dtype=np.bool_)
    seen[rows] = True
    if np.count_nonzero(seen) != len(rows):  # a node named twice, or more than one that is unknown
        wire.require_once(asked.names)
    return rows


def _candidates(base: Snapshot, rows: Rows) -> NDArray[np.bool_]:
    """Mark these nodes among those of the snapshot [N]; what came whole and is not among them cannot be."""
    marked = np.zeros(len(base.layout.names), dtype=np.bool_)
    marked[rows[rows < len(marked)]] = True
    return marked


def _passed(judgement: Judgement, rows: Rows) -> NDArray[np.bool_]:
    """Say which of the nodes asked about passed; an unknown one did not."""
    return (rows >= 0) & judgement.passed[rows] if len(judgement.short) else np.zeros(len(rows), dtype=np.bool_)


def _reply(
    asked: wire.Asked,
    mask: NDArray[np.bool_],
    passed: Sequence[str],
    awaited: Mapping[str, str],
    unresolvable: Mapping[str, str],
) -> wire.FilterReply:
    if asked.whole is None:
        return wire.FilterReply(None, passed, awaited, unresolvable)
    items = list(compress(asked.whole, mask.tolist()))
    return wire.FilterReply({"items": items}, None, awaited, unresolvable)


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
        figures[name] = {"asked": pod.demand[name], "most_free": most}
    return figures
