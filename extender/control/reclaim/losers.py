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

    def groups_for(self, queue: str) -> Rows:
        """Return for each queue the groups that lose if its pods go for one of `queue` [Q, D], filled up with -1."""
        groups_of = self._standings.groups_of
        gaining = np.isin(groups_of, groups_of[self._standings.rows[queue]])
        return np.where(gaining, -1, groups_of)

    def may_lose(self, groups: Rows, amount: Floats, lost: Floats | float = 0.0) -> Mask:
        """Return who may go [...]: these groups [..., D] lose an amount [..., R], and have `lost` some before."""
        fair = np.where(groups >= 0, self._standings.fair[groups], -np.inf)
        return may_lose(self._standings.stays[groups] - lost, amount, self._standings.total, fair)
