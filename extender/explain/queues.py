"""Where each queue stands: its share beside its fair share, and how many of its pods run, wait and are on their way."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.queues.tree import QueueTree
from extender.control.queues.usage import held_by, share, taking_part
from extender.explain.planned_order import PlannedOrder

_HELD = (PodPhase.READY, PodPhase.GATED, PodPhase.NOMINATED)


@dataclass(frozen=True, slots=True)
class QueueState:
    """One queue; of one that has others below it, all of them together. `depth` 0 is the highest.

    `minimum` is as scaled; `fair` None where it takes no part (`usage`); `oldest_seconds` since its oldest held pod was
    created.
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


def held_since(backlog: Backlog) -> dict[str, float]:
    """Return when the oldest held pod of each queue was created, where it has any."""
    oldest: dict[str, float] = {}
    for stage in _HELD:
        for pod in backlog.at(stage):
            queue = pod.identity.queue
            oldest[queue] = min(oldest.get(queue, np.inf), pod.created)
    return oldest


def queue_states(found: PlannedOrder) -> list[QueueState]:
    """Return all queues with pods and all declared ones, parents before their children."""
    tree, backlog = found.input_builder.tree, found.backlog
    with backlog.lock:
        classes = backlog.classes()
        sums = _Sums(found, held_since(backlog))
        active = sorted(taking_part(backlog, classes))
    names = {it.job.queue for it in classes} | tree.declared.keys()
    fair = dict(zip(active, tree.shares(active)[2].tolist(), strict=True)) if active else {}
    return [_state_of(name, depth, tree, sums, fair) for name, depth in _in_order(names, tree)]


class _Sums:
    """What all pods of a queue come to."""

    def __init__(self, found: PlannedOrder, oldest: Mapping[str, float]) -> None:
        layout = found.snapshot.layout
        self.oldest, self.now = oldest, found.now
        classes = found.backlog.classes()
        self.layout = layout
        self.held = held_by(found.backlog, classes, layout)
        self.counts: dict[tuple[str, PodPhase], int] = {}
        for it in classes:
            for stage in PodPhase:
                key = it.job.queue, stage
                self.counts[key] = self.counts.get(key, 0) + len(it.pods[stage])

    def share(self, queues: set[str]) -> float:
        """Return the dominant share of these queues together."""
        nothing = np.zeros(len(self.layout.axis))
        return share(sum((self.held[name] for name in sorted(queues & self.held.keys())), nothing), self.layout)

    def count(self, queues: set[str], *stages: PodPhase) -> int:
        return sum(self.counts.get((name, stage), 0) for name in queues for stage in stages)

    def oldest_seconds(self, queues: set[str]) -> float | None:
        found = [self.oldest[name] for name in queues if name in self.oldest]
        return max(self.now - min(found), 0.0) if found else None


def _state_of(name: str, depth: int, tree: QueueTree, sums: _Sums, fair: Mapping[str, float]) -> QueueState:
    queues = _below(name, tree)
    told = tree.declared.get(name)
    shares = [fair[it] for it in queues if it in fair]
    return QueueState(
        name=name,
        parent=told.parent if told else "",
        depth=depth,
        declared=told is not None,
        policy="fifo" if tree.is_fifo(name) else "fair",
        weight=told.weight if told else 1.0,
        minimum=tree.minimum(name),
        share=sums.share(queues),
        fair=sum(shares) if shares else None,
        running=sums.count(queues, PodPhase.RUNNING),
        held=sums.count(queues, *_HELD),
        released=sums.count(queues, PodPhase.PENDING),
        oldest_seconds=sums.oldest_seconds(queues),
    )


def _below(name: str, tree: QueueTree) -> set[str]:
    """Return a queue and all below it."""
    found, fresh = {name}, {name}
    while fresh:
        fresh = {it.name for it in tree.declared.values() if it.parent in fresh} - found
        found |= fresh
    return found


def _in_order(names: set[str], tree: QueueTree) -> list[tuple[str, int]]:
    """Return queues and how deep each is, children after their parents, by name."""
    children: dict[str, list[str]] = {}
    for name in sorted(names):
        told = tree.declared.get(name)
        children.setdefault(told.parent if told else "", []).append(name)

    def walk(above: str, depth: int) -> list[tuple[str, int]]:
        return [it for name in children.get(above, ()) for it in [(name, depth), *walk(name, depth + 1)]]

    return walk("", 0)
