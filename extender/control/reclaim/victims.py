"""Victims: the running pods that are evicted for a waiting pod, those worth least and as few as will do.

They are of queues above their share. Those of the lowest priority go first, among these those of the queues furthest
above their share, among these the most recently started ("to minimize wasted work": Delay Scheduling, section 4). No
victim has a higher priority than the waiting pod. Pods without a controller stay, as nobody would create them again;
so do pods of a gang, all of which would stop with one.

P are the running pods that may go (`RunningPods`), H nodes that are looked at together, K pods on each of these, the
one worth least first, S the nodes that a waiting pod may read its input from.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.ledger.flights import charge
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.backlog import TaskClass
from extender.control.plan_input.builder import PlanInputBuilder
from extender.control.queues.standings import Standings
from extender.control.reclaim.backlog_copy import BacklogCopy, PodsOnNodes, is_gang
from extender.control.reclaim.losers import Losers
from extender.control.reclaim.pod_needs import Need, need_of
from extender.control.reclaim.running_pods import RunningPods
from extender.verdict import room_for

_CHOICES = 100
"""The least loss is sought among so many nodes where evictions would do: those whose pods are worth least."""
_AT_ONCE = 128
"""So many nodes are looked at together at first, then twice as many each time."""
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class ReclaimChoice:
    """The pods to evict from a node for one that waits.

    `level` is the locality level of that node, None where it makes no difference; `existing` are the levels of all
    nodes that the pod could use.
    """

    pod: Pod
    node: str
    victims: Sequence[Pod]
    level: int | None
    existing: Collection[int]


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A waiting pod, what is `free` for it [N, R], and where it is `allowed` and would fit an empty node [N].

    `eligible` [P] are the pods that may go for it, `lent` [P, S, R] what each of these takes of its sources from other
    nodes. `levels` [N] are the locality levels of the nodes; where it does not `choose`, all are at the farthest.
    `hopeful` [N] is where evictions may make it fit.
    """

    pod: Pod
    need: Need
    free: Floats
    allowed: Mask
    hopeful: Mask
    levels: Counts
    chooses: bool
    eligible: Mask
    lent: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _NodeBatch:
    """Nodes [H] by row: their `pods` [H, K], which of them are `chosen` to go [H, K], whether that `suffices` [H]."""

    rows: Rows
    pods: Rows
    chosen: Mask
    suffices: Mask


class VictimSearch:
    """Searches victims in one copy of the backlog; `spared` are pods that are not to be asked now, by class.

    Room of the pods that are `waited_for` is as good as free. `standings` and what is free are kept as if the victims
    chosen so far were gone. One thread.
    """

    def __init__(
        self,
        backlog_copy: BacklogCopy,
        input_builder: PlanInputBuilder,
        snapshot: Snapshot,
        standings: Standings,
        spared: Mapping[TaskClass, Set[str]],
        waited_for: Iterable[Pod],
    ) -> None:
        self.backlog_copy, self.standings = backlog_copy, standings
        self._input_builder, self._snapshot = input_builder, snapshot
        self._freed = np.zeros(snapshot.allocated.shape)
        for pod in waited_for:
            self._free(pod, pod.node, 1.0)
        crews = _crews_that_may_go(backlog_copy, standings, spared)
        self._running = RunningPods(
            [
                (crew, standings.rows[task_class.job.queue], backlog_copy.kinds[task_class])
                for task_class, crew in crews
            ],
            [task_class.template.priority for task_class, _ in crews],
            snapshot,
        )
        self._index_of: dict[str, int] = {}
        self._losers = Losers(standings)
        self._rank()

    def room_for(self, pods: Iterable[Pod]) -> ReclaimChoice | None:
        """Return whom to evict so that one of these pods fits, as near to its input as can be.

        The pods are of one class and read different inputs. None where no victims would do, or none are needed.
        """
        # 1. See what there is for each pod; where one fits as it is, no room need be made.
        candidates: list[_Candidate] = []
        for pod in pods:
            if (candidate := self._candidate(pod)) is None:
                return None
            candidates.append(candidate)
        # 2. Try level by level, the nearest first.
        tries = ((candidate, level) for level in range(self._anywhere + 1) for candidate in self._at(level, candidates))
        choices = (self._least_loss(candidate, level) for candidate, level in tries)
        return next(filter(None, choices), None)

    def take(self, choice: ReclaimChoice) -> None:
        """Count these victims as gone from now on, and the pod that they go for as there."""
        layout = self._snapshot.layout
        self._free(choice.pod, choice.node, -1.0)
        self.standings.gain(choice.pod.identity.queue, layout.vector(choice.pod.demand))
        for victim in choice.victims:
            self.standings.lose(victim.identity.queue, layout.vector(victim.demand))
            self._free(victim, victim.node, 1.0)
            self._running.here[self._index_of[victim.uid]] = False
        self._rank()

    def _rank(self) -> None:
        """Rank the running pods by what their queues have now."""
        self._excess = self.standings.excess()
        self._worth = self._running.worth(self._excess)

    def _free(self, pod: Pod, node: str | None, sign: float) -> None:
        charge(self._freed, self._snapshot.layout, pod, node or "", sign)

    # -- the waiting pod

    @property
    def _anywhere(self) -> int:
        return len(self._input_builder.preferred_nodes.level_names)

    def _candidate(self, pod: Pod) -> _Candidate | None:
        """Return what there is for a pod; None where it fits somewhere as it is."""
        layout, free = self._snapshot.layout, room_for(self._snapshot, pod) + self._freed
        need = need_of(pod, layout, self._input_builder.allowed_nodes)
        levels = self._input_builder.preferred_nodes.as_planned(pod, layout)
        allowed = self._input_builder.allowed_nodes.allowed(pod, layout) & need.nodes(layout.capacity)
        if (need.nodes(free) & allowed).any():
            return None
        eligible, lent = self._eligible(pod), self._running.lent(need.sources)
        return _Candidate(
            pod,
            need,
            free,
            allowed,
            allowed & self._hopeful(need, free, eligible, lent),
            np.full(len(layout.names), self._anywhere) if levels is None else levels,
            levels is not None,
            eligible,
            lent,
        )

    def _at(self, level: int, candidates: Sequence[_Candidate]) -> Iterable[_Candidate]:
        """Return which pods to try at a level: far from what they read, pods of a class are all alike."""
        if level < self._anywhere:
            return candidates
        return {candidate.chooses: candidate for candidate in reversed(candidates)}.values()

    def _eligible(self, pod: Pod) -> Mask:
        """Return who may go for a pod, if nobody else goes [P]."""
        running = self._running
        eligible = running.here & (running.priority <= pod.priority) & (self._excess[running.queue] > 0)
        rows = eligible.nonzero()[0]
        groups = self._losers.groups_for(pod.identity.queue)[running.queue[rows]]
        eligible[rows] = self._losers.may_lose(groups, running.demand[rows])
        return eligible

    def _hopeful(self, need: Need, free: Floats, eligible: Mask, lent: Floats) -> Mask:
        """Return where a pod would fit if all who may go were gone [N]."""
        here = free + self._running.sums(self._running.holds * eligible[:, np.newaxis], len(free))
        there = free[need.sources] + self._running.sums(lent * eligible[:, np.newaxis, np.newaxis], len(free))
        return need.met(here, there, np.arange(len(free)))

    # -- the victims

    def _least_loss(self, candidate: _Candidate, level: int) -> ReclaimChoice | None:
        """Return the victims on that node of a level where the least is lost; None where evictions do on none."""
        # 1. Put the nodes in order: that with the pod worth least first.
        running, hopeful = self._running, candidate.hopeful & (candidate.levels == level)
        worth = np.where(candidate.eligible, self._worth, _LAST)
        least = np.minimum.reduceat(worth, running.starts) if len(running.nodes) else np.zeros(0, dtype=np.int64)
        nodes = np.flatnonzero(hopeful[running.nodes] & (least < _LAST))
        nodes = nodes[least[nodes].argsort()]
        # 2. Try them batch by batch, until evictions would do on enough of them.
        best: tuple[tuple[float, ...], Sequence[int]] | None = None
        choices, begin, count = 0, 0, _AT_ONCE
        while begin < len(nodes) and choices < _CHOICES:
            # Holds at each turn: `best` is the least loss on the nodes before `begin`, `choices` of which would do.
            trial = self._try(candidate, nodes[begin : begin + count], worth)
            sufficient = np.flatnonzero(trial.suffices)[: _CHOICES - choices]
            choices, begin, count = choices + len(sufficient), begin + count, 2 * count
            if len(sufficient):
                best = min(filter(None, (best, self._loss(trial, sufficient))))
        if best is None:
            return None
        # 3. Name the victims.
        victims = [running.pod(index) for index in best[1]]
        self._index_of |= {victim.uid: index for victim, index in zip(victims, best[1], strict=True)}
        existing = set(candidate.levels[candidate.allowed].tolist())
        return ReclaimChoice(
            candidate.pod, victims[0].node or "", victims, level if candidate.chooses else None, existing
        )

    def _try(self, candidate: _Candidate, nodes: Rows, worth: Counts) -> _NodeBatch:
        """Choose on each of these nodes [H] who is to go, as far as they may; `nodes` are places in `running.nodes`."""
        running, need, losers = self._running, candidate.need, self._losers
        rows, (pods, able) = running.nodes[nodes], self._in_order(nodes, worth)
        chosen = np.zeros(pods.shape, dtype=np.bool_)
        here, there = candidate.free[rows], np.repeat(candidate.free[need.sources][np.newaxis], len(rows), axis=0)
        groups, group_rows = np.unique(
            losers.groups_for(candidate.pod.identity.queue)[running.queue[pods]], return_inverse=True
        )
        group_rows = group_rows.reshape(*pods.shape, -1)
        lost = np.zeros((len(rows), len(groups), running.demand.shape[1]))
        every, suffices = np.arange(len(rows))[:, np.newaxis], need.met(here, there, rows)
        # 1. Let pods go, those worth least first, until the waiting pod fits.
        for column in range(pods.shape[1]):
            # Holds at each turn: `here` and `there` are what is free without those chosen, `lost` what they were
            # promised, by group; `suffices` says where the waiting pod fits.
            pod, losing = pods[:, column], group_rows[:, column]
            goes = ~suffices & able[:, column]
            if not goes.any():
                break
            goes &= losers.may_lose(groups[losing], running.demand[pod], lost[every, losing])
            chosen[:, column] = goes
            here, there = here + _marked(running.holds[pod], goes), there + _marked(candidate.lent[pod], goes)
            lost[every, losing] += _marked(running.demand[pod], goes)[:, np.newaxis]
            suffices |= need.met(here, there, rows)
        # 2. Let those stay, the one worth most first, without whose room the waiting pod fits all the same.
        for column in reversed(range(pods.shape[1])):
            pod, goes = pods[:, column], chosen[:, column]
            less_here = here - _marked(running.holds[pod], goes)
            less_there = there - _marked(candidate.lent[pod], goes)
            stays = goes & suffices & need.met(less_here, less_there, rows)
            chosen[stays, column] = False
            here[stays], there[stays] = less_here[stays], less_there[stays]
        return _NodeBatch(rows, pods, chosen, suffices & chosen.any(axis=1))

    def _in_order(self, nodes: Rows, worth: Counts) -> tuple[Rows, Mask]:
        """Return the pods of each of these nodes, the one worth least first, and which of them may go [H, K] each.

        The places that a node with fewer pods leaves are filled up with one of its pods, which may not go there.
        """
        running = self._running
        counts, starts = running.counts[nodes][:, np.newaxis], running.starts[nodes][:, np.newaxis]
        column = np.arange(int(counts.max(initial=0)))
        pods = np.where(column < counts, starts + column, starts)
        own = np.where(column < counts, worth[pods], _LAST)
        order = own.argsort(axis=1)
        return np.take_along_axis(pods, order, axis=1), np.take_along_axis(own, order, axis=1) < _LAST

    def _loss(self, trial: _NodeBatch, sufficient: Rows) -> tuple[tuple[float, ...], Sequence[int]]:
        """Return the least loss on these nodes of a trial, and the victims.

        Losses are compared by the highest priority first, then by the number of victims, then by how little their
        queues are above their share, then by how long they have run.
        """
        running, chosen, pods = self._running, trial.chosen[sufficient], trial.pods[sufficient]
        loss = np.column_stack(
            (
                np.where(chosen, running.priority[pods], -np.inf).max(axis=1),
                chosen.sum(axis=1),
                -np.where(chosen, self._excess[running.queue[pods]], np.inf).min(axis=1),
                -np.where(chosen, running.started[pods], np.inf).min(axis=1),
                trial.rows[sufficient],
            )
        )
        least = np.lexsort(loss.T[::-1])[0]
        return tuple(loss[least].tolist()), pods[least][chosen[least]].tolist()


def _crews_that_may_go(
    backlog_copy: BacklogCopy, standings: Standings, spared: Mapping[TaskClass, Set[str]]
) -> Sequence[tuple[TaskClass, PodsOnNodes]]:
    """Return the classes of which pods may go at all, by name, and which pods."""
    excess = standings.excess().tolist()
    crews: list[tuple[TaskClass, PodsOnNodes]] = []
    for task_class, crew in backlog_copy.crews.items():
        above = excess[standings.rows[task_class.job.queue]] > 0
        if crew.may_go and above and not is_gang(backlog_copy.backlog, task_class):
            staying = {*backlog_copy.asked.get(task_class, ()), *spared.get(task_class, ())}
            crews.append((task_class, crew.without(staying) if staying else crew))
    return sorted(crews, key=lambda entry: entry[0].name)


def _marked(amounts: Floats, mask: Mask) -> Floats:
    """Return the amounts of those that are marked, and nothing of others; `amounts` [H, ...], `mask` [H]."""
    return np.where(mask.reshape(-1, *[1] * (amounts.ndim - 1)), amounts, 0.0)
