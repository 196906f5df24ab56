"""Released pods that kube-scheduler refuses: of their shape only a few more are released, to try.

A plan does not know all that kube-scheduler looks at (host ports, affinity between pods, other plugins), so it may be
wrong. Shapes and not task classes are counted, as each job of one pod is a task class of its own.

The refused pods themselves wait for their turn as before (UNGATED), each for itself: what it was refused for may be its
own. In its turn a pod is nominated anew; where it is refused nevertheless it rests (`Backlog`), and no room is kept.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.pod_shapes import Shape, shape_of

FIRST_SECONDS, LONGEST_SECONDS = 1.0, 300.0
"""How long a refused shape waits until one more pod is released to try: at first, doubled each time, and at most."""


def is_refused(pod: Pod) -> bool:
    """Say whether kube-scheduler refuses a released pod, and does not make room for it by preemption."""
    return pod.unschedulable and pod.nominated in (None, pod.promised)


def refused_pods(backlog: Backlog) -> dict[Shape, list[Pod]]:
    """Return the released pods that are refused, by shape; not those that filter may have refused for the order."""
    by_shape: dict[Shape, list[Pod]] = {}
    for pod in (*backlog.at(PodPhase.PENDING), *backlog.missed_turns()):
        if is_refused(pod):
            by_shape.setdefault(shape_of(pod), []).append(pod)
    return by_shape


def refused_classes(backlog: Backlog) -> set[TaskClass]:
    """Return the classes of refused shapes. Callers hold the backlog's lock."""
    shapes = refused_pods(backlog)
    return {task_class for task_class in backlog.classes() if shapes and shape_of(task_class.template) in shapes}


@dataclass(slots=True)
class _Trial:
    """From `again_at` on, at most `most` pods may be on their way to try; `out` are those that are, by UID."""

    again_at: float
    seconds: float = FIRST_SECONDS
    most: int = 1
    out: set[str] = field(default_factory=set)


class ShapeRefusals:
    """Says how many pods of each refused shape may go. One thread; times in seconds since the epoch."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._trials: dict[Shape, _Trial] = {}

    def trials_left(self, now: float, passed_by: Iterable[Pod]) -> Mapping[Shape, int]:
        """Return how many more pods of each refused shape may be released now; `passed_by` count as refused.

        Once a try is bound, twice as many may try at once, and waits begin anew. Once one is refused, the next waits
        for twice as long.
        """
        refused = {shape: {pod.uid for pod in pods} for shape, pods in refused_pods(self._backlog).items()}
        for pod in passed_by:
            refused.setdefault(shape_of(pod), set()).add(pod.uid)
        self._trials = {shape: self._trials.get(shape) or _Trial(now + FIRST_SECONDS) for shape in refused}
        return {shape: self._left(trial, refused[shape], now) for shape, trial in self._trials.items()}

    def note_release(self, pod: Pod) -> None:
        """Note that a pod is being released: where its shape is refused, it is a try."""
        trial = self._trials.get(shape_of(pod))
        if trial is not None:
            trial.out.add(pod.uid)

    def again_at(self, now: float) -> float:
        """Return when the next pod of a refused shape may try; infinite where none waits for that."""
        moments = (trial.again_at for trial in self._trials.values() if not trial.out)
        return min((at for at in moments if at > now), default=float("inf"))

    def _left(self, trial: _Trial, refused: set[str], now: float) -> int:
        failed = trial.out & refused
        bound = {uid for uid in trial.out if self._is_bound(uid)}
        trial.out -= failed | bound | {uid for uid in trial.out if self._backlog.is_idle(uid)}
        if failed:
            trial.seconds, trial.most = min(2 * trial.seconds, LONGEST_SECONDS), 1
            trial.again_at = now + trial.seconds
        elif bound:
            trial.seconds, trial.most = FIRST_SECONDS, 2 * trial.most
        trial.again_at = min(trial.again_at, now + trial.seconds)  # the clock may have been set back
        return max(trial.most - len(trial.out), 0) if trial.again_at <= now else 0

    def _is_bound(self, uid: str) -> bool:
        """Say whether a pod got a node, or is gone."""
        position = self._backlog.find(uid)
        return position is None or position[1] is PodPhase.RUNNING
