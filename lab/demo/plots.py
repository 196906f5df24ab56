"""The plots of two runs, drawn without a display; as SVG for the report, or as a picture file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from extender.arrays import Floats
from extender.cluster.resources import DIMENSIONS
from lab.demo.figures import GROUPS, Course, Figures
from lab.demo.shares import QueueShares
from lab.demo.workload import QUEUES
from lab.report.drawing import COLOURS, STYLE, finish, name_lines, svg

_DPI = 160
_TIME = "seconds since the first pod started"


@dataclass(frozen=True)
class DrawnRun:
    """What is drawn of a run: its name, its colour, how it went, its figures, and when jobs and pods ended (sorted)."""

    name: str
    colour: str
    went: Course
    shares: QueueShares
    figures: Figures
    job_ends: Floats
    pod_ends: Floats


def picture(runs: Sequence[DrawnRun], path: Path) -> None:
    """Write the two plots that tell most as one picture; the file's ending decides the form (.png, .svg)."""
    with mpl.rc_context(STYLE | {"svg.hashsalt": "picture"}):
        figure = Figure(figsize=(10, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_ends(left, runs, jobs=True)
        _draw_over(right, runs, ("disk", "network"))
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=_DPI, metadata={"Date": None} if path.suffix == ".svg" else None)


def plots(runs: Sequence[DrawnRun]) -> dict[str, str]:
    """Return the report's plots as SVG elements, by what they show."""
    return {
        "Pods at once": svg("running", (10, 3.4), (1, 2), lambda axes: _draw_pods(axes, runs)),
        "Use of each resource": svg("used", (10, 5.6), (2, 3), lambda axes: _draw_used(axes, runs)),
        "Over-allocation": svg("over", (10, 3.2), (1, 2), lambda axes: _draw_groups(axes, runs)),
        "Shares of the queues": svg("shares", (10, 3.4), (1, 2), lambda axes: _draw_queues(axes, runs)),
        "Completion": svg("ends", (10, 3.4), (1, 2), lambda axes: _draw_completion(axes, runs)),
    }


def _draw_pods(axes: Sequence[Axes], runs: Sequence[DrawnRun]) -> None:
    for run in runs:
        _step(axes[0], run, run.went.running)
    finish(axes[0], "Pods running", "pods", _TIME)
    _draw_working(axes[1], runs)


def _draw_working(axes: Axes, runs: Sequence[DrawnRun]) -> None:
    for run in runs:
        _step(axes, run, run.went.working)
    finish(axes, "Work done at once", "pods at full speed", _TIME)


def _draw_used(axes: Sequence[Axes], runs: Sequence[DrawnRun]) -> None:
    for place, (axis, name) in enumerate(zip(axes, DIMENSIONS, strict=True)):
        for run in runs:
            _step(axis, run, run.went.used[:, place])
        allocated = runs[0].went.allocated[:, place]
        axis.stairs(allocated, runs[0].went.at, color=runs[0].colour, linestyle=":", label=f"{runs[0].name}: allocated")
        finish(axis, name, "of the cluster", _TIME if place >= 3 else "", legend=False)
        axis.yaxis.set_major_formatter(PercentFormatter(1))
        axis.axhline(1, color="#999999", linewidth=0.8, label="capacity")
        axis.set_ylim(top=max(1.05, 1.05 * allocated.max()))
    name_lines(axes[0])


def _draw_over(axes: Axes, runs: Sequence[DrawnRun], groups: Sequence[str]) -> None:
    for run in runs:
        for group, line in zip(groups, ("-", ":"), strict=False):
            label = run.name if len(groups) == 1 else f"{run.name}: {group}"
            over, at = run.went.over(group), run.went.at
            axes.stairs(over, at, color=run.colour, linestyle=line, linewidth=1.8, label=label, clip_on=False)
    finish(axes, f"Nodes with {' or '.join(groups)} over-allocated", "of the nodes", _TIME)
    axes.yaxis.set_major_formatter(PercentFormatter(1))


def _draw_groups(axes: Sequence[Axes], runs: Sequence[DrawnRun]) -> None:
    for axis, group in zip(axes, GROUPS, strict=True):
        _draw_over(axis, runs, (group,))


def _draw_queues(axes: Sequence[Axes], runs: Sequence[DrawnRun]) -> None:
    for axis, run in zip(axes, runs, strict=True):
        draw_shares(axis, run.shares, f"{run.name}: share of each queue")
    name_lines(axes[0])


def draw_shares(axes: Axes, shares: QueueShares, title: str) -> None:
    """Draw each queue's share over time and its fair share, and until when every queue had pods that waited.

    The caller names the lines, once for all plots of a figure.
    """
    for place, (queue, colour) in enumerate(zip(QUEUES, COLOURS, strict=False)):
        name = f"{queue.name} (weight {queue.weight:g})"
        axes.stairs(shares.share[:, place], shares.at, color=colour, linewidth=1.5, label=name)
        axes.stairs(shares.fair[:, place], shares.at, color=colour, linestyle=":", label=f"fair for {queue.name}")
    axes.axvline(shares.contended, color="#999999", linewidth=0.8, label="until here pods of all queues wait")
    finish(axes, title, "of all queues", _TIME, legend=False)
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylim(top=1.0)


def _draw_completion(axes: Sequence[Axes], runs: Sequence[DrawnRun]) -> None:
    _draw_ends(axes[0], runs, jobs=True)
    _draw_ends(axes[1], runs, jobs=False)


def _draw_ends(axes: Axes, runs: Sequence[DrawnRun], *, jobs: bool) -> None:
    for run in runs:
        axes.ecdf(run.job_ends if jobs else run.pod_ends, color=run.colour, label=run.name, linewidth=1.5)
    finish(axes, f"{'Jobs' if jobs else 'Pods'} that have ended", "part of all", _TIME)
    axes.set_xlim(left=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1))


def _step(axes: Axes, run: DrawnRun, values: Floats) -> None:
    axes.stairs(values, run.went.at, color=run.colour, linewidth=1.5, label=run.name)
