"""Whose room a waiting pod gets: the running pods of queues above their share that are worth least, as few as will do.

Those of the lowest priority first, among these of the queues furthest above their share, among these the most recently
started ("to minimize wasted work": Delay Scheduling, section 4). Never one of a higher priority than the waiting pod;
never one without a controller, which nobody would make again; never one of a gang, all of which would stop with it.

P running pods that may go, by their nodes; H nodes that are looked at together, K pods of each, the one worth least
first.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.ledger.flights import charge
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.reading import reading, taken
from extender.control.backlog.backlog import TaskClass
from extender.control.plan_input.builder import PlanInputBuilder
from extender.control.queues.standings import Standings
from extender.control.reclaim.backlog_copy import BacklogCopy, Crew, Kind, is_gang
from extender.control.reclaim.pod_needs import Need, need_of
from extender.policy.reclaim import may_lose
from extender.verdict import room_for

_CHOICES = 100
"""The least loss is sought among so many nodes where evictions would do, those whose pods are worth least."""
_AT_ONCE = 128
"""So many nodes are looked at together at first; twice as many each time that they do not do."""
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Choice:
    """The pods to evict from a node for one that waits.

    `level` is how far from its input that is, None where it is all the same; `existing` are the levels of all nodes
    that it could use.
    """

    pod: Pod
    node: str
    victims: Sequence[Pod]
    level: int | None = None
    existing: Collection[int] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A pod that waits, what nodes have for it [N, R], where it could run if they were empty [N].

    `able` [P] is who may go for it, `lent` [P, S, R] what each of these takes of its sources from elsewhere. `levels`
    [N] is how far from its input nodes are; `near` says that it makes a difference, else all are farthest. `hopeful`
    [N] is where evictions may make it fit.
    """

    pod: Pod
    need: Need
    free: Floats
    allowed: Mask
    hopeful: Mask
    levels: Counts
    near: bool
    able: Mask
    lent: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Trial:
    """Nodes [H] by row, where those `pods` [H, K] that are `chosen` [H, K] are to go, and whether that `does` [H]."""

    rows: Rows
    pods: Rows
    chosen: Mask
    does: Mask


class _Running:
    """The pods that may go, by node: what they hold there [P, R], whose they are, what they are worth.

    `starts` [M] is where the pods of each of the `nodes` [M] begin that have any.
    """

    def __init__(self, crews: Sequence[tuple[Crew, int, Kind]], priorities: Sequence[int], snapshot: Snapshot) -> None:
        """Take the pods of classes that may go, the row of each queue, and the priority of each class."""
        self._crews = [crew for crew, *_ in crews]
        counts = np.array([len(crew.may_go) for crew in self._crews], dtype=np.intp)
        self._ends = counts.cumsum()
        node = np.concatenate([np.zeros(0, dtype=np.intp), *(crew.node for crew in self._crews)])
        self._order = order = np.argsort(node, kind="stable")
        self.node, self.here = node[order], np.ones(len(order), dtype=np.bool_)
        self.queue = np.repeat(np.array([row for _, row, _ in crews], dtype=np.intp), counts)[order]
        demand = np.array([kind.demand for *_, kind in crews]).reshape(len(crews), len(snapshot.layout.axis))
        self.demand = np.repeat(demand, counts, axis=0)[order]
        self.priority = np.repeat(np.array(priorities, dtype=np.int64), counts)[order]
        self.started = np.concatenate([np.zeros(0), *(crew.started for crew in self._crews)])[order]
        self.nodes, self.starts = np.unique(self.node, return_index=True)
        self.counts = np.diff(np.append(self.starts, len(order)))
        self._youngest = _places(np.lexsort((order, -self.started)))
        self.holds = self.demand.copy()
        self._lent = self._reads(snapshot)

    def pod(self, place: int) -> Pod:
        """Return a pod."""
        row = int(self._order[place])
        crew = int(np.searchsorted(self._ends, row, side="right"))
        return self._crews[crew].may_go[row - int(self._ends[crew])]  # counted from the end

    def worth(self, excess: Floats) -> Counts:
        """Return what orders the pods by their worth [P], none like another; `excess` [Q] is that of their queues."""
        above = np.unique(-excess[self.queue], return_inverse=True)[1]
        level = np.unique(self.priority, return_inverse=True)[1]
        return np.asarray((level * (above.max(initial=0) + 1) + above) * len(self.node) + self._youngest)

    def sums(self, amounts: Floats, nodes: int) -> Floats:
        """Return what the pods of each node have together [N, ...]; `amounts` [P, ...]."""
        found = np.zeros((nodes, *amounts.shape[1:]))
        if len(self.nodes) and found.size:
            found[self.nodes] = np.add.reduceat(amounts, self.starts, axis=0)
        return found

    def lent(self, sources: Rows) -> Floats:
        """Return what each pod takes of these nodes, on none of which it runs [P, S, R]."""
        found = np.zeros((len(self.node), len(sources), self.holds.shape[1]))
        for column, row in enumerate(sources.tolist()):
            for place, amount in self._lent.get(row, ()):
                found[place, column] = amount
        return found

    def _reads(self, snapshot: Snapshot) -> dict[int, list[tuple[int, Floats]]]:
        """Return what is read over the network of each node, and by whom; that they do not read on their own."""
        layout = snapshot.layout
        found: dict[int, list[tuple[int, Floats]]] = {}
        of = [any(map(reading, crew.may_go[:1])) for crew in self._crews]
        reads = np.repeat(np.array(of, dtype=np.bool_), np.diff(self._ends, prepend=0))
        for place in np.flatnonzero(reads[self._order]).tolist() if reads.any() else ():
            pod = self.pod(place)
            own, *others = taken(pod, pod.node or "", layout.rows).items()
            self.holds[place] = layout.vector(own[1])
            for name, amounts in others:
                found.setdefault(layout.rows[name], []).append((place, layout.vector(amounts)))
        return found


class Search:
    """One look at what runs; `spared` are pods that are not to be asked now, by class."""

    def __init__(
        self,
        sight: BacklogCopy,
        input_builder: PlanInputBuilder,
        snapshot: Snapshot,
        standings: Standings,
        spared: Mapping[TaskClass, Set[str]],
    ) -> None:
        self.sight, self.standings, self._input_builder, self._snapshot = sight, standings, input_builder, snapshot
        self._gone = np.zeros(snapshot.allocated.shape)
        for pod in sight.going():
            self._count(pod, pod.node, 1.0)
        able = _who_may_go(sight, standings, spared)
        self._running = _Running(
            [(crew, standings.rows[of.job.queue], sight.kinds[of]) for of, crew in able],
            [of.template.priority for of, _ in able],
            snapshot,
        )
        self._places: dict[str, int] = {}
        self._groups = _groups(standings)
        self._settle()

    def room_for(self, pods: Iterable[Pod]) -> Choice | None:
        """Return whom to evict so that one of these pods fits, as near to its input as it can be made to.

        They are of one class and read different inputs. None where nobody would do, or nobody need be.
        """
        cases: list[_Case] = []
        for pod in pods:
            if (case := self._case(pod)) is None:
                return None
            cases.append(case)
        tries = ((case, level) for level in range(self._anywhere + 1) for case in self._at(level, cases))
        found = (self._best(case, level) for case, level in tries)
        return next(filter(None, found), None)

    def take(self, choice: Choice) -> None:
        """Count these victims as gone from now on, and the pod that they go for as there."""
        layout = self._snapshot.layout
        self._count(choice.pod, choice.node, -1.0)
        self.standings.gain(choice.pod.identity.queue, layout.vector(choice.pod.demand))
        for victim in choice.victims:
            self.standings.lose(victim.identity.queue, layout.vector(victim.demand))
            self._count(victim, victim.node, 1.0)
            self._running.here[self._places[victim.uid]] = False
        self._settle()

    def _settle(self) -> None:
        """Put the pods in order by what their queues have now."""
        self._above = self.standings.excess()
        self._worth = self._running.worth(self._above)

    # -- who waits

    @property
    def _anywhere(self) -> int:
        return len(self._input_builder.preferred_nodes.level_names)

    def _case(self, pod: Pod) -> _Case | None:
        """Return what there is for a pod; None where it fits somewhere as it is."""
        layout, free = self._snapshot.layout, room_for(self._snapshot, pod) + self._gone
        need, levels = (
            need_of(pod, layout, self._input_builder.allowed_nodes),
            self._input_builder.preferred_nodes.as_planned(pod, layout),
        )
        allowed = self._input_builder.allowed(pod, layout) & need.nodes(layout.capacity)
        if (need.nodes(free) & allowed).any():
            return None
        able, lent = self._able(pod), self._running.lent(need.sources)
        return _Case(
            pod,
            need,
            free,
            allowed,
            allowed & self._hopeful(need, free, able, lent),
            np.full(len(layout.names), self._anywhere) if levels is None else levels,
            levels is not None,
            able,
            lent,
        )

    def _at(self, level: int, cases: Sequence[_Case]) -> Iterable[_Case]:
        """Return for whom to look at this level: far from what they read pods of a class are all alike."""
        return cases if level < self._anywhere else {case.near: case for case in reversed(cases)}.values()

    def _able(self, pod: Pod) -> Mask:
        """Return who may go for a pod, if nobody else goes [P]."""
        running = self._running
        able = running.here & (running.priority <= pod.priority) & (self._above[running.queue] > 0)
        places = able.nonzero()[0]
        groups = self._concerned(pod)[running.queue[places]]
        able[places] = self._may_lose(groups, running.demand[places])
        return able

    def _hopeful(self, need: Need, free: Floats, able: Mask, lent: Floats) -> Mask:
        """Return where it would fit if all who may go were gone [N]."""
        here = free + self._running.sums(self._running.holds * able[:, np.newaxis], len(free))
        there = free[need.sources] + self._running.sums(lent * able[:, np.newaxis, np.newaxis], len(free))
        return need.met(here, there, np.arange(len(free)))

    # -- who goes

    def _best(self, case: _Case, level: int) -> Choice | None:
        """Return where, at this level, the least is lost."""
        running, hopeful = self._running, case.hopeful & (case.levels == level)
        worth = np.where(case.able, self._worth, _LAST)
        least = np.minimum.reduceat(worth, running.starts) if len(running.nodes) else np.zeros(0, dtype=np.int64)
        places = np.flatnonzero(hopeful[running.nodes] & (least < _LAST))
        places = places[least[places].argsort()]
        best: tuple[tuple[float, ...], Sequence[int]] | None = None
        choices, begin, count = 0, 0, _AT_ONCE
        while begin < len(places) and choices < _CHOICES:
            trial = self._try(case, places[begin : begin + count], worth)
            does = np.flatnonzero(trial.does)[: _CHOICES - choices]
            choices, begin, count = choices + len(does), begin + count, 2 * count
            if len(does):
                best = min(filter(None, (best, self._least(trial, does))))
        if best is None:
            return None
        victims = [running.pod(place) for place in best[1]]
        self._places |= {victim.uid: place for victim, place in zip(victims, best[1], strict=True)}
        existing = set(case.levels[case.allowed].tolist())
        return Choice(case.pod, victims[0].node or "", victims, level if case.near else None, existing)

    def _try(self, case: _Case, places: Rows, worth: Counts) -> _Trial:
        """Choose on each of these nodes who is to go: those worth least, until the pod fits, as far as they may.

        Then those stay, the one worth most first, without whose room it fits.
        """
        running, need = self._running, case.need
        rows, pods = running.nodes[places], self._in_order(places, worth)
        chosen = np.zeros(pods.shape, dtype=np.bool_)
        here, there = case.free[rows], np.repeat(case.free[need.sources][np.newaxis], len(rows), axis=0)
        groups, concerned = np.unique(self._concerned(case.pod)[running.queue[pods]], return_inverse=True)
        concerned = concerned.reshape(*pods.shape, -1)
        lost = np.zeros((len(rows), len(groups), running.demand.shape[1]))
        every, does = np.arange(len(rows))[:, np.newaxis], need.met(here, there, rows)
        for column in range(pods.shape[1]):
            pod, those = pods[:, column], concerned[:, column]
            goes = ~does & (worth[pod] < _LAST)
            if not goes.any():
                break
            goes &= self._may_lose(groups[those], running.demand[pod], lost[every, those])
            chosen[:, column] = goes
            here, there = here + _of(running.holds[pod], goes), there + _of(case.lent[pod], goes)
            lost[every, those] += _of(running.demand[pod], goes)[:, np.newaxis]
            does |= need.met(here, there, rows)
        for column in reversed(range(pods.shape[1])):
            pod, goes = pods[:, column], chosen[:, column]
            less, lends = here - _of(running.holds[pod], goes), there - _of(case.lent[pod], goes)
            stays = goes & does & need.met(less, lends, rows)
            chosen[stays, column] = False
            here[stays], there[stays] = less[stays], lends[stays]
        return _Trial(rows, pods, chosen, does & chosen.any(axis=1))

    def _in_order(self, places: Rows, worth: Counts) -> Rows:
        """Return the pods of each of these nodes, the one worth least first [H, K]; filled up with some that stay."""
        running = self._running
        counts, starts = running.counts[places][:, np.newaxis], running.starts[places][:, np.newaxis]
        column = np.arange(int(counts.max(initial=0)))
        pods = np.minimum(starts + column, len(running.node) - 1)
        order = np.where(column < counts, worth[pods], _LAST).argsort(axis=1)
        return np.take_along_axis(np.where(column < counts, pods, starts), order, axis=1)

    def _least(self, trial: _Trial, does: Rows) -> tuple[tuple[float, ...], Sequence[int]]:
        """Return what speaks against the victims on the node of these where the least is lost, and who they are.

        That is a high priority, many, of queues hardly above their share, old ones.
        """
        running, chosen, pods = self._running, trial.chosen[does], trial.pods[does]
        loss = np.column_stack(
            (
                np.where(chosen, running.priority[pods], -np.inf).max(axis=1),
                chosen.sum(axis=1),
                -np.where(chosen, self._above[running.queue[pods]], np.inf).min(axis=1),
                -np.where(chosen, running.started[pods], np.inf).min(axis=1),
                trial.rows[does],
            )
        )
        least = np.lexsort(loss.T[::-1])[0]
        return tuple(loss[least].tolist()), pods[least][chosen[least]].tolist()

    # -- whose they are

    def _concerned(self, pod: Pod) -> Rows:
        """Return for each queue the groups that lose if its pods go for this one [Q, D], filled up with -1."""
        gainer = self.standings.member[self.standings.rows[pod.identity.queue]]
        return np.where((self._groups >= 0) & ~gainer[self._groups], self._groups, -1)

    def _may_lose(self, groups: Rows, amount: Floats, lost: Floats | float = 0.0) -> Mask:
        """Return who may go [...]: these groups [..., D] lose an amount [..., R], and have `lost` some before."""
        fair = np.where(groups >= 0, self.standings.fair[groups], -np.inf)
        return may_lose(self.standings.stays[groups] - lost, amount, self.standings.total, fair)

    def _count(self, pod: Pod, node: str | None, sign: float) -> None:
        charge(self._gone, self._snapshot.layout, pod, node or "", sign)


def _who_may_go(
    sight: BacklogCopy, standings: Standings, spared: Mapping[TaskClass, Set[str]]
) -> Sequence[tuple[TaskClass, Crew]]:
    """Return the classes by name of which pods may go at all, and which."""
    above = standings.excess().tolist()
    found: list[tuple[TaskClass, Crew]] = []
    for of, crew in sight.crews.items():
        if crew.may_go and above[standings.rows[of.job.queue]] > 0 and not is_gang(sight.backlog, of):
            stay = {*sight.asked.get(of, ()), *spared.get(of, ())}
            found.append((of, crew.without(stay) if stay else crew))
    return sorted(found, key=lambda it: it[0].name)


def _groups(standings: Standings) -> Rows:
    """Return the groups that each queue is in [Q, D], filled up with -1."""
    member = standings.member
    found = np.full((len(member), int(member.sum(axis=1).max(initial=0))), -1, dtype=np.intp)
    for row, groups in enumerate(member):
        rows = groups.nonzero()[0]
        found[row, : len(rows)] = rows
    return found


def _of(amounts: Floats, mask: Mask) -> Floats:
    """Return the amounts of those that are marked, and nothing of others; `amounts` [H, ...], `mask` [H]."""
    return np.where(mask.reshape(-1, *[1] * (amounts.ndim - 1)), amounts, 0.0)


def _places(order: Rows) -> Rows:
    """Return the place of each in an order."""
    found = np.empty_like(order)
    found[order] = np.arange(len(order))
    return found
