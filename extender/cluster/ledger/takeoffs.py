"""Which pods take off, for how long, and what news ends or changes a flight.

The watch is trusted, not who asks. A pod that the watch has not shown flies for a moment, and once; it gives way to one
that the watch has shown; and where it was never shown, no such pod flies for a while.
"""

from dataclasses import replace

from extender.cluster.ledger.books import Books
from extender.cluster.ledger.flights import CandidateNodes, Flight, at_point, flight_to, same_pod
from extender.cluster.ledger.unseen import Unseen
from extender.cluster.model import Pod


class Takeoffs:
    """Puts pods in flight in the books, and takes them out. The ledger's lock is held by who calls.

    `assumed` counts the pods that ever took off.
    """

    def __init__(self, books: Books, *, in_flight_seconds: float) -> None:
        self._books = books
        self._in_flight_seconds = in_flight_seconds
        self._unseen = Unseen(in_flight_seconds)
        self.assumed = 0

    def to_candidates(
        self, pod: Pod, candidates: CandidateNodes, now: float, *, preempts: bool, retried: bool = False
    ) -> None:
        """Put a pod in flight to the nodes that `candidates` [N] marks, where there are any and it may fly."""
        self._books.land(pod.uid)
        if not candidates.any() or self._has_arrived(pod.uid):
            return
        until = self._may_fly_until(pod.uid, now)
        if until > now:
            layout = self._books.layout
            self._take_off(flight_to(pod, candidates, layout, now, until, preempts=preempts, retried=retried))

    def to_node(self, pod: Pod, node: str | None, now: float, *, preempts: bool) -> None:
        """Put a pod in flight to one node, or to none, if it has not arrived."""
        self._books.land(pod.uid)
        if not self._has_arrived(pod.uid):
            self._take_off(Flight(pod, None, now, now + self._in_flight_seconds, preempts, node or ""))

    def contradicts(self, pod: Pod) -> bool:
        """Say whether a pod cannot be the one of its UID that the watch has shown, or that is in flight."""
        flight = self._books.flights.find(pod.uid)
        known = self._books.pods.get(pod.uid) or (flight.pod if flight is not None else None)
        return known is not None and not same_pod(known, pod)

    def yield_to(self, uid: str) -> bool:
        """Take the pods out of flight that the watch has not shown, if it has shown this one. Says whether it did."""
        unseen = [flight for flight in self._books.flights if flight.pod.uid not in self._books.pods]
        if uid not in self._books.pods or not unseen:
            return False
        self._unseen.never_shown(max(flight.since for flight in unseen))
        for flight in unseen:
            self._books.land(flight.pod.uid)
        return True

    def expire(self, now: float) -> None:
        """Take the pods out of flight that should have landed before now."""
        for uid in self._books.flights.late(now):
            if self._is_binding(uid):
                continue
            if uid not in self._books.pods:
                self._unseen.never_shown(now)
            self._books.land(uid)

    def note_pod(self, pod: Pod, known: Pod | None) -> None:
        """Take note of a pod that the watch shows, which the books have already, and `known` before."""
        flight = self._books.flights.find(pod.uid)
        if flight is not None and (flight.lands_by(pod) or not same_pod(flight.pod, pod)):
            self._books.land(pod.uid)
        elif flight is not None and (known is None or known.opportunistic != pod.opportunistic):
            until = flight.since + self._in_flight_seconds
            self._books.land(pod.uid)
            self._books.take_off(replace(flight, pod=at_point(pod, flight.pod), until=until))
        self._unseen.shown(pod.uid)

    def _take_off(self, flight: Flight) -> None:
        self.assumed += 1
        self._books.take_off(flight)

    def _is_binding(self, uid: str) -> bool:
        """Say whether kube-scheduler shows that it still binds a pod to its node: a slow Permit or PreBind (1.35)."""
        flight, known = self._books.flights.find(uid), self._books.pods.get(uid)
        if flight is None or known is None or known.tried_in_vain or known.leaving:
            return False
        return known.nominated == flight.node != known.promised

    def _has_arrived(self, uid: str) -> bool:
        """Say whether the watch was faster than the verb: kube-scheduler goes on without us after its timeout."""
        known = self._books.pods.get(uid)
        return known is not None and (known.node is not None or known.finished)

    def _may_fly_until(self, uid: str, now: float) -> float:
        """Return until when a pod may be in flight; one that the watch has not shown may once."""
        known = uid in self._books.pods
        return now + self._in_flight_seconds if known else self._unseen.may_fly_until(uid, now)
