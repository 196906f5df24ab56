"""Three queues that come one after the other and share a cluster by their weights: the workload, and what is shown.

Research computes, analytics holds memory, reports does a little of both: what one leaves another can use, and a share
is that of the resource of which a queue has most (DRF). Each has more to do than fits at once until all are there.
"""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

from extender.cluster.resources import CPU, DIMENSIONS, MEMORY, Amounts
from lab.demo.plots import draw_shares
from lab.demo.shares import QueueShares
from lab.demo.workload import QUEUES, STANDARD, DemoNode, DemoPod, DemoWorkload
from lab.report.drawing import STYLE, name_lines

_GB = 1e9
_NODES = 10
_EVERY_SECONDS = 12.0
_WINDOW_SECONDS = 4.0
_WORK_SECONDS = (5.0, 9.0)
_JOBS = 6
_DEMANDS: Sequence[tuple[Amounts, int]] = (
    ({CPU: 2000.0, MEMORY: 2 * _GB}, 260),
    ({CPU: 500.0, MEMORY: 5 * _GB}, 180),
    ({CPU: 1000.0, MEMORY: 3 * _GB}, 90),
)
"""What a pod of each queue needs, and how many there are."""


def three_queues(*, seed: int, quick: bool = False) -> DemoWorkload:
    """Return the workload: each queue arrives when the one before has had the cluster for a while."""
    draw = np.random.default_rng(seed)
    scale = 3 if quick else 1
    tasks = [
        DemoPod(
            name=f"{QUEUES[queue].name}-{number:03d}",
            job=f"{QUEUES[queue].name}-{number % _JOBS}",
            kind=QUEUES[queue].name,
            demand={**dict.fromkeys(DIMENSIONS, 0.0), **demand},
            work_seconds=round(float(draw.uniform(*_WORK_SECONDS)), 3),
            queue=queue,
            arrives_at=queue * _EVERY_SECONDS / scale,
        )
        for queue, (demand, pods) in enumerate(_DEMANDS)
        for number in range(pods // scale)
    ]
    return DemoWorkload(tuple(DemoNode(f"node-{n:03d}", STANDARD) for n in range(_NODES)), tuple(tasks))


def windows(shares: QueueShares) -> list[tuple[float, list[float], list[float]]]:
    """Return, every few seconds: since when, each queue's mean share from then on, and its fair share."""
    rows = []
    for begin in np.arange(0.0, shares.at[-1], _WINDOW_SECONDS).tolist():
        seconds = np.diff(np.clip(shares.at, begin, begin + _WINDOW_SECONDS))
        if seconds.sum() > 0:
            means = [(seconds @ values / seconds.sum()).tolist() for values in (shares.share, shares.fair)]
            rows.append((begin, means[0], means[1]))
    return rows


def table(shares: QueueShares) -> Table:
    """Return the shares over time beside the fair ones."""
    drawn = Table("seconds", box=box.SIMPLE_HEAD)
    for queue in QUEUES:
        drawn.add_column(f"{queue.name}, weight {queue.weight:g}", justify="right")
        drawn.add_column("fair", justify="right", style="dim")
    for begin, share, fair in windows(shares):
        cells = [f"{value:.0%}" for pair in zip(share, fair, strict=True) for value in pair]
        drawn.add_row(f"{begin:.0f} to {begin + _WINDOW_SECONDS:.0f}", *cells)
    return drawn


def as_json(shares: QueueShares) -> dict[str, list[dict[str, object]]]:
    """Return the same as rows."""
    rows: list[dict[str, object]] = []
    for begin, share, fair in windows(shares):
        for queue, ours, entitled in zip(QUEUES, share, fair, strict=True):
            note = f"fair share {entitled * 100:.1f}"
            rows.append(
                {
                    "id": f"share_percent.{queue.name}.{begin:.0f}s",
                    "ours": round(ours * 100, 1),
                    "paper": None,
                    "unit": "percent",
                    "note": note,
                }
            )
    return {"rows": rows}


def show(console: Console, shares: QueueShares, kubernetes: str) -> None:
    """Print the table with what it is of."""
    console.print(
        f"Kubernetes {kubernetes}; {_NODES} nodes with 12 cores and 32 GB. Each queue's dominant share as a part of "
        "all queues' shares, mean of each few seconds; fair: by weight among the queues that have pods then."
    )
    console.print(table(shares))


def picture(shares: QueueShares, path: Path) -> None:
    """Draw the shares over time."""
    with mpl.rc_context(STYLE | {"svg.hashsalt": "queues"}):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        axes = figure.subplots()
        draw_shares(axes, shares, "Shares of three queues")
        name_lines(axes)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else None)
