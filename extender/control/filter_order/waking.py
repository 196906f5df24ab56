"""Waking pods whose turn has come: kube-scheduler has refused them, and sleeps on them until something happens.

Mostly the event that made it their turn has woken them already. Timers, the end of a pending pod, and what only a Job
says are no events to kube-scheduler; and a pod may have been refused by what was known a moment before.
"""

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass
from typing import Protocol

import structlog

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.task_classes import PodPhase, TaskClass
from extender.control.filter_order.unused_turns import UnusedTurns
from extender.errors import ClusterError

_LONGEST_PAUSE_SECONDS = 30.0

log = structlog.get_logger()


class Alarm(Protocol):
    """What writes to pods. Raises ClusterError where the pod is another by now."""

    def wake(self, pod: Pod) -> None:
        """Change the pod so that kube-scheduler tries it again."""


@dataclass(frozen=True, slots=True)
class Calls:
    """When to call. `per_second` bounds how many calls there are.

    Events of the cluster wake pods by themselves: for `grace_seconds` after the last one nobody is called, but who has
    waited for `patience_seconds`. A call that brings nothing is repeated after `again_seconds`, doubled each time:
    filter may have planned otherwise at that moment. After `soon_seconds`, and so on, where it makes a difference to
    the pod where it starts: filter has counted its wait for locality from a moment later.
    """

    grace_seconds: float = 0.25
    patience_seconds: float = 1.0
    again_seconds: float = 1.0
    soon_seconds: float = 0.2
    per_second: float = 50.0


@dataclass(slots=True)
class _Turn:
    since: float
    due: float = 0.0
    calls: int = 0


class Waker:
    """Follows the turns of pods without a gate, by plan. `run_soon` and `leads` are the release loop's."""

    def __init__(
        self,
        backlog: Backlog,
        alarm: Alarm,
        run_soon: Callable[[Callable[[], None]], object],
        leads: Callable[[], bool],
        calls: Calls | None = None,
        note: Callable[[], None] = lambda: None,
    ) -> None:
        self._backlog, self._alarm, self._run_soon, self._leads = backlog, alarm, run_soon, leads
        self._calls, self._note_call = calls or Calls(), note
        self._turns: dict[str, _Turn] = {}
        self._unused = UnusedTurns(refused_seconds=5.0, untried_seconds=30.0, again_seconds=60.0)
        self._started: dict[str, float] = {}
        self._budget, self._counted_at = self._calls.per_second, 0.0

    def left_out(self, now: float) -> Set[str]:
        """Return the names of classes whose turns nobody uses: room is not kept for them."""
        return self._unused.out(now)

    def step(
        self,
        turns: Mapping[TaskClass, int],
        now: float,
        stirred_at: float,
        named: Collection[str] = (),
        choosing: Collection[TaskClass] = (),
    ) -> None:
        """Wake who is due at `now`: so many pods of each class have their turn; the cluster last `stirred_at`.

        Of classes whose pods have inputs it is the turn of those `named`, by UID. To those that are `choosing` it makes
        a difference where they start.
        """
        with self._backlog.lock:
            self._note(turns, now)
            asleep = [(of, pod) for of, count in turns.items() for pod in _asleep(of, count, named)]
        before, self._turns = self._turns, {}
        for of, pod in asleep:
            turn = self._turns[pod.uid] = before.get(pod.uid) or _Turn(now)
            if not turn.calls:
                quiet = max(turn.since, stirred_at + self._calls.grace_seconds)
                turn.due = min(quiet, turn.since + self._calls.patience_seconds)
            if turn.due <= now and self._may(now):
                turn.calls += 1
                turn.due = now + self._pause(turn.calls, soon=of in choosing)
                self._wake(pod)

    def next_due(self) -> float:
        """Return when somebody is due next; infinite where nobody is."""
        return min((turn.due for turn in self._turns.values()), default=float("inf"))

    def _note(self, turns: Mapping[TaskClass, int], now: float) -> None:
        for of in turns:
            if of.released_at > self._started.get(of.name, 0.0):
                self._unused.use(of.name)
        self._started = {of.name: of.released_at for of in turns}
        untried = {of.name: any(not pod.unschedulable for pod in of.pods[PodPhase.UNGATED].values()) for of in turns}
        self._unused.note(untried, now)

    def _pause(self, calls: int, *, soon: bool) -> float:
        first = self._calls.soon_seconds if soon else self._calls.again_seconds
        return min(first * 2.0 ** min(calls - 1, 10), _LONGEST_PAUSE_SECONDS)

    def _may(self, now: float) -> bool:
        calls = self._calls.per_second
        self._budget = min(calls, self._budget + calls * max(0.0, now - self._counted_at))
        self._counted_at = now
        if self._budget < 1.0:
            return False
        self._budget -= 1.0
        return True

    def _wake(self, pod: Pod) -> None:
        self._note_call()
        self._run_soon(lambda: self._write(pod))

    def _write(self, pod: Pod) -> None:
        about = f"{pod.namespace}/{pod.name}"
        try:
            if self._leads():
                self._alarm.wake(pod)
                log.info("woken", pod=about, uid=pod.uid, queue=pod.identity.queue, job=pod.identity.job)
        except ClusterError as error:
            log.warning("not woken", pod=about, error=str(error))


def _asleep(of: TaskClass, count: int, named: Collection[str]) -> list[Pod]:
    """Return the oldest refused pods of a class, as many as have turns beyond those that were never tried."""
    asked = of.pods[PodPhase.UNGATED].values()
    refused = [pod for pod in asked if pod.unschedulable]
    if chosen := [pod for pod in refused if pod.uid in named]:
        return chosen
    return refused[: max(count - (len(asked) - len(refused)), 0)]
