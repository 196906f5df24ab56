"""Plans beside kube-scheduler's questions, in a thread of its own, as far as something waits.

A plan is made when what it is made of has changed, though not too often, and at once where a question cannot be
answered by the last one. What is published is replaced as a whole.
"""

import threading
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import NamedTuple

import structlog

from extender.control.backlog.task_classes import TaskClass
from extender.control.filter_order.plan_slots import PlanSlots, PlanVersion
from extender.control.filter_order.questions import Questions
from extender.control.filter_order.slot_planner import SlotPlanner

PLANNING_PART = 0.2
"""At most this part of the time goes into plans that nobody waits for."""

LONGEST_WAIT_SECONDS = 0.5
"""A question waits no longer for a plan: kube-scheduler waits too, and gives up after a second or more."""

_LOOK_SECONDS = 1.0
"""So often a thread that rests looks whether something has changed without an event: flights end by time."""

_AFTER_FAILURE_SECONDS = 1.0

log = structlog.get_logger()


@dataclass(slots=True)
class _PlanRequest:
    """A question about a pod of a class that waits for the next plan; it is `met` once that was made, or failed."""

    class_name: str
    met: bool = False


class _Pass(NamedTuple):
    """A pod that passed at a time (monotonic), on a node (None: any)."""

    at: float
    uid: str
    task_class: TaskClass
    node: str | None


class Planning:
    """Publishes `last`, the slots of the last plan: none while nobody waits. It is None until all caches are there.

    `lock` guards all that questions and plans share; it is not held while a plan is made. `clock` is monotonic, `now`
    in seconds since the epoch. `planned` hears how long each plan took, `failed` of each that failed, `moved` for how
    long the thread may rest. `wait` waits for a plan, up to so many seconds, with the lock given up meanwhile.
    """

    def __init__(
        self,
        planner: SlotPlanner,
        questions: Questions,
        *,
        plan_seconds: float,
        clock: Callable[[], float],
        now: Callable[[], float],
        planned: Callable[[float], None],
        failed: Callable[[], None],
        ready: Callable[[], bool] = lambda: True,
        moved: Callable[[float], None] = lambda _seconds: None,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.last: PlanSlots | None = None
        self._planner, self._questions, self._plan_seconds = planner, questions, plan_seconds
        self._clock, self._now, self._ready = clock, now, ready
        self._planned, self._failed, self._moved = planned, failed, moved
        self._signal, self._published = threading.Condition(self.lock), threading.Condition(self.lock)
        self._wait = wait or self._published.wait
        self._changed, self._stopped = False, False
        self._requests: list[_PlanRequest] = []
        self._passes: list[_Pass] = []
        self._next_at = clock()

    # -- from any thread

    def note_change(self) -> None:
        """Note that the cluster has changed."""
        with self.lock:
            if not self._changed:
                self._changed = True
                self._signal.notify()

    def note_passed(self, uid: str, task_class: TaskClass, node: str | None) -> None:
        """Note that a pod passed, on a node or on any: a plan that is being made has a slot too many."""
        with self.lock:
            self._passes.append(_Pass(self._clock(), uid, task_class, node))

    def knows(self, slots: PlanSlots, key: PlanVersion, task_class: TaskClass) -> bool:
        """Say whether a plan knows all that is known, takes a class in, and no time has come since to plan anew."""
        young = self._clock() - slots.planned_at <= max(self._plan_seconds, slots.plan_seconds / PLANNING_PART)
        newer = all(planned >= current for planned, current in zip(slots.key, key, strict=True))
        return newer and young and task_class.name not in slots.without and self._now() < slots.again_at

    def next(self, task_class: TaskClass) -> PlanSlots | None:
        """Wait for a plan that is begun from now on, with this class; return the last one where none comes in time."""
        with self.lock:
            request, until = _PlanRequest(task_class.name), self._clock() + LONGEST_WAIT_SECONDS
            self._requests.append(request)
            self._signal.notify()
            while not request.met and not self._stopped and (seconds := until - self._clock()) > 0:
                self._wait(seconds)
            return self.last

    def stop(self) -> None:
        """End `run` and every wait."""
        with self.lock:
            self._stopped = True
            self._signal.notify()
            self._published.notify_all()

    # -- the thread

    def run(self) -> None:
        """Plan until `stop`."""
        while not self._stopped:
            rest = self.step()
            self._moved(rest)
            with self.lock:
                # 1. Keep to the pace, unless a question waits.
                self._signal.wait_for(self._is_requested, max(self._next_at - self._clock(), 0.0))
                # 2. Rest until something changes.
                self._signal.wait_for(lambda: self._changed or self._is_requested(), rest)

    def step(self) -> float:
        """Plan if there is reason to; return for how long to rest if nothing changes."""
        # 1. See whether it is time, and who waits for it.
        with self.lock:
            begun, requests = self._clock(), self._requests
            if begun < self._next_at and not requests:
                return self._rest()
            self._requests, self._changed = [], False
        # 2. Plan as far as something waits. A failure leaves the last plan in force.
        slots, pause = self.last, self._plan_seconds
        try:
            slots = self._planned_anew([request.class_name for request in requests])
            if slots is not None and slots is not self.last:
                pause = max(pause, slots.plan_seconds / PLANNING_PART)
        except Exception:  # whatever it is: without this thread nobody's turn would ever come
            self._failed()
            log.exception("plan failed")
            pause = _AFTER_FAILURE_SECONDS
        # 3. Publish it, and answer who waits for it.
        with self.lock:
            self._publish(slots, begun)
            self._next_at = begun + pause
            for request in requests:
                request.met = True
            self._published.notify_all()
            return self._rest()

    def _planned_anew(self, asked: list[str]) -> PlanSlots | None:
        """Return a new plan with these classes, or the last one if it still holds."""
        if not self._ready():
            return self.last
        waiting, last = self._planner.waiting(), self.last
        if last is not None and not asked and self._holds(last, waiting):
            return last
        with self.lock:
            self._questions.forget_early()
        if (calm := self._planner.calm(waiting)) is not None:
            return calm
        with self.lock:
            without = self._questions.left_out(asked)
        slots = self._planner.plan(waiting, without)
        self._planned(slots.plan_seconds)
        return slots

    def _holds(self, last: PlanSlots, waiting: Set[str]) -> bool:
        """Say whether the last plan is still good while these pods wait: another would say the same."""
        if self._now() >= last.again_at:
            return False
        key = self._planner.key()
        if key == last.key:
            return True
        if not waiting:
            return False
        return not last.leaves_hopeful and key[2] == last.key[2] and waiting <= last.waiting

    def _publish(self, slots: PlanSlots | None, begun: float) -> None:
        if slots is not None and slots is not self.last:
            self._questions.keep_ungated(slots.by_class)
            for passed in self._passes:
                slots.note_passed(passed.uid, passed.task_class, passed.node)
        if slots is not self.last:
            self._questions.forget_passed()
        self._passes = [passed for passed in self._passes if passed.at >= begun]
        self.last = slots

    def _rest(self) -> float:
        again = self.last.again_at - self._now() if self.last is not None else _LOOK_SECONDS
        return min(max(again, 0.0), _LOOK_SECONDS)

    def _is_requested(self) -> bool:
        return self._stopped or bool(self._requests)
