"""The one mutable ledger: which pod holds what where, and which pods are on their way to a node.

Between a filter reply and the binding that the watch shows, nobody tells us which node kube-scheduler chose. Such a
pod is *in flight*: it counts on every node that passed for it, so that the next pod cannot over-allocate the one that
it got. It lands when the watch shows it bound, refused or gone, and at the latest after a bounded time. So is a pod
that preempts, until the watch shows its nomination.

The ledger is the lock, the events and the questions. What is counted stands in `books.py`; who may be in flight, and
until when, in `takeoffs.py`.
"""

import threading
from collections.abc import Iterable, Mapping

from extender.arrays import Floats
from extender.cluster.events import Event, NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.books import Books
from extender.cluster.ledger.flights import CandidateNodes, by_rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.ledger.takeoffs import Takeoffs
from extender.cluster.model import Pod
from extender.cluster.pods.reckoning import Reckoning
from extender.cluster.resources import Amounts


class Ledger:
    """Applies events, hands out snapshots. Any thread may call any method; times are passed in, in seconds."""

    def __init__(self, *, in_flight_seconds: float) -> None:
        self._changed = threading.Condition()
        self._books = Books()
        self._takeoffs = Takeoffs(self._books, in_flight_seconds=in_flight_seconds)
        self._reckoning = Reckoning(self._books.pods, self._books.held)
        self._heard = 0
        self._closed = False

    # -- events

    def apply(self, event: Event) -> None:
        """Take one event of a watch in. Duplicates change nothing; an event older than what is known is ignored."""
        with self._changed:
            for part in self.reckon(event):
                self.take(part)

    def reckon(self, event: Event) -> list[Event]:
        """Return what an event of a watch brings, with pods as they count: for `take`, before the next event comes."""
        with self._changed:
            return self._reckoning.parts(event)

    def counted(self, pod: Pod) -> Pod:
        """Return a pod that no watch has brought, as it would count."""
        with self._changed:
            return self._reckoning.counted(pod)

    def take(self, event: Event) -> None:
        """Take in a part of what `reckon` returned."""
        with self._changed:
            self._heard += 1
            match event:
                case NodeSeen(node):
                    self._books.put_node(node)
                case NodeGone(name):
                    self._books.remove_node(name)
                case NodesListed(nodes):
                    for name in self._books.nodes.keys() - {node.name for node in nodes}:
                        self._books.remove_node(name)
                    for node in nodes:
                        self._books.put_node(node)
                case PodSeen(pod):
                    self._see_pod(pod)
                case PodGone(uid):
                    self._lose_pod(uid)
                case PodsListed(pods):
                    for uid in self._books.pods.keys() - {pod.uid for pod in pods}:
                        self._lose_pod(uid)
                    for pod in pods:
                        self._take_pod(pod)
            self._changed.notify_all()

    def _see_pod(self, pod: Pod) -> None:
        known = self._books.pods.get(pod.uid)
        if known is None or known.resource_version <= pod.resource_version:
            self._take_pod(pod)

    def _take_pod(self, pod: Pod) -> None:
        """Take a pod as it is, even at an older version than is known: so a list may say after a restored backup."""
        known = self._books.put_pod(pod)
        self._takeoffs.note_pod(pod, known)

    def _lose_pod(self, uid: str) -> None:
        self._books.remove_pod(uid)
        self._books.land(uid)

    def note_load(self, load: Mapping[str, Amounts]) -> None:
        """Take what nodes, by name, use besides their pods: from now on it counts as allocated."""
        with self._changed:
            self._books.put_load(load)
            self._changed.notify_all()

    # -- snapshots

    def snapshot(self, now: float) -> Snapshot:
        """Return the cluster as known now. Flights that have lasted too long are dropped first."""
        with self._changed:
            self._takeoffs.expire(now)
            return self._books.snapshot(assumed=self._takeoffs.assumed, heard=self._heard)

    def snapshot_with(self, uids: Iterable[str], now: float) -> tuple[Snapshot, dict[str, Pod]]:
        """Return the cluster as known now, and at that moment those of these pods that are known."""
        with self._changed:
            pods = self._books.pods
            return self.snapshot(now), {uid: pods[uid] for uid in uids if uid in pods}

    def wait_past(self, snapshot: Snapshot, timeout_seconds: float) -> bool:
        """Wait for an event, or a change, that the snapshot does not know; False if none comes within the time."""
        known = (snapshot.version, snapshot.heard)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._state() != known, timeout_seconds)
            return not self._closed and self._state() != known

    def close(self) -> None:
        """End every wait, now and later: the process is about to stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _state(self) -> tuple[int, int]:
        return self._books.version, self._heard

    # -- flights

    def assume(
        self,
        pod: Pod,
        candidates: CandidateNodes,
        snapshot: Snapshot,
        now: float,
        *,
        preempts: bool = False,
        retried: bool = False,
    ) -> bool:
        """Put the pod in flight to the nodes of the snapshot that `candidates` [N] marks.

        One that preempts lands when its nomination shows. News of a refusal lands none that was `retried`.

        Returns False, and does nothing, where another pod took off since the snapshot was made: judge again then. Of
        nodes that changed meanwhile those count that are still there, as if they had changed after the answer.
        """
        with self._changed:
            if self._takeoffs.assumed != snapshot.assumed:
                return False
            if not self._takeoffs.contradicts(pod):
                there = by_rows(candidates, snapshot.layout, self._books.layout)
                self._takeoffs.to_candidates(pod, there, now, preempts=preempts, retried=retried)
            return True

    def promise(self, pod: Pod, node: str | None, now: float, *, preempts: bool = False) -> None:
        """Put a pod in flight to one node, for whoever decides alone where pods go; to none if it is to find one."""
        with self._changed:
            self._takeoffs.to_node(pod, node, now, preempts=preempts)

    def contradicts(self, pod: Pod) -> bool:
        """Say whether a pod cannot be the one of its UID that the watch has shown, or that is in flight."""
        with self._changed:
            return self._takeoffs.contradicts(pod)

    def yield_to(self, uid: str) -> bool:
        """Take the pods out of flight that the watch has not shown, if it has shown this one. Says whether it did."""
        with self._changed:
            return self._takeoffs.yield_to(uid)

    def forget(self, uid: str) -> None:
        """Take a pod out of flight: it is being asked about anew, or will not arrive."""
        with self._changed:
            self._books.land(uid)
            self._changed.notify_all()

    def flies(self, uid: str) -> bool:
        """Say whether a pod is in flight."""
        with self._changed:
            return uid in self._books.flights

    def in_flight(self, now: float) -> set[str]:
        """Return the pods in flight; those that have been for too long are dropped first."""
        with self._changed:
            self._takeoffs.expire(now)
            return self._books.flights.uids()

    def preempting(self) -> int:
        """Return how many pods in flight preempt."""
        with self._changed:
            return sum(flight.preempts for flight in self._books.flights)

    def draws(self, namespace: str) -> bool:
        """Say whether a running pod draws pods of a namespace near, or would rather have them elsewhere."""
        with self._changed:
            return self._books.held.draw(namespace)

    def newest_flight_since(self) -> float | None:
        """Return when the youngest pod in flight took off; None if none is in flight."""
        with self._changed:
            return max((flight.since for flight in self._books.flights), default=None)

    # -- pods

    def pod(self, uid: str) -> Pod | None:
        """Return a pod that the watch has shown."""
        with self._changed:
            return self._books.pods.get(uid)

    def nominated(self) -> list[Pod]:
        """Return the pods that wait and have a nomination, also those that are being deleted."""
        with self._changed:
            return list(self._books.nominated.values())

    def leaving(self, node: str, *, below: int) -> list[Pod]:
        """Return the pods of a priority below this that hold this node and are being deleted."""
        return [pod for pod in self.holding(node, below=below) if pod.leaving]

    def holding(self, node: str, *, below: int) -> list[Pod]:
        """Return the pods of a priority below this that hold this node."""
        with self._changed:
            pods = [self._books.pods[uid] for uid in self._books.held.on(node)]
            return [pod for pod in pods if pod.priority < below]

    def below(self, priority: int) -> Floats:
        """Return what pods of a lower priority hold, by the rows of the current layout [N, R]."""
        with self._changed:
            self._books.lay_out()
            return self._books.allocated.below(priority)

    def least_priority(self) -> int | None:
        """Return the lowest priority of all pods that hold a node; None where none does."""
        with self._changed:
            return min(self._books.held.priorities(), default=None)

    def counts(self) -> tuple[int, int, int]:
        """Return how many pods hold a node, how many do not (waiting or finished), and how many are in flight."""
        with self._changed:
            holding = len(self._books.held)
            return holding, len(self._books.pods) - holding, len(self._books.flights)
