"""The figures of two runs side by side, as rows: for the table, for the HTML report, and as JSON."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from extender.cluster.queues import Queue
from extender.cluster.resources import DIMENSIONS
from lab.demo.figures import GROUPS, Figures
from lab.demo.workload import QUEUES

_WAITED = "mean while pods waited"


@dataclass(frozen=True)
class FigureRow:
    """One figure: an id, what it is, its unit, both values, and how many decimals are shown.

    A value that is not a number is not there: nobody waited while it would have been measured.
    """

    id: str
    label: str
    unit: str
    stock: float
    dovetail: float
    decimals: int = 1
    compared: bool = True
    note: str = ""

    @property
    def change_percent(self) -> float | None:
        """How much Dovetail's figure differs from the stock scheduler's; none where that says nothing."""
        known = self.compared and self.stock and not math.isnan(self.dovetail / self.stock)
        return (self.dovetail / self.stock - 1) * 100 if known else None

    def shown(self) -> tuple[str, str, str, str]:
        """Return label, both values and the change as text."""
        change = self.change_percent
        return (
            self.label,
            self._cell(self.stock),
            self._cell(self.dovetail),
            "" if change is None else f"{change:+.0f} %",
        )

    def _cell(self, value: float) -> str:
        return "" if math.isnan(value) else f"{value:.{self.decimals}f} {self.unit}".strip()


def rows(stock: Figures, dovetail: Figures) -> list[FigureRow]:
    """Return every figure of the two runs, most telling first."""

    def row(id: str, label: str, unit: str, value: Callable[[Figures], float], **more: Any) -> FigureRow:  # noqa: A002, ANN401
        return FigureRow(id, label, unit, value(stock), value(dovetail), **more)

    return [
        row("makespan_s", "makespan: all pods have ended", "s", lambda figures: figures.makespan),
        row("job_completion_mean_s", "mean completion time of a job", "s", lambda figures: figures.job_mean),
        row("job_completion_median_s", "median completion time of a job", "s", lambda figures: figures.job_median),
        row("pod_completion_mean_s", "mean completion time of a pod", "s", lambda figures: figures.pod_mean),
        row(
            "working_mean",
            "work done at once, full-speed pods *",
            "",
            lambda figures: figures.working_mean,
            note=_WAITED,
        ),
        row("running_mean", "pods running at once *", "", lambda figures: figures.running_mean, note=_WAITED),
        row("running_peak", "pods running at once, peak", "", lambda figures: figures.running_peak, decimals=0),
        row(
            "slowdown_mean",
            "slow-down by sharing, mean of pods",
            "x",
            lambda figures: figures.slowdown_mean,
            decimals=2,
        ),
        row(
            "slowdown_worst", "slow-down by sharing, worst pod", "x", lambda figures: figures.slowdown_worst, decimals=2
        ),
        *(_share(stock, dovetail, queue) for queue in QUEUES),
        *(_used(stock, dovetail, name) for name in DIMENSIONS),
        *(row for group in GROUPS for row in _over(stock, dovetail, group)),
        row("pods_ended", "pods that have ended", "", lambda figures: figures.pods, decimals=0, compared=False),
    ]


def as_json(rows: Sequence[FigureRow]) -> dict[str, list[dict[str, object]]]:
    """Return the rows in the form that every experiment of this project prints."""
    entries = [_entry(f"{row.id}.{scheduler}", value, row) for row in rows for scheduler, value in _values(row)]
    change = {row.id: row.change_percent for row in rows}
    note = "paper: Tetris 5.2, 250 machines, its own workload, against the Capacity Scheduler"
    for id_, paper in (("makespan_s", -29), ("job_completion_mean_s", -30)):
        entries.append(
            {"id": f"{id_}.change", "ours": _rounded(change[id_]), "paper": paper, "unit": "percent", "note": note}
        )
    return {"rows": entries}


def _share(stock: Figures, dovetail: Figures, queue: Queue) -> FigureRow:
    fair = queue.weight / sum(other.weight for other in QUEUES) * 100
    label = f"share of {queue.name} (fair: {fair:.0f} %) **"
    values = (stock.shares[queue.name] * 100, dovetail.shares[queue.name] * 100)
    note = f"fair share {fair:.1f}; of the queues' dominant shares, while pods of each waited"
    return FigureRow(f"share_percent.{queue.name}", label, "%", *values, 0, compared=False, note=note)


def _used(stock: Figures, dovetail: Figures, name: str) -> FigureRow:
    label = f"{name} used *"
    note = "part of the cluster's capacity, " + _WAITED
    return FigureRow(
        f"used_percent.{name}", label, "%", stock.used[name] * 100, dovetail.used[name] * 100, 0, note=note
    )


def _over(stock: Figures, dovetail: Figures, group: str) -> list[FigureRow]:
    part, worst = (
        (stock.over_part[group] * 100, dovetail.over_part[group] * 100),
        (
            stock.over_worst[group],
            dovetail.over_worst[group],
        ),
    )
    return [
        FigureRow(f"over_percent.{group}", f"node-time, {group} over-allocated *", "%", *part, note=_WAITED),
        FigureRow(f"over_worst.{group}", f"worst {group} allocation / capacity", "x", *worst, decimals=2),
    ]


def _values(row: FigureRow) -> list[tuple[str, float]]:
    return [("stock", row.stock), ("dovetail", row.dovetail)]


def _entry(id_: str, value: float, row: FigureRow) -> dict[str, object]:
    unit = {"%": "percent", "x": "factor", "": "pods"}.get(row.unit, row.unit)
    return {"id": id_, "ours": _rounded(value), "paper": None, "unit": unit, "note": row.note}


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 3)
