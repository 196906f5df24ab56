"""Trials: for which shapes evictions are worth a try. Where a shape did not use its room, nobody is evicted for it.

kube-scheduler refuses pods for reasons that no plan knows (affinity between pods, devices, host ports). So of a shape
of which nothing runs, one pod is tried alone. Where room was made in vain, its shape rests for a while, and its queue
for a shorter one; each rest is longer than the last. A rest ends early once a pod of the shape starts. All of this is
in memory: a restart costs one more eviction for each shape that is refused.
"""

from collections.abc import Collection, Iterable, Sequence, Set
from dataclasses import dataclass, field

from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog, PodPhase, phase_of
from extender.control.pod_shapes import Shape, queue_of, shape_of
from extender.control.release.refusals import is_refused

REFUSED, GONE, TAKEN, LATE = "refused", "gone", "taken", "late"
"""Why evictions were in vain: kube-scheduler refuses the pod; it is gone; others took the room; it took too long."""

_SHAPE_SECONDS, _QUEUE_SECONDS, _LONGEST_SECONDS = 60.0, 15.0, 3_600.0


@dataclass(frozen=True, slots=True)
class Vain:
    """Evictions for a pod that did not use their room, and for how long nobody else is evicted for its shape."""

    pod: Pod
    evictions: int
    why: str
    rests_seconds: float


@dataclass(slots=True)
class _Rest:
    """Until when a shape rests, and for how long that was; `ran` are the pods of it that ran at the last look."""

    until: float
    seconds: float
    ran: Set[str] | None = None


@dataclass(slots=True)
class Trials:
    """Follows the pods that room was made for. One thread; times are in seconds of a clock that is never set."""

    _sent: dict[str, tuple[Pod, int]] = field(default_factory=dict)
    _rests: dict[Shape, _Rest] = field(default_factory=dict)

    def send(self, pod: Pod, evictions: int) -> None:
        """Note that a pod that room was made for is on its way there."""
        self._sent[pod.uid] = (pod, evictions)

    def correct(self, pod: Pod, evictions: int) -> None:
        """Note that fewer were evicted for a pod than were to be; where nobody was, nothing can have been in vain."""
        if self._sent.pop(pod.uid, None) and evictions:
            self._sent[pod.uid] = (pod, evictions)

    def fail(self, pod: Pod, evictions: int, why: str, time: float) -> Vain:
        """Note that room was made for a pod in vain."""
        shape = shape_of(pod, volumes=False)
        self._rest(queue_of(shape), _QUEUE_SECONDS, time)
        return Vain(pod, evictions, why, self._rest(shape, _SHAPE_SECONDS, time))

    def take_outcomes(self, backlog: Backlog, passed_by: Collection[str], time: float) -> Sequence[Vain]:
        """Note what became of the pods on their way; return those whose evictions were in vain.

        Those `passed_by`, by UID, are not tried by kube-scheduler, which runs.
        """
        ends = {uid: LATE if uid in passed_by else _end(backlog, uid) for uid in self._sent}
        vain: list[Vain] = []
        for uid, end in ends.items():
            if end is None:
                continue
            pod, evictions = self._sent.pop(uid)
            if end:
                vain.append(self.fail(pod, evictions, end, time))
            else:
                self._forget(shape_of(pod, volumes=False))
        return vain

    def note_running(self, running: Iterable[tuple[Shape, Sequence[Pod]]]) -> None:
        """Note what runs: once a pod of a shape has started since the last call, its rest is over."""
        if not self._rests:
            return
        ran: dict[Shape, set[str]] = {shape: set() for shape in self._rests}
        for shape, pods in running:
            if shape in ran:
                ran[shape].update(pod.uid for pod in pods)
        for shape, uids in ran.items():
            rest = self._rests.get(shape)
            if rest is not None and rest.ran is not None and uids - rest.ran:
                self._forget(shape)
            elif rest is not None:
                rest.ran = uids

    def may_try(self, shape: Shape, runs: Collection[Shape], under_way: Collection[Shape], time: float) -> bool:
        """Say whether evictions for a pod of a shape are worth a try now.

        `runs` are shapes, and queues as such, of which pods run; `under_way` those that room is being made for.
        """
        return not any(
            self._rests_now(tried, time) or (not self._is_proven(tried, runs) and self._is_tried(tried, under_way))
            for tried in (shape, queue_of(shape))
        )

    def forget_old(self, time: float) -> None:
        """Forget rests that ended long ago."""
        self._rests = {shape: rest for shape, rest in self._rests.items() if time - rest.until <= _LONGEST_SECONDS}

    def _is_proven(self, shape: Shape, runs: Collection[Shape]) -> bool:
        return shape in runs and shape not in self._rests

    def _is_tried(self, shape: Shape, under_way: Collection[Shape]) -> bool:
        sent = (shape_of(pod, volumes=False) for pod, _ in self._sent.values())
        return shape in under_way or any(shape in (other, queue_of(other)) for other in sent)

    def _rests_now(self, shape: Shape, time: float) -> bool:
        rest = self._rests.get(shape)
        return rest is not None and time < rest.until

    def _rest(self, shape: Shape, first_seconds: float, time: float) -> float:
        """Let a shape rest, unless it does; return for how long it will."""
        rest = self._rests.get(shape)
        if rest is None:
            rest = self._rests[shape] = _Rest(time + first_seconds, first_seconds)
        elif time >= rest.until:
            seconds = min(2 * rest.seconds, _LONGEST_SECONDS)
            rest = self._rests[shape] = _Rest(time + seconds, seconds, rest.ran)
        return rest.until - time

    def _forget(self, shape: Shape) -> None:
        self._rests.pop(shape, None)
        self._rests.pop(queue_of(shape), None)


def _end(backlog: Backlog, uid: str) -> str | None:
    """Return why room was made for a pod in vain; empty where the pod uses it, None while that is not known."""
    pod = backlog.pod(uid)
    if pod is None:
        return GONE
    if pod.node is not None:
        return ""
    if not pod.held:
        return REFUSED if is_refused(pod) else None
    return None if phase_of(pod) is PodPhase.NOMINATED or backlog.writes.busy(uid) else LATE
