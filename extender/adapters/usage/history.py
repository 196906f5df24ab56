"""Reads what nodes and pods have used over the last hours, a few minutes at a time, and keeps it.

Every `STEP_SECONDS` the samples since the last good read are asked for; at the start, and after a failure, all that is
missing. So a failure leaves a hole only for as long as it lasts. What has become too old is forgotten.

The questions have the templates of a look (`queries`), and the answers are matched to nodes in the same way. A sample
that cannot be believed (not a number, negative, absurd, or there twice) counts as missing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import structlog

from extender.adapters.usage.access import Access
from extender.adapters.usage.history_decoding import Series, series
from extender.adapters.usage.matching import NodeNames
from extender.adapters.usage.queries import NODE, POD, TAG, Queries
from extender.adapters.usage.trust import LARGEST, LARGEST_RATE, UNITS
from extender.arrays import Counts, Floats
from extender.cluster.model import Node
from extender.cluster.resources import DIMENSIONS
from extender.cluster.usage_history import UsageHistory, Who
from extender.errors import UsageError

QUERY_RANGE = "/api/v1/query_range"

STEP_SECONDS = 300.0
"""The time between two samples."""

STEPS = 30
"""How many samples are kept: two hours, and half an hour more, so that a hole does not begin the warm-up anew."""

READ_SECONDS = 60.0
"""All questions of one read are answered in this time, or the read has failed."""

_LATE_SECONDS = 30.0
"""A sample is asked for so long after its time: a store may get what was scraped a while later."""

_AT_ONCE = 6
"""So many samples of each series are asked for at once: half an hour."""

log = structlog.get_logger()


@dataclass(slots=True)
class HistoryReader:
    """Reads from one Prometheus; `nodes` gives all nodes. One thread reads; any may take `history` and `failure`.

    `failure` says why the last read was none, None where it was good.
    """

    access: Access
    queries: Queries
    nodes: Callable[[], Sequence[Node]]
    step_seconds: float = STEP_SECONDS
    late_seconds: float = _LATE_SECONDS
    clock: Callable[[], float] = time.time
    history: UsageHistory = field(default_factory=UsageHistory)
    failure: str | None = "no history was read yet"
    _read_until: int = 0

    def read(self) -> None:
        """Read what is missing by now. Nothing that goes wrong leaves here.

        Where no node is known yet, nothing is asked: answers would be of nobody, and are not asked for again.
        """
        last = int((self.clock() - self.late_seconds) // self.step_seconds)
        if last < self._read_until:  # the clock was ahead
            self.history, self._read_until = UsageHistory(), 0
        first = max(self._read_until + 1, last - STEPS + 1)
        failure: str | None = None
        deadline = time.monotonic() + READ_SECONDS
        try:
            if not self.nodes():
                return
            for begin in range(first, last + 1, _AT_ONCE):
                end = min(begin + _AT_ONCE - 1, last)
                self._take(begin, end, self._asked(begin, end, deadline))
        except UsageError as error:
            failure = str(error)
        except Exception as error:  # whatever it is: without this read the next one is tried
            log.exception("history could not be read")
            failure = f"the read failed: {error!r}"
        if failure is not None and self.failure != failure:
            log.warning("history of use cannot be read", problem=failure)
        self.failure = failure

    def _asked(self, begin: int, end: int, deadline: float) -> dict[str, list[Series]]:
        """Return what was measured at these steps, by dimension. Raises UsageError."""
        by_dimension = {}
        for name in DIMENSIONS:
            query = self.queries.of_history(name)
            form = {
                "query": query,
                "start": str(begin * self.step_seconds),
                "end": str(end * self.step_seconds),
                "step": str(self.step_seconds),
                "timeout": f"{max(round(1000 * (deadline - time.monotonic())), 1)}ms",
            }
            by_dimension[name] = series(self.access.post(QUERY_RANGE, form, deadline)) if query else []
        return by_dimension

    def _take(self, begin: int, end: int, measured: dict[str, list[Series]]) -> None:
        """Put samples of these steps beside those that are kept, and let go of what is too old by then."""
        rows = dict(self.history.rows)
        names = NodeNames(self.nodes(), self.queries.node_labels)
        new = {name: _Column.of(name, some, names, rows) for name, some in measured.items()}
        steps = np.arange(end - STEPS + 1, end + 1)
        use = np.full((len(rows), STEPS, len(DIMENSIONS)), np.nan)
        # 1. What is kept already moves along.
        before = np.rint(self.history.times / self.step_seconds).astype(np.int64)
        stays = np.flatnonzero(before >= steps[0])
        kept = self.history.use.shape[0]
        use[:kept, before[stays] - steps[0]] = self.history.use[:, stays]
        # 2. What is new comes beside it.
        for place, name in enumerate(DIMENSIONS):
            new[name].put(use[:, :, place], steps[0], begin, self.step_seconds)
        # 3. Who has no sample any more is forgotten.
        there = np.flatnonzero(~np.isnan(use).all(axis=(1, 2)))
        of_row = {row: place for place, row in enumerate(there.tolist())}
        self.history = UsageHistory(
            np.multiply(steps, self.step_seconds, dtype=np.float64),
            {who: of_row[row] for who, row in rows.items() if row in of_row},
            use[there],
            self.queries.window_seconds,
            self.step_seconds,
        )
        self._read_until = end


@dataclass(frozen=True, slots=True)
class _Column:
    """What was measured of one dimension, sample by sample [K]: whose row, when, and how much."""

    row: Counts
    at: Floats
    value: Floats

    @classmethod
    def of(cls, name: str, series: Sequence[Series], names: NodeNames, rows: dict[Who, int]) -> "_Column":
        """Return the samples of all series that are of a node here; who is new gets a row."""
        row, at, value = [np.empty(0, dtype=np.int64)], [np.empty(0)], [np.empty(0)]
        for one in series:
            who = _who(one, names)
            if who is not None:
                place = rows.setdefault(who, len(rows))
                row.append(np.full(len(one.times), place, dtype=np.int64))
                at.append(one.times)
                value.append(one.values)
        amounts = np.concatenate(value) * UNITS.get(name, 1.0)
        believed = np.isfinite(amounts) & (amounts >= 0) & (amounts <= LARGEST.get(name, LARGEST_RATE))
        return cls(np.concatenate(row), np.concatenate(at), np.where(believed, amounts, np.nan))

    def put(self, use: Floats, first: int, begin: int, step_seconds: float) -> None:
        """Write the samples from the step `begin` on into `use` [P, T], whose first column is the step `first`."""
        step = np.rint(self.at / step_seconds).astype(np.int64)
        inside = (step >= begin) & (step < first + use.shape[1])
        row, column = self.row[inside], step[inside] - first
        use[row, column] = self.value[inside]
        # What is there twice was measured twice.
        cell = row * use.shape[1] + column
        cells, counts = np.unique(cell, return_counts=True)
        doubled = cells[counts > 1]
        use[doubled // use.shape[1], doubled % use.shape[1]] = np.nan


def _who(one: Series, names: NodeNames) -> Who | None:
    node, tag = names.find(one.labels), one.labels.get(TAG)
    if node is None or tag not in (NODE, POD):
        return None
    return (node, "", "") if tag == NODE else (node, one.labels.get("namespace", ""), one.labels.get("pod", ""))
