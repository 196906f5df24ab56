"""Reclaim: a queue that has been below its share for too long, with pods waiting, gets room from those above theirs.

It acts under the same Lease, in the same thread as the release loop, and before it. Since when a queue has been below
its share is kept in memory: after a restart, or when another replica leads, that time starts again.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from extender.arrays import Mask
from extender.cluster.model import Pod
from extender.control.allowance import Allowance
from extender.control.backlog.backlog import PodPhase
from extender.control.backlog.task_classes import waits_as
from extender.control.cluster_view import ClusterView
from extender.control.pod_shapes import Shape
from extender.control.queues.standings import FAIR_SHARE, MINIMUM_SHARE, Standings, standings_of
from extender.control.reclaim.backlog_copy import BacklogCopier, BacklogCopy
from extender.control.reclaim.evictions import PATIENCE_SECONDS, Evictions
from extender.control.reclaim.lines import ClassLine, lines_of, running_shapes, wants_of
from extender.control.reclaim.locality_waits import LocalityWaits
from extender.control.reclaim.victims import VictimSearch

WHYS = (MINIMUM_SHARE, FAIR_SHARE)

_LOOK_SECONDS, _FRUITLESS_SECONDS = 1.0, 5.0
"""The pause between two looks; the longer one after a search that found no victims."""
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


@dataclass(frozen=True, slots=True)
class _Look:
    """One look: who may go, which shapes run (and queues as such), which queues want more [Q], and who waits in each.

    `lines` are by queue; those that were tried in vain are taken out.
    """

    search: VictimSearch
    runs: Collection[Shape]
    wants: Mask
    lines: Mapping[str, list[ClassLine]]

    @property
    def standings(self) -> Standings:
        """What the queues have, less the victims chosen so far."""
        return self.search.standings


class Reclaimer:
    """Decides which queues get room back. Runs in the release loop's thread.

    Timeouts and rates go by `_time`, for how many seconds it has been at work: a clock that is set changes neither.
    """

    def __init__(self, cluster: ClusterView, waits: LocalityWaits, evictions: Evictions, timeouts: Timeouts) -> None:
        self.evictions, self.timeouts = evictions, timeouts
        self._cluster, self._waits = cluster, waits
        self._copier = BacklogCopier(cluster.backlog)
        self._allowance = Allowance(timeouts.per_minute)
        self._time = 0.0
        self._stepped_at: float | None = None
        self._look_at, self._searched = -math.inf, False
        self._below_since: dict[tuple[str, str], float] = {}
        self._first_line: dict[str, int] = {}
        self._passed_over: set[str] = set()

    def step(self, now: float) -> int:
        """Do what is due at `now`, in seconds since the epoch; return how many evictions were asked for."""
        if not self.timeouts.on:
            return 0
        # 1. Only the leader evicts.
        if not self._cluster.leads():
            self.rest(now)
            return 0
        # 2. Let time pass: it brings evictions that may be asked for. Go on with those under way.
        self._pass_time(now)
        self._allowance.refill(self._time)
        self._allowance.left += self.evictions.reconcile(now)
        self._cluster.expire_writes(now)
        # 3. Look which queues are below their share, now and then.
        if self._time < self._look_at:
            return 0
        self._passed_over.clear()
        self._searched = False
        asked = self._look(now)
        # 4. A job that waits for locality while room could be made farther away was passed over, until the next look.
        pause = _FRUITLESS_SECONDS if self._searched and not asked else _LOOK_SECONDS
        self._look_at = self._time + pause
        self._waits.pass_over(self._passed_over, now, pause)
        return asked

    def rest(self, now: float) -> None:
        """Stop counting: we do not lead, or do not see the cluster. What was promised goes by plan."""
        self._below_since.clear()
        self._stepped_at = None
        self.evictions.stop(now)

    def _pass_time(self, now: float) -> None:
        seconds = now - self._stepped_at if self._stepped_at is not None else 0.0
        self._time, self._stepped_at = self._time + min(max(seconds, 0.0), _UNSEEN_SECONDS), now

    # -- which queues are to have more

    def _look(self, now: float) -> int:
        """Ask for evictions for queues whose time has run out, as far as the rate allows; return how many."""
        # 1. See what each queue has and should have.
        snapshot = self._cluster.snapshot()
        backlog_copy = self._copier.copy(snapshot.layout, self.evictions.requests.asked())
        tree, claims = self._cluster.input_builder.tree, self._cluster.input_builder.claims
        usage = backlog_copy.usage(tree, snapshot, claims)
        standings = standings_of(usage, backlog_copy.going(), tree, snapshot.layout)
        wants = wants_of(backlog_copy, standings)
        # 2. Count for how long queues have been below their share; a shape of which pods start may be tried again.
        self._count(standings, wants)
        kinds = backlog_copy.kinds
        self.evictions.trials.note_running(
            (kinds[task_class].shape, crew.pods) for task_class, crew in backlog_copy.crews.items()
        )
        # 3. End here where no time has run out, nobody is above their share, or no shape is worth a try.
        due = {why: self._due(standings, why) for why in WHYS}
        queues = {queue for why in WHYS for queue in due[why]}
        if not queues or not self._allowance.allows(1) or not standings.excess().any():
            return 0
        runs, lines = running_shapes(backlog_copy, queues), lines_of(backlog_copy, queues)
        if not self._any_may_try(backlog_copy, runs, lines):
            return 0
        # 4. Search victims: for minimum shares first.
        self._searched, spared = True, self._copier.by_class(self.evictions.requests.spared())
        waited_for = backlog_copy.waited_for(now, PATIENCE_SECONDS, self.evictions.awaited())
        search = VictimSearch(backlog_copy, self._cluster.input_builder, snapshot, standings, spared, waited_for)
        look = _Look(search, runs, wants, lines)
        return sum(self._serve(look, why, due[why], now) for why in WHYS)

    def _count(self, standings: Standings, wants: Mask) -> None:
        """Keep since when each queue has been below its share, of each kind."""
        before = self._below_since
        self._below_since = {key: before[key] for key in self.evictions.under_way() & before.keys()}
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

    def _any_may_try(
        self, backlog_copy: BacklogCopy, runs: Collection[Shape], lines: Mapping[str, list[ClassLine]]
    ) -> bool:
        shapes = (backlog_copy.kinds[line[0]].shape for of_queue in lines.values() for line in of_queue)
        return any(self._may_try(shape, runs) for shape in shapes)

    def _may_try(self, shape: Shape, runs: Collection[Shape]) -> bool:
        """Say whether evictions for a shape are worth a try: kube-scheduler does not refuse its pods."""
        evictions = self.evictions
        return evictions.trials.may_try(shape, runs, evictions.shapes(), self._cluster.flight_time())

    # -- room for their pods

    def _serve(self, look: _Look, why: str, queues: Sequence[str], now: float) -> int:
        """Make room for one pod of each queue in turn, while they are below their share; return how many evictions."""
        asked, due = 0, list(queues)
        while due and self._allowance.allows(1):
            # Holds at each turn: `due` are the queues for which the last try, if any, has found victims.
            queue = due.pop(0)
            if look.standings.below(why, look.wants)[look.standings.rows[queue]]:
                evictions = self._make_room(look, queue, why, now)
                asked += evictions
                due += [queue] if evictions else []
        return asked

    def _make_room(self, look: _Look, queue: str, why: str, now: float) -> int:
        """Make room for one pod of a queue, if that can be; return how many evictions it takes.

        Lines that cannot be helped are left out of this look; where they are many, the next look begins behind them.
        """
        lines = look.lines.get(queue, [])
        first = self._first_line.pop(queue, 0)
        first = first if first < len(lines) else 0
        for tried, line in enumerate(lines[first : first + _LINES_TRIED]):
            evictions = self._make_room_for(look, line, why, now)
            if evictions:
                del lines[first : first + tried]
                return evictions
        del lines[first : first + _LINES_TRIED]
        if first < len(lines):
            self._first_line[queue] = first + _LINES_TRIED
        return 0

    def _make_room_for(self, look: _Look, line: ClassLine, why: str, now: float) -> int:
        """Make room for a pod of a line, if that can be; return how many evictions it takes.

        A job is passed over where room could be made, but farther from its input than it may start yet.
        """
        # 1. Find the victims, if evictions for this shape are worth a try and the rate allows so many.
        shape = look.search.backlog_copy.kinds[line[0]].shape
        choice = look.search.room_for(self._candidates(line)) if self._may_try(shape, look.runs) else None
        if choice is None or not self._allowance.allows(len(choice.victims)):
            return 0
        # 2. Pass the job over where that would be too far from its input.
        backlog, identity = self._cluster.backlog, choice.pod.identity
        position = backlog.find(choice.pod.uid)
        if position is None or (
            choice.level is not None and choice.level > self._waits.farthest(position[0], choice.existing, now)
        ):
            self._passed_over.add(waits_as(identity.queue, identity.job))
            return 0
        # 3. Claim the pod, and ask for the evictions.
        pod = backlog.take(position[0], now, now + PATIENCE_SECONDS, choice.pod.uid)
        if pod is None:
            return 0
        look.search.take(choice)
        self.evictions.begin(pod, pod.identity.queue, why, choice)
        self._allowance.left -= len(choice.victims)
        return len(choice.victims)

    def _candidates(self, line: ClassLine) -> Sequence[Pod]:
        """Return the oldest ready pod of a line; where its pods have inputs, one of each of the first few inputs."""
        by_inputs: dict[object, Pod] = {}
        backlog, most = self._cluster.backlog, _INPUTS_TRIED if line[0].template.inputs else 1
        with backlog.lock:
            for task_class in line:
                for uid, pod in task_class.pods[PodPhase.READY].items():
                    if not backlog.writes.busy(uid):
                        by_inputs.setdefault(pod.inputs, pod)
                    if len(by_inputs) == most:
                        return [*by_inputs.values()]
        return [*by_inputs.values()]
