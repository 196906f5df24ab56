"""Where each queue stands: its share beside its fair share, and how many of its pods run, wait and are on their way."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.cluster.queues import Queue
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.queues.tree import QueueTree
from extender.explain.planned_order import PlannedOrder

_GATED = (PodPhase.READY, PodPhase.GATED, PodPhase.NOMINATED)


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue; one that has others below it stands for all of them together. `depth` 0 is the highest.

    `minimum` is as scaled down, `fair` None where the queue is not active (`control.queues.usage`). `oldest_seconds` is
    how long ago the oldest was created of its pods that are held, or refused without a gate. `ungated` have no gate and
    wait for their turn, most of them refused. `opportunistic_share` is what its opportunistic pods need: it counts
    in no `share`.
    """

    name: str
    parent: str
    depth: int
    declared: bool
    policy: str
    weight: float
    minimum: float
    share: float
    fair: float | None
    running: int
    held: int
    released: int
    oldest_seconds: float | None
    opportunistic_share: float = 0.0
    ungated: int = 0


def waiting_since(backlog: Backlog) -> dict[str, float]:
    """Return when the oldest pod of each queue was created that is held, or refused without a gate, if any is."""
    oldest: dict[str, float] = {}
    for phase in (*_GATED, PodPhase.UNGATED):
        for pod in backlog.at(phase):
            if phase is PodPhase.UNGATED and not pod.unschedulable:
                continue
            queue = pod.identity.queue
            oldest[queue] = min(oldest.get(queue, np.inf), pod.created)
    return oldest


def queue_states(order: PlannedOrder) -> list[QueueState]:
    """Return all queues with pods and all declared ones, parents before their children.

    Shares are those of the plan. Pods are counted at the moment of the call.
    """
    tree, pods = order.input_builder.tree, _pods_of(order.backlog)
    children = _children({queue for queue, _ in pods.counts} | tree.declared.keys(), tree)
    return [
        _state_of(name, depth, _with_all_below(name, children), order, pods) for name, depth in _by_parent(children)
    ]


@dataclass(slots=True)
class _Pods:
    """How many pods each queue has in each phase, and since when the oldest that waits is there."""

    counts: Counter[tuple[str, PodPhase]] = field(default_factory=Counter)
    oldest: Mapping[str, float] = field(default_factory=dict)

    def count(self, queues: Collection[str], *phases: PodPhase) -> int:
        return sum(self.counts[queue, phase] for queue in queues for phase in phases)

    def oldest_seconds(self, queues: Collection[str], now: float) -> float | None:
        created = [self.oldest[queue] for queue in queues if queue in self.oldest]
        return max(now - min(created), 0.0) if created else None


def _pods_of(backlog: Backlog) -> _Pods:
    with backlog.lock:
        pods = _Pods(oldest=waiting_since(backlog))
        for task_class in backlog.classes():
            for phase in PodPhase:
                pods.counts[task_class.job.queue, phase] += len(task_class.pods[phase])
    return pods


def _state_of(name: str, depth: int, queues: Collection[str], order: PlannedOrder, pods: _Pods) -> QueueState:
    """Return the state of a queue; `queues` are itself and all below it."""
    tree, usage = order.input_builder.tree, order.plan_input.usage
    declared = tree.declared.get(name)
    queue = declared or Queue(name)
    return QueueState(
        name=name,
        parent=queue.parent,
        depth=depth,
        declared=declared is not None,
        policy="fifo" if tree.is_fifo(name) else "fair",
        weight=queue.weight,
        minimum=tree.minimum(name),
        share=usage.share(queues),
        fair=usage.fair_share(queues),
        running=pods.count(queues, PodPhase.RUNNING),
        held=pods.count(queues, *_GATED),
        released=pods.count(queues, PodPhase.PENDING),
        oldest_seconds=pods.oldest_seconds(queues, order.now),
        opportunistic_share=usage.opportunistic_share(queues),
        ungated=pods.count(queues, PodPhase.UNGATED),
    )


def _children(names: Collection[str], tree: QueueTree) -> Mapping[str, Sequence[str]]:
    """Return the queues right below each one, by name; below "" the highest."""
    children: dict[str, list[str]] = {}
    for name in sorted(names):
        declared = tree.declared.get(name)
        children.setdefault(declared.parent if declared else "", []).append(name)
    return children


def _with_all_below(name: str, children: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return a queue and all queues below it."""
    queues = [name]
    for queue in queues:  # it grows until the lowest have come
        queues += children.get(queue, ())
    return queues


def _by_parent(children: Mapping[str, Sequence[str]]) -> list[tuple[str, int]]:
    """Return queues by name, each after its parent, and how deep each is."""

    def below(parent: str, depth: int) -> list[tuple[str, int]]:
        lines: list[tuple[str, int]] = []
        for name in children.get(parent, ()):
            lines += [(name, depth), *below(name, depth + 1)]
        return lines

    return below("", 0)
