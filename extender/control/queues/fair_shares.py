"""What each queue has of the cluster in one round, beside its fair share."""

import numpy as np

from extender.cluster.ledger.snapshot import Snapshot
from extender.control.plan_input.builder import PlanInput
from extender.policy.shares import dominant_shares


def shares_of(made: PlanInput, snapshot: Snapshot) -> dict[str, tuple[float, float]]:
    """Return each active queue's dominant share, and its fair share."""
    jobs = made.waiting.jobs
    held = np.zeros((len(jobs.queue_names), jobs.allocated.shape[1]))
    np.add.at(held, jobs.queue, jobs.allocated)
    share = dominant_shares(held, snapshot.layout.total)
    return dict(zip(jobs.queue_names, zip(share.tolist(), jobs.queue_weight.tolist(), strict=True), strict=True))
