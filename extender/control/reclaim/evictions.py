"""Evictions under way: each is for a waiting pod, which gets the node of its victims once these are gone.

From the request on, the node's room is promised to the waiting pod, so that neither the plan nor another eviction gives
it away. Once the watch shows that the victims are gone, the pod is released to that node. All of this is in memory:
after a restart the room that was freed goes by plan.
"""

from collections import deque
from collections.abc import Iterator

import structlog

from extender.cluster.ledger.flights import charge
from extender.cluster.model import Pod
from extender.cluster.pods.reading import taken
from extender.control.backlog.backlog import PodPhase, phase_of
from extender.control.cluster_view import ClusterView
from extender.control.eviction_requests import EvictionRequests
from extender.control.pod_shapes import Shape, queue_of, shape_of
from extender.control.reclaim.eviction import Eviction, EvictionListener, batch_of
from extender.control.reclaim.locality_waits import LocalityWaits
from extender.control.reclaim.pod_needs import need_of
from extender.control.reclaim.trials import GONE, LATE, REFUSED, TAKEN, Trials, Vain
from extender.control.reclaim.victims import ReclaimChoice
from extender.control.release.sending import NOMINATED, Release, Sender
from extender.verdict import judge, room_for

PATIENCE_SECONDS = 300.0
"""A node is kept for a pod for so long; victims that take longer to end give their room to whom the plan chooses."""
_ANY_PRIORITY = 2**31

log = structlog.get_logger()


class Evictions:
    """The evictions under way. One thread; `requests` are written in others, and their outcomes taken by `reconcile`.

    All times but those of claims are in flight time, which stands still while we cannot see which pods have gone.
    """

    def __init__(
        self,
        cluster: ClusterView,
        sender: Sender,
        waits: LocalityWaits,
        requests: EvictionRequests,
        listener: EvictionListener,
    ) -> None:
        self.trials = Trials()
        self.requests = requests
        self._outcomes: deque[tuple[Eviction, int]] = deque()
        self._cluster, self._sender, self._waits, self._listener = cluster, sender, waits, listener
        self._evictions: list[Eviction] = []

    def begin(self, pod: Pod, queue: str, why: str, choice: ReclaimChoice) -> None:
        """Promise the node to the pod, which is claimed already, and ask for the evictions."""
        time, shape = self._cluster.flight_time(), shape_of(pod, volumes=False)
        victims = self.requests.in_order(choice.victims)
        eviction = Eviction(pod, queue, why, choice.node, choice.level, victims, time, time, shape)
        self._evictions.append(eviction)
        self._cluster.awaiting_evictions.add(pod.uid)
        self._cluster.ledger.promise(pod, eviction.node, time)
        self.requests.send(batch_of(eviction, self._listener), lambda asked: self._outcomes.append((eviction, asked)))

    def reconcile(self, now: float) -> int:
        """Go on with all evictions; return how many of those that were counted were never asked for."""
        # 1. Undo what was refused in part. The refused one counts in the rate; those after it were never asked.
        never_asked = 0
        while self._outcomes:
            eviction, count_asked = self._outcomes.popleft()
            if staying := eviction.victims[count_asked:]:
                self.requests.refuse(staying)
                never_asked += len(staying) - 1
                self._undo(eviction, now)
                self.trials.correct(eviction.pod, count_asked)
        # 2. Forget what is old.
        self.trials.forget_old(self._cluster.flight_time())
        self.requests.expire()
        # 3. Release the pods whose node is free, keep other nodes for theirs, give up what came to nothing.
        evictions, self._evictions = self._evictions, []
        for eviction in evictions:
            self._go_on(eviction, now)
        # 4. See what became of the pods released before.
        cluster = self._cluster
        for vain in self.trials.take_outcomes(cluster.backlog, cluster.passed_by, cluster.flight_time()):
            self._tell_vain(vain)
        return never_asked

    def stop(self, now: float) -> None:
        """Give up all evictions: the room that they free goes by plan."""
        for eviction in self._evictions:
            self._let_go(eviction, now)
        self._evictions.clear()

    def under_way(self) -> set[tuple[str, str]]:
        """Return for whom there are evictions: why, and the queue."""
        return {(eviction.why, eviction.queue) for eviction in self._evictions}

    def awaited(self) -> set[str]:
        """Return the victims of evictions under way, by UID."""
        return {victim.uid for eviction in self._evictions for victim in eviction.victims}

    def shapes(self) -> set[Shape]:
        """Return the shapes for which there are evictions, and their queues as such."""
        return {shape for eviction in self._evictions for shape in (eviction.shape, queue_of(eviction.shape))}

    # -- what becomes of an eviction

    def _go_on(self, eviction: Eviction, now: float) -> None:
        pod, count = self._cluster.backlog.pod(eviction.pod.uid), len(eviction.victims)
        if pod is None:
            self._cluster.awaiting_evictions.discard(eviction.pod.uid)
            self._fail(eviction, GONE)
        elif phase_of(pod) is not PodPhase.READY:
            self._cluster.awaiting_evictions.discard(eviction.pod.uid)
            self.trials.send(pod, count)
        elif self._is_done(eviction, pod):
            self._complete(eviction, pod, now)
        elif self._is_too_old(eviction) or not all(map(self._is_going, self._still_there(eviction))):
            self._let_go(eviction, now)
            self._fail(eviction, LATE)
        else:
            self._keep(eviction, pod)

    def _is_done(self, eviction: Eviction, pod: Pod) -> bool:
        """Say whether the node is free for the pod, or nobody is left there whose end would free more."""
        if self._is_free(pod, eviction.node):
            return True
        return not (any(self._still_there(eviction)) or self._frees_more(eviction.node))

    def _complete(self, eviction: Eviction, pod: Pod, now: float) -> None:
        """Release the pod to the node that is free now; where something else took the room, it waits for its turn."""
        self._let_go(eviction, now)
        if not self._has_room(pod, eviction.node):
            self._fail(eviction, TAKEN)
            return
        self._cluster.backlog.claim(pod.uid, now + self._cluster.assume_seconds)
        self.trials.send(pod, len(eviction.victims))
        self._sender.send([self._release(eviction, pod, now)], now)

    def _release(self, eviction: Eviction, pod: Pod, now: float) -> Release:
        if eviction.level is None:
            return Release(pod, eviction.node, NOMINATED)
        passed_over = self._waits.start(pod, eviction.level, now)
        level = self._cluster.input_builder.preferred_nodes.level_name(eviction.level)
        return Release(pod, eviction.node, NOMINATED, level=level, passed_over=passed_over)

    def _keep(self, eviction: Eviction, pod: Pod) -> None:
        """Keep the node for the pod, and renew the promise in time."""
        self._evictions.append(eviction)
        time = self._cluster.flight_time()
        if time - eviction.promised_at > self._cluster.assume_seconds / 2:
            eviction.promised_at = time
            self._cluster.ledger.promise(pod, eviction.node, time)

    def _undo(self, eviction: Eviction, now: float) -> None:
        """Give up an eviction that was refused in part; the pods evicted for it are gone all the same."""
        if eviction in self._evictions:
            self._evictions.remove(eviction)
            self._let_go(eviction, now)

    def _let_go(self, eviction: Eviction, now: float) -> None:
        self._cluster.awaiting_evictions.discard(eviction.pod.uid)
        self._cluster.ledger.forget(eviction.pod.uid)
        self._cluster.backlog.claim(eviction.pod.uid, now)

    # -- what the node and its pods are like

    def _is_too_old(self, eviction: Eviction) -> bool:
        return self._cluster.flight_time() - eviction.since > PATIENCE_SECONDS

    def _is_going(self, pod: Pod) -> bool:
        """Say whether a pod is on its way out, evicted by us or not."""
        return pod.leaving or pod.uid in self.requests.asked()

    def _still_there(self, eviction: Eviction) -> Iterator[Pod]:
        pods = (self._cluster.backlog.pod(victim.uid) for victim in eviction.victims)
        return (pod for pod in pods if pod is not None)

    def _frees_more(self, node: str) -> bool:
        """Say whether more pods are to go that run on a node or read from it: the room kept for a pod may be theirs."""
        nodes, backlog = self._cluster.snapshot().layout.rows, self._cluster.backlog
        victims = (pod for uid in self.requests.asked() if (pod := backlog.pod(uid)) is not None)
        leaving = self._cluster.ledger.leaving(node, below=_ANY_PRIORITY)
        return bool(leaving) or any(node in taken(pod, pod.node or "", nodes) for pod in victims)

    def _is_free(self, pod: Pod, node: str) -> bool:
        """Say whether there is room for all that is promised, on the node and where the pod reads its input."""
        snapshot = self._cluster.snapshot()
        row = snapshot.layout.rows.get(node)
        if row is None or pod.uid not in self._cluster.flights():
            return False
        free = room_for(snapshot, pod)
        charge(free, snapshot.layout, pod, node, 1.0)  # it is in flight itself
        return bool(need_of(pod, snapshot.layout, self._cluster.input_builder.allowed_nodes).nodes(free)[row])

    def _has_room(self, pod: Pod, node: str) -> bool:
        """Say whether the pod may run there and fits; the room made for it to read its input is taken as there."""
        snapshot = self._cluster.snapshot()
        row = snapshot.layout.rows.get(node)
        if row is None or not self._cluster.input_builder.allowed_nodes.allowed(pod, snapshot.layout)[row]:
            return False
        return bool(judge(snapshot, pod).passed[row])

    # -- evictions in vain

    def _fail(self, eviction: Eviction, why: str) -> None:
        self._tell_vain(self.trials.fail(eviction.pod, len(eviction.victims), why, self._cluster.flight_time()))

    def _tell_vain(self, vain: Vain) -> None:
        self._listener.note_vain(vain)
        pod, rests = vain.pod, round(vain.rests_seconds)
        fields = {"pod": pod.full_name, "uid": pod.uid, "queue": pod.identity.queue, "why": vain.why}
        log.warning("evicted in vain", **fields, evictions=vain.evictions, rests_seconds=rests)
        if vain.why == REFUSED:
            message = (
                f"room was made for it, and kube-scheduler refuses it; nobody is evicted for its like for {rests} s"
            )
            self._cluster.run_soon(lambda: self.requests.tell(pod, "ReclaimedInVain", message))
