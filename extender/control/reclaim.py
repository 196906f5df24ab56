"""Reclaim: a queue that has been below its share for too long, with pods waiting, gets room from those above theirs.

Acts under the same Lease, in the same thread as the release loop, and before it. Since when a queue has been below its
share is kept in memory: after a restart, or when another replica leads, its time starts again.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.cluster.model import Pod
from extender.cluster.snapshot import Snapshot
from extender.control.backlog import Stage, TaskClass
from extender.control.classes import waits_as
from extender.control.moves import PATIENCE_SECONDS, Moves
from extender.control.release import Releaser
from extender.control.standings import FAIR_SHARE, MINIMUM_SHARE, Standings, standings_of
from extender.control.victims import Choice, Search, is_gang
from extender.planner import farthest, pass_over, wait_now

Mask = NDArray[np.bool_]

WHYS = (MINIMUM_SHARE, FAIR_SHARE)

_LOOK_SECONDS = 1.0
_FRUITLESS_SECONDS = 5.0
_BURST_SECONDS = 1.0
_CLASSES_TRIED, _INPUTS_TRIED = 20, 10


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


@dataclass(slots=True)
class Reclaimer:
    """Shares the release loop's sight of the cluster, its Lease and its writers."""

    releaser: Releaser
    moves: Moves
    timeouts: Timeouts
    _below_since: dict[tuple[str, str], float] = field(default_factory=dict)
    _allowance: Allowance = field(init=False)
    _look_at: float = -np.inf
    _passed: set[str] = field(default_factory=set)
    """Who waits for locality while room could be made farther away: that is a chance, until the next look."""

    def __post_init__(self) -> None:
        self._allowance = Allowance(self.timeouts.per_minute)

    def step(self, now: float) -> int:
        """Do what is due at `now`, in seconds since the epoch; return how many evictions were asked for."""
        if not self.timeouts.on:
            return 0
        if not self.releaser.leads():
            self.rest(now)
            return 0
        self._allowance.refill(now)
        self._allowance.left += self.moves.tend(now)
        self.releaser.backlog.writes.expire(now)
        if now < self._look_at:
            return 0
        self._passed.clear()
        asked = self._look(now)
        pause = _LOOK_SECONDS if asked or not self._below_since else self._pause(now)
        self._look_at, planner = now + pause, self.releaser.planner
        planner.carried = pass_over(planner.carried, self._passed, now, pause)
        return asked

    def rest(self, now: float) -> None:
        """Stop counting: we do not lead, or do not see the cluster. What was promised goes by plan."""
        self._below_since.clear()
        self.moves.stop(now)

    # -- who is to have more

    def _look(self, now: float) -> int:
        """Ask for evictions for queues whose time has run out, as far as the rate allows."""
        with self.releaser.backlog.lock:
            snapshot = self.releaser.ledger.snapshot(self.releaser.flight_time())
            standings = self._standings(snapshot)
            self._time(standings, now)
            if not self._allowance.allows(1) or not any(self._due(standings, why, now) for why in WHYS):
                return 0
            search = self._search(snapshot, standings)
            return sum(self._serve(search, why, now) for why in WHYS)

    def _time(self, standings: Standings, now: float) -> None:
        """Keep since when each queue has been below its share, of each kind."""
        before = self._below_since
        wants = self._wants(standings)
        self._below_since = {key: before[key] for key in self.moves.under_way() & before.keys()}
        for why in WHYS:
            if self.timeouts.of(why) > 0:
                for row in standings.below(why, wants).nonzero()[0].tolist():
                    key = (why, standings.queues[row])
                    self._below_since[key] = before.get(key, now)

    def _due(self, standings: Standings, why: str, now: float) -> Sequence[str]:
        """Return the queues whose time of this kind has run out, the one furthest below its fair share first."""
        missing = standings.missing()
        found = [
            queue
            for (kind, queue), since in self._below_since.items()
            if kind == why and now - since >= self.timeouts.of(why) and queue in standings.rows
        ]
        return sorted(found, key=lambda queue: (-missing[standings.rows[queue]], queue))

    def _wants(self, standings: Standings) -> Mask:
        wants = np.zeros(len(standings.queues), dtype=np.bool_)
        for it in self.releaser.backlog.classes():
            if it.pods[Stage.READY] and not is_gang(self.releaser.backlog, it):
                wants[standings.rows[it.job.queue]] = True
        return wants

    def _serve(self, search: Search, why: str, now: float) -> int:
        """Make moves for the queues whose time has run out, one for each in turn, while they are below their share."""
        asked, due = 0, list(self._due(search.standings, why, now))
        while due and self._allowance.allows(1):
            queue = due.pop(0)
            row = search.standings.rows[queue]
            if search.standings.below(why, self._wants(search.standings))[row]:
                made = self._move(search, queue, why, now)
                asked += made
                due += [queue] if made else []
        return asked

    def _move(self, search: Search, queue: str, why: str, now: float) -> int:
        """Make one move for a queue, if there is one; return how many evictions it takes.

        A pod that could be helped only farther from its input than its job may start yet is passed over.
        """
        for of in self._waiting(queue)[:_CLASSES_TRIED]:
            choice = search.room_for(self._pods(of))
            if choice is None or not self._allowance.allows(len(choice.victims)):
                continue
            if choice.level is not None and choice.level > self._farthest(of, choice, now):
                self._passed.add(waits_as(of.job.queue, of.job.name))
                continue
            pod = self.releaser.backlog.take(of, now, now + PATIENCE_SECONDS, choice.pod.uid)
            if pod is not None:
                search.take(choice)
                self.moves.begin(pod, queue, why, choice, now)
                self._allowance.left -= len(choice.victims)
                return len(choice.victims)
        return 0

    def _pods(self, of: TaskClass) -> Collection[Pod]:
        """Return the oldest ready pod of each input, of the first few inputs of a class."""
        found: dict[object, Pod] = {}
        ready = (pod for uid, pod in of.pods[Stage.READY].items() if not self.releaser.backlog.writes.busy(uid))
        for pod in ready:
            found.setdefault(pod.inputs, pod)
            if len(found) == (_INPUTS_TRIED if of.like.inputs else 1):
                break
        return found.values()

    def _farthest(self, of: TaskClass, choice: Choice, now: float) -> int:
        planner, name = self.releaser.planner, waits_as(of.job.queue, of.job.name)
        return farthest(planner.policy, wait_now(planner.carried, name, now), choice.existing)

    def _waiting(self, queue: str) -> Sequence[TaskClass]:
        """Return what waits in a queue, highest priority first, then the oldest job."""
        backlog = self.releaser.backlog
        mine = [it for it in backlog.classes() if it.job.queue == queue]
        ready = [it for it in mine if backlog.ready(it) and not is_gang(backlog, it)]
        return sorted(ready, key=lambda it: (-it.like.priority, it.job.arrived, it.name))

    # -- what there is

    def _standings(self, snapshot: Snapshot) -> Standings:
        return standings_of(
            self.releaser.backlog,
            self.releaser.rounds.tree,
            snapshot.layout,
            stays=lambda pod: not self.moves.goes(pod),
        )

    def _search(self, snapshot: Snapshot, standings: Standings) -> Search:
        releaser = self.releaser
        return Search(
            releaser.backlog,
            releaser.rounds,
            snapshot,
            standings,
            spared=self.moves.is_spared,
            goes=self.moves.goes,
        )

    def _pause(self, now: float) -> float:
        """Return how long to wait after a look that asked for nothing: shorter while a timer is still running."""
        due = any(now - since >= self.timeouts.of(why) for (why, _), since in self._below_since.items())
        return _FRUITLESS_SECONDS if due and self._allowance.allows(1) else _LOOK_SECONDS
