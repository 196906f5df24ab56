"""The plots of runs of one workload, like those of Tetris's figures 4, 5 and 7."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from extender.arrays import Floats
from extender.cluster.resources import DIMENSIONS
from lab.report.drawing import COLOURS, finish, name_lines, strokes, svg
from lab.sim.engine.measures import Series
from lab.sim.engine.outcome import Outcome
from lab.sim.report.compared import job_changes

_POINTS = 400
_SECONDS = "seconds since the first job arrived"
_WIDE = 10.0
_LEAST_CHANGE = -100.0


def plots(runs: Sequence[Outcome]) -> dict[str, tuple[str, str]]:
    """Return the plots as SVG elements, each with a note on how to read it, by what they show."""
    series, several = {run.policy: run.series for run in runs}, len(runs) > 1
    drawn = {
        "Job time": (
            svg("job-time", (_WIDE, 3.6), (1, 2 if several else 1), lambda axes: _draw_job_times(axes, runs)),
            "Left: the part of the jobs that end within a time. Right: how much less time each job takes than under "
            f"{runs[0].policy}; jobs below 0 are slower."
            if several
            else "The part of the jobs that end within a time.",
        ),
        "Running tasks": (
            svg("running", (_WIDE, 3.2), (1, 1), lambda axes: draw_running(axes[0], series)),
            "More tasks at once only help if they are not slowed down.",
        ),
        "Use of each dimension": (
            svg(
                "use", (_WIDE, 2.6 * _lines(runs)), (_lines(runs), 2), lambda axes: draw_use(axes, series, runs[0].axis)
            ),
            "Solid: what tasks really use; dotted: what they want, which is more than there is where disk or network "
            "is over-allocated.",
        ),
        "Shares of the queues": (
            svg("shares", (_WIDE, 2.6 * _lines(runs)), (_lines(runs), 2), lambda axes: draw_shares(axes, runs)),
            f"The dominant share of what each queue's tasks were promised (the first {len(COLOURS)} queues).",
        ),
    }
    if len(runs[0].queue_names) < 2:
        del drawn["Shares of the queues"]
    return drawn


def draw_changes(axes: Axes, changes: Mapping[str, Floats], title: str, first: int = 0) -> None:
    """Draw the CDF of job-time changes in percent, [J] by name (Tetris, figures 4a and 7), from this stroke on."""
    for (name, change), stroke in zip(changes.items(), strokes(first), strict=False):
        if len(change):
            axes.ecdf(np.maximum(change, _LEAST_CHANGE), label=name, linewidth=1.5, **stroke)
    finish(axes, title, "part of the jobs", "change in job time, % (more is better)")
    axes.axvline(0, color="#999999", linewidth=0.8)
    axes.set_xlim(_LEAST_CHANGE, 100)
    axes.yaxis.set_major_formatter(PercentFormatter(1))


def draw_running(axes: Axes, runs: Mapping[str, Series]) -> None:
    """Draw how many tasks run over time (Tetris, figure 5a)."""
    for (name, series), stroke in zip(runs.items(), strokes(), strict=False):
        axes.plot(seconds(series), thinned(series.running), linewidth=1.3, label=name, **stroke)
    finish(axes, "Running tasks", "tasks", _SECONDS)


def draw_use(axes: Sequence[Axes], runs: Mapping[str, Series], dimensions: Sequence[str] = DIMENSIONS) -> None:
    """Draw what is used, and wanted, of each dimension over time, each run on axes of its own; not what nobody wants.

    Like Tetris's figures 5b and 5c.
    """
    most = np.max([series.demanded.max(axis=0, initial=0.0) for series in runs.values()], axis=0)
    longest = _longest(list(runs.values()))
    for axis in axes[len(runs) :]:
        axis.set_visible(False)
    for axis, (title, series) in zip(axes, runs.items(), strict=False):
        at = seconds(series)
        for place, (name, stroke) in enumerate(zip(dimensions, strokes(), strict=False)):
            if most[place] > 0:
                axis.plot(at, thinned(series.demanded[:, place]), linewidth=0.8, **stroke | {"linestyle": ":"})
                axis.plot(at, thinned(series.used[:, place]), linewidth=1.2, label=name, **stroke)
        finish(axis, title, "of the cluster", _SECONDS, legend=False)
        axis.axhline(1, color="#999999", linewidth=0.8)
        axis.yaxis.set_major_formatter(PercentFormatter(1))
        axis.set_ylim(top=min(max(1.05, float(most.max())), 2.0))
        axis.set_xlim(0, longest)
    name_lines(axes[0])


def draw_shares(axes: Sequence[Axes], runs: Sequence[Outcome]) -> None:
    """Draw the shares of the queues over time, for each run on axes of its own."""
    longest = _longest([run.series for run in runs])
    for place, axis in enumerate(axes):
        axis.set_visible(place < len(runs))
        if place < len(runs):
            run = runs[place]
            for queue, colour in zip(range(len(run.queue_names)), COLOURS, strict=False):
                shares = thinned(run.series.queues[:, queue])
                axis.plot(seconds(run.series), shares, color=colour, linewidth=1.2, label=run.queue_names[queue])
            finish(axis, run.policy, "of the cluster", _SECONDS, legend=place == 0)
            axis.set_xlim(0, longest)
            axis.yaxis.set_major_formatter(PercentFormatter(1))


def thinned(values: NDArray[np.generic]) -> Floats:
    """Return [P] values as means of neighbours, so that at most 400 points are left."""
    step = max(1, -(-len(values) // _POINTS))
    starts = np.arange(0, len(values), step)
    sums = np.add.reduceat(values.astype(np.float64), starts) if len(values) else np.zeros(0)
    return np.asarray(sums / np.diff(np.append(starts, len(values))))


def seconds(series: Series) -> Floats:
    """Return the points in time, thinned like the values at them, in seconds since the first [P]."""
    return thinned(series.at - series.at[:1])


def _draw_job_times(axes: Sequence[Axes], runs: Sequence[Outcome]) -> None:
    for run, stroke in zip(runs, strokes(), strict=False):
        axes[0].ecdf(run.job_seconds, label=run.policy, linewidth=1.5, **stroke)
    finish(axes[0], "Job time", "part of the jobs", "seconds from arrival to end")
    axes[0].set_xlim(left=0)
    axes[0].yaxis.set_major_formatter(PercentFormatter(1))
    if len(runs) == 1:  # there is nothing to compare it with
        return
    changes = {run.policy: job_changes(runs[0].job_seconds, run.job_seconds) for run in runs[1:]}
    draw_changes(axes[1], changes, f"Job time against {runs[0].policy}", first=1)


def _longest(runs: Sequence[Series]) -> float:
    """Return the seconds of the longest run, so that all are drawn along one axis; 1 if none takes any time."""
    return max((float(seconds(series).max(initial=0)) for series in runs), default=0.0) or 1.0


def _lines(runs: Sequence[Outcome]) -> int:
    return -(-len(runs) // 2)
