"""The verb preempt: of the nodes where others may be evicted for a pod, those where that would help."""

import time
from dataclasses import dataclass, field
from itertools import chain, compress

from extender.adapters.http import wire
from extender.adapters.http.event_wait import EventWait
from extender.adapters.http.refused import RefusedPods
from extender.adapters.http.request_context import (
    MOST_TRIES,
    Judged,
    RequestContext,
    TooManyCalls,
    candidates,
    passing,
    rows_of,
)
from extender.cluster.model import Pod
from extender.verdict import judge, once_gone


@dataclass(frozen=True, slots=True)
class Preemption:
    """Judges as if victims were gone. The pod is in flight then (see `cluster.state`)."""

    desk: RequestContext
    news: EventWait
    _refused: RefusedPods = field(default_factory=RefusedPods)

    def answer(self, body: bytes) -> bytes:
        """Return ExtenderPreemptionResult for ExtenderPreemptionArgs. Raises BadRequest, NotReady.

        A node stays, with the victims as they came, where filter would pass the pod once they are gone.
        """
        asked = wire.decode_preemption(body)
        self.desk.require_ready()
        pod = self.desk.pod(asked)
        self.desk.warn(pod)
        judged = self._judge_once_gone(pod, asked)
        self.desk.refused(judged, asked)
        self.desk.log_judged("preempt", pod, judged)
        kept = compress(asked.victims.items(), judged.passed.tolist())
        return wire.encode(wire.PreemptReply(dict(kept)))

    def _judge_once_gone(self, pod: Pod, asked: wire.AskedToPreempt) -> Judged:
        """Judge as if each node's victims were gone; wait as filter does, and put the pod in flight.

        Else another that preempts a moment later would count on the same room. Where the pod has a nomination already,
        that counts: no news would end its flight if kube-scheduler chose the same node again.
        """
        ledger = self.desk.ledger
        stranger = ledger.contradicts(pod)
        if not stranger:
            ledger.forget(pod.uid)
        started = time.monotonic()
        uids = {name: [victim.uid for victim in victims.pods or ()] for name, victims in asked.victims.items()}
        tries = 0
        while tries < MOST_TRIES:
            base, known = ledger.snapshot_with(chain.from_iterable(uids.values()), self.desk.readiness.flight_time())
            view = once_gone(base, {name: [known[uid] for uid in of if uid in known] for name, of in uids.items()})
            rows, judgement = rows_of(view, asked), judge(view, pod)
            passed = passing(judgement, rows)
            if stranger:
                return Judged(view, judgement, rows, passed)
            if not passed.any():
                if self.news.wait(pod, view, rows, started, self._refused.know(pod)) or ledger.yield_to(pod.uid):
                    continue
                self._refused.remember(pod)
            kept = candidates(base, rows[passed] if pod.nominated is None else rows[:0])
            if ledger.assume(pod, kept, base, self.desk.readiness.flight_time(), preempts=True):
                return Judged(view, judgement, rows, passed)
            tries += 1
        raise TooManyCalls
