"""Reclaim: a queue that has been below its share for too long, with pods waiting, gets room from those above theirs.

Acts under the same Lease, in the same thread as the release loop, and before it. Since when a queue has been below its
share is kept in memory: after a restart, or when another replica leads, its time starts again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Mask
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.control.backlog.backlog import PodPhase, TaskClass
from extender.control.backlog.task_classes import waits_as
from extender.control.queues.standings import FAIR_SHARE, MINIMUM_SHARE, Standings, standings_of
from extender.control.queues.tree import QueueTree
from extender.control.reclaim.backlog_copy import BacklogCopy, Eyes, is_gang
from extender.control.reclaim.evictions import PATIENCE_SECONDS, Evictions
from extender.control.reclaim.trials import Shape, queue_of
from extender.control.reclaim.victims import Choice, Search
from extender.control.release.loop import Releaser
from extender.planner import farthest, pass_over, wait_now

WHYS = (MINIMUM_SHARE, FAIR_SHARE)

_LOOK_SECONDS = 1.0
_FRUITLESS_SECONDS = 5.0
_BURST_SECONDS = 1.0
_UNSEEN_SECONDS = 10.0
"""A longer pause between two steps counts as so long: meanwhile nobody looked, or the clock was set."""
_LINES_TRIED, _INPUTS_TRIED = 20, 10


@dataclass(frozen=True, slots=True)
class Timeouts:
    """For how many seconds a queue may be kept below its share; 0: for ever."""

    fair_share: float = 0.0
    minimum_share: float = 0.0
    per_minute: float = 10.0

    @property
    def on(self) -> bool:
        """Whether anything is ever evicted."""
        return self.fair_share > 0 or self.minimum_share > 0

    def of(self, why: str) -> float:
        """Return the timeout of this kind."""
        return self.minimum_share if why == MINIMUM_SHARE else self.fair_share


@dataclass(slots=True)
class Allowance:
    """How many evictions may be asked for: so many a minute, `_BURST_SECONDS`' worth and at least one at once.

    A move is whole, so it may overdraw what there is, by no more than a minute's worth; later ones wait for it.
    """

    per_minute: float
    left: float = field(init=False)
    at: float | None = None

    def __post_init__(self) -> None:
        self.left = self._most()

    def refill(self, now: float) -> None:
        """Add what the time since the last call has brought."""
        passed = max(now - self.at, 0.0) if self.at is not None else 0.0
        self.left, self.at = min(self.left + passed * self.per_minute / 60, self._most()), now

    def allows(self, evictions: int) -> bool:
        """Say whether so many may be asked for together."""
        return self.left >= 1.0 - 1e-9 and evictions <= max(self.per_minute, 1.0)

    def _most(self) -> float:
        return max(self.per_minute * _BURST_SECONDS / 60, 1.0)


Line = Sequence[TaskClass]
"""Classes of a queue for whose pods the same victims would do; the oldest job first."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One look: who may go, which shapes run (and queues as such), and who waits in which queue, in lines."""

    search: Search
    runs: Collection[Shape]
    lines: Mapping[str, list[Line]]


@dataclass(slots=True)
class Reclaimer:
    """Shares the release loop's sight of the cluster, its Lease and its writers."""

    releaser: Releaser
    moves: Evictions
    timeouts: Timeouts
    _below_since: dict[tuple[str, str], float] = field(default_factory=dict)
    _allowance: Allowance = field(init=False)
    _eyes: Eyes = field(init=False)
    _time: float = 0.0
    """For how long we have been at it: timeouts and rates go by this, whatever becomes of the clock."""
    _stepped_at: float | None = None
    _look_at: float = -np.inf
    _searched: bool = False
    _begin: dict[str, int] = field(default_factory=dict)
    """With which of its lines to begin in a queue whose first ones could not be helped."""
    _passed: set[str] = field(default_factory=set)
    """Who waits for locality while room could be made farther away: that is a chance, until the next look."""

    def __post_init__(self) -> None:
        self._allowance = Allowance(self.timeouts.per_minute)
        self._eyes = Eyes(self.releaser.backlog)

    def step(self, now: float) -> int:
        """Do what is due at `now`, in seconds since the epoch; return how many evictions were asked for."""
        if not self.timeouts.on:
            return 0
        if not self.releaser.leads():
            self.rest(now)
            return 0
        self._go_on(now)
        self._allowance.refill(self._time)
        self._allowance.left += self.moves.tend(now)
        self.releaser.backlog.writes.expire(now)
        if self._time < self._look_at:
            return 0
        self._passed.clear()
        self._searched = False
        asked = self._look_around(now)
        pause = _FRUITLESS_SECONDS if self._searched and not asked else _LOOK_SECONDS
        self._look_at, planner = self._time + pause, self.releaser.planner
        planner.carried = pass_over(planner.carried, self._passed, now, pause)
        return asked

    def rest(self, now: float) -> None:
        """Stop counting: we do not lead, or do not see the cluster. What was promised goes by plan."""
        self._below_since.clear()
        self._stepped_at = None
        self.moves.stop(now)

    def _go_on(self, now: float) -> None:
        passed = now - self._stepped_at if self._stepped_at is not None else 0.0
        self._time, self._stepped_at = self._time + min(max(passed, 0.0), _UNSEEN_SECONDS), now

    # -- who is to have more

    def _look_around(self, now: float) -> int:
        """Ask for evictions for queues whose time has run out, as far as the rate allows."""
        releaser = self.releaser
        snapshot = releaser.ledger.snapshot(releaser.flight_time())
        sight = self._eyes.look(snapshot.layout, self.moves.asked())
        standings = _standings(sight, releaser.input_builder.tree, snapshot.layout)
        wants = _wants(sight, standings)
        self._count(standings, wants)
        self.moves.trials.note_running((sight.kinds[it].shape, crew.pods) for it, crew in sight.crews.items())
        due = {why: self._due(standings, why) for why in WHYS}
        queues = {queue for why in WHYS for queue in due[why]}
        if not queues or not self._allowance.allows(1) or not standings.excess().any():
            return 0
        runs, lines = _running_shapes(sight, queues), _lines(sight, queues)
        if not any(self._may_try(sight.kinds[line[0]].shape, runs) for mine in lines.values() for line in mine):
            return 0
        self._searched, spared = True, self._eyes.by_class(self.moves.spared())
        look = _Look(Search(sight, releaser.input_builder, snapshot, standings, spared), runs, lines)
        return sum(self._serve(look, why, due[why], wants, now) for why in WHYS)

    def _count(self, standings: Standings, wants: Mask) -> None:
        """Keep since when each queue has been below its share, of each kind."""
        before = self._below_since
        self._below_since = {key: before[key] for key in self.moves.under_way() & before.keys()}
        for why in WHYS:
            if self.timeouts.of(why) > 0:
                for row in standings.below(why, wants).nonzero()[0].tolist():
                    key = (why, standings.queues[row])
                    self._below_since[key] = before.get(key, self._time)

    def _due(self, standings: Standings, why: str) -> Sequence[str]:
        """Return the queues whose time of this kind has run out, the one furthest below its fair share first."""
        missing = standings.missing()
        due = [
            queue
            for (kind, queue), since in self._below_since.items()
            if kind == why and self._time - since >= self.timeouts.of(why) and queue in standings.rows
        ]
        return sorted(due, key=lambda queue: (-missing[standings.rows[queue]], queue))

    def _serve(self, look: _Look, why: str, queues: Sequence[str], wants: Mask, now: float) -> int:
        """Make moves for the queues whose time has run out, one for each in turn, while they are below their share."""
        asked, due, standings = 0, list(queues), look.search.standings
        while due and self._allowance.allows(1):
            queue = due.pop(0)
            if standings.below(why, wants)[standings.rows[queue]]:
                made = self._move(look, queue, why, now)
                asked += made
                due += [queue] if made else []
        return asked

    def _move(self, look: _Look, queue: str, why: str, now: float) -> int:
        """Make one move for a queue, if there is one; return how many evictions it takes.

        Lines that cannot be helped are left out of this look; where they are many, others come first in the next.
        """
        lines = look.lines.get(queue, [])
        begin = self._begin.pop(queue, 0)
        begin = begin if begin < len(lines) else 0
        for tried, line in enumerate(lines[begin : begin + _LINES_TRIED]):
            made = self._help(look, line, why, now)
            if made:
                del lines[begin : begin + tried]
                return made
        del lines[begin : begin + _LINES_TRIED]
        if begin < len(lines):
            self._begin[queue] = begin + _LINES_TRIED
        return 0

    def _help(self, look: _Look, line: Line, why: str, now: float) -> int:
        """Make room for a pod of a line, if that can be; return how many evictions it takes.

        A pod that could be helped only farther from its input than its job may start yet is passed over.
        """
        shape = look.search.sight.kinds[line[0]].shape
        choice = look.search.room_for(self._pods(line)) if self._may_try(shape, look.runs) else None
        if choice is None or not self._allowance.allows(len(choice.victims)):
            return 0
        found = self.releaser.backlog.find(choice.pod.uid)
        if found is None or (choice.level is not None and choice.level > self._farthest(found[0], choice, now)):
            self._passed.add(waits_as(choice.pod.identity.queue, choice.pod.identity.job))
            return 0
        pod = self.releaser.backlog.take(found[0], now, now + PATIENCE_SECONDS, choice.pod.uid)
        if pod is None:
            return 0
        look.search.take(choice)
        self.moves.begin(pod, pod.identity.queue, why, choice)
        self._allowance.left -= len(choice.victims)
        return len(choice.victims)

    def _may_try(self, shape: Shape, runs: Collection[Shape]) -> bool:
        """Say whether evictions for a shape are worth a try: kube-scheduler does not refuse what they are made for."""
        return self.moves.trials.may_try(shape, runs, self.moves.shapes(), self.releaser.flight_time())

    def _pods(self, line: Line) -> Sequence[Pod]:
        """Return the oldest ready pod of a line; one of each input, of the first few, where its pods have any."""
        found: dict[object, Pod] = {}
        backlog, most = self.releaser.backlog, _INPUTS_TRIED if line[0].template.inputs else 1
        with backlog.lock:
            for task_class in line:
                for uid, pod in task_class.pods[PodPhase.READY].items():
                    if not backlog.writes.busy(uid):
                        found.setdefault(pod.inputs, pod)
                    if len(found) == most:
                        return [*found.values()]
        return [*found.values()]

    def _farthest(self, of: TaskClass, choice: Choice, now: float) -> int:
        planner, name = self.releaser.planner, waits_as(of.job.queue, of.job.name)
        return farthest(planner.policy, wait_now(planner.carried, name, now), choice.existing)


def _standings(sight: BacklogCopy, tree: QueueTree, layout: Layout) -> Standings:
    return standings_of(sight.usage(tree, layout), sight.going(), tree, layout)


def _wants(sight: BacklogCopy, standings: Standings) -> Mask:
    """Return which queues have pods that wait and that room could be made for [Q]."""
    wants = np.zeros(len(standings.queues), dtype=np.bool_)
    queues = {it.job.queue for it in sight.active if it.pods[PodPhase.READY] and not is_gang(sight.backlog, it)}
    wants[[standings.rows[queue] for queue in queues]] = True
    return wants


def _running_shapes(sight: BacklogCopy, queues: Collection[str]) -> set[Shape]:
    """Return the shapes of which pods of these queues run, and the queues that they are of."""
    shapes = {sight.kinds[it].shape for it in sight.crews if it.job.queue in queues}
    return shapes | set(map(queue_of, shapes))


def _lines(sight: BacklogCopy, queues: Collection[str]) -> dict[str, list[Line]]:
    """Return who waits in each of these queues: the highest priority first, then the oldest job.

    Pods to which it makes a difference where they run are a line for each class.
    """
    waiting = [
        it
        for it in sight.active
        if it.job.queue in queues and it.pods[PodPhase.READY] and not is_gang(sight.backlog, it)
    ]
    waiting.sort(key=lambda it: (-it.template.priority, it.job.arrived, it.name))
    lines: dict[str, dict[object, list[TaskClass]]] = {queue: {} for queue in queues}
    for it in waiting:
        alone = it.template.inputs or it.template.prefers or it.template.constraints.volumes
        alike = it if alone else (sight.kinds[it].shape, it.template.priority)
        lines[it.job.queue].setdefault(alike, []).append(it)
    return {queue: [*alike.values()] for queue, alike in lines.items()}
