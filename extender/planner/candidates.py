"""Which classes may start where: on the nodes that a matching goes over, and on the one that it looks at closely.

`Candidates` is made once for each matching. `NodeCandidates` is made of it for each node in turn, when what others took
meanwhile is known.
"""

from collections.abc import Callable, Iterator

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, needs_fit

_AT_A_TIME = 256
"""So many nodes are looked at together: a plan that is asked for few tasks comes to few nodes."""

Fits = Callable[[Rows], tuple[Mask, Mask]]
"""Says where classes fit reading there, and where reading from elsewhere, [classes, places] each, by nodes' places."""


class Candidates:
    """Where the classes `rows` [k] fit on `nodes` [n].

    It says what fitted when the matching began, or, where all read where they run, when it came to the node. Classes
    that are out since are left out; what other tasks took of a node since is not taken off: `NodeCandidates` looks
    again.
    """

    def __init__(self, rows: Rows, nodes: Rows, fits: Fits) -> None:
        """Take what says where they `fit`; it is asked once for each place in `nodes`, when a matching comes there."""
        shape = (len(nodes), len(rows))
        self._rows, self._nodes, self._fits_at = rows, nodes, fits
        self._column = {node: column for column, node in enumerate(nodes.tolist())}
        self._near, self._far = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
        self._fits, self._count = np.zeros(shape, dtype=np.bool_), np.zeros(len(nodes), dtype=np.int64)
        self._is_known, self._is_out = np.zeros(len(nodes), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)

    def in_order(self, key: Floats) -> Iterator[int]:
        """Yield the nodes that still have a candidate when they come up, those with the largest `key` [n] first."""
        order = np.argsort(-key, kind="stable")
        for begun in range(0, len(order), _AT_A_TIME):
            columns = order[begun : begun + _AT_A_TIME]
            self._look(columns[~self._is_known[columns]])
            for column in columns.tolist():
                if self._count[column]:
                    yield self._nodes.item(column)

    def at(self, node: int) -> tuple[Rows, Mask, Mask]:
        """Return the classes that fit on a node, and which of them fit reading there, and from elsewhere."""
        column = self._column[node]
        if not self._is_known[column]:
            self._look(np.array([column]))
        places: Rows = self._fits[column].nonzero()[0]
        return self._rows[places], self._near[column][places], self._far[column][places]

    def rows_at(self, node: int) -> Rows:
        """Return the classes that fit on a node."""
        rows: Rows = self._rows[self._fits[self._column[node]]]
        return rows

    def leave_out(self, task_class: int) -> None:
        """Leave a class out on all nodes."""
        mine = self._rows == task_class
        self._is_out |= mine
        self._count -= self._fits[:, mine].sum(axis=1)
        self._fits[:, mine] = False

    def leave_out_on(self, node: int, task_class: int) -> None:
        """Leave a class out on one node."""
        column = self._column[node]
        self._count[column] -= 1
        self._fits[column, self._rows == task_class] = False

    def _look(self, columns: Rows) -> None:
        """See who fits on the nodes of these columns."""
        near, far = self._fits_at(columns)
        self._near[columns], self._far[columns] = near.T, far.T
        self._fits[columns] = (near | far).T & ~self._is_out
        self._count[columns] = self._fits[columns].sum(axis=1)
        self._is_known[columns] = True


class NodeCandidates:
    """The classes `rows` [k] that fitted on one `node` when it was looked at; `fits` [k] follows what starts there.

    `fitting` is how many still fit.
    `near` [k] says who reads on the node itself. `needs` [k, R] is what a task takes of the node (`arrays.needs`),
    `takes` [k, R] the same times the node's `scale` [R] (`prepared.scale_of`). `factor` [k] is the remote penalty's,
    None where all read there.
    `points` [k] is what the score adds to the alignment and `score_terms` what that is made of, once they are known.
    `levels` [k] is how far from their input they would start. `picked` is the place of who goes next, with its `score`
    and `alignment`; `passed` [k] are those that are passed over for it.
    In FIFO queues `job` [k] says in which line a class stands, `behind` [k] how many jobs are before it. `in_line` [k]
    says whose jobs the fairness knob lets go first, as of `Fairness.changes` when that was `in_line_at`.
    `bundle` [k] is how many of each are still to start of the set that was chosen for the node, by the `scores` [k] and
    alignments (`aligned` [k]) of then; `in_bundle`: how many classes of it may go, 0 once it is over, -1 before.
    """

    __slots__ = (
        "aligned",
        "alignment",
        "behind",
        "bundle",
        "factor",
        "fits",
        "fitting",
        "in_bundle",
        "in_line",
        "in_line_at",
        "job",
        "levels",
        "near",
        "needs",
        "node",
        "passed",
        "picked",
        "points",
        "rows",
        "scale",
        "score",
        "score_terms",
        "scores",
        "takes",
    )

    def __init__(self, node: int, rows: Rows, near: Mask, needs: Floats, scale: Floats, factor: Floats | None) -> None:
        self.node, self.rows, self.near, self.needs, self.scale = node, rows, near, needs, scale
        self.takes = np.maximum(needs, 0.0) * scale
        self.fits: Mask = rows >= 0
        self.fitting = len(rows)
        self.factor = factor
        self.in_line = self.fits
        self.points: Floats | None = None
        self.score_terms: tuple[Floats, ...] = ()
        self.bundle: Counts = rows
        self.in_bundle = -1
        self.scores = self.aligned = self.takes[:, 0]
        self.picked = self.in_line_at = -1
        self.score = self.alignment = 0.0
        self.job = rows
        self.behind: Counts | None = None
        self.levels: Counts | None = None
        self.passed: Mask | None = None

    def open_to(self, may: Counts) -> Mask:
        """Return those that fit and may start as far from their input as this node is; `may` [C] is how far."""
        return self.fits if self.levels is None else self.fits & (self.levels <= may[self.rows])

    def ahead(self, waits: Mask, going: Mask, scores: Floats) -> Mask:
        """Return which of those that wait [k] for a nearer node would have gone before the one that is picked.

        In its own line these are the ones further to the front. In other lines they are those with a higher score, as
        far as none of the `going` [k] of their line stands before them.
        """
        ahead = waits & (scores > scores[self.picked])
        if self.behind is not None:
            foremost = np.full(self.job.max(initial=-1) + 1, np.iinfo(np.int64).max)
            np.minimum.at(foremost, self.job[going], self.behind[going])
            same_line = waits & (self.behind < self.behind[self.picked])
            ahead = np.where(self.job == self.job[self.picked], same_line, ahead & (self.behind <= foremost[self.job]))
        return np.asarray(ahead)

    def line_up(self, job: Rows, behind: Counts) -> None:
        """Take where they stand in the lines of FIFO queues [k]."""
        self.job, self.behind = job, behind

    def heads(self, able: Mask) -> Mask:
        """Return those of the `able` [k] that have nobody able of their line before them."""
        return able if self.behind is None else at_the_head(self.job, self.behind, able)

    def follow(self, limit: Floats) -> None:
        """Keep only those that still fit into `limit` [R]."""
        self.fits &= needs_fit(limit, self.needs)
        self.fitting = int(np.count_nonzero(self.fits))

    def leave_out(self) -> None:
        """Leave out the class that was picked."""
        self.fits[self.picked] = False
        self.fitting = int(np.count_nonzero(self.fits))


def at_the_head(job: Rows, behind: Counts, able: Mask) -> Mask:
    """Return which of the `able` classes [C] have no able one before them in their line: the rows with the same `job`.

    `behind` [C] is how many jobs stand before each in its line. In a FIFO queue a later job gets only what no earlier
    one could use. So scores do not decide between the jobs of one line, and neither a barrier nor a long chain of
    stages lets a job pass those before it.
    """
    foremost = np.full(job.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(foremost, job[able], behind[able])
    return np.asarray(able & (behind == foremost[job]))
