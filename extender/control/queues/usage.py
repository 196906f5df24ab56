"""What queues hold of the cluster: one figure, for the plan, for reclaim, and for whoever asks.

A queue holds what its pods ask for that are on a node, that were released and have none yet, that are being released,
or that are nominated. A released pod that kube-scheduler refused, and that is not nominated, holds no room: it does not
count, else a queue with such pods would get nothing for them. What counts does so whatever its `schedulerName`.
"""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Counts, Floats
from extender.cluster.ledger.snapshot import Layout
from extender.control.backlog.backlog import Backlog, TaskClass
from extender.policy.shares import dominant_shares


def pods_held(backlog: Backlog, classes: Sequence[TaskClass]) -> Counts:
    """Return how many pods of each class hold room [C]."""
    holding = backlog.maybe_committed()
    return np.array([backlog.committed(it) if it in holding else 0 for it in classes], dtype=np.int64)


def held_by(backlog: Backlog, classes: Sequence[TaskClass], layout: Layout) -> dict[str, Floats]:
    """Return what each queue of these classes holds [R]."""
    found: dict[str, Floats] = {}
    for of, count in zip(classes, pods_held(backlog, classes).tolist(), strict=True):
        amount = count * layout.vector(of.like.demand) if count else np.zeros(len(layout.axis))
        found[of.job.queue] = found[of.job.queue] + amount if of.job.queue in found else amount
    return found


def share(held: Floats, layout: Layout) -> float:
    """Return which part of the cluster this is [R]: its dominant share (DRF)."""
    return float(dominant_shares(held[np.newaxis], layout.total)[0])


def taking_part(backlog: Backlog, classes: Sequence[TaskClass]) -> set[str]:
    """Return the queues that have a fair share: they hold something, or have pods that may be released."""
    return {it.job.queue for it in classes if backlog.committed(it) or backlog.ready(it)}
