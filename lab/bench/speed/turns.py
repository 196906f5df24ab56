"""How long a turn of `control`'s loops takes with pods on idle room, beside the same without.

A turn is what the release thread does: who is evicted of overloaded nodes, who becomes regular, the plan, and the
second plan on idle room. Turns, and looks at the use, come as often as settings say. Both clusters have the same nodes,
regular pods and classes that wait.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from extender.adapters.usage.reading import UsageReader
from extender.app.ordering import input_builder_of
from extender.app.tuning import policy_of
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.stays_off import StaysOff
from extender.control.cluster_view import ClusterView
from extender.control.eviction_requests import EvictionRequests
from extender.control.opportunistic.promises import Promises
from extender.control.opportunistic.promotion import Promoter
from extender.control.opportunistic.second_pass import OpportunisticLimits, SecondPass
from extender.control.plan_input.builder import PlanInput
from extender.control.preemption.loop import PreemptionLimits, Preemptor
from extender.control.preemption.overload import Limits
from extender.control.release.loop import Releaser
from extender.control.release.planned import Planned
from extender.control.release.sending import Release, Sender
from extender.control.release.slots import Pace
from extender.planner import Planner
from extender.settings import Settings
from lab.bench.speed.at_work import Cluster, WorkScale
from lab.report.rows import Report, Row

FULL = WorkScale(nodes=5_000, opportunistic=20_000, waiting=30_000, classes=300, ends=20, overloaded=5)
QUICK = WorkScale(nodes=100, opportunistic=400, waiting=600, classes=30, ends=5, overloaded=2)
TURNS = 20

_AIM = 1.5
PREEMPTION, PROMOTION, IDLE_ROOM, ALL = "who is evicted", "who becomes regular", "second plan, on idle room", "all"
"""The parts of a turn that are timed, by their names in the table."""

Timed = Callable[[str], AbstractContextManager[None]]
"""Adds the time of what is done within to a part."""


class _TimedIdleRoom:
    """The second pass, and how long it took."""

    def __init__(self, inner: SecondPass, timed: Timed) -> None:
        self._inner, self._timed = inner, timed

    def take(self, planned: Planned, slots: int, now: float) -> list[Release]:
        """Do what the second pass does."""
        with self._timed(IDLE_ROOM):
            return self._inner.take(planned, slots, now)

    def promises(self, pods: Sequence[Pod], snapshot: Snapshot, now: float) -> Promises:
        """Do what the second pass does."""
        with self._timed(IDLE_ROOM):
            return self._inner.promises(pods, snapshot, now)


class _TimedPromoter:
    """The promoter, and how long it took."""

    def __init__(self, inner: Promoter, timed: Timed) -> None:
        self._inner, self._timed = inner, timed

    def step(self, snapshot: Snapshot, plan_input: PlanInput | None, now: float) -> Snapshot:
        """Do what the promoter does."""
        with self._timed(PROMOTION):
            return self._inner.step(snapshot, plan_input, now)


@dataclass(frozen=True, slots=True)
class _IdleParts:
    """What runs only where pods are started on idle room."""

    preemptor: Preemptor
    second_pass: _TimedIdleRoom
    promoter: _TimedPromoter


class Loops:
    """The loops of one process, wired as `control` wires them, on a cluster that is at work."""

    def __init__(self, scale: WorkScale, *, idle: bool) -> None:
        self._settings = settings = Settings()
        self.cluster = Cluster(scale, np.random.default_rng(0), settings, idle=idle)
        self.turns: list[dict[str, float]] = []
        self._policy = policy_of(settings)
        self._view = ClusterView(
            self.cluster.ledger,
            self.cluster.backlog,
            input_builder_of(settings, self.cluster.backlog),
            leads=lambda: True,
            flight_time=lambda: self.cluster.now,
            run_soon=self.cluster.writes.append,
        )
        self._reader = UsageReader(
            self.cluster,
            lambda: self.cluster.nodes,
            self.cluster.measured_alone,
            self.cluster,
            settings.usage.interval_seconds,
            settings.usage.stale_seconds,
            lambda: self.cluster.now,
        )
        parts = self._idle_parts() if idle else None
        self._preemptor = parts.preemptor if parts else None
        self._releaser = Releaser(
            self._view,
            Planner(self._policy),
            Sender(self._view, self.cluster, self.cluster, self.cluster),
            Pace(settings.control.unbound_pods),
            idle=parts.second_pass if parts else None,
            promoter=parts.promoter if parts else None,
        )

    def turn(self) -> None:
        """Let some seconds pass, and time what the loops do then."""
        self.cluster.pass_time(self._settings.control.plan_seconds)
        if self._preemptor is not None and self.cluster.now >= self._reader.looked_at + self._reader.interval_seconds:
            self._reader.look()
        self.turns.append({})
        with self._timed(ALL):
            if self._preemptor is not None:
                with self._timed(PREEMPTION):
                    self._preemptor.step(self.cluster.now)
            self._releaser.step(self.cluster.now)
        self.cluster.settle()

    def milliseconds(self, part: str) -> float:
        """Return how long a part of a turn takes, the mean of all turns."""
        return 1000 * sum(turn.get(part, 0.0) for turn in self.turns) / len(self.turns)

    def _idle_parts(self) -> _IdleParts:
        requests, stays_off = EvictionRequests(self._view, self.cluster), StaysOff()
        usage, terms = self._reader.usage, PreemptionLimits(Limits.of())
        return _IdleParts(
            Preemptor(self._view, usage, requests, self.cluster, terms, stays_off, clock=lambda: self.cluster.now),
            _TimedIdleRoom(SecondPass(self._view, self._policy, usage, OpportunisticLimits(), stays_off), self._timed),
            _TimedPromoter(Promoter(self._view, self.cluster, lambda _pod: None, requests.asked), self._timed),
        )

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        """Add the CPU time of what is done within to a part of the turn."""
        begun = time.process_time()
        yield
        self.turns[-1][part] = self.turns[-1].get(part, 0.0) + time.process_time() - begun


def measure(scale: WorkScale, turns: int, progress: Callable[[], None]) -> tuple[Loops, Loops]:
    """Return the loops without and with pods on idle room, after so many turns each, in turn; the first is not counted.

    What the first turn makes is used again by the others.
    """
    without, beside = Loops(scale, idle=False), Loops(scale, idle=True)
    for number in range(turns + 1):
        for loops in (without, beside):
            loops.turn()
            if not number:
                loops.turns.clear()
        progress()
    return without, beside


def report(scale: WorkScale, without: Loops, beside: Loops) -> Report:
    """Return the ratio of the two, and where the time goes."""
    plain, whole = without.milliseconds(ALL), beside.milliseconds(ALL)
    done = f"{beside.cluster.started} started, {beside.cluster.promoted} promoted, {beside.cluster.evicted} evicted"
    note = (
        f"a turn of control's loops: {whole:.0f} ms of CPU time with {scale.opportunistic:,} pods on idle room, "
        f"{plain:.0f} ms without (means of {len(beside.turns)} turns; {done}); {scale.nodes:,} nodes, "
        f"{scale.waiting:,} waiting pods in {scale.classes} classes; aim {_AIM}"
    )
    return Report([Row(f"plan.ratio.{scale.nodes}", round(whole / plain, 2), "", note=note)], [_table(without, beside)])


def _table(without: Loops, beside: Loops) -> Table:
    table = Table(title="A turn of control's loops, milliseconds of CPU time")
    for heading in ("part", "without", "with pods on idle room"):
        table.add_column(heading, justify="left" if heading == "part" else "right")
    for part in (PREEMPTION, PROMOTION, IDLE_ROOM, ALL):
        cells = [f"{loops.milliseconds(part):.1f}" for loops in (without, beside)]
        table.add_row(part, *cells)
    return table
