"""Where queues, and those above them, stand for reclaim: what they have, their fair shares and their minimums."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.control.queues.tree import QueueTree
from extender.control.queues.usage import QueueUsage
from extender.policy.reclaim import below_fair_share, below_minimum_share, excess
from extender.policy.shares import dominant_shares

MINIMUM_SHARE, FAIR_SHARE = "minimum-share", "fair-share"


@dataclass(frozen=True, slots=True)
class Standings:
    """The active queues [Q] and the groups [G]: first the queues themselves, then those above them.

    `stays` [G, R] is what runs and was not asked to go, `coming` [G, R] what is on its way to a node: together what is
    committed (`usage`) once those that were asked to go have gone. `gain` and `lose` change both in place. `member`
    [Q, G] says which groups a queue is in, `fair` and `minimum` [G] are shares.
    """

    layout: Layout
    queues: Sequence[str]
    rows: Mapping[str, int]
    member: Mask
    fair: Floats
    minimum: Floats
    total: Floats
    stays: Floats
    coming: Floats

    def below(self, why: str, wants: Mask) -> Mask:
        """Return which queues that want more are below their share of this kind [Q]."""
        share = self._share()
        if why == MINIMUM_SHARE:
            return below_minimum_share(share, self.fair, self.minimum, wants, self.member)
        return below_fair_share(share, self.fair, wants)

    def missing(self) -> Floats:
        """Return how far below its fair share each queue is [Q], as a part of the cluster; negative: above it."""
        return np.asarray((self.fair - self._share())[: len(self.queues)])

    def excess(self) -> Floats:
        """Return by how much of the cluster what runs of each queue is above its fair share [Q]."""
        return excess(dominant_shares(self.stays, self.total), self.fair)[: len(self.queues)]

    def gain(self, queue: str, amount: Floats) -> None:
        """Count as on its way to a node, for a queue."""
        self.coming[self.member[self.rows[queue]]] += amount

    def lose(self, queue: str, amount: Floats) -> None:
        """Count as no longer running, for a queue."""
        self.stays[self.member[self.rows[queue]]] -= amount

    def _share(self) -> Floats:
        return dominant_shares(self.stays + self.coming, self.total)


def standings_of(usage: QueueUsage, going: Iterable[Pod], tree: QueueTree, layout: Layout) -> Standings:
    """Return where queues stand once the pods on nodes that are `going` have gone."""
    rows = {name: row for row, name in enumerate(usage.queues)}
    stays = usage.on_nodes.copy()
    for pod in going:
        stays[rows[pod.identity.queue]] -= layout.vector(pod.counted)
    groups, member = _groups(usage.queues, tree)
    queues_of = member.T.astype(np.float64)
    return Standings(
        layout=layout,
        queues=usage.queues,
        rows=rows,
        member=member,
        fair=(member * usage.fair[:, np.newaxis]).sum(axis=0),
        minimum=np.array([tree.minimum(name) for name in groups]),
        total=usage.total,
        stays=queues_of @ stays,
        coming=queues_of @ usage.coming,
    )


def _groups(queues: Sequence[str], tree: QueueTree) -> tuple[Sequence[str], Mask]:
    """Return the names of the groups [G], and which of them each queue is in [Q, G].

    The pods of a queue that has others below it are one more queue below it, without a name and a minimum.
    """
    chains = [tree.chain(queue) for queue in queues]
    above = sorted({name for chain in chains for name in chain})
    groups = [("" if name in above else name) for name in queues] + above
    member = np.zeros((len(queues), len(groups)), dtype=np.bool_)
    for row, chain in enumerate(chains):
        member[row, row] = True
        member[row, [len(queues) + above.index(name) for name in chain]] = True
    return groups, member
