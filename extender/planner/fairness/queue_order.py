"""Which queue is offered room next, while a plan is made: the first promise after priority (docs/concepts/turns.md).

Queues below their minimum come first, then the one that has least by its weight. Each start changes the order, so that
a queue passes its share by one task at most; what the first cannot use, the next may have.
"""

from collections.abc import Callable

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.waiting import Jobs, QueueGroups
from extender.policy.shares import dominant, dominant_of_one, parts_as_wanted
from extender.policy.turn import (
    ROUNDING,
    first_by_rank,
    first_of_siblings,
    leaf_ranks,
    least,
    loosened,
    paths_from_top,
    sibling_keys,
)


class QueueOrder:
    """The queues [Q] of jobs. Amounts [R] are parts of the cluster.

    `part` [Q] is what each may have of the cluster, as far as it wants that much.
    """

    def __init__(self, jobs: Jobs, used: Floats, wanted: Floats, *, kappa: float = 0.0) -> None:
        """Take what queues have [Q, R] and what they want besides [Q, R], and how far one may be ahead of another."""
        self._kappa = kappa
        self._groups = jobs.groups or _flat(jobs.queue_weight)
        groups, leaf = self._groups, self._groups.leaf
        self.several = bool(np.count_nonzero(used.any(axis=1) | wanted.any(axis=1)) > 1)
        self._used = np.zeros((len(groups.weight), used.shape[1]))
        self._used[leaf] = used
        self._saved = np.zeros_like(self._used)
        wants = np.zeros(len(groups.weight))
        wants[leaf] = dominant(used + wanted)
        self.part: Floats = parts_as_wanted(groups.weight, groups.minimum, groups.parent, wants)[leaf]
        self._leaves, self._above = leaf.tolist(), groups.parent.tolist()
        self._paths = paths_from_top(groups.parent, leaf)
        self._nested = bool((groups.parent >= 0).any())
        self._ranks: Floats | None = None
        if self._nested:
            self._add_up(self._used)
        self._settle()

    def checkpoint(self) -> Callable[[], None]:
        """Return what takes back all that is counted from now on."""
        used, saved = self._used.copy(), self._saved.copy()

        def undo() -> None:
            self._used[:], self._saved[:] = used, saved
            self._settle()

        return undo

    def first(self, queue: Rows, pool: Mask) -> Mask:
        """Return those of the `pool` [k], of these queues [k], whose queue is first, or at most kappa ahead of it."""
        groups, keys = self._groups, self._keys
        if not self._kappa:
            return (
                first_by_rank(keys, self._paths, queue, pool) if self._nested else least(keys[groups.leaf[queue]], pool)
            )
        loose = loosened(keys, groups.weight, kappa=self._kappa)
        return first_of_siblings(keys, loose, groups.parent, self._paths, queue, pool)

    def keys(self) -> Floats:
        """Return the order of the queues [Q], the least first."""
        if self._ranks is None:
            self._ranks = leaf_ranks(self._keys, self._groups.parent, self._groups.leaf)
        return self._ranks

    def share(self, queue: int) -> float:
        """Return the dominant share of what the queue has."""
        return dominant_of_one(self._used[self._leaves[queue]])

    def within_part(self, queue: int, takes: Floats) -> bool:
        """Say whether the queue would be within its part with so much [R] more."""
        return dominant_of_one(self._used[self._leaves[queue]] + takes) <= self.part.item(queue) + ROUNDING

    def may_pass(self, queue: int, takes: Floats) -> bool:
        """Say whether the queue may pass its part by so much [R]: neither what it has nor this alone is more."""
        part = self.part.item(queue) + ROUNDING
        return self.share(queue) <= part and dominant_of_one(takes) <= part

    def count(self, queue: int, takes: Floats) -> None:
        """Count what a start of the queue takes [R]."""
        self._change(self._used, queue, takes)

    def save(self, queue: int, takes: Floats) -> None:
        """Count as the queue's what it saves for one large task or gang [R]: its others get only what nobody needs."""
        self._change(self._saved, queue, takes)

    def _change(self, amounts: Floats, queue: int, takes: Floats) -> None:
        group = self._leaves[queue]
        while group >= 0:  # it, and those above it
            amounts[group] += takes
            if self.several:
                self._keys[group] = self._key(group)
            group = self._above[group]
        self._ranks = None

    def _key(self, group: int) -> float:
        share, row = self._used[group], slice(group, group + 1)
        has, saves = dominant_of_one(share), dominant_of_one(share + self._saved[group])
        groups = self._groups
        return sibling_keys(np.array([has]), np.array([saves]), groups.weight[row], groups.minimum[row]).item()

    def _settle(self) -> None:
        groups = self._groups
        share, held = dominant(self._used), dominant(self._used + self._saved)
        self._keys = sibling_keys(share, held, groups.weight, groups.minimum)
        self._ranks = None

    def _add_up(self, amounts: Floats) -> None:
        """Add to each group what those below it have."""
        for group in self._leaves:
            own, above = amounts[group].copy(), group
            while (above := self._above[above]) >= 0:
                amounts[above] += own


def _flat(weight: Floats) -> QueueGroups:
    rows = np.arange(len(weight))
    return QueueGroups(weight, np.zeros(len(weight)), np.full(len(weight), -1, dtype=np.intp), rows)
