"""Wakes pods whose turn has come: kube-scheduler has refused them, and does not try them again until an event.

Mostly the event that made it their turn has woken them already. But timers, the end of a pending pod, and changes of a
Job are no events to kube-scheduler; and a pod may have been refused by a plan of a moment before.
"""

import math
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Protocol

import structlog

from extender.cluster.model import Pod
from extender.control.allowance import Allowance
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.pending_writes import doubled
from extender.control.backlog.task_classes import PodPhase, TaskClass
from extender.control.filter_order.unused_turns import Turn, UnusedTurns, end_turns
from extender.errors import ClusterError

_LONGEST_PAUSE_SECONDS = 30.0

_LEAST_SAMPLE = 100
"""kube-scheduler never asks about fewer nodes, if there are more."""

log = structlog.get_logger()


class WakesPods(Protocol):
    """What writes to pods. Raises ClusterError where the pod is another by now."""

    def wake(self, pod: Pod) -> None:
        """Change the pod so that kube-scheduler tries it again."""


@dataclass(frozen=True, slots=True)
class WakePolicy:
    """When to wake a pod: by a call, a small write to it. There are at most `per_second` calls.

    Events of the cluster wake pods by themselves. So for `grace_seconds` after the last one only pods are called that
    have waited for `patience_seconds`. A call without effect is repeated after `again_seconds`, doubled each time: the
    filter may have planned otherwise at that moment. Where it makes a difference to the pod where it starts, it is
    repeated after `soon_seconds`: the filter has counted the pod's wait for locality from a moment later.

    On a large cluster each try is about other nodes, and the first may all lack those with room. There a pod's first
    calls are `try_seconds` apart at most: as many as see all nodes, by the smallest samples.
    """

    grace_seconds: float = 0.25
    patience_seconds: float = 1.0
    again_seconds: float = 1.0
    soon_seconds: float = 0.2
    try_seconds: float = 0.4
    per_second: float = 50.0


@dataclass(slots=True)
class _Turn(Turn):
    """A pod's turn: when it is due to be called, and how many calls there were."""

    due: float = 0.0
    calls: int = 0


class Waker:
    """Follows the turns of pods without a gate. The release loop's thread alone calls it; writes run in others."""

    def __init__(
        self,
        backlog: Backlog,
        alarm: WakesPods,
        run_soon: Callable[[Callable[[], None]], object],
        leads: Callable[[], bool],
        calls: WakePolicy | None = None,
        note_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._backlog, self._alarm, self._run_soon, self._leads = backlog, alarm, run_soon, leads
        self._calls, self._note_written = calls or WakePolicy(), note_written
        self._turns: dict[str, _Turn] = {}
        self._unused = UnusedTurns(refused_seconds=5.0, untried_seconds=30.0, again_seconds=60.0)
        self._allowance = Allowance(60 * self._calls.per_second)

    def left_out(self, now: float) -> Set[str]:
        """Return the names of classes whose turns nobody uses, until a pod starts: room is not kept for them."""
        since = self._unused.out(now)
        classes = self._backlog.classes() if since else ()
        started = {
            task_class.name for task_class in classes if task_class.released_at > since.get(task_class.name, math.inf)
        }
        for name in started:
            self._unused.use(name)
        return since.keys() - started

    def step(
        self,
        turns: Mapping[TaskClass, int],
        now: float,
        changed_at: float,
        uids: Collection[str] = (),
        choosing: Collection[TaskClass] = (),
    ) -> None:
        """Wake the pods that are due at `now`: so many of each class have their turn.

        The cluster changed last at `changed_at`. Of classes whose pods have inputs it is the turn of the pods of these
        `uids`. To classes that are `choosing` it makes a difference where they start.
        """
        # 1. See who sleeps although it is its turn.
        with self._backlog.lock:
            self._note(turns, now)
            asleep = [
                (task_class, pod)
                for task_class, count in turns.items()
                for pod in self._asleep(task_class, count, uids)
            ]
        end_turns(self._turns, {pod.uid for _, pod in asleep}, now)
        for task_class, pod in asleep:
            # 2. Until its first call a pod gets time to be woken by an event.
            turn = self._turns.setdefault(pod.uid, _Turn(now))
            if not turn.calls:
                quiet = max(turn.since, changed_at + self._calls.grace_seconds)
                turn.due = min(quiet, turn.since + self._calls.patience_seconds)
            # 3. Call it when it is due, as far as the rate allows.
            if turn.due <= now and self._take_call(now):
                turn.calls += 1
                turn.due = now + self._pause(turn.calls, soon=task_class in choosing)
                self._run_soon(partial(self._write, pod))

    def next_due(self) -> float:
        """Return when the next pod is due; infinite where none is."""
        return min((turn.due for turn in self._turns.values() if turn.ended == math.inf), default=float("inf"))

    def _note(self, turns: Mapping[TaskClass, int], now: float) -> None:
        self._unused.note_releases({task_class.name: task_class.released_at for task_class in turns})
        self._unused.note({task_class.name: task_class.untried > 0 for task_class in turns}, now)

    def _pause(self, calls: int, *, soon: bool) -> float:
        first = self._calls.soon_seconds if soon else self._calls.again_seconds
        pause = doubled(first, calls, _LONGEST_PAUSE_SECONDS)
        samples = math.ceil(len(self._backlog.nodes) / _LEAST_SAMPLE)
        return min(pause, self._calls.try_seconds) if 1 < samples >= calls else pause

    def _asleep(self, task_class: TaskClass, count: int, uids: Collection[str]) -> list[Pod]:
        """Return the oldest refused pods of a class, as many as have turns beyond those that were never tried.

        Not those that missed a turn: they are nominated in the next.
        """
        ungated = task_class.pods[PodPhase.UNGATED]
        asleep = (pod for pod in ungated.values() if pod.unschedulable and not self._backlog.missed_turn(pod.uid))
        if not ungated.keys().isdisjoint(uids):
            return [pod for pod in asleep if pod.uid in uids]
        return list(islice(asleep, max(count - task_class.untried, 0)))

    def _take_call(self, now: float) -> bool:
        """Take one call from the allowance; return False where there is none."""
        self._allowance.refill(now)
        is_allowed = self._allowance.allows(1)
        self._allowance.left -= is_allowed
        return is_allowed

    def _write(self, pod: Pod) -> None:
        position = self._backlog.find(pod.uid)
        if position is None or position[1] is not PodPhase.UNGATED:
            return  # an event was faster
        try:
            if self._leads():
                self._alarm.wake(pod)
                self._note_written()
                log.info("woken", pod=pod.full_name, uid=pod.uid, queue=pod.identity.queue, job=pod.identity.job)
        except ClusterError as error:
            log.warning("not woken", pod=pod.full_name, error=str(error))
