"""What each queue, and each parent of queues, has and should have, for reclaim: shares, fair shares, minimum shares."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.cluster.model import Pod
from extender.cluster.snapshot import Layout
from extender.control.backlog import Backlog, Stage
from extender.control.tree import QueueTree
from extender.control.usage import taking_part
from extender.policy.reclaim import below_fair_share, below_minimum_share, excess, may_lose
from extender.policy.shares import dominant_shares

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

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

    def may_lose(self, loser: str, amount: Floats, gainer: str) -> bool:
        """Say whether a queue, and what is above it and not above the gainer, keep their fair shares without that."""
        groups = self.member[self.rows[loser]] & ~self.member[self.rows[gainer]]
        return may_lose(self.stays, amount, self.total, self.fair, groups)

    def gain(self, queue: str, amount: Floats) -> None:
        """Count as promised to a queue."""
        self.promised[self.member[self.rows[queue]]] += amount

    def lose(self, queue: str, amount: Floats) -> None:
        """Count as no longer running in a queue."""
        self.stays[self.member[self.rows[queue]]] -= amount


def standings_of(backlog: Backlog, tree: QueueTree, layout: Layout, *, stays: Callable[[Pod], bool]) -> Standings:
    """Return who has what: of pods on nodes those that stay, of others those that are on their way to one."""
    classes = backlog.classes()
    queues = sorted({it.job.queue for it in classes})
    active, _, shares = tree.shares(sorted(taking_part(backlog, classes)))
    part = dict(zip(active, shares.tolist(), strict=True))
    fair = np.array([part.get(name, 0.0) for name in queues])
    groups, member = _groups(queues, tree)
    rows = {name: row for row, name in enumerate(queues)}
    shape = (len(groups), len(layout.axis))
    found = Standings(
        layout=layout,
        queues=queues,
        rows=rows,
        member=member,
        fair=(member * fair[:, np.newaxis]).sum(axis=0),
        minimum=np.array([tree.minimum(name) for name in groups]),
        total=layout.total,
        stays=np.zeros(shape),
        promised=np.zeros(shape),
    )
    for it in classes:
        demand = layout.vector(it.like.demand)
        groups_of = member[rows[it.job.queue]]
        found.stays[groups_of] += demand * sum(map(stays, it.pods[Stage.RUNNING].values()))
        found.promised[groups_of] += demand * (backlog.held(it) - len(it.pods[Stage.RUNNING]))
    return found


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
