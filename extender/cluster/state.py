"""The one mutable ledger: which pod holds what where, and which pods are on their way to a node.

Between a filter reply and the binding that the watch shows, nobody tells us which node kube-scheduler chose. Such a
pod is *in flight*: it counts on every node that passed for it, so that the next pod cannot over-allocate the one that
it got. It lands when the watch shows it bound, refused or gone, and at the latest after a bounded time. So is a pod
that preempts, until the watch shows its nomination.
"""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extender.cluster.model import (
    Event,
    Node,
    NodeGone,
    NodeSeen,
    NodesListed,
    Pod,
    PodGone,
    PodSeen,
    PodsListed,
)
from extender.cluster.reading import reading, taken
from extender.cluster.snapshot import Floats, Layout, Nominations, Snapshot, layout_of, read_only

Candidates = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Flight:
    """A pod that passed the filter at `since`, or `preempts` since then, and the nodes [N] that it may have got.

    Where its node is known there are no candidates: it is promised `node`, or none (empty).
    """

    pod: Pod
    candidates: Candidates | None
    since: float
    preempts: bool = False
    node: str = ""


class Ledger:
    """Applies events, hands out snapshots. Any thread may call any method; times are passed in, in seconds."""

    def __init__(self, *, in_flight_seconds: float) -> None:
        self._in_flight_seconds = in_flight_seconds
        self._changed = threading.Condition()
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}
        self._held: defaultdict[str, set[str]] = defaultdict(set)
        self._readers: set[str] = set()
        self._priorities: Counter[int] = Counter()
        self._nominated: dict[str, Pod] = {}
        self._flights: dict[str, Flight] = {}
        self._layout: Layout = layout_of({})
        self._allocated = np.zeros((0, len(self._layout.axis)))
        self._in_flight = self._allocated.copy()
        self._layout_is_old = False
        self._version = 0
        self._assumed = 0
        self._heard = 0
        self._closed = False
        self._copies: dict[str, Floats] = {}
        self._nominations: Nominations | None = None

    def apply(self, event: Event) -> None:
        """Take one event in. Duplicates change nothing; an event older than what is known is ignored."""
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
                self._nominations = self._nominate_all()
            return Snapshot(
                version=self._version,
                assumed=self._assumed,
                heard=self._heard,
                layout=self._layout,
                allocated=self._copy("allocated", self._allocated),
                in_flight=self._copy("in_flight", self._in_flight),
                nominations=self._nominations,
                flights=len(self._flights),
            )

    def snapshot_with(self, uids: Iterable[str], now: float) -> tuple[Snapshot, dict[str, Pod]]:
        """Return the cluster as known now, and at that moment those of these pods that are known."""
        with self._changed:
            return self.snapshot(now), {uid: self._pods[uid] for uid in uids if uid in self._pods}

    def leaving(self, node: str, *, below: int) -> list[Pod]:
        """Return the pods of a priority below this that hold this node and are being deleted."""
        with self._changed:
            there = [self._pods[uid] for uid in self._held.get(node, ())]
            return [pod for pod in there if pod.leaving and pod.priority < below]

    def assume(
        self, pod: Pod, candidates: Candidates, snapshot: Snapshot, now: float, *, preempts: bool = False
    ) -> bool:
        """Put the pod in flight to the nodes of the snapshot that `candidates` [N] marks.

        One that preempts lands when its nomination shows.

        Returns False, and does nothing, where another pod took off or the nodes changed since the snapshot was made:
        judge again then.
        """
        with self._changed:
            if self._assumed != snapshot.assumed or self._layout_is_old or self._layout is not snapshot.layout:
                return False
            self._land(pod.uid)
            if candidates.any() and not self._has_arrived(pod.uid):
                self._assumed += 1
                self._flights[pod.uid] = Flight(pod, candidates, now, preempts)
                self._charge_flight(self._flights[pod.uid], 1.0)
            return True

    def promise(self, pod: Pod, node: str | None, now: float, *, preempts: bool = False) -> None:
        """Put a pod in flight to one node, for whoever decides alone where pods go; to none if it is to find one."""
        with self._changed:
            if self._layout_is_old:
                self._lay_out()
            self._land(pod.uid)
            if not self._has_arrived(pod.uid):
                self._assumed += 1
                self._flights[pod.uid] = Flight(pod, None, now, preempts, node or "")
                self._charge_flight(self._flights[pod.uid], 1.0)

    def in_flight(self, now: float) -> set[str]:
        """Return the pods in flight; those that have been for too long are dropped first."""
        with self._changed:
            self._expire(now)
            return set(self._flights)

    def below(self, priority: int) -> Floats:
        """Return what pods of a lower priority hold, by the rows of the current layout [N, R]."""
        with self._changed:
            if self._layout_is_old:
                self._lay_out()
            held = np.zeros(self._layout.capacity.shape)
            for node, uids in self._held.items():
                for pod in (self._pods[uid] for uid in uids):
                    if pod.priority < priority:
                        self._add(held, pod, node, 1.0)
            return held

    def preempting(self) -> int:
        """Return how many pods in flight preempt."""
        with self._changed:
            return sum(flight.preempts for flight in self._flights.values())

    def least_priority(self) -> int | None:
        """Return the lowest priority of all pods that hold a node; None where none does."""
        with self._changed:
            return min(self._priorities, default=None)

    def forget(self, uid: str) -> None:
        """Take a pod out of flight: it is being asked about anew, or will not arrive."""
        with self._changed:
            self._land(uid)
            self._changed.notify_all()

    def pod(self, uid: str, resource_version: int) -> Pod | None:
        """Return a pod that the watch has brought, if it did so at this very version."""
        with self._changed:
            known = self._pods.get(uid)
            return known if known is not None and known.resource_version == resource_version else None

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
            return max((flight.since for flight in self._flights.values()), default=None)

    def counts(self) -> tuple[int, int, int]:
        """Return how many pods hold a node, how many do not (waiting or finished), and how many are in flight."""
        with self._changed:
            holding = sum(map(len, self._held.values()))
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
        for uid in self._readers:  # what they read where depends on which nodes there are
            self._charge(self._pods[uid], -1.0)
        old, self._layout, self._layout_is_old = self._layout, layout_of(self._nodes), False
        shape = self._layout.capacity.shape
        allocated, self._allocated, self._in_flight = self._allocated, np.zeros(shape), np.zeros(shape)
        self._copies.clear()
        self._nominations = None
        stayed = [name for name in self._layout.names if name in old.rows]
        before = np.array([old.rows[name] for name in stayed], dtype=np.intp)
        after = np.array([self._layout.rows[name] for name in stayed], dtype=np.intp)
        same_axis = old.axis == self._layout.axis
        if same_axis:
            self._allocated[after] = allocated[before]
        for name in set(self._layout.names).difference(stayed if same_axis else ()):
            for uid in self._held.get(name, set()) - self._readers:
                self._charge(self._pods[uid], 1.0)
        for uid in self._readers:
            self._charge(self._pods[uid], 1.0)
        for uid, flight in self._flights.items():
            if flight.candidates is not None:
                candidates = np.zeros(len(self._layout.names), dtype=np.bool_)
                candidates[after] = flight.candidates[before]
                self._flights[uid] = replace(flight, candidates=candidates)
            self._charge_flight(self._flights[uid], 1.0)

    # -- pods

    def _see_pod(self, pod: Pod) -> None:
        known = self._pods.get(pod.uid)
        if known is None or known.resource_version <= pod.resource_version:
            self._take_pod(pod)

    def _take_pod(self, pod: Pod) -> None:
        """Take a pod as it is, even at an older version than is known: so a list may say after a restored backup."""
        known = self._pods.get(pod.uid)
        self._pods[pod.uid] = pod
        if known is None or (known.holds, known.demand, known.inputs) != (pod.holds, pod.demand, pod.inputs):
            self._release(known)
            self._hold(pod)
        self._nominate(pod)
        flight = self._flights.get(pod.uid)
        if flight is not None and _has_landed(flight, pod):
            self._land(pod.uid)

    def _lose_pod(self, uid: str) -> None:
        self._release(self._pods.pop(uid, None))
        self._land(uid)
        if self._nominated.pop(uid, None) is not None:
            self._nominations = None
            self._change()

    def _hold(self, pod: Pod) -> None:
        if pod.holds is not None:
            self._held[pod.holds].add(pod.uid)
            if reading(pod):
                self._readers.add(pod.uid)
            self._priorities[pod.priority] += 1
            self._charge(pod, 1.0)

    def _release(self, pod: Pod | None) -> None:
        if pod is not None and pod.holds is not None:
            self._charge(pod, -1.0)
            self._held[pod.holds].discard(pod.uid)
            self._readers.discard(pod.uid)
            self._priorities[pod.priority] -= 1
            if not self._priorities[pod.priority]:
                del self._priorities[pod.priority]
            if not self._held[pod.holds]:
                del self._held[pod.holds]

    def _charge(self, pod: Pod, sign: float) -> None:
        self._add(self._allocated, pod, pod.holds or "", sign)
        self._change("allocated")

    def _add(self, total: Floats, pod: Pod, node: str, sign: float) -> None:
        """Add what a pod on a node takes of all nodes, or take it off."""
        layout = self._layout
        for name, amounts in taken(pod, node, layout.rows).items() if node in layout.rows else ():
            total[layout.rows[name]] += sign * layout.vector(amounts)

    def _nominate(self, pod: Pod) -> None:
        waits = pod.nominated is not None and pod.node is None and not pod.finished
        known = self._nominated.pop(pod.uid, None)
        if waits:
            self._nominated[pod.uid] = pod
        if waits or known is not None:
            self._nominations = None
            self._change()

    # -- flights

    def _land(self, uid: str) -> None:
        flight = self._flights.pop(uid, None)
        if flight is not None:
            self._charge_flight(flight, -1.0)

    def _charge_flight(self, flight: Flight, sign: float) -> None:
        self._change("in_flight")
        if flight.pod.uid in self._nominated:
            self._nominations = None
        if not self._layout_is_old:  # else everything in flight is charged anew when the layout is rebuilt
            if flight.candidates is None:
                self._add(self._in_flight, flight.pod, flight.node, sign)
            else:
                demand = sign * self._layout.vector(flight.pod.demand)
                self._in_flight += demand if flight.candidates.all() else flight.candidates[:, None] * demand

    def _has_arrived(self, uid: str) -> bool:
        """Say whether the watch was faster than the verb: kube-scheduler goes on without us after its timeout."""
        known = self._pods.get(uid)
        return known is not None and (known.node is not None or known.finished)

    def _expire(self, now: float) -> None:
        late = [uid for uid, flight in self._flights.items() if now - flight.since > self._in_flight_seconds]
        for uid in late:
            self._land(uid)

    # -- snapshots

    def _copy(self, name: str, array: Floats) -> Floats:
        """Return a read-only copy, the same one until `_change` drops it."""
        if name not in self._copies:
            self._copies[name] = read_only(array.copy())
        return self._copies[name]

    def _change(self, name: str | None = None) -> None:
        self._version += 1
        if name is not None:
            self._copies.pop(name, None)

    def _nominate_all(self) -> Nominations:
        layout = self._layout
        waiting = [pod for pod in self._nominated.values() if pod.uid not in self._flights]
        taking = [
            (pod, layout.rows[name], layout.vector(amounts))
            for pod in waiting
            if pod.nominated in layout.rows
            for name, amounts in taken(pod, pod.nominated or "", layout.rows).items()
        ]
        return Nominations(
            uids=tuple(pod.uid for pod, _, _ in taking),
            rows=read_only(np.array([row for _, row, _ in taking], dtype=np.intp)),
            priorities=read_only(np.array([pod.priority for pod, _, _ in taking], dtype=np.int64)),
            demand=read_only(np.array([demand for _, _, demand in taking]).reshape(len(taking), len(layout.axis))),
        )


def _has_landed(flight: Flight, pod: Pod) -> bool:
    """Say whether this news ends the flight: bound, finished, or, after we were asked, refused or nominated."""
    refused = pod.unschedulable and not flight.pod.unschedulable
    nominated = flight.preempts and pod.nominated is not None
    later = pod.resource_version > flight.pod.resource_version
    return pod.node is not None or pod.finished or (later and (refused or nominated))
