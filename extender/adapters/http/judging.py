"""What filter and preempt have in common: the nodes asked about as rows, and which of them passed."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter

import numpy as np

from extender.adapters.http import wire
from extender.arrays import Mask, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.errors import DovetailError
from extender.verdict import Judgement, withheld

MOST_TRIES = 20
"""How often a verb judges anew because another pod took off meanwhile: kube-scheduler asks one thing at a time."""


class NotReady(DovetailError):
    """The caches are not synced yet."""


class TooManyCalls(NotReady):
    """Other pods took off during every try to judge one."""

    def __init__(self) -> None:
        super().__init__(f"other pods were placed during each of {MOST_TRIES} tries; ask again")


@dataclass(frozen=True, slots=True)
class Judged:
    """The decision on the nodes asked about: their `rows` [K], -1 where unknown, and which of them `passed` [K].

    `waits` is why the pod has to wait although some nodes would take it. `elsewhere`: the plan chose one of several
    that would; `chosen` is the row of the one that we chose ourselves. `withheld` [K] are those that an opportunistic
    pod was not promised (`verdict.withheld`).
    """

    snapshot: Snapshot
    judgement: Judgement
    rows: Rows
    passed: Mask
    waits: str | None = None
    elsewhere: bool = False
    withheld: Mask | None = None
    chosen: int | None = None

    @property
    def open_rows(self) -> Rows:
        """The rows that the pod may get if they have room for it."""
        return self.rows if self.withheld is None else self.rows[~self.withheld]


def judged(snapshot: Snapshot, judgement: Judgement, rows: Rows, pod: Pod) -> Judged:
    """Return the decision on these rows."""
    passed = passing(judgement, rows)
    if not pod.opportunistic:
        return Judged(snapshot, judgement, rows, passed)
    held_back = withheld(snapshot.layout, pod, rows)
    return Judged(snapshot, judgement, rows, passed & ~held_back, withheld=held_back)


def rows_of(snapshot: Snapshot, request: wire.Request) -> Rows:
    """Return the row of each node asked about, -1 where unknown. Raises BadRequest where one is named twice."""
    rows = _find(snapshot.layout, request.names)
    named = np.zeros(len(snapshot.layout.names) + 1, dtype=np.bool_)
    named[rows] = True
    if np.count_nonzero(named) != len(rows):  # a node named twice, or more than one that is unknown
        wire.require_once(request.names)
    return rows


def passing(judgement: Judgement, rows: Rows) -> Mask:
    """Say which of the nodes asked about passed; an unknown one did not."""
    return (rows >= 0) & judgement.passed[rows] if len(judgement.short) else np.zeros(len(rows), dtype=np.bool_)


def candidates(base: Snapshot, rows: Rows) -> Mask:
    """Mark these rows among the nodes of the snapshot [N]; a row beyond it, of a node from the request, is left out."""
    marked = np.zeros(len(base.layout.names), dtype=np.bool_)
    marked[rows[rows < len(marked)]] = True
    return marked


def _find(layout: Layout, names: Sequence[str]) -> Rows:
    if len(names) > 1:
        try:
            return np.fromiter(itemgetter(*names)(layout.rows), dtype=np.intp, count=len(names))
        except KeyError:
            pass  # an unknown name: look each up by itself, which is slower
    return np.fromiter(map(layout.rows.get, names, repeat(-1)), dtype=np.intp, count=len(names))
