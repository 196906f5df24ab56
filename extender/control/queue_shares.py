"""What each queue has of the cluster in one round, beside its fair share."""

import numpy as np

from extender.cluster.snapshot import Snapshot
from extender.control.rounds import Round


def shares_of(made: Round, snapshot: Snapshot) -> dict[str, tuple[float, float]]:
    """Return each active queue's dominant share, and its fair share."""
    jobs = made.waiting.jobs
    held = np.zeros((len(jobs.queue_names), jobs.allocated.shape[1]))
    np.add.at(held, jobs.queue, jobs.allocated)
    capacity = snapshot.layout.capacity
    total = np.where(np.isfinite(capacity), capacity, 0.0).sum(axis=0)
    counts = total > 0
    share = (held[:, counts] / total[counts]).max(axis=1, initial=0.0)
    return dict(zip(jobs.queue_names, zip(share.tolist(), jobs.queue_weight.tolist(), strict=True), strict=True))
