"""What each queue, and each parent of queues, has and should have, for reclaim: shares, fair shares, minimum shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.ledger.snapshot import Layout
from extender.control.queues.tree import QueueTree
from extender.control.reclaim.backlog_copy import BacklogCopy
from extender.policy.reclaim import below_fair_share, below_minimum_share, excess
from extender.policy.shares import dominant_shares

MINIMUM_SHARE, FAIR_SHARE = "minimum-share", "fair-share"


@dataclass(frozen=True, slots=True)
class Standings:
    """Queues with pods [Q] and groups [G]: the queues themselves, then those above them.

    `stays` [G, R] is what runs and was not asked to go, `promised` [G, R] what queues hold beside what runs: together
    what they hold (`usage`) once those have gone. `gain` and `lose` change them in place.
    """

    layout: Layout
    queues: Sequence[str]
    rows: Mapping[str, int]
    member: Mask
    fair: Floats
    minimum: Floats
    total: Floats
    stays: Floats
    promised: Floats

    def below(self, why: str, wants: Mask) -> Mask:
        """Return which queues that want more are below their share of this kind [Q]."""
        share = dominant_shares(self.stays + self.promised, self.total)
        if why == MINIMUM_SHARE:
            return below_minimum_share(share, self.fair, self.minimum, wants, self.member)
        return below_fair_share(share, self.fair, wants)

    def missing(self) -> Floats:
        """Return how far below its fair share each queue is [Q], as a part of the cluster; below 0: above it."""
        share = dominant_shares(self.stays + self.promised, self.total)
        return np.asarray((self.fair - share)[: len(self.queues)])

    def excess(self) -> Floats:
        """Return by how much of the cluster what runs of each queue is above its fair share [Q]."""
        return excess(dominant_shares(self.stays, self.total), self.fair)[: len(self.queues)]

    def gain(self, queue: str, amount: Floats) -> None:
        """Count as promised to a queue."""
        self.promised[self.member[self.rows[queue]]] += amount

    def lose(self, queue: str, amount: Floats) -> None:
        """Count as no longer running in a queue."""
        self.stays[self.member[self.rows[queue]]] -= amount


def standings_of(sight: BacklogCopy, tree: QueueTree, layout: Layout) -> Standings:
    """Return who has what: of pods on nodes those that stay, of others those that are on their way to one.

    Queues that hold nothing and of which nothing may be released take no part of anything.
    """
    queues, _, fair = tree.shares([it.job.queue for it in sight.active])
    groups, member = _groups(queues, tree)
    rows = {name: row for row, name in enumerate(queues)}
    inside = member.T.astype(np.float64)
    stay = np.zeros((len(queues), len(layout.axis)))
    for task_class, crew in sight.crews.items():
        stay[rows[task_class.job.queue]] += len(crew.pods) * sight.kinds[task_class].demand
    for pod in sight.going():
        stay[rows[pod.identity.queue]] -= layout.vector(pod.demand)
    coming = np.zeros_like(stay)
    for task_class in sight.coming:
        coming[rows[task_class.job.queue]] += sight.kinds[task_class].demand
    return Standings(
        layout=layout,
        queues=queues,
        rows=rows,
        member=member,
        fair=(member * fair[:, np.newaxis]).sum(axis=0),
        minimum=np.array([tree.minimum(name) for name in groups]),
        total=layout.total,
        stays=inside @ stay,
        promised=inside @ coming,
    )


def _groups(queues: Sequence[str], tree: QueueTree) -> tuple[Sequence[str], Mask]:
    """Return the names of the groups, and which of them each queue is in.

    Pods of a queue that has others below it are a queue without a minimum of their own; its minimum is the group's.
    """
    chains = [tree.chain(queue) for queue in queues]
    above = sorted({name for chain in chains for name in chain})
    groups = [("" if name in above else name) for name in queues] + above
    member = np.zeros((len(queues), len(groups)), dtype=np.bool_)
    for row, chain in enumerate(chains):
        member[row, row] = True
        member[row, [len(queues) + above.index(name) for name in chain]] = True
    return groups, member
