"""The verb preempt: of the nodes where others may be evicted for a pod, those where that would help."""

import time
from dataclasses import dataclass, field
from itertools import chain, compress

from extender.adapters.http import wire
from extender.adapters.http.event_wait import EventWait
from extender.adapters.http.judging import MOST_TRIES, Judged, TooManyCalls, candidates, judged, rows_of
from extender.adapters.http.refused import RefusedPods
from extender.adapters.http.request_context import RequestContext
from extender.cluster.model import Pod
from extender.verdict import judge, once_gone


@dataclass(frozen=True, slots=True)
class Preempt:
    """Answers preempt: judges as if the victims were gone, and puts the pod in flight (`cluster.ledger`)."""

    context: RequestContext
    event_wait: EventWait
    _refused: RefusedPods = field(default_factory=RefusedPods)

    def answer(self, body: bytes) -> bytes:
        """Return ExtenderPreemptionResult for ExtenderPreemptionArgs. Raises BadRequest, NotReady.

        A node stays, with the victims as they came, where filter would pass the pod once they are gone.
        """
        # 1. Decode the request, and look its pod up.
        request = wire.decode_preemption(body)
        self.context.require_ready()
        pod = self.context.pod(request)
        self.context.warn(pod)
        # 2. Judge each node without its victims.
        judgement = self._judge_once_gone(pod, request)
        # 3. Count and log the decision, and encode the nodes that stay.
        self.context.refused(judgement, request, pod)
        self.context.log_judged("preempt", pod, judgement)
        victims = compress(request.victims.items(), judgement.passed.tolist())
        return wire.encode(wire.PreemptReply(dict(victims)))

    def _judge_once_gone(self, pod: Pod, request: wire.PreemptRequest) -> Judged:
        """Judge as if each node's victims were gone; wait as filter does, and put the pod in flight.

        In flight, its room is not promised to another pod that preempts a moment later. Where the pod has a nomination
        already, that counts instead: if kube-scheduler chose the same node again, no event would end its flight.
        """
        context, ledger = self.context, self.context.ledger
        contradicts = ledger.contradicts(pod)
        if not contradicts:
            ledger.forget(pod.uid)
        started = time.monotonic()
        victims_of = {name: [victim.uid for victim in victims.pods or ()] for name, victims in request.victims.items()}
        tries = 0
        # At each turn: the snapshot and the victims are of one moment, and the pod is not in flight.
        while tries < MOST_TRIES:
            # 1. Judge by a snapshot without the victims.
            base, known = ledger.snapshot_with(chain.from_iterable(victims_of.values()), context.flight_time())
            gone = {name: [known[uid] for uid in uids if uid in known] for name, uids in victims_of.items()}
            snapshot = once_gone(base, gone)
            judgement = judged(snapshot, judge(snapshot, pod), rows_of(snapshot, request), pod)
            if contradicts:
                return judgement
            # 2. Where none would help, wait a moment for an event that may change that.
            rows = judgement.open_rows
            if len(rows) and not judgement.passed.any():
                again = self._refused.know(pod)
                if self.event_wait.wait(pod, snapshot, rows, started, again) or ledger.yield_to(pod.uid):
                    continue
                self._refused.remember(pod)
            # 3. Put the pod in flight, unless another took off since the snapshot: then judge again.
            helped = candidates(base, judgement.rows[judgement.passed] if pod.nominated is None else rows[:0])
            if ledger.assume(pod, helped, base, context.flight_time(), preempts=True):
                return judgement
            tries += 1
        raise TooManyCalls
