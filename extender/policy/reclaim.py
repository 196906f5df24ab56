"""Who may have room back that is others', and from whom: below its minimum or fair share, above its fair share.

After the Hadoop Fair Scheduler (Delay Scheduling, section 4): a queue that is kept below its minimum share, or starved
of its fair share, gets room from those above their fair share. The paper does not say how far below is starved: any is,
here; and no loser is cut below its own fair share, so that nothing is taken back and forth.

Queues [Q] are the first of the groups [G]; the others are what is above them. `groups_of` [Q, D] are the groups that
each is in, itself among them, filled up with -1.
"""

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.policy.shares import dominant_shares

_ROUNDING = 1e-9


def below_fair_share(share: Floats, fair: Floats, wants: Mask) -> Mask:
    """Return which queues want more and are below their fair share [Q]; `share`, `fair` [G], `wants` [Q]."""
    queues = len(wants)
    return np.asarray(wants & (share[:queues] < fair[:queues] - _ROUNDING))


def below_minimum_share(share: Floats, fair: Floats, minimum: Floats, wants: Mask, groups_of: Rows) -> Mask:
    """Return which queues want more and have a right to it by a minimum share that is not met [Q].

    Their own, or that of a group that they are in, as long as they are below their own fair share. A minimum counts as
    far as there is that much for its group: its fair share.
    """
    unmet = share < np.minimum(minimum, fair) - _ROUNDING
    return np.asarray(below_fair_share(share, fair, wants) & (unmet[groups_of] & (groups_of >= 0)).any(axis=1))


def excess(share: Floats, fair: Floats) -> Floats:
    """Return by how much each group is above its fair share [G], 0 where it is not: the most that it may be cut by."""
    return np.maximum(share - fair, 0.0)


def may_lose(held: Floats, amount: Floats, total: Floats, fair: Floats) -> Mask:
    """Return who of many [...] may lose an amount: all groups that this concerns [..., D] keep their fair share.

    `held` [..., D, R] is what these have, `fair` [..., D] their fair shares, `amount` [..., R], `total` [R] the
    cluster. Which groups: those that the loser is in and the gainer is not; what both are in loses nothing.
    """
    after = dominant_shares(held - amount[..., np.newaxis, :], total)
    return np.asarray((after >= fair - _ROUNDING).all(axis=-1))
