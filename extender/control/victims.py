"""Whose room a waiting pod gets: the running pods of queues above their share that are worth least, as few as will do.

Those of the lowest priority first, among these of the queues furthest above their share, among these the most recently
started ("to minimize wasted work": Delay Scheduling, section 4). Never one of a higher priority than the waiting pod;
never one without a controller, which nobody would make again; never one of a gang, all of which would stop with it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from extender.cluster.model import Pod
from extender.cluster.snapshot import Snapshot
from extender.control.backlog import Backlog, Stage, TaskClass
from extender.control.rounds import Rounds
from extender.control.standings import Standings
from extender.verdict import room_for

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CHOICES = 100
"""The least loss is sought among so many nodes where evictions would do, those whose pods are worth least."""
_NOBODY = (2**31, 0.0, 0.0, "")


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A running pod that may be evicted, and what it holds [R]."""

    pod: Pod
    demand: Floats


@dataclass(frozen=True, slots=True)
class Choice:
    """The pods to evict from a node."""

    node: str
    victims: Sequence[Candidate]


@dataclass(slots=True)
class Search:
    """One look at what runs. `spared` are pods that are not to be asked now, `goes` those that leave anyway."""

    backlog: Backlog
    rounds: Rounds
    snapshot: Snapshot
    standings: Standings
    spared: Callable[[Pod], bool]
    goes: Callable[[Pod], bool]
    _there: Mapping[str, list[Candidate]] = field(init=False)
    _gone: Floats = field(init=False)
    _above: Floats = field(init=False)

    def __post_init__(self) -> None:
        there: defaultdict[str, list[Candidate]] = defaultdict(list)
        self._gone = np.zeros(self.snapshot.allocated.shape)
        self._above = self.standings.excess()
        for it, demand, pod in self._running():
            if self.goes(pod):
                self._count_gone(pod, demand)
            elif pod.owner and not is_gang(self.backlog, it) and not self.spared(pod):
                there[pod.node or ""].append(Candidate(pod, demand))
        self._there = there

    def room_for(self, of: TaskClass) -> Choice | None:
        """Return whom to evict so that one more pod of this class fits; None where nobody, or nobody need to be."""
        layout, pod = self.snapshot.layout, of.like
        free, demand = room_for(self.snapshot, pod) + self._gone, layout.vector(pod.demand)
        allowed = self.rounds.allowed(pod, layout)
        if (fits(free, demand) & allowed).any():
            return None
        nodes = self._there.keys() & {layout.names[row] for row in allowed.nonzero()[0]}
        found = (self._on(node, free[layout.rows[node]], demand, of) for node in self._in_order(nodes))
        return min(islice(filter(None, found), _CHOICES), key=self._loss, default=None)

    def take(self, choice: Choice, of: TaskClass) -> None:
        """Count these victims as gone from now on, and one pod of the class as there."""
        demand = self.snapshot.layout.vector(of.like.demand)
        self._gone[self.snapshot.layout.rows[choice.node]] -= demand
        self.standings.gain(of.job.queue, demand)
        gone = {it.pod.uid for it in choice.victims}
        for it in choice.victims:
            self.standings.lose(it.pod.identity.queue, it.demand)
            self._count_gone(it.pod, it.demand)
        self._above = self.standings.excess()
        self._there = {**self._there, choice.node: [it for it in self._there[choice.node] if it.pod.uid not in gone]}

    def _in_order(self, nodes: Iterable[str]) -> Sequence[str]:
        """Return these nodes, those first whose pods are worth least."""
        return sorted(nodes, key=lambda node: min(map(self._worth, self._there[node]), default=_NOBODY))

    def _running(self) -> Iterator[tuple[TaskClass, Floats, Pod]]:
        for it in self.backlog.classes():
            demand = self.snapshot.layout.vector(it.like.demand)
            for pod in it.pods[Stage.RUNNING].values():
                yield it, demand, pod

    def _count_gone(self, pod: Pod, demand: Floats) -> None:
        row = self.snapshot.layout.rows.get(pod.node or "")
        if row is not None:
            self._gone[row] += demand

    def _on(self, node: str, free: Floats, demand: Floats, of: TaskClass) -> Choice | None:
        """Return whom to evict from a node, none of whom could stay; None where that would not do."""
        able = [it for it in self._there[node] if it.pod.priority <= of.like.priority and self._is_above(it)]
        if not able or not fits(free + sum(it.demand for it in able), demand):
            return None
        trial = replace(self.standings, stays=self.standings.stays.copy())
        chosen: list[Candidate] = []
        for it in sorted(able, key=self._worth):
            if fits(free, demand):
                break
            if trial.may_lose(it.pod.identity.queue, it.demand, of.job.queue):
                trial.lose(it.pod.identity.queue, it.demand)
                chosen.append(it)
                free = free + it.demand
        return Choice(node, _needed(chosen, free, demand)) if fits(free, demand) else None

    def _is_above(self, it: Candidate) -> bool:
        return bool(self._excess(it) > 0)

    def _excess(self, it: Candidate) -> float:
        return float(self._above[self.standings.rows[it.pod.identity.queue]])

    def _worth(self, it: Candidate) -> tuple[int, float, float, str]:
        return it.pod.priority, -self._excess(it), -_started(it.pod), it.pod.name

    def _loss(self, choice: Choice) -> tuple[int, int, float, float, str]:
        """Return what speaks against a choice: a high priority, many, of queues hardly above their share, old ones."""
        victims = choice.victims
        return (
            max(it.pod.priority for it in victims),
            len(victims),
            -min(self._excess(it) for it in victims),
            -min(_started(it.pod) for it in victims),
            choice.node,
        )


def fits(free: Floats, demand: Floats) -> Mask:
    """Return where there is room in every dimension that is demanded; `free` [..., R]."""
    return np.asarray(((free >= demand) | (demand <= 0)).all(axis=-1))


def is_gang(backlog: Backlog, of: TaskClass) -> bool:
    """Say whether these pods start together or not at all."""
    identity = of.like.identity
    known = backlog.workloads.groups.get(identity.group)
    return bool(identity.group) and (known.least if known is not None else identity.least) > 1


def _started(pod: Pod) -> float:
    """Return when a pod started; one that has not is the youngest of all."""
    return pod.started if pod.started is not None else np.inf


def _needed(chosen: Sequence[Candidate], free: Floats, demand: Floats) -> Sequence[Candidate]:
    """Return the chosen without those that can stay, the one worth most first."""
    needed = list(chosen)
    for it in reversed(chosen):
        if fits(free - it.demand, demand):
            needed.remove(it)
            free = free - it.demand
    return needed
