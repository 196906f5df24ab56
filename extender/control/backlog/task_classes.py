"""Task classes and jobs, and the phases that a pod goes through on its way to a node."""

from dataclasses import dataclass, field
from enum import Enum

from extender.cluster.model import Pod

SHORTEST_SECONDS = 1.0
"""No task counts as shorter than this, whatever it declares."""

MOST_ENDED = 100
"""So many classes without pods are remembered of each job, for how long their pods ran and how many of them ended."""


class PodPhase(Enum):
    """Where a pod is on its way to a node."""

    READY = "held by our gate alone"
    GATED = "held by gates of others too"
    NOMINATED = "held, with our nomination"
    PENDING = "without a gate and without a node"
    UNGATED = "without a gate, a node or a nomination, and refused, or where filter says whose turn it is"
    RUNNING = "on a node"

    __hash__ = object.__hash__  # each phase is one object; Enum's own hash is a call in Python for every look-up


Key = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Job:
    """The pods of one job; `arrived` is when its first pod was created, or the owner of a pod if that was earlier.

    `ended` are the classes that have no pods now, in the order in which they ended. The pods that declared a duration
    and have ended ran for `ran_seconds` in all, of which they had declared `declared_seconds`. A pod that ran for less
    than it declared counts with what it ran for in both.
    """

    name: str
    queue: str
    arrived: float
    classes: dict[Key, "TaskClass"] = field(default_factory=dict)
    ended: dict[Key, None] = field(default_factory=dict)
    unfinished: int = 0
    ran_seconds: float = 0.0
    declared_seconds: float = 0.0

    @property
    def overrun(self) -> float:
        """How many times as long as declared its pods have run, at least 1."""
        return self.ran_seconds / self.declared_seconds if self.declared_seconds > 0 else 1.0


@dataclass(slots=True, eq=False)
class TaskClass:
    """The pods of one stage that ask for the same: `pods` by phase and UID, in the order of their creation.

    `template` is one of them, as a regular pod, for what all of them ask for. `unfinished` and `finished` count pods;
    `timed` of those that ended ran for `ran_seconds` in all. `released_at` is when the last one was released.
    `changes_on_nodes` goes up whenever a pod that is on a node comes, changes, or leaves. `refused` counts the pods
    without a gate (UNGATED) that kube-scheduler has refused.
    """

    job: Job
    key: Key
    template: Pod
    name: str
    pods: dict[PodPhase, dict[str, Pod]] = field(default_factory=lambda: {phase: {} for phase in PodPhase})
    unfinished: int = 0
    finished: int = 0
    ran_seconds: float = 0.0
    timed: int = 0
    released_at: float = 0.0
    changes_on_nodes: int = 0
    refused: int = 0

    def seconds(self, default: float, now: float) -> float:
        """Return how long a task takes: the mean of those that ended, else what is declared, else `default`.

        What is declared is multiplied by how much longer than declared other pods of the job have run. A pod that has
        run for longer than all this by `now` counts as if it ended now.
        """
        if self.timed:
            seconds = self.ran_seconds / self.timed
        elif self.template.duration is not None:
            seconds = self.template.duration * self.job.overrun
        else:
            seconds = default
        oldest = next(iter(self.pods[PodPhase.RUNNING].values()), None)
        if oldest is not None and oldest.started is not None and now - oldest.started > seconds:
            seconds = (self.ran_seconds + now - oldest.started) / (self.timed + 1)
        return max(seconds, SHORTEST_SECONDS)

    @property
    def untried(self) -> int:
        """How many pods without a gate kube-scheduler has not refused."""
        return len(self.pods[PodPhase.UNGATED]) - self.refused

    def learn(self, seconds: float) -> None:
        """Note that a task of this class ran for so long."""
        self.ran_seconds, self.timed = self.ran_seconds + seconds, self.timed + 1
        if self.template.duration is not None:
            declared = max(self.template.duration, SHORTEST_SECONDS)
            self.job.ran_seconds += seconds
            self.job.declared_seconds += min(declared, seconds)

    def part_done(self) -> float | None:
        """Return which part of the stage has ended, in [0, 1], by the size that its pods declare; None without one.

        It is 0 where there have been more pods than they declare: then nobody knows which are the last.
        """
        tasks = self.template.tasks
        if tasks is None:
            return None
        return self.finished / tasks if self.finished + self.unfinished <= tasks else 0.0


def name_of(pod: Pod) -> str:
    """Return the name of a pod's task class: its queue, its job, and all that tells the job's classes apart.

    So it outlives a restart.
    """
    return f"{pod.identity.queue}|{pod.identity.job}|{key_of(pod)}"


def key_of(pod: Pod) -> Key:
    """Return what tells the task classes of a job apart."""
    identity = pod.identity
    demand = tuple(sorted(pod.demand.items()))
    near = () if pod.inputs else pod.prefers
    chosen = (pod.choice, pod.tenant_choice)
    where = (pod.constraints, pod.asks_of_pods, pod.device_templates)
    rules = (pod.priority, where, pod.duration, pod.may_preempt, chosen, bool(pod.inputs), near)
    return (identity.stage, identity.group, identity.least, demand, *rules)


def same_class(pod: Pod, other: Pod) -> bool:
    """Say whether two pods surely are of one task class. It is told by less work than `key_of`."""
    return _telling(pod) == _telling(other)


def _telling(pod: Pod) -> tuple[object, ...]:
    """Return what tells a pod's job and class, as it is: mostly it is the same objects in pods that were made alike."""
    rules = (pod.priority, pod.constraints, pod.duration, pod.may_preempt, pod.choice, pod.tenant_choice)
    return (pod.identity, pod.demand, *rules, pod.inputs, pod.prefers, pod.asks_of_pods, pod.device_templates)


def phase_of(pod: Pod) -> PodPhase:
    """Return the phase of a pod. One that was released and refused waits for its turn again.

    An opportunistic pod has had its turn: it goes to the node that it was promised, if to any.
    """
    if pod.node is not None:
        return PodPhase.RUNNING
    if not pod.held:
        refused = pod.unschedulable and pod.nominated is None and not pod.opportunistic
        return PodPhase.GATED if pod.gates else PodPhase.UNGATED if refused else PodPhase.PENDING
    if len(pod.gates) > 1:
        return PodPhase.GATED
    return PodPhase.NOMINATED if pod.promised is not None else PodPhase.READY


def phase_by_filter(pod: Pod) -> PodPhase:
    """Return the phase of a pod where filter keeps the order of those without our gate."""
    phase = phase_of(pod)
    waits = phase is PodPhase.PENDING and pod.awaited is None and not pod.opportunistic
    return PodPhase.UNGATED if waits else phase


def waits_as(queue: str, job: str) -> str:
    """Return the name under which a job waits for locality."""
    return f"{queue}|{job}"
