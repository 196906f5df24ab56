"""What it costs that kube-scheduler asks about some nodes only: the choice from a sample, beside that from all nodes.

In a large cluster kube-scheduler stops looking once enough nodes would take a pod, and starts the next search where
this one ended. Only those nodes reach the extender, which chooses the best of them.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from rich.table import Table

from extender.arrays import Floats, Mask, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.verdict import Placement, Ranker
from lab.bench.placement.packing import MeasuredWorkload, Search, every, shares
from lab.bench.placement.rankings import Ranking
from lab.report.rows import Report, Row

SAMPLES = (100, 500)
"""The fewest nodes that kube-scheduler stops at, and its default in a cluster of 5,000."""

QUICK_SAMPLES = (5, 25)
"""About the same parts of the smaller cluster."""


class Rotation:
    """kube-scheduler's search: the first `size` nodes that fit, from where the last search ended, round and round.

    Of numFeasibleNodesToFind and nextStartNodeIndex in its schedule_one.go; its threads may look a few nodes further.
    """

    def __init__(self, size: int) -> None:
        self._size, self._start = size, 0

    def __call__(self, fits: Mask) -> Rows:
        """Return the nodes asked about [K], K at most `size`; `fits` [N] says where the pod fits."""
        turned = np.flatnonzero(np.roll(fits, -self._start))
        passed_by = int(turned[self._size]) if len(turned) > self._size else len(fits)
        asked = (turned[: self._size] + self._start) % len(fits)
        self._start = (self._start + passed_by) % len(fits)
        return np.asarray(np.sort(asked))


def chosen(placement: Placement) -> Ranking:
    """Return the ranking by which `filter` chooses: any of the nodes that nothing tells apart from the best."""
    ranker = Ranker(placement)

    def ranks(snapshot: Snapshot, pod: Pod, rows: Rows) -> Floats:
        return np.isin(rows, ranker.best(snapshot, pod, rows)).astype(np.float64)

    return Ranking("chosen", "what filter chooses", lambda choice: ranks(choice.snapshot, choice.task.pod, choice.rows))


def measure(
    scene: MeasuredWorkload,
    placement: Placement,
    samples: Sequence[int],
    seeds: Sequence[int],
    advance: Callable[[], None],
) -> Report:
    """Replay the scene with all nodes and with each sample; one row for each and each mark."""
    searches: dict[str, Callable[[], Search]] = {"all": every}
    searches |= {str(size): partial(Rotation, size) for size in samples}
    ranking = chosen(placement)
    filled = {name: shares(scene, ranking, seeds, advance, search) for name, search in searches.items()}
    rows = [row for name, percent in filled.items() for row in _rows(scene, name, percent, filled["all"], seeds)]
    return Report(rows, [_table(scene, filled, seeds)])


def _rows(scene: MeasuredWorkload, name: str, of_sample: Floats, of_all: Floats, seeds: Sequence[int]) -> list[Row]:
    """Return one row per mark; both arrays [S, M] in per cent."""
    return [
        Row(
            id=f"choice.quality.{name}.{scene.measure}.{asked}",
            ours=round(float(column.mean()), 2),
            unit="%",
            note=f"{column.min():.2f} to {column.max():.2f}, seeds {seeds[0]} to {seeds[-1]}; {lost:+.2f} against all",
        )
        for asked, column, lost in zip(scene.asked, of_sample.T, (of_sample - of_all).mean(axis=0), strict=True)
    ]


def _table(scene: MeasuredWorkload, filled: Mapping[str, Floats], seeds: Sequence[int]) -> Table:
    title = f"choice from a sample, {scene.workload.name}: {scene.about}; mean (lowest-highest) of {len(seeds)} seeds"
    table = Table(title=title, title_justify="left")
    table.add_column("nodes asked about")
    for asked in scene.asked:
        table.add_column(f"{asked} % asked", justify="right")
        table.add_column("against all", justify="right")
    for name, percent in filled.items():
        cells = []
        for column, lost in zip(percent.T, (percent - filled["all"]).mean(axis=0), strict=True):
            cells += [f"{column.mean():.2f} ({column.min():.2f}-{column.max():.2f})", f"{lost:+.2f}"]
        table.add_row(name, *cells)
    return table
