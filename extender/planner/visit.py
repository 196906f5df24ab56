"""One node looked at closely: the classes that fit there now."""

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.planner.fifo import at_the_head


class Visit:
    """The classes `rows` [k] that fitted when the node was looked at; `fits` [k] follows what is taken there.

    `near` [k] says who reads there. What a task takes of the node is in `needs` [k, R], minus infinity for nothing, and
    in `takes` [k, R] as parts of its capacity. `factor` [k] is the remote penalty's where anyone would read from
    elsewhere, `pull` [k] what the score takes off the alignment, once known. Where queues are FIFO, `job` and `behind`
    [k] say in which line they stand, and where. `turn` [k] keeps whose jobs are in line, as of the count `turned`
    (`Fairness.changes`).
    """

    __slots__ = (
        "any",
        "behind",
        "factor",
        "fits",
        "job",
        "levels",
        "near",
        "needs",
        "node",
        "passed",
        "per_unit",
        "picked",
        "pull",
        "rows",
        "takes",
        "turn",
        "turned",
    )

    def __init__(
        self, node: int, rows: Rows, near: Mask, needs: Floats, per_unit: Floats, factor: Floats | None
    ) -> None:
        self.node, self.rows, self.near, self.needs, self.per_unit = node, rows, near, needs, per_unit
        self.takes = np.maximum(needs, 0.0) * per_unit
        self.fits: Mask = rows >= 0
        self.any = len(rows) > 0
        self.factor = factor
        self.turn = self.fits
        self.pull: Floats | None = None
        self.picked = self.turned = -1
        self.job = rows
        self.behind: Counts | None = None
        self.levels: Counts | None = None
        self.passed: Mask | None = None

    def open_to(self, may: Counts) -> Mask:
        """Return those that fit and may start at the level that this node is for them; `may` [C]."""
        return self.fits if self.levels is None else self.fits & (self.levels <= may[self.rows])

    def ahead(self, waits: Mask, going: Mask, scores: Floats) -> Mask:
        """Return those that wait [k] for a nearer node and would have gone before the one that is picked.

        Before it are those further to the front of its line, and of other lines those with a higher score that nobody
        of the `going` [k] of their line is before.
        """
        ahead = waits & (scores > scores[self.picked])
        if self.behind is not None:
            foremost = np.full(self.job.max(initial=-1) + 1, np.iinfo(np.int64).max)
            np.minimum.at(foremost, self.job[going], self.behind[going])
            in_line = waits & (self.behind < self.behind[self.picked])
            ahead = np.where(self.job == self.job[self.picked], in_line, ahead & (self.behind <= foremost[self.job]))
        return np.asarray(ahead)

    def line_up(self, job: Rows, behind: Counts) -> None:
        """Take where they stand in line."""
        self.job, self.behind = job, behind

    def heads(self, able: Mask) -> Mask:
        """Return those of the `able` [k] that have nobody able of their line before them."""
        return able if self.behind is None else at_the_head(self.job, self.behind, able)

    def follow(self, limit: Floats) -> None:
        """Keep only those that still fit into `limit` [R]."""
        self.fits &= (self.needs <= limit).all(axis=1)
        self.any = bool(np.count_nonzero(self.fits))

    def leave_out(self) -> None:
        """Leave out the class that was picked."""
        self.fits[self.picked] = False
        self.any = bool(np.count_nonzero(self.fits))
