"""Task classes and jobs: what the pods of one stage have in common, and where each of them is on its way."""

from dataclasses import dataclass, field
from enum import Enum

from extender.cluster.eligibility import ANYWHERE
from extender.cluster.model import Pod


class Stage(Enum):
    """Where a pod is on its way."""

    READY = "held by our gate alone"
    GATED = "held by gates of others too"
    NOMINATED = "held, with our nomination"
    PENDING = "without a gate and without a node"
    UNGATED = "without a gate, a node or a nomination, where filter says whose turn it is"
    RUNNING = "on a node"


Key = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Job:
    """The pods of one job; `arrived` is when its first one was created."""

    name: str
    queue: str
    arrived: float
    owners: set[str] = field(default_factory=set)
    classes: dict[Key, "TaskClass"] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class TaskClass:
    """The pods of one stage that ask for the same, in the order of their creation, by where they are on their way."""

    job: Job
    like: Pod
    name: str
    pods: dict[Stage, dict[str, Pod]] = field(default_factory=lambda: {stage: {} for stage in Stage})
    finished: int = 0
    ran_seconds: float = 0.0
    timed: int = 0
    released_at: float = 0.0

    @property
    def unfinished(self) -> int:
        """How many of its pods there are that have not ended."""
        return sum(map(len, self.pods.values()))

    def seconds(self, otherwise: float) -> float:
        """Return how long a task of it runs: as declared, else as learned of its like."""
        if self.like.duration is not None:
            return self.like.duration
        return self.ran_seconds / self.timed if self.timed else otherwise


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


def stage_of(pod: Pod) -> Stage:
    """Return where a pod is on its way."""
    if pod.node is not None:
        return Stage.RUNNING
    if not pod.held:
        return Stage.GATED if pod.gates else Stage.PENDING
    if len(pod.gates) > 1:
        return Stage.GATED
    return Stage.NOMINATED if pod.promised is not None else Stage.READY


def stage_by_filter(pod: Pod) -> Stage:
    """Return where a pod is on its way where filter keeps the order of those without our gate."""
    stage = stage_of(pod)
    if stage is not Stage.PENDING:
        return stage
    if pod.gates:
        return Stage.GATED
    return Stage.UNGATED if pod.nominated is None else Stage.PENDING


def waits_as(queue: str, job: str) -> str:
    """Return the name under which a job waits for locality."""
    return f"{queue}|{job}"
