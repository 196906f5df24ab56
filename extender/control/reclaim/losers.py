"""Which queues, and queues above them, lose by an eviction, and whether they may: no eviction takes a fair share.

A group is a queue or one above it, Q queues in G groups; each queue is in at most D of them.
"""

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.control.queues.standings import Standings
from extender.policy.reclaim import may_lose


class Losers:
    """Reads the standings as they change with the victims chosen so far."""

    def __init__(self, standings: Standings) -> None:
        self._standings = standings
        self._groups = _groups(standings)

    def groups_for(self, queue: str) -> Rows:
        """Return for each queue the groups that lose if its pods go for one of `queue` [Q, D], filled up with -1."""
        gaining = self._standings.member[self._standings.rows[queue]]
        return np.where((self._groups >= 0) & ~gaining[self._groups], self._groups, -1)

    def may_lose(self, groups: Rows, amount: Floats, lost: Floats | float = 0.0) -> Mask:
        """Return who may go [...]: these groups [..., D] lose an amount [..., R], and have `lost` some before."""
        fair = np.where(groups >= 0, self._standings.fair[groups], -np.inf)
        return may_lose(self._standings.stays[groups] - lost, amount, self._standings.total, fair)


def _groups(standings: Standings) -> Rows:
    """Return the groups that each queue is in [Q, D], filled up with -1."""
    member = standings.member
    groups = np.full((len(member), int(member.sum(axis=1).max(initial=0))), -1, dtype=np.intp)
    for row, of_queue in enumerate(member):
        rows = of_queue.nonzero()[0]
        groups[row, : len(rows)] = rows
    return groups
