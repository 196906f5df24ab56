"""The one mutable ledger: which pod holds what where, and which pods are on their way to a node.

Between a filter reply and the binding that the watch shows, nobody tells us which node kube-scheduler chose. Such a
pod is *in flight*: it counts on every node that passed for it, so that the next pod cannot over-allocate the one that
it got. It lands when the watch shows it bound, refused or gone, and at the latest after a bounded time. So is a pod
that preempts, until the watch shows its nomination.

The watch is trusted, not who asks. A pod that the watch has not shown flies for a moment, and once; it gives way to one
that the watch has shown; and where it was never shown, no such pod flies for a while.
"""

import threading
from collections.abc import Iterable
from dataclasses import replace

from extender.arrays import Floats
from extender.cluster.ledger.allocated import Allocated
from extender.cluster.ledger.flights import Candidates, Flight, Flights, at_point, by_rows, same_pod
from extender.cluster.ledger.node_holders import NodeHolders
from extender.cluster.ledger.snapshot import (
    Layout,
    Nominations,
    OpportunisticPods,
    Snapshot,
    layout_of,
    nominations_of,
    read_only,
)
from extender.cluster.ledger.unseen import Unseen
from extender.cluster.model import Event, Node, NodeGone, NodeSeen, NodesListed, Pod, PodGone, PodSeen, PodsListed
from extender.cluster.pods.reckoning import Reckoning


class Ledger:
    """Applies events, hands out snapshots. Any thread may call any method; times are passed in, in seconds."""

    def __init__(self, *, in_flight_seconds: float) -> None:
        self._in_flight_seconds = in_flight_seconds
        self._changed = threading.Condition()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._held = NodeHolders()
        self._reckoning = Reckoning(self._pods, self._held)
        self._nominated: dict[str, Pod] = {}
        self._layout: Layout = layout_of({})
        self._flights = Flights(self._layout)
        self._allocated = Allocated(self._pods, self._held, self._layout)
        self._layout_is_old = False
        self._version = 0
        self._assumed = 0
        self._unseen = Unseen(in_flight_seconds)
        self._heard = 0
        self._closed = False
        self._copies: dict[str, Floats] = {}
        self._nominations: Nominations | None = None
        self._opportunistic: OpportunisticPods | None = None

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
                    self._see_node(node)
                case NodeGone(name):
                    self._lose_node(name)
                case NodesListed(nodes):
                    for name in self._nodes.keys() - {node.name for node in nodes}:
                        self._lose_node(name)
                    for node in nodes:
                        self._see_node(node)
                case PodSeen(pod):
                    self._see_pod(pod)
                case PodGone(uid):
                    self._lose_pod(uid)
                case PodsListed(pods):
                    for uid in self._pods.keys() - {pod.uid for pod in pods}:
                        self._lose_pod(uid)
                    for pod in pods:
                        self._take_pod(pod)
            self._changed.notify_all()

    def snapshot(self, now: float) -> Snapshot:
        """Return the cluster as known now. Flights that have lasted too long are dropped first."""
        with self._changed:
            self._expire(now)
            if self._layout_is_old:
                self._lay_out()
            if self._nominations is None:
                waiting = (pod for pod in self._nominated.values() if not pod.leaving and pod.uid not in self._flights)
                self._nominations = nominations_of(waiting, self._layout)
            if self._opportunistic is None:
                holders = tuple(self._pods[uid] for uid in self._held.opportunistic)
                self._opportunistic = OpportunisticPods(holders, self._layout)
            return Snapshot(
                version=self._version,
                assumed=self._assumed,
                heard=self._heard,
                layout=self._layout,
                allocated=self._copy("allocated", self._allocated.amounts),
                in_flight=self._copy("in_flight", self._flights.total),
                nominations=self._nominations,
                flights=len(self._flights),
                given=self._given(),
                opportunistic=self._opportunistic,
            )

    def snapshot_with(self, uids: Iterable[str], now: float) -> tuple[Snapshot, dict[str, Pod]]:
        """Return the cluster as known now, and at that moment those of these pods that are known."""
        with self._changed:
            return self.snapshot(now), {uid: self._pods[uid] for uid in uids if uid in self._pods}

    def nominated(self) -> list[Pod]:
        """Return the pods that wait and have a nomination, also those that are being deleted."""
        with self._changed:
            return list(self._nominated.values())

    def leaving(self, node: str, *, below: int) -> list[Pod]:
        """Return the pods of a priority below this that hold this node and are being deleted."""
        with self._changed:
            there = [self._pods[uid] for uid in self._held.on(node)]
            return [pod for pod in there if pod.leaving and pod.priority < below]

    def assume(
        self, pod: Pod, candidates: Candidates, snapshot: Snapshot, now: float, *, preempts: bool = False
    ) -> bool:
        """Put the pod in flight to the nodes of the snapshot that `candidates` [N] marks.

        One that preempts lands when its nomination shows.

        Returns False, and does nothing, where another pod took off since the snapshot was made: judge again then. Of
        nodes that changed meanwhile those count that are still there, as if they had changed after the answer.
        """
        with self._changed:
            if self._assumed != snapshot.assumed:
                return False
            if self.contradicts(pod):
                return True
            self._land(pod.uid)
            there = by_rows(candidates, snapshot.layout, self._layout)
            if there.any() and not self._has_arrived(pod.uid) and (until := self._may_fly_until(pod.uid, now)) > now:
                self._take_off(Flight(pod, there, now, until, preempts))
            return True

    def contradicts(self, pod: Pod) -> bool:
        """Say whether a pod cannot be the one of its UID that the watch has shown, or that is in flight."""
        with self._changed:
            flight = self._flights.find(pod.uid)
            known = self._pods.get(pod.uid) or (flight.pod if flight is not None else None)
            return known is not None and not same_pod(known, pod)

    def yield_to(self, uid: str) -> bool:
        """Take the pods out of flight that the watch has not shown, if it has shown this one. Says whether it did."""
        with self._changed:
            unseen = [flight for flight in self._flights if flight.pod.uid not in self._pods]
            if uid not in self._pods or not unseen:
                return False
            self._unseen.never_shown(max(flight.since for flight in unseen))
            for flight in unseen:
                self._land(flight.pod.uid)
            return True

    def promise(self, pod: Pod, node: str | None, now: float, *, preempts: bool = False) -> None:
        """Put a pod in flight to one node, for whoever decides alone where pods go; to none if it is to find one."""
        with self._changed:
            if self._layout_is_old:
                self._lay_out()
            self._land(pod.uid)
            if not self._has_arrived(pod.uid):
                self._take_off(Flight(pod, None, now, now + self._in_flight_seconds, preempts, node or ""))

    def in_flight(self, now: float) -> set[str]:
        """Return the pods in flight; those that have been for too long are dropped first."""
        with self._changed:
            self._expire(now)
            return self._flights.uids()

    def below(self, priority: int) -> Floats:
        """Return what pods of a lower priority hold, by the rows of the current layout [N, R]."""
        with self._changed:
            if self._layout_is_old:
                self._lay_out()
            return self._allocated.below(priority)

    def preempting(self) -> int:
        """Return how many pods in flight preempt."""
        with self._changed:
            return sum(flight.preempts for flight in self._flights)

    def least_priority(self) -> int | None:
        """Return the lowest priority of all pods that hold a node; None where none does."""
        with self._changed:
            return self._held.least_priority()

    def forget(self, uid: str) -> None:
        """Take a pod out of flight: it is being asked about anew, or will not arrive."""
        with self._changed:
            self._land(uid)
            self._changed.notify_all()

    def flies(self, uid: str) -> bool:
        """Say whether a pod is in flight."""
        with self._changed:
            return uid in self._flights

    def pod(self, uid: str) -> Pod | None:
        """Return a pod that the watch has shown."""
        with self._changed:
            return self._pods.get(uid)

    def wait_past(self, snapshot: Snapshot, timeout_seconds: float) -> bool:
        """Wait for an event, or a change, that the snapshot does not know; False if none comes within the time."""
        known = (snapshot.version, snapshot.heard)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or (self._version, self._heard) != known, timeout_seconds)
            return not self._closed and (self._version, self._heard) != known

    def close(self) -> None:
        """End every wait, now and later: the process is about to stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def newest_flight_since(self) -> float | None:
        """Return when the youngest pod in flight took off; None if none is in flight."""
        with self._changed:
            return max((flight.since for flight in self._flights), default=None)

    def counts(self) -> tuple[int, int, int]:
        """Return how many pods hold a node, how many do not (waiting or finished), and how many are in flight."""
        with self._changed:
            holding = len(self._held)
            return holding, len(self._pods) - holding, len(self._flights)

    # -- nodes

    def _see_node(self, node: Node) -> None:
        if self._nodes.get(node.name) != node:
            self._nodes[node.name] = node
            self._layout_is_old = True
            self._change()

    def _lose_node(self, name: str) -> None:
        if self._nodes.pop(name, None) is not None:
            self._layout_is_old = True
            self._change()

    def _lay_out(self) -> None:
        """Rebuild rows and columns; what nodes that stay have allocated is carried over, not counted again."""
        self._layout, self._layout_is_old = layout_of(self._nodes), False
        before, after = self._allocated.lay_out(self._layout)
        self._flights.lay_out(self._layout, before, after)
        self._copies.clear()
        self._nominations = self._opportunistic = None

    # -- pods

    def _see_pod(self, pod: Pod) -> None:
        known = self._pods.get(pod.uid)
        if known is None or known.resource_version <= pod.resource_version:
            self._take_pod(pod)

    def _take_pod(self, pod: Pod) -> None:
        """Take a pod as it is, even at an older version than is known: so a list may say after a restored backup."""
        known = self._pods.get(pod.uid)
        self._pods[pod.uid] = pod
        if known is None or _holding(known) != _holding(pod):
            self._release(known)
            self._hold(pod)
        elif pod.opportunistic:
            self._opportunistic = None
        self._nominate(pod)
        flight = self._flights.find(pod.uid)
        if flight is not None and (flight.lands_by(pod) or not same_pod(flight.pod, pod)):
            self._land(pod.uid)
        elif flight is not None and (known is None or known.opportunistic != pod.opportunistic):
            self._land(pod.uid)
            until = flight.since + self._in_flight_seconds if known is None else flight.until
            self._flights.take_off(replace(flight, pod=at_point(pod, flight.pod), until=until))
            self._change_flights(pod)
        self._unseen.shown(pod.uid)

    def _lose_pod(self, uid: str) -> None:
        self._release(self._pods.pop(uid, None))
        self._land(uid)
        if self._nominated.pop(uid, None) is not None:
            self._nominations = None
            self._change()

    def _hold(self, pod: Pod) -> None:
        if pod.holds is not None:
            self._held.add(pod, pod.holds)
            self._charge(pod, 1.0)

    def _release(self, pod: Pod | None) -> None:
        if pod is not None and pod.holds is not None:
            self._charge(pod, -1.0)
            self._held.remove(pod, pod.holds)

    def _charge(self, pod: Pod, sign: float) -> None:
        self._allocated.charge(pod, sign)
        self._change("allocated")
        if pod.opportunistic:
            self._change("given")
            self._opportunistic = None

    def _nominate(self, pod: Pod) -> None:
        waits = pod.nominated is not None and pod.node is None and not pod.finished
        known = self._nominated.pop(pod.uid, None)
        if waits:
            self._nominated[pod.uid] = pod
        if waits or known is not None:
            self._nominations = None
            self._change()

    # -- flights

    def _take_off(self, flight: Flight) -> None:
        self._assumed += 1
        self._flights.take_off(flight)
        self._change_flights(flight.pod)

    def _land(self, uid: str) -> None:
        flight = self._flights.land(uid)
        if flight is not None:
            self._change_flights(flight.pod)

    def _change_flights(self, pod: Pod) -> None:
        self._change("in_flight")
        if pod.opportunistic:
            self._change("given")
        if pod.uid in self._nominated:
            self._nominations = None

    def _has_arrived(self, uid: str) -> bool:
        """Say whether the watch was faster than the verb: kube-scheduler goes on without us after its timeout."""
        known = self._pods.get(uid)
        return known is not None and (known.node is not None or known.finished)

    def _may_fly_until(self, uid: str, now: float) -> float:
        """Return until when a pod may be in flight; one that the watch has not shown may once."""
        return now + self._in_flight_seconds if uid in self._pods else self._unseen.may_fly_until(uid, now)

    def _expire(self, now: float) -> None:
        for uid in self._flights.late(now):
            if uid not in self._pods:
                self._unseen.never_shown(now)
            self._land(uid)

    # -- snapshots

    def _copy(self, name: str, array: Floats) -> Floats:
        """Return a read-only copy, the same one until `_change` drops it."""
        if name not in self._copies:
            self._copies[name] = read_only(array.copy())
        return self._copies[name]

    def _given(self) -> Floats:
        """Return what opportunistic pods need beyond what they count, on nodes and in flight; kept as copies are."""
        if "given" not in self._copies:
            self._copies["given"] = read_only(self._allocated.given + self._flights.given)
        return self._copies["given"]

    def _change(self, name: str | None = None) -> None:
        self._version += 1
        if name is not None:
            self._copies.pop(name, None)


def _holding(pod: Pod) -> tuple[object, ...]:
    """Return what the books have of a pod."""
    return (pod.holds, pod.demand, pod.inputs, pod.opportunistic, pod.priority)
