"""The demo over several seeds: how much less time Dovetail takes, its median and range, and the seed that is shown."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from lab.demo import plots, report, rows
from lab.demo.comparison import Comparison
from lab.demo.figures import Figures
from lab.report.files import write_report
from lab.sim.report.compared import improvement

HEADS = ("seed", "makespan\nstock", "Dovetail", "less", "mean job time\nstock", "Dovetail", "less")
_PAPER = "paper: Tetris 5.2, 250 machines, its own workload, against the Capacity Scheduler"


@dataclass(frozen=True)
class Gain:
    """A figure by both, for each seed, in seconds; and by how many percent Dovetail's is less."""

    id: str
    paper: float
    stock: Sequence[float]
    dovetail: Sequence[float]

    @property
    def less(self) -> list[float]:
        """How many percent less, for each seed."""
        return [improvement(stock, dovetail) for stock, dovetail in zip(self.stock, self.dovetail, strict=True)]

    @property
    def median(self) -> float:
        """The median over the seeds; of an even number the mean of the two in the middle."""
        return statistics.median(self.less)

    def entry(self, seeds: Sequence[int]) -> dict[str, object]:
        """Return the row of the median, with its range."""
        each = ", ".join(f"{seed}: {less:.0f}" for seed, less in zip(seeds, self.less, strict=True))
        note = f"percent less than stock, median of seeds; {each}; {_PAPER}"
        return {"id": self.id, "ours": round(self.median, 1), "paper": self.paper, "unit": "percent", "note": note}


@dataclass(frozen=True)
class Seeds:
    """What was compared, a comparison for each seed in their order; at least one."""

    comparisons: Sequence[Comparison]

    @property
    def gains(self) -> tuple[Gain, Gain]:
        """Makespan and mean job time."""
        return (
            self._gain("demo.makespan", 29, lambda figures: figures.makespan),
            self._gain("demo.mean_job_time", 30, lambda figures: figures.job_mean),
        )

    @property
    def shown(self) -> Comparison:
        """The comparison whose gain of makespan is the median; of an even number the lesser in the middle."""
        less = self.gains[0].less
        middle = sorted(range(len(less)), key=less.__getitem__)[(len(less) - 1) // 2]
        return self.comparisons[middle]

    def as_json(self) -> dict[str, list[dict[str, object]]]:
        """Return the medians, then every figure of the seed that is shown."""
        numbers = [comparison.seed for comparison in self.comparisons]
        entries = [gain.entry(numbers) for gain in self.gains]
        return {"rows": [*entries, *rows.as_json(self.shown.rows)["rows"]]}

    def table(self) -> list[tuple[str, ...]]:
        """Return a row for each seed, then the medians and ranges; see `HEADS`."""
        makespan, job_time = self.gains
        cells = [
            (str(comparison.seed), *_of(makespan, place), *_of(job_time, place))
            for place, comparison in enumerate(self.comparisons)
        ]
        medians = [f"{gain.median:.0f} %" for gain in self.gains]
        ranges = [f"{min(gain.less):.0f} to {max(gain.less):.0f}" for gain in self.gains]
        return [
            *cells,
            ("median", "", "", medians[0], "", "", medians[1]),
            ("range, %", "", "", ranges[0], "", "", ranges[1]),
        ]

    def print(self, console: Console) -> None:
        """Print the table of the seeds, and which of them is shown in full."""
        drawn = Table(*HEADS, box=box.SIMPLE_HEAD)
        for column in drawn.columns[1:]:
            column.justify = "right"
        for cells in self.table():
            drawn.add_row(*cells, end_section=cells[0] == str(self.comparisons[-1].seed))
        console.print(drawn)
        console.print(self.about)

    @property
    def about(self) -> str:
        """Say which seed is shown in full."""
        return f"The median seed, {self.shown.seed}:"

    def write_report(self, path: Path) -> None:
        """Write the report as one HTML file: where there are several seeds these first, then the median one in full."""
        shown = self.shown
        first = report.seeds(HEADS, self.table(), self.about) if len(self.comparisons) > 1 else ()
        drawn = plots.plots((shown.stock, shown.dovetail))
        write_report(path, report.page(first, shown.about, shown.rows, shown.notes, drawn))

    def _gain(self, id: str, paper: float, figure: Callable[[Figures], float]) -> Gain:  # noqa: A002
        stock = [figure(comparison.stock.figures) for comparison in self.comparisons]
        return Gain(id, paper, stock, [figure(comparison.dovetail.figures) for comparison in self.comparisons])


def _of(gain: Gain, place: int) -> tuple[str, str, str]:
    return f"{gain.stock[place]:.1f} s", f"{gain.dovetail[place]:.1f} s", f"{gain.less[place]:.0f} %"
