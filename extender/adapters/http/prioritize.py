"""The verb prioritize: how well each node suits the pod, from 0 to 10. It changes nothing."""

from dataclasses import dataclass, field
from itertools import compress

import numpy as np
import structlog

from extender.adapters.http import wire
from extender.adapters.http.request_context import RequestContext
from extender.arrays import Counts, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.verdict import Ranker

log = structlog.get_logger()


@dataclass(slots=True)
class Prioritize:
    """Answers prioritize by one ranking rule."""

    context: RequestContext
    ranker: Ranker
    _last_table: tuple[Layout, wire.ScoreTable] | None = field(default=None, init=False)

    def answer(self, body: bytes) -> bytes:
        """Return a HostPriorityList for ExtenderArgs; an unknown node gets 0. Raises BadRequest, NotReady."""
        # 1. Decode the request, and look its pod and nodes up.
        request = wire.decode(body)
        self.context.require_ready()
        pod = self.context.pod(request)
        snapshot, rows = self._rows(request)
        # 2. Rank the nodes that are known.
        known = rows >= 0
        unknown = [] if known.all() else list(compress(request.names, (~known).tolist()))
        rows = np.sort(rows[known])  # the reply has no order, and memory is faster in its own
        scores = self.ranker.rank(snapshot, pod, rows)
        # 3. Log the best, and encode the reply.
        self._log(pod, snapshot.layout, rows, scores)
        return self._table(snapshot.layout).encode(rows, scores, unknown)

    def _rows(self, request: wire.Request) -> tuple[Snapshot, Rows]:
        """Return the rows of the nodes asked about: mostly those that filter has just let pass, in that order."""
        base = self.context.ledger.snapshot(self.context.flight_time())
        rows = self.context.last_passed.rows(base.layout, request.names)
        return (base, rows) if rows is not None else self.context.view(base, request)

    def _table(self, layout: Layout) -> wire.ScoreTable:
        """Return the ready-made pieces for these nodes; kept until the nodes change."""
        last = self._last_table
        if last is None or last[0] is not layout:
            last = self._last_table = (layout, wire.ScoreTable(layout.names))
        return last[1]

    def _log(self, pod: Pod, layout: Layout, rows: Rows, scores: Counts) -> None:
        if len(rows):
            best = int(scores.argmax())
            log.info(
                "prioritize",
                pod=pod.full_name,
                nodes=len(rows),
                rule=self.ranker.placement.rule,
                node=layout.names[rows[best]],
                score=int(scores[best]),
            )
