"""The verb filter: which of the nodes asked about may take the pod. It puts the pod in flight to those.

With `order: auto` or `filter`, it also asks whose turn it is, and refuses the others (docs/concepts/filter-order.md).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Protocol

import numpy as np

from extender.adapters.http import wire
from extender.adapters.http.choosing import Chooser
from extender.adapters.http.event_wait import EventWait
from extender.adapters.http.judging import MOST_TRIES, Judged, TooManyCalls, candidates, judged
from extender.adapters.http.request_context import RequestContext
from extender.arrays import Mask, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.verdict import Standing, judge, once_gone


class Order(Protocol):
    """Says whose turn it is, where filter has to keep the order."""

    def standing(self, pod: Pod, snapshot: Snapshot, fits: Mask) -> Standing:
        """Return how a pod stands that fits on these nodes of the snapshot [N], at least one."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Answers filter; without an `order`, every pod's turn has come; without a `chooser`, kube-scheduler chooses."""

    context: RequestContext
    event_wait: EventWait
    order: Order | None
    chooser: Chooser | None

    def answer(self, body: bytes) -> bytes:
        """Return ExtenderFilterResult for ExtenderArgs. Raises BadRequest, NotReady."""
        # 1. Decode the request, and look its pod up in the ledger.
        request = wire.decode(body)
        self.context.require_ready()
        pod = self.context.pod(request)
        self.context.warn(pod)
        self.context.metrics.filter_nodes.observe(len(request.names))
        # 2. Judge the nodes, and put the pod in flight to those that pass.
        judgement = self._judge_and_assume(pod, request)
        # 3. Count, log and remember what was decided; prioritize asks about the same nodes next, unless we chose.
        refused = self.context.refused(judgement, request, pod)
        self.context.log_judged("filter", pod, judgement)
        whole = judgement.passed.all()
        passed = request.names if whole else list(compress(request.names, judgement.passed.tolist()))
        if judgement.chosen is None:
            rows = judgement.rows if whole else judgement.rows[judgement.passed]
            self.context.last_passed.keep(judgement.snapshot.layout, passed, rows)
        # 4. Tell refusals that preemption can cure from the others.
        curable = self._curable(pod, judgement.snapshot, refused)
        unresolvable = {name: refused[name] for name in refused.keys() - curable.keys()} if curable else refused
        # 5. Encode the reply, with whole nodes where they came whole.
        return wire.encode(_reply(request, judgement.passed, passed, curable, unresolvable))

    def _judge_and_assume(self, pod: Pod, request: wire.Request) -> Judged:
        """Judge until no other pod took off meanwhile, and put the pod in flight to the nodes that pass.

        Raises TooManyCalls where another took off each time.
        """
        context, ledger = self.context, self.context.ledger
        # 1. A pod that flew already lands first: this request is about where it may go now. A request that names a
        #    pod wrongly (`contradicts`) gets its answer and changes nothing.
        contradicts = ledger.contradicts(pod)
        if self.chooser is not None and not contradicts:
            self.chooser.failed(pod)
        # Where this is a second try, news of how the first ended may still come.
        retried = self.event_wait.refused.woken_by_cluster(pod)
        if not contradicts and ledger.flies(pod.uid):
            retried = True
            context.view(ledger.snapshot(context.flight_time()), request)  # raises where the request is a bad one
            ledger.forget(pod.uid)
        started, tries = time.monotonic(), 0
        # At each turn: the snapshot is new, and the pod is not in flight.
        while tries < MOST_TRIES:
            # 2. Judge the nodes asked about by one snapshot.
            base = ledger.snapshot(context.flight_time())
            snapshot, rows = context.view(base, request)
            judgement = judged(snapshot, judge(snapshot, pod, rows), rows, pod)
            if contradicts:
                return judgement
            # 3. Where none passes, or it is not the pod's turn, wait a moment for an event that may change that.
            if not judgement.passed.any():
                if self._came_after_refusal(pod, snapshot, judgement.open_rows, started):
                    continue
            elif self.order is not None:
                judgement = self._in_order(self.order, pod, base, judgement)
                if judgement.waits is not None and self._came_before_turn(pod, base, started):
                    continue
            # 4. Choose one of several, if that is ours to do.
            judgement = self._chosen(request, pod, judgement)
            # 5. Put it in flight, unless another pod took off since the snapshot: then judge again.
            there = candidates(base, rows[judgement.passed])
            if ledger.assume(pod, there, base, context.flight_time(), retried=retried):
                context.metrics.wait_seconds.observe(time.monotonic() - started)
                if self.chooser is not None and judgement.chosen is not None:
                    self.chooser.chose(pod, judgement.snapshot.layout.names[judgement.chosen])
                return judgement
            tries += 1
        raise TooManyCalls

    def _came_after_refusal(self, pod: Pod, snapshot: Snapshot, rows: Rows, started: float) -> bool:
        """Say whether to judge again a pod that no node takes: an event came, or another pod's flight gave way.

        Without `rows`, the nodes that it may get of those asked about, there is nothing to wait for: only a change of
        the pod can help.
        """
        refused = self.event_wait.refused
        if len(rows):
            if self.event_wait.wait(pod, snapshot, rows, started, refused.woken_by_cluster(pod)):
                return True
            if self.context.ledger.yield_to(pod.uid):
                return True
        refused.remember(pod)
        return False

    def _came_before_turn(self, pod: Pod, base: Snapshot, started: float) -> bool:
        """Say whether to judge again a pod whose turn has not come, because an event came."""
        if self.event_wait.wait_for_turn(pod, base, started):
            return True
        self.event_wait.refused.remember(pod)
        return False

    def _in_order(self, order: Order, pod: Pod, base: Snapshot, judgement: Judged) -> Judged:
        """Refuse a pod everywhere whose turn has not come; else keep it to the nodes that the plan chose, if asked.

        To the plan a node that has just refused the pod's like is one that was not asked about.
        """
        rows, passed = judgement.rows, judgement.passed
        if self.chooser is not None and (refused := self.chooser.refused(judgement.snapshot, pod)):
            others = passed & ~np.isin(rows, refused)
            passed = others if others.any() else passed
        standing = order.standing(pod, base, candidates(base, rows[passed]))
        if standing.waits is not None:
            return replace(judgement, passed=np.zeros_like(passed), waits=standing.waits)
        chosen = passed & _kept_to(standing, base.layout, rows)
        return replace(judgement, passed=chosen, elsewhere=True) if chosen.any() else replace(judgement, passed=passed)

    def _chosen(self, request: wire.Request, pod: Pod, judgement: Judged) -> Judged:
        """Keep a pod to the one node that we choose for it, unless that is left to kube-scheduler."""
        if self.chooser is None:
            return judgement
        rows = judgement.rows[judgement.passed]
        if len(rows) <= 1:  # the plan's choice is remembered like ours
            return replace(judgement, chosen=int(rows[0])) if judgement.elsewhere and len(rows) else judgement
        why = self.chooser.left_to_scheduler(request, pod)
        self.context.metrics.choices.labels(why or "chosen").inc()
        if why is not None:
            return judgement
        row = self.chooser.choose(judgement.snapshot, pod, rows)
        return replace(judgement, passed=judgement.rows == row, chosen=row)

    def _curable(self, pod: Pod, snapshot: Snapshot, refused: Mapping[str, str]) -> dict[str, str]:
        """Return the refusal that preemption can cure: of the nominated node, which other pods are leaving.

        If it were called unresolvable, kube-scheduler would evict others elsewhere meanwhile. No other refusal is
        curable: kube-scheduler asks us only where it sees room itself, and there it finds no victim
        (docs/concepts/preemption.md).
        """
        name = pod.nominated
        if name is None or name not in refused or name not in snapshot.layout.rows:
            return {}
        if pod.opportunistic and name != pod.promised:
            return {}
        leaving = self.context.ledger.leaving(name, below=pod.priority)
        curable = leaving and judge(once_gone(snapshot, {name: leaving}), pod).passed[snapshot.layout.rows[name]]
        return {name: refused[name]} if curable else {}


def _kept_to(standing: Standing, layout: Layout, rows: Rows) -> Mask:
    """Say which of these rows the plan chose for a pod, none where any will do."""
    if standing.among is not None:
        return np.asarray(np.isin(rows, standing.among.nonzero()[0]))
    row = layout.rows.get(standing.node or "", -1)
    return (rows == row) if row >= 0 else np.zeros(len(rows), dtype=np.bool_)


def _reply(
    request: wire.Request,
    mask: Mask,
    passed: Sequence[str],
    curable: Mapping[str, str],
    unresolvable: Mapping[str, str],
) -> wire.FilterReply:
    if request.whole is None:
        return wire.FilterReply(None, passed, curable, unresolvable)
    items = list(compress(request.whole, mask.tolist()))
    return wire.FilterReply({"items": items}, None, curable, unresolvable)
