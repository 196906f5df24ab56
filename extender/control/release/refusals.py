"""Released pods that kube-scheduler refuses: none like them are released after them, but a few that try.

A plan does not know all that kube-scheduler looks at (host ports, affinity between pods, other plugins), and may be
wrong. A pod is like another if it is of the same queue, demands the same and has the same constraints: jobs of one pod
are each a task class of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase

FIRST_SECONDS, LONGEST_SECONDS = 1.0, 300.0
"""After so many seconds one more pod is released to try; twice as many after each that is refused, at most the last."""

Shape = tuple[object, ...]


def shape_of(pod: Pod) -> Shape:
    """Return what pods have in common of which one would be refused like the other."""
    return (pod.identity.queue, tuple(sorted(pod.demand.items())), pod.constraints)


def is_refused(pod: Pod) -> bool:
    """Say whether kube-scheduler refuses a released pod: it does not make room for it either."""
    return pod.unschedulable and pod.nominated in (None, pod.promised)


def refused_pods(backlog: Backlog) -> dict[Shape, list[Pod]]:
    """Return the released pods that are refused, by shape."""
    found: dict[Shape, list[Pod]] = {}
    for pod in backlog.at(PodPhase.PENDING):
        if is_refused(pod):
            found.setdefault(shape_of(pod), []).append(pod)
    return found


@dataclass(slots=True)
class _Trial:
    """From `again_at` on `most` pods may be on their way to try; `out` are those that are, by UID."""

    again_at: float
    seconds: float = FIRST_SECONDS
    most: int = 1
    out: set[str] = field(default_factory=set)


class Refusals:
    """Says how many pods of each refused shape may go. One thread; times in seconds since the epoch."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._trials: dict[Shape, _Trial] = {}

    def look(self, now: float) -> Mapping[Shape, int]:
        """Return how many pods of each shape may be released now of which a released one is refused.

        One that is bound lets twice as many try at once; one that is refused makes the others wait for longer.
        """
        refused = {shape: {pod.uid for pod in pods} for shape, pods in refused_pods(self._backlog).items()}
        self._trials = {shape: self._trials.get(shape) or _Trial(now + FIRST_SECONDS) for shape in refused}
        return {shape: self._left(trial, refused[shape], now) for shape, trial in self._trials.items()}

    def note(self, pod: Pod) -> None:
        """Note that a pod is being released: if its shape is refused, it tries."""
        trial = self._trials.get(shape_of(pod))
        if trial is not None:
            trial.out.add(pod.uid)

    def again_at(self) -> float:
        """Return when the next pod may try whose shape waits for that; infinite where none does."""
        return min((trial.again_at for trial in self._trials.values() if not trial.out), default=float("inf"))

    def _left(self, trial: _Trial, refused: set[str], now: float) -> int:
        failed = trial.out & refused
        bound = {uid for uid in trial.out if self._is_bound(uid)}
        trial.out -= failed | bound | {uid for uid in trial.out if self._backlog.is_idle(uid)}
        if failed:
            trial.seconds, trial.most = min(2 * trial.seconds, LONGEST_SECONDS), 1
            trial.again_at = now + trial.seconds
        elif bound:
            trial.most *= 2
        trial.again_at = min(trial.again_at, now + trial.seconds)  # the clock may have been set back
        return max(trial.most - len(trial.out), 0) if trial.again_at <= now else 0

    def _is_bound(self, uid: str) -> bool:
        """Say whether a pod got a node, or is gone."""
        where = self._backlog.find(uid)
        return where is None or where[1] is PodPhase.RUNNING
