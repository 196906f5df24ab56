"""How the queues shared the cluster over time, beside what they are entitled to. Pure.

Symbols: E stretches of time between two starts or ends, Q queues, P pods, D dimensions.
"""

from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.policy.shares import dominant_shares
from lab.demo.room import Times
from lab.demo.workload import QUEUES, DemoWorkload


@dataclass(frozen=True)
class QueueShares:
    """`at` [E + 1]; `share` and `fair` [E, Q] add up to 1 over the queues that have pods at the time.

    `share` is a queue's dominant share as a part of all queues', `fair` its weight as a part of those that are there.
    Until `contended` seconds pods of every queue waited.
    """

    at: Floats
    share: Floats
    fair: Floats
    contended: float

    def mean(self) -> Floats:
        """Return each queue's mean share while pods of every queue waited [Q]; not a number if they never all did."""
        seconds = np.diff(np.minimum(self.at, self.contended))
        whole = seconds.sum()
        return np.asarray(seconds @ self.share / whole) if whole > 0 else np.full(self.share.shape[1], np.nan)


def shares(workload: DemoWorkload, times: Times) -> QueueShares:
    """Return how a run shared the cluster, from what started and ended when."""
    at = np.unique(np.concatenate((times.started, times.ended)))
    begin = at[:-1, None]
    in_queue = workload.queues[:, None] == np.arange(len(QUEUES))
    running = ((times.started <= begin) & (times.ended > begin)).astype(np.float64)
    total = workload.capacity.sum(axis=0)
    held = np.einsum("ep,pq,pd->eqd", running, in_queue.astype(np.float64), workload.demand, optimize=True)
    share = np.array([dominant_shares(moment, total) for moment in held])
    there = (((workload.arrivals <= begin) & (times.ended > begin)).astype(np.float64) @ in_queue) > 0
    weight = np.where(there, [queue.weight for queue in QUEUES], 0.0)
    last_starts = [times.started[workload.queues == queue].max(initial=0.0) for queue in range(len(QUEUES))]
    return QueueShares(at, _parts(share), _parts(weight), min(last_starts))


def _parts(amounts: Floats) -> Floats:
    whole = amounts.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(amounts, whole, out=np.zeros_like(amounts), where=whole > 0))
