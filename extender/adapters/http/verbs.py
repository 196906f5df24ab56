"""The verbs: each decodes, asks `verdict`, encodes. Here are filter and prioritize; preempt has its own room.

`filter` and `preempt` put the pod in flight to the nodes that passed (see `cluster.state`); `prioritize` changes
nothing. With `order: filter`, `filter` also asks whose turn it is, and refuses the others
(docs/guide/order-by-filter.md).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Protocol

import numpy as np
import structlog
from numpy.typing import NDArray

from extender.adapters.http import wire
from extender.adapters.http.event_wait import EventWait
from extender.adapters.http.preempt import Preemption
from extender.adapters.http.request_context import (
    MOST_TRIES,
    Judged,
    NotReady,
    Readiness,
    RequestContext,
    TooManyCalls,
    Warner,
    candidates,
    passing,
    rows_of,
)
from extender.adapters.kube.decoding import node_from
from extender.adapters.metrics.serve import Metrics
from extender.arrays import Rows
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Layout, Snapshot
from extender.cluster.model import CapacityRule, Pod
from extender.verdict import Ranker, Standing, judge, once_gone

__all__ = ["NotReady", "Order", "Verbs"]

log = structlog.get_logger()


class Order(Protocol):
    """Who says whose turn it is, where filter has to keep the order."""

    def standing(self, pod: Pod, snapshot: Snapshot, fits: NDArray[np.bool_]) -> Standing:
        """Return how a pod stands that fits on these nodes of the snapshot [N], at least one."""


@dataclass(slots=True)
class Verbs:
    """The three verbs, over the ledger; without an `order`, every pod's turn has come."""

    ledger: Ledger
    ranker: Ranker
    rules: tuple[CapacityRule, ...]
    readiness: Readiness
    warner: Warner
    metrics: Metrics
    wait_seconds: float
    order: Order | None = None
    _desk: RequestContext = field(init=False)
    _news: EventWait = field(init=False)
    _preemption: Preemption = field(init=False)
    _last_table: tuple[Layout, wire.ScoreTable] | None = field(default=None, init=False)
    _last_passed: tuple[Layout, Sequence[str], Rows] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._desk = RequestContext(self.ledger, self.readiness, self.warner, self.metrics)
        self._news = EventWait(self.ledger, self.readiness, self.wait_seconds)
        self._preemption = Preemption(self._desk, self._news)

    def filter(self, body: bytes) -> bytes:
        """Return ExtenderFilterResult for ExtenderArgs. Raises BadRequest, NotReady."""
        asked = wire.decode(body)
        self._desk.require_ready()
        pod = self._desk.pod(asked)
        self._desk.warn(pod)
        self.metrics.filter_nodes.observe(len(asked.names))
        judged = self._judge_and_assume(pod, asked)
        refused = self._desk.refused(judged, asked)
        self._desk.log_judged("filter", pod, judged)
        passed = list(compress(asked.names, judged.passed.tolist())) if refused else asked.names
        self._last_passed = (judged.snapshot.layout, passed, judged.rows[judged.passed] if refused else judged.rows)
        awaited = self._awaited(pod, judged.snapshot, refused)
        unresolvable = {name: refused[name] for name in refused.keys() - awaited.keys()} if awaited else refused
        return wire.encode(_reply(asked, judged.passed, passed, awaited, unresolvable))

    def prioritize(self, body: bytes) -> bytes:
        """Return a HostPriorityList for ExtenderArgs; an unknown node gets 0. Raises BadRequest, NotReady."""
        asked = wire.decode(body)
        self._desk.require_ready()
        pod = self._desk.pod(asked)
        snapshot, rows = self._rows_to_rank(asked)
        known = rows >= 0
        unknown = [] if known.all() else list(compress(asked.names, (~known).tolist()))
        rows = np.sort(rows[known])  # the reply has no order, and memory is faster in its own
        levels = self.ranker.rank(snapshot, pod, rows)
        self._log_prioritize(pod, snapshot.layout, rows, levels)
        return self._table(snapshot.layout).encode(rows, levels, unknown)

    def preempt(self, body: bytes) -> bytes:
        """Return ExtenderPreemptionResult for ExtenderPreemptionArgs. Raises BadRequest, NotReady."""
        return self._preemption.answer(body)

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

    def _judge_and_assume(self, pod: Pod, asked: wire.Asked) -> Judged:
        """Judge until no other pod took off meanwhile; wait a moment where only pods in flight stand in the way.

        Raises TooManyCalls where one took off each time.
        """
        stranger = self.ledger.contradicts(pod)
        if not stranger and self.ledger.flies(pod.uid):
            self._view(self.ledger.snapshot(self.readiness.flight_time()), asked)  # who asks wrongly changes nothing
            self.ledger.forget(pod.uid)
        started, tries = time.monotonic(), 0
        while tries < MOST_TRIES:
            base = self.ledger.snapshot(self.readiness.flight_time())
            snapshot, rows = self._view(base, asked)
            judgement = judge(snapshot, pod)
            judged = Judged(snapshot, judgement, rows, passing(judgement, rows))
            if stranger:
                return judged
            if not judged.passed.any():
                if self._news.wait(pod, snapshot, rows, started, self._news.refused.woken_by_cluster(pod)):
                    continue
                if self.ledger.yield_to(pod.uid):
                    continue
                self._news.refused.remember(pod)
            elif self.order is not None:
                judged = self._in_order(self.order, pod, base, judged)
                if judged.waits is not None:
                    if self._news.wait_for_turn(pod, base, started):
                        continue
                    self._news.refused.remember(pod)
            takes_off = candidates(base, rows[judged.passed])
            if self.ledger.assume(pod, takes_off, base, self.readiness.flight_time()):
                self.metrics.wait_seconds.observe(time.monotonic() - started)
                return judged
            tries += 1
        raise TooManyCalls

    def _in_order(self, order: Order, pod: Pod, base: Snapshot, judged: Judged) -> Judged:
        """Refuse a pod whose turn it is not everywhere; let another pass where the plan wants it, if that was asked."""
        rows, passed = judged.rows, judged.passed
        standing = order.standing(pod, base, candidates(base, rows[passed]))
        if standing.waits is not None:
            return replace(judged, passed=np.zeros_like(passed), waits=standing.waits)
        there = passed & _chosen(standing, base.layout, rows)
        return replace(judged, passed=there, elsewhere=True) if there.any() else judged

    def _view(self, base: Snapshot, asked: wire.Asked) -> tuple[Snapshot, Rows]:
        """Return the rows of the nodes asked about; a node that came whole and is unknown is taken from the request."""
        rows = rows_of(base, asked)
        if asked.whole is None or (rows >= 0).all():
            return base, rows
        strangers = [node_from(wire.node_object(raw), self.rules) for raw in compress(asked.whole, (rows < 0).tolist())]
        view = base.with_nodes(strangers)
        return view, rows_of(view, asked)

    def _awaited(self, pod: Pod, snapshot: Snapshot, refused: Mapping[str, str]) -> dict[str, str]:
        """Return the refusal that preemption can cure: of the node that pods are leaving for this one.

        Called unresolvable, it would make kube-scheduler evict others elsewhere meanwhile. No other refusal is curable:
        kube-scheduler asks us only where it sees room itself, and there it finds no victim
        (docs/concepts/preemption.md).
        """
        name = pod.nominated
        if name is None or name not in refused or name not in snapshot.layout.rows:
            return {}
        leaving = self.ledger.leaving(name, below=pod.priority)
        curable = leaving and judge(once_gone(snapshot, {name: leaving}), pod).passed[snapshot.layout.rows[name]]
        return {name: refused[name]} if curable else {}


def _chosen(standing: Standing, layout: Layout, rows: Rows) -> NDArray[np.bool_]:
    """Say which of these rows were chosen for a pod, none where any will do."""
    if standing.among is not None:
        return np.asarray(np.isin(rows, standing.among.nonzero()[0]))
    row = layout.rows.get(standing.node or "", -1)
    return (rows == row) if row >= 0 else np.zeros(len(rows), dtype=np.bool_)


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
