"""Where queues, and those above them, stand for reclaim: what they have, their fair shares and their minimums."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.ledger.layout import Layout
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
    committed (`usage`) once those that were asked to go have gone. `gain` and `lose` change both in place.
    `groups_of` [Q, D] are the groups that each queue is in, filled up with -1; `fair` and `minimum` [G] are shares.
    """

    queues: Sequence[str]
    rows: Mapping[str, int]
    groups_of: Rows
    fair: Floats
    minimum: Floats
    total: Floats
    stays: Floats
    coming: Floats

    def below(self, why: str, wants: Mask) -> Mask:
        """Return which queues that want more are below their share of this kind [Q]."""
        share = self._share()
        if why == MINIMUM_SHARE:
            return below_minimum_share(share, self.fair, self.minimum, wants, self.groups_of)
        return below_fair_share(share, self.fair, wants)

    def missing(self) -> Floats:
        """Return how far below its fair share each queue is [Q], as a part of the cluster; negative: above it."""
        return np.asarray((self.fair - self._share())[: len(self.queues)])

    def excess(self) -> Floats:
        """Return by how much of the cluster what runs of each queue is above its fair share [Q]."""
        return excess(dominant_shares(self.stays, self.total), self.fair)[: len(self.queues)]

    def gain(self, queue: str, amount: Floats) -> None:
        """Count as on its way to a node, for a queue."""
        self.coming[self._groups(queue)] += amount

    def lose(self, queue: str, amount: Floats) -> None:
        """Count as no longer running, for a queue."""
        self.stays[self._groups(queue)] -= amount

    def _groups(self, queue: str) -> Rows:
        groups = self.groups_of[self.rows[queue]]
        return np.asarray(groups[groups >= 0])

    def _share(self) -> Floats:
        return dominant_shares(self.stays + self.coming, self.total)


def standings_of(usage: QueueUsage, going: Iterable[Pod], tree: QueueTree, layout: Layout) -> Standings:
    """Return where queues stand once the pods on nodes that are `going` have gone."""
    rows = {name: row for row, name in enumerate(usage.queues)}
    stays = usage.on_nodes.copy()
    for pod in going:
        stays[rows[pod.identity.queue]] -= layout.vector(pod.counted)
    groups, groups_of = _groups(usage.queues, tree)
    queue, place = (groups_of >= 0).nonzero()
    member_of = groups_of[queue, place]

    def by_group(amounts: Floats) -> Floats:
        total = np.zeros((len(groups), *amounts.shape[1:]))
        np.add.at(total, member_of, amounts[queue])
        return total

    return Standings(
        queues=usage.queues,
        rows=rows,
        groups_of=groups_of,
        fair=by_group(usage.fair),
        minimum=np.array([tree.minimum(name) for name in groups]),
        total=usage.total,
        stays=by_group(stays),
        coming=by_group(usage.coming),
    )


def _groups(queues: Sequence[str], tree: QueueTree) -> tuple[Sequence[str], Rows]:
    """Return the names of the groups [G], and which of them each queue is in [Q, D], filled up with -1.

    The pods of a queue that has others below it are one more queue below it, without a name and a minimum.
    """
    chains = [tree.chain(queue) for queue in queues]
    above = sorted({name for chain in chains for name in chain})
    row_of = {name: row for row, name in enumerate(above, len(queues))}
    groups = [("" if name in row_of else name) for name in queues] + above
    groups_of = np.full((len(queues), 1 + max(map(len, chains), default=0)), -1, dtype=np.intp)
    for row, chain in enumerate(chains):
        groups_of[row, : 1 + len(chain)] = [row, *(row_of[name] for name in chain)]
    return groups, groups_of
