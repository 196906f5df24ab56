"""Pods on their way to a node: they passed the filter, preempt, or were promised one, and nobody has seen them arrive.

What is in flight counts on every node that it may have got, so that the next pod cannot over-allocate the one that it
did get.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Pod
from extender.cluster.pods.reading import given, taken
from extender.cluster.resources import Amounts

CandidateNodes = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Flight:
    """A pod that passed the filter at `since`, or `preempts` since then, and the nodes [N] that it may have got.

    It lands at `until` at the latest. Where its node is known there are no candidates: it is promised `node`, or none
    (empty). `retried` says: kube-scheduler had tried the pod before, in the same version; news of that may still come.
    """

    pod: Pod
    candidates: CandidateNodes | None
    since: float
    until: float
    preempts: bool = False
    node: str = ""
    retried: bool = False

    def lands_by(self, news: Pod) -> bool:
        """Say whether this news ends the flight: the pod is bound or finished, or a later version of it is refused.

        A later version that is nominated ends it too, where the pod preempts.

        A refusal does not where it may be that of an earlier try: kube-scheduler writes it late, and tries again first.
        """
        refused = news.tried_in_vain and not self.pod.tried_in_vain and not self.retried
        nominated = self.preempts and news.nominated is not None
        later = news.resource_version > self.pod.resource_version
        return news.node is not None or news.finished or (later and (refused or nominated))


class Flights:
    """Those in flight; `total` [N, R] is what they count on each node of the layout, `given` what they need beyond.

    `placed` [N, R] is the part of the total that those count whose node is known.
    """

    def __init__(self, layout: Layout) -> None:
        self._flights: dict[str, Flight] = {}
        self._layout = layout
        self.total: Floats = np.zeros(layout.capacity.shape)
        self.placed: Floats = np.zeros(layout.capacity.shape)
        self.given: Floats = np.zeros(layout.capacity.shape)

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, uid: str) -> bool:
        return uid in self._flights

    def __iter__(self) -> Iterator[Flight]:
        return iter(self._flights.values())

    def uids(self) -> set[str]:
        """Return the pods in flight."""
        return set(self._flights)

    def late(self, now: float) -> list[str]:
        """Return the pods that should have landed before now."""
        return [uid for uid, flight in self._flights.items() if flight.until < now]

    def find(self, uid: str) -> Flight | None:
        """Return the flight of a pod, if it is in flight."""
        return self._flights.get(uid)

    def take_off(self, flight: Flight) -> None:
        """Put a pod in flight that is not."""
        self._flights[flight.pod.uid] = flight
        self._charge(flight, 1.0)

    def land(self, uid: str) -> Flight | None:
        """Take a pod out of flight. Returns its flight, None where it was in none."""
        flight = self._flights.pop(uid, None)
        if flight is not None:
            self._charge(flight, -1.0)
        return flight

    def lay_out(self, layout: Layout, before: Rows, after: Rows) -> None:
        """Take new rows and columns: what was row `before[i]` is row `after[i]` now, if it is still there."""
        self._layout, self.total = layout, np.zeros(layout.capacity.shape)
        self.placed, self.given = np.zeros(layout.capacity.shape), np.zeros(layout.capacity.shape)
        for uid, flight in self._flights.items():
            if flight.candidates is not None:
                candidates = np.zeros(len(layout.names), dtype=np.bool_)
                candidates[after] = flight.candidates[before]
                self._flights[uid] = replace(flight, candidates=candidates)
            self._charge(self._flights[uid], 1.0)

    def _charge(self, flight: Flight, sign: float) -> None:
        pod, layout, candidates = flight.pod, self._layout, flight.candidates
        if candidates is None:
            charge(self.total, layout, pod, flight.node, sign)
            charge(self.placed, layout, pod, flight.node, sign)
            charge_given(self.given, layout, pod, flight.node, sign)
            return
        counted = sign * layout.vector(pod.counted)
        self.total += counted if candidates.all() else candidates[:, None] * counted
        if pod.opportunistic:
            self.given += candidates[:, None] * (sign * layout.vector(pod.demand) - counted)


def flight_to(
    pod: Pod, there: CandidateNodes, layout: Layout, since: float, until: float, *, preempts: bool, retried: bool
) -> Flight:
    """Return the flight of a pod to the nodes of a layout that `there` [N] marks: by name where it is one alone."""
    if np.count_nonzero(there) != 1:
        return Flight(pod, there, since, until, preempts, retried=retried)
    return Flight(pod, None, since, until, preempts, layout.names[int(there.argmax())], retried)


def charge(total: Floats, layout: Layout, pod: Pod, node: str, sign: float) -> None:
    """Add what a pod on a node takes, as it counts, of all nodes to a total [N, R], or take it off."""
    if node in layout.rows:
        _add(total, layout, taken(pod, node, layout.rows), sign)


def charge_given(total: Floats, layout: Layout, pod: Pod, node: str, sign: float) -> None:
    """Add what an opportunistic pod on a node needs beyond what it counts to a total [N, R], or take it off."""
    if pod.opportunistic and node in layout.rows:
        _add(total, layout, given(pod, node, layout.rows), sign)


def _add(total: Floats, layout: Layout, parts: Mapping[str, Amounts], sign: float) -> None:
    for name, amounts in parts.items():
        total[layout.rows[name]] += sign * layout.vector(amounts)


def same_pod(one: Pod, other: Pod) -> bool:
    """Say whether two pods of one UID can be the same: a UID with another name is forged."""
    return (one.namespace, one.name) == (other.namespace, other.name)


def at_point(known: Pod, asked: Pod) -> Pod:
    """Return a pod as the watch knows it, as far on its way as a caller says that may have heard more.

    Its way may be to become opportunistic, for a node that it was promised.
    """
    if asked.resource_version <= known.resource_version:
        return known
    return replace(
        known,
        resource_version=asked.resource_version,
        unschedulable=asked.unschedulable,
        errored=asked.errored,
        nominated=asked.nominated,
        promised=asked.promised,
        opportunistic=asked.opportunistic,
    )


def by_rows(candidates: CandidateNodes, then: Layout, now: Layout) -> CandidateNodes:
    """Return the same nodes by the rows of a later layout, without those that have gone."""
    if then is now:
        return candidates
    rows = [row for name in compress(then.names, candidates.tolist()) if (row := now.rows.get(name)) is not None]
    moved = np.zeros(len(now.names), dtype=np.bool_)
    moved[rows] = True
    return moved
