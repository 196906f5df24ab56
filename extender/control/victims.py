"""Whose room a waiting pod gets: the running pods of queues above their share that are worth least, as few as will do.

Those of the lowest priority first, among these of the queues furthest above their share, among these the most recently
started ("to minimize wasted work": Delay Scheduling, section 4). Never one of a higher priority than the waiting pod;
never one without a controller, which nobody would make again; never one of a gang, all of which would stop with it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from extender.cluster.flights import charge
from extender.cluster.model import Pod
from extender.cluster.reading import taken
from extender.cluster.snapshot import Snapshot
from extender.control.backlog import Backlog, Stage, TaskClass
from extender.control.needs import Need, fits, need_of
from extender.control.rounds import Rounds
from extender.control.standings import Standings
from extender.verdict import room_for

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
Counts = NDArray[np.int64]
Mask = NDArray[np.bool_]

_CHOICES = 100
"""The least loss is sought among so many nodes where evictions would do, those whose pods are worth least."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A running pod that may be evicted: what counts as its queue's [R], and what it holds of which nodes (rows)."""

    pod: Pod
    demand: Floats
    holds: Mapping[int, Floats]

    def frees(self, rows: Rows) -> Floats:
        """Return what these nodes have more once it has gone [T, R]."""
        nothing = np.zeros_like(self.demand)
        return np.array([self.holds.get(row, nothing) for row in rows.tolist()])


@dataclass(frozen=True, slots=True)
class Choice:
    """The pods to evict from a node for one that waits.

    `level` is how far from its input that is, None where it is all the same; `existing` are the levels of all nodes
    that it could use.
    """

    pod: Pod
    node: str
    victims: Sequence[Candidate]
    level: int | None = None
    existing: Collection[int] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A pod that waits, what nodes have for it [N, R], where it could run if they were empty [N].

    `levels` [N] is how far from its input they are; `near` says that it makes a difference, else all are farthest.
    `hopeful` [N] is where evictions may make it fit.
    """

    pod: Pod
    need: Need
    free: Floats
    allowed: Mask
    hopeful: Mask
    levels: Counts
    near: bool


@dataclass(slots=True)
class Search:
    """One look at what runs. `spared` are pods that are not to be asked now, `goes` those that leave anyway."""

    backlog: Backlog
    rounds: Rounds
    snapshot: Snapshot
    standings: Standings
    spared: Callable[[Pod], bool]
    goes: Callable[[Pod], bool]
    _there: dict[str, list[Candidate]] = field(init=False)
    _able: Mapping[str, Sequence[Candidate]] = field(init=False)
    _order: Sequence[str] = field(init=False)
    _readers: defaultdict[int, set[int]] = field(init=False)
    _most: Floats = field(init=False)
    _gone: Floats = field(init=False)
    _above: Floats = field(init=False)

    def __post_init__(self) -> None:
        there: defaultdict[str, list[Candidate]] = defaultdict(list)
        self._gone = np.zeros(self.snapshot.allocated.shape)
        for it, candidate in self._running():
            pod = candidate.pod
            if self.goes(pod):
                self._count(pod, pod.node, 1.0)
            elif pod.owner and not is_gang(self.backlog, it) and not self.spared(pod):
                there[pod.node or ""].append(candidate)
        self._there = there
        self._line_up()

    def room_for(self, pods: Iterable[Pod]) -> Choice | None:
        """Return whom to evict so that one of these pods fits, as near to its input as it can be made to.

        They are of one class and read different inputs. None where nobody would do, or nobody need be.
        """
        cases = [self._case(pod) for pod in pods]
        if any((case.need.nodes(case.free) & case.allowed).any() for case in cases):
            return None
        tries = ((case, level) for level in range(self._anywhere + 1) for case in self._at(level, cases))
        found = (self._best(case, level) for case, level in tries)
        return next(filter(None, found), None)

    def take(self, choice: Choice) -> None:
        """Count these victims as gone from now on, and the pod that they go for as there."""
        self._count(choice.pod, choice.node, -1.0)
        self.standings.gain(choice.pod.identity.queue, self.snapshot.layout.vector(choice.pod.demand))
        gone = {it.pod.uid for it in choice.victims}
        for it in choice.victims:
            self.standings.lose(it.pod.identity.queue, it.demand)
            self._count(it.pod, it.pod.node, 1.0)
        self._there[choice.node] = [it for it in self._there[choice.node] if it.pod.uid not in gone]
        self._line_up()

    # -- who waits

    @property
    def _anywhere(self) -> int:
        return len(self.rounds.places.level_names)

    def _case(self, pod: Pod) -> _Case:
        layout, free = self.snapshot.layout, room_for(self.snapshot, pod) + self._gone
        need, levels = need_of(pod, layout, self.rounds.nodes), self.rounds.places.as_planned(pod, layout)
        allowed = self.rounds.allowed(pod, layout) & need.nodes(layout.capacity)
        return _Case(
            pod,
            need,
            free,
            allowed,
            allowed & self._hopeful(need, free),
            np.full(len(layout.names), self._anywhere) if levels is None else levels,
            levels is not None,
        )

    def _at(self, level: int, cases: Sequence[_Case]) -> Iterable[_Case]:
        """Return for whom to look at this level: far from what they read pods of a class are all alike."""
        return cases if level < self._anywhere else {case.near: case for case in reversed(cases)}.values()

    def _best(self, case: _Case, level: int) -> Choice | None:
        """Return where, at this level, the least is lost."""
        nodes, rows = case.hopeful & (case.levels == level), self.snapshot.layout.rows
        found = (self._on(node, case) for node in self._order if nodes[rows[node]])
        victims = min(islice(filter(None, found), _CHOICES), key=self._loss, default=None)
        if victims is None:
            return None
        existing = set(case.levels[case.allowed].tolist())
        return Choice(case.pod, victims[0].pod.node or "", victims, level if case.near else None, existing)

    def _hopeful(self, need: Need, free: Floats) -> Mask:
        """Return where it would fit if all who may go were gone, by what is cheap to tell [N]."""
        able, sources = fits(free + self._most, need.takes), need.sources
        if need.is_lent(free[sources]):
            return able
        helping = np.zeros(len(able), dtype=np.bool_)
        helping[[*sources, *(row for source in sources.tolist() for row in self._readers.get(source, ()))]] = True
        return able & helping

    # -- who runs

    def _line_up(self) -> None:
        """Put the pods of queues above their share in order, those worth least first, and by these the nodes.

        `_most` is what they hold where they run [N, R], `_readers` on which nodes some of them hold anything of a node.
        """
        self._above = self.standings.excess()
        rows = self.snapshot.layout.rows
        above = {node: [it for it in self._there[node] if self._excess(it) > 0] for node in self._there.keys() & rows}
        self._able = {node: sorted(able, key=self._worth) for node, able in above.items() if able}
        self._readers, self._most = defaultdict(set), np.zeros(self._gone.shape)
        for row, able in ((rows[node], able) for node, able in self._able.items()):
            for it in able:
                self._most[row] += it.holds[row]
                for held in it.holds:
                    self._readers[held].add(row)
        self._order = sorted(self._able, key=lambda node: self._worth(self._able[node][0]))

    def _running(self) -> Iterator[tuple[TaskClass, Candidate]]:
        for it in self.backlog.classes():
            demand = self.snapshot.layout.vector(it.like.demand)
            for pod in it.pods[Stage.RUNNING].values():
                yield it, Candidate(pod, demand, self._held(pod, demand))

    def _held(self, pod: Pod, demand: Floats) -> Mapping[int, Floats]:
        layout = self.snapshot.layout
        there = taken(pod, pod.node or "", layout.rows).items()
        vectors = {name: demand if of is pod.demand else layout.vector(of) for name, of in there}
        return {layout.rows[name]: of for name, of in vectors.items() if name in layout.rows}

    def _count(self, pod: Pod, node: str | None, sign: float) -> None:
        charge(self._gone, self.snapshot.layout, pod, node or "", sign)

    def _on(self, node: str, case: _Case) -> Sequence[Candidate] | None:
        """Return whom to evict from a node, none of whom could stay; None where that would not do."""
        need, row = case.need, self.snapshot.layout.rows[node]
        rows = need.rows(row)
        free = case.free[rows]
        able = [it for it in self._able[node] if it.pod.priority <= case.pod.priority]
        if not able or not need.met(free + sum(it.frees(rows) for it in able), row):
            return None
        trial = replace(self.standings, stays=self.standings.stays.copy())
        chosen: list[Candidate] = []
        for it in able:
            if need.met(free, row):
                break
            if trial.may_lose(it.pod.identity.queue, it.demand, case.pod.identity.queue):
                trial.lose(it.pod.identity.queue, it.demand)
                chosen.append(it)
                free = free + it.frees(rows)
        return _needed(chosen, free, need, row) if need.met(free, row) else None

    def _excess(self, it: Candidate) -> float:
        return float(self._above[self.standings.rows[it.pod.identity.queue]])

    def _worth(self, it: Candidate) -> tuple[int, float, float, str]:
        return it.pod.priority, -self._excess(it), -_started(it.pod), it.pod.name

    def _loss(self, victims: Sequence[Candidate]) -> tuple[int, int, float, float, str]:
        """Return what speaks against evicting: a high priority, many, of queues hardly above their share, old ones."""
        return (
            max(it.pod.priority for it in victims),
            len(victims),
            -min(self._excess(it) for it in victims),
            -min(_started(it.pod) for it in victims),
            victims[0].pod.node or "",
        )


def is_gang(backlog: Backlog, of: TaskClass) -> bool:
    """Say whether these pods start together or not at all."""
    identity = of.like.identity
    known = backlog.workloads.groups.get(identity.group)
    return bool(identity.group) and (known.least if known is not None else identity.least) > 1


def _started(pod: Pod) -> float:
    """Return when a pod started; one that has not is the youngest of all."""
    return pod.started if pod.started is not None else np.inf


def _needed(chosen: Sequence[Candidate], free: Floats, need: Need, row: int) -> Sequence[Candidate]:
    """Return the chosen without those that can stay, the one worth most first."""
    needed, rows = list(chosen), need.rows(row)
    for it in reversed(chosen):
        if need.met(less := free - it.frees(rows), row):
            needed.remove(it)
            free = less
    return needed
