"""Task classes and jobs: what the pods of one stage have in common, and where each of them is on its way."""

from dataclasses import dataclass, field
from enum import Enum

from extender.cluster.eligibility import ANYWHERE
from extender.cluster.model import Pod

SHORTEST_SECONDS = 1.0
"""No task counts as shorter than this, whatever it declares."""

MOST_ENDED = 100
"""So many classes of a job are remembered that have no pods now: how many of theirs ended, and how long they ran."""


class PodPhase(Enum):
    """Where a pod is on its way."""

    READY = "held by our gate alone"
    GATED = "held by gates of others too"
    NOMINATED = "held, with our nomination"
    PENDING = "without a gate and without a node"
    UNGATED = "without a gate, a node or a nomination, where filter says whose turn it is"
    RUNNING = "on a node"

    __hash__ = object.__hash__  # each stage is one object; Enum's own is a call in Python for every look-up


Key = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Job:
    """The pods of one job; `arrived` is when its first one was created, or the owner of one.

    `ended` says which classes have no pods now, the one that ended first before the others.
    Those of its ended pods that declared how long they run ran for `ran_seconds`, of which they had declared
    `told_seconds`: what ran for less than it declared counts alike in both.
    """

    name: str
    queue: str
    arrived: float
    classes: dict[Key, "TaskClass"] = field(default_factory=dict)
    ended: dict[Key, None] = field(default_factory=dict)
    unfinished: int = 0
    ran_seconds: float = 0.0
    told_seconds: float = 0.0

    @property
    def longer(self) -> float:
        """How many times as long as they declared its pods have run, 1 at least."""
        return self.ran_seconds / self.told_seconds if self.told_seconds > 0 else 1.0


@dataclass(slots=True, eq=False)
class TaskClass:
    """The pods of one stage that ask for the same, in the order of their creation, by where they are on their way."""

    job: Job
    key: Key
    like: Pod
    name: str
    pods: dict[PodPhase, dict[str, Pod]] = field(default_factory=lambda: {stage: {} for stage in PodPhase})
    unfinished: int = 0
    finished: int = 0
    ran_seconds: float = 0.0
    timed: int = 0
    released_at: float = 0.0

    def seconds(self, otherwise: float, now: float) -> float:
        """Return how long a task of it runs: the mean of those that ended, before that as declared, else `otherwise`.

        What is declared is multiplied by how much longer than declared other pods of the job have run. A pod that has
        run for longer than all this by `now` counts as if it ended then.
        """
        if self.timed:
            told = self.ran_seconds / self.timed
        elif self.like.duration is not None:
            told = self.like.duration * self.job.longer
        else:
            told = otherwise
        oldest = next(iter(self.pods[PodPhase.RUNNING].values()), None)
        if oldest is not None and oldest.started is not None and now - oldest.started > told:
            told = (self.ran_seconds + now - oldest.started) / (self.timed + 1)
        return max(told, SHORTEST_SECONDS)

    def learn(self, seconds: float) -> None:
        """Take note that a task of it ran for so long."""
        self.ran_seconds, self.timed = self.ran_seconds + seconds, self.timed + 1
        if self.like.duration is not None:
            declared = max(self.like.duration, SHORTEST_SECONDS)
            self.job.ran_seconds += seconds
            self.job.told_seconds += min(declared, seconds)

    def part_done(self) -> float | None:
        """Return which part of its stage has ended by what its pods say of its size, in [0, 1]; None: they say nothing.

        Nothing, where there have been more of them than they say: nobody knows then which are the last.
        """
        if self.like.tasks is None:
            return None
        return self.finished / self.like.tasks if self.finished + self.unfinished <= self.like.tasks else 0.0


def name_of(pod: Pod) -> str:
    """Return the name of a pod's task class: what tells classes apart, so that it is the same after a restart."""
    identity, where = pod.identity, pod.constraints
    amounts = ",".join(f"{name}={amount:g}" for name, amount in sorted(pod.demand.items()))
    bounds = (where.selector, where.terms, where.tolerations, *where.volumes) if where != ANYWHERE else ""
    near = "|input" if pod.inputs else f"|{pod.prefers}" if pod.prefers else ""
    return f"{identity.queue}|{identity.job}|{identity.stage}|{amounts}|{pod.priority}|{pod.duration}|{bounds}{near}"


def key_of(pod: Pod) -> Key:
    """Return what tells task classes apart."""
    identity = pod.identity
    demand = tuple(sorted(pod.demand.items()))
    near = () if pod.inputs else pod.prefers
    same = (pod.priority, pod.constraints, pod.duration, pod.may_preempt, bool(pod.inputs), near)
    return (identity.stage, identity.group, demand, *same)


def phase_of(pod: Pod) -> PodPhase:
    """Return where a pod is on its way."""
    if pod.node is not None:
        return PodPhase.RUNNING
    if not pod.held:
        return PodPhase.GATED if pod.gates else PodPhase.PENDING
    if len(pod.gates) > 1:
        return PodPhase.GATED
    return PodPhase.NOMINATED if pod.promised is not None else PodPhase.READY


def phase_by_filter(pod: Pod) -> PodPhase:
    """Return where a pod is on its way where filter keeps the order of those without our gate."""
    stage = phase_of(pod)
    if stage is not PodPhase.PENDING:
        return stage
    if pod.gates:
        return PodPhase.GATED
    return PodPhase.UNGATED if pod.nominated is None else PodPhase.PENDING


def waits_as(queue: str, job: str) -> str:
    """Return the name under which a job waits for locality."""
    return f"{queue}|{job}"
