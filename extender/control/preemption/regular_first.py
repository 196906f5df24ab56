"""Regular pods that only opportunistic ones keep out get their room at once, whatever the use (UBIS, C4).

No resize gives up places for pods, devices or scratch space. Where a regular pod fits on no node, and would if
opportunistic pods were gone, the fewest of them are evicted. It gets the room by plan: regular pods come first there.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from extender.arrays import Floats, Mask, Rows, fits, needs, needs_fit
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.pods.opportunistic import ONLY
from extender.control.backlog.backlog import TaskClass
from extender.control.cluster_view import ClusterView
from extender.control.eviction_requests import EvictionRequests
from extender.control.preemption.choice import PreemptionChoice, shortages, work_lost
from extender.control.release.planned import Planned
from extender.planner.making_way import InTheWay, MakingWay, Way
from extender.verdict import demand_on

_MOST_AT_ONCE = 64
"""Once so many are to go for one class that is no gang's, the next step sees who else has to."""


class EvictsVictims(Protocol):
    """What asks opportunistic pods to go, as far as the rates allow."""

    def make_way(self, choices: Sequence[PreemptionChoice], now: float) -> bool:
        """Ask all of these victims to go, or none; say whether they go, or would but for a dry run."""


class RegularFirst:
    """Evicts opportunistic pods that keep regular ones out. One thread: that of the release loop.

    Those who are being promoted, by UID, stay. With `dry_run` it only says whom it would evict, once each.
    """

    def __init__(
        self,
        cluster: ClusterView,
        evicts: EvictsVictims,
        requests: EvictionRequests,
        promoting: Callable[[], Collection[str]],
        *,
        dry_run: bool,
    ) -> None:
        self._cluster, self._evicts, self._requests = cluster, evicts, requests
        self._promoting, self._dry_run = promoting, dry_run
        self._would_go: set[str] = set()

    def step(self, planned: Planned, now: float) -> set[TaskClass]:
        """Have who keeps regular pods out go; return the classes for which room comes free by that.

        `planned` has come to its end: who waits has found no room.
        """
        snapshot, left = planned.snapshot, planned.left()
        if not left.any() or not len(snapshot.opportunistic.pods):
            return set()
        # 1. What is free now, and once those have gone who are asked to, or would be but for a dry run.
        self._would_go &= set(snapshot.opportunistic.uids)
        going = {*self._requests.asked(), *self._would_go}
        staying = {*self._requests.spared(), *self._promoting()}
        free, pods = _free(planned), _in_the_way(snapshot, going, staying, now)
        look = _Look(planned, free, MakingWay(_once_gone(free, snapshot, pods, going), pods))
        # 2. Who waits, those of high priority first; a gang whole, or not at all.
        served = set[TaskClass]()
        for rows, least in _groups(planned, np.flatnonzero((left > 0) & look.may_be_kept_out())):
            ready = {row: self._cluster.backlog.ready(planned.plan_input.classes[row]) for row in rows}
            ways = look.ways({row: min(int(left[row]), count) for row, count in ready.items()}, least)
            if ways is None:
                continue
            served |= {planned.plan_input.classes[row] for row in rows}
            # 3. Ask them to go: those for a gang together, others pod by pod.
            choices = [_choice(planned, row, way) for row, way in ways]
            for together in [choices] if least else [[choice] for choice in choices]:
                self._ask(together, now)
        return served

    def _ask(self, choices: Sequence[PreemptionChoice], now: float) -> None:
        if self._evicts.make_way(choices, now) and self._dry_run:
            self._would_go |= {victim.uid for choice in choices for victim in choice.victims}


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at a plan: what is `free` now [N, R], and who could make way."""

    planned: Planned
    free: Floats
    making_way: MakingWay

    def may_be_kept_out(self) -> Mask:
        """Return of which rows a pod might fit where opportunistic ones are, were they gone [C]; some do not.

        With them are the other rows of their gangs, which may fit elsewhere.
        """
        waiting = self.planned.plan_input.waiting
        kept_out = needs_fit(self.making_way.most(), needs(waiting.demand))
        if waiting.gang is None:
            return kept_out
        return kept_out | ((waiting.gang >= 0) & np.isin(waiting.gang, waiting.gang[kept_out]))

    def ways(self, left: Mapping[int, int], least: int) -> list[tuple[int, Way]] | None:
        """Return how room is made for so many pods of these rows, or for `least` of them all; None where it is not.

        Of a gang, which has a `least`, all that it lacks has to get a node.
        """
        before, placed = self.making_way.checkpoint(), 0
        ways: list[tuple[int, Way]] = []
        for row, count in left.items():
            demand, allowed = self._needs(row)
            if not least and (fits(self.free, demand) & allowed).any():  # it has room, and waits for something else
                continue
            if not least and not self.making_way.possible(demand, allowed):  # a gang's pod may still fit elsewhere
                continue
            count_needed = min(count, least - placed) if least else count
            more, more_ways = self.making_way.ways(demand, allowed, count_needed, math.inf if least else _MOST_AT_ONCE)
            placed += more
            ways += [(row, way) for way in more_ways]
        if placed >= max(least, 1):
            return ways
        self.making_way.restore(before)
        return None

    def _needs(self, row: int) -> tuple[Floats, Mask]:
        """Return what a pod of a row needs of its node, [R] or [N, R], and where it may go [N]."""
        layout, barred = self.planned.snapshot.layout, self.planned.plan_input.waiting.barred
        allowed = np.ones(len(layout.names), dtype=np.bool_) if barred is None else ~barred[row]
        return demand_on(layout, self.planned.plan_input.classes[row].template), allowed


def _groups(planned: Planned, rows: Rows) -> list[tuple[list[int], int]]:
    """Return these rows, alone or gang by gang, with how many a gang lacks; 0 for none.

    Not those that never are regular, or that kube-scheduler refuses, nor gangs that the plan starts. Those of high
    priority come first, then as the plan has them.
    """
    classes, gang_least = planned.plan_input.classes, planned.plan_input.waiting.gang_least
    begun = {planned.gang_of(row) for row in planned.rows} - {-1}
    groups: dict[tuple[bool, int], list[int]] = {}
    least: dict[tuple[bool, int], int] = {}
    for row in rows.tolist():
        pod, gang = classes[row].template, planned.gang_of(row)
        if pod.choice == ONLY or gang in begun or planned.may_be_refused(pod):
            continue
        lacks = int(gang_least[gang]) if gang >= 0 and gang_least is not None else 0
        key = (True, gang) if lacks else (False, row)
        groups.setdefault(key, []).append(row)
        least[key] = lacks
    order = sorted(groups, key=lambda key: (-max(classes[row].template.priority for row in groups[key]), groups[key]))
    return [(groups[key], least[key]) for key in order]


def _free(planned: Planned) -> Floats:
    """Return what is free as regular once all that is planned, nominated and in flight is there [N, R]."""
    snapshot, assignments = planned.snapshot, planned.plan.assignments
    free = snapshot.free()
    np.add.at(free, assignments.node, -planned.plan_input.waiting.demand[assignments.task_class])
    return free


def _in_the_way(snapshot: Snapshot, going: Collection[str], staying: Collection[str], now: float) -> InTheWay:
    pods, layout = snapshot.opportunistic, snapshot.layout
    may_go = [not (pod.leaving or pod.uid in going or pod.uid in staying) for pod in pods.pods]
    held = layout.vectors(pod.counted for pod in pods.pods)
    lost = work_lost(snapshot, np.arange(len(pods.pods)), now)
    return InTheWay(pods.node, held, lost, np.array(may_go, dtype=np.bool_))


def _once_gone(free: Floats, snapshot: Snapshot, pods: InTheWay, going: Collection[str]) -> Floats:
    gone = np.array([pod.leaving or pod.uid in going for pod in snapshot.opportunistic.pods], dtype=np.bool_)
    free = free.copy()
    np.add.at(free, pods.node[gone], pods.held[gone])
    return free


def _choice(planned: Planned, row: int, way: Way) -> PreemptionChoice:
    layout, pods = planned.snapshot.layout, planned.snapshot.opportunistic.pods
    victims = [pods[place] for place in way.victims.tolist()]
    return PreemptionChoice(
        layout.names[way.node],
        shortages(layout, way.node, way.short),
        victims,
        planned.plan_input.classes[row].template,
    )
