"""What people get to see: the table on the terminal, and one HTML file that loads nothing."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from lab.controlplane.processes import Load
from lab.demo.rows import FigureRow
from lab.report import page as parts

_HEADS = ("", "stock scheduler", "Dovetail", "change")

MEASURE = (
    "* mean over the time until the last pod started. A resource is used as far as pods make progress with it; memory "
    "as long as they hold it."
)
QUEUED = (
    "** of the queues' dominant shares together, mean over the time while pods of every queue waited. The stock "
    "scheduler goes by who came first; Dovetail by weighted fair shares, and within that by packing and by what is "
    "soon done."
)
SHARING = (
    "KWOK's nodes are simulated, so both runs share the same machine room: pods that over-allocate a node's disk or "
    "network share it in proportion to demand, run that much slower, and end when their work is done (Tetris, "
    "equation 5). That contention also wastes capacity is left out, in favour of who over-allocates."
)
EQUAL = (
    "Both runs: the same control plane and nodes, the same pods submitted in the same order, a few pods before them to "
    "warm up, and 500 requests a second for kube-scheduler's client (its default of 50 would limit both). All else is "
    "Kubernetes' default in the one, and what Dovetail's chart ships in the other."
)


def slowed(stock: float, dovetail: float) -> str:
    """Return the sentence that says what sharing did to pods; takes the mean slow-down of each run."""
    return (
        f"Without that slow-down every pod would run as long under both. With it, the stock scheduler's pods ran "
        f"{stock:.2f} times as long as their work needs (mean), Dovetail's {dovetail:.2f} times."
    )


def crowded(loads: Sequence[Load]) -> str | None:
    """Return the sentence about other programs that the runs had to share the machine with; None where they had not."""
    loads = [load for load in loads if load.crowded]
    if not loads:
        return None
    most = max(loads, key=lambda load: load.others)
    return (
        f"Other programs kept {most.others:.1f} of this machine's {most.cores} cores busy meanwhile, and hardly "
        f"anything was idle. So pods were bound later than on a quiet machine, and most of all Dovetail's, which take "
        f"more CPU time each."
    )


def table(console: Console, rows: Sequence[FigureRow]) -> None:
    """Print the rows side by side."""
    drawn = Table(*_HEADS, box=box.SIMPLE_HEAD)
    for column in drawn.columns[1:]:
        column.justify = "right"
    for row in rows:
        drawn.add_row(*row.shown())
    console.print(drawn)


def seeds(heads: Sequence[str], rows: Sequence[Sequence[str]], about: str) -> tuple[str, ...]:
    """Return the parts of the report that tell of all seeds."""
    return (parts.table(heads, rows), parts.paragraph(about))


def page(
    first: Sequence[str], about: str, rows: Sequence[FigureRow], notes: Sequence[str], plots: Mapping[str, str]
) -> str:
    """Return the report as one HTML document.

    `first` are the parts before the rows, `notes` paragraphs after them, `plots` SVG elements by title.
    """
    return parts.page(
        "Dovetail: the demo's report",
        (
            parts.heading("The same workload, twice"),
            *first,
            parts.paragraph(about),
            parts.table(_HEADS, [row.shown() for row in rows]),
            *(parts.paragraph(text) for text in notes),
            *(parts.figure(title, svg) for title, svg in plots.items()),
        ),
    )
