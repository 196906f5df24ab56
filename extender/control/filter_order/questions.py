"""What kube-scheduler's questions tell: who comes for turns, who passed, and which pods it knew before our watch."""

from collections.abc import Callable, Collection, Mapping

from extender.cluster.events import PodGone, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.task_classes import PodPhase, TaskClass
from extender.control.filter_order.node_sample import NodeSample
from extender.control.filter_order.plan_slots import PlanSlot
from extender.control.filter_order.unused_turns import UnusedTurns

_EARLY_SECONDS = 5.0
"""A pod that kube-scheduler knew before us shows in our watch within this time, or has gone."""

_ASKING_SECONDS = 1.0
"""A longer pause between two questions counts as so long: meanwhile nobody could come for a turn."""


class Questions:
    """What is remembered of them; `clock` is monotonic, `now` in seconds since the epoch.

    Callers hold the order's lock.
    """

    def __init__(
        self,
        ledger: Ledger,
        backlog: Backlog,
        node_sample: NodeSample,
        *,
        flight_time: Callable[[], float],
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self.node_sample = node_sample
        self._ledger, self._backlog = ledger, backlog
        self._flight_time, self._clock, self._now = flight_time, clock, now
        self._unused = UnusedTurns(refused_seconds=2.0, untried_seconds=20.0)
        self._turns: Mapping[str, bool] = {}
        self._passed: set[str] = set()
        self._early: dict[str, float] = {}
        self._asked_at, self._asking = clock(), 0.0

    # -- one question

    def pass_time(self) -> None:
        """Count the time in which kube-scheduler asks: only in that time can turns be used."""
        now = self._clock()
        self._asking += min(now - self._asked_at, _ASKING_SECONDS)
        self._asked_at = now

    def find(self, pod: Pod) -> tuple[TaskClass, PodPhase] | None:
        """Return a pod's class and phase; kube-scheduler may know the pod before our watch shows it."""
        position = self._backlog.find(pod.uid)
        if position is None:
            self._backlog.apply(PodSeen(pod), self._now())
            self._early[pod.uid] = self._clock()
            position = self._backlog.find(pod.uid)
        return position

    def use_turn(self, pod: Pod, task_class: TaskClass) -> None:
        """Note that a class uses its turns, unless the pod has passed before and others refused it."""
        if pod.uid not in self._passed:
            self._unused.use(task_class.name)

    def note_passed(self, pod: Pod, task_class: TaskClass) -> bool:
        """Note that a pod passed, and say whether it did so for the first time."""
        first = pod.uid not in self._passed
        self._passed.add(pod.uid)
        task_class.released_at = max(task_class.released_at, self._now())
        return first

    # -- around a plan

    def left_out(self, asked: Collection[str]) -> set[str]:
        """Return the names of classes whose turns nobody uses, but for those that were `asked` about just now."""
        self._unused.note(self._turns, self._asking)
        return set(self._unused.out(self._asking)).difference(asked)

    def keep_ungated(self, by_class: Mapping[TaskClass, list[PlanSlot]]) -> None:
        """Keep only the slots of pods without a gate: of each class they go first, gated pods get the rest.

        kube-scheduler never asks about gated pods; their turns count as unused until the release loop releases them.
        """
        with self._backlog.lock:
            turns: dict[str, bool] = {}
            released_at: dict[str, float] = {}
            for task_class, slots in by_class.items():
                ungated = task_class.pods[PodPhase.UNGATED]
                slots[:] = [slot for slot in slots if slot.uid is None or slot.uid in ungated]
                del slots[self._backlog.waiting(task_class, PodPhase.UNGATED) :]
                turns[task_class.name] = not slots or task_class.untried > 0
                if not slots:
                    released_at[task_class.name] = task_class.released_at
        self._turns = turns
        self._unused.note_releases(released_at)
        self._unused.note(turns, self._asking)

    def forget_passed(self) -> None:
        """Forget what is known of pods that have a node by now or are gone, and of jobs that are gone."""
        self._passed = {uid for uid in self._passed if self._waits(uid)}
        self.node_sample.forget_but(self._waits, self._backlog.jobs.keys())

    def _waits(self, uid: str) -> bool:
        """Say whether a pod without a gate is there and has no node yet."""
        position = self._backlog.find(uid)
        return position is not None and position[1] is PodPhase.UNGATED

    def forget_early(self) -> None:
        """Forget pods that kube-scheduler named and our watch never showed: they were deleted before."""
        if not self._early:
            return
        shown = self._ledger.snapshot_with(self._early, self._flight_time())[1]
        for uid, since in [*self._early.items()]:
            if uid in shown:
                del self._early[uid]
            elif self._clock() - since > _EARLY_SECONDS:
                del self._early[uid]
                self._backlog.apply(PodGone(uid), self._now())
