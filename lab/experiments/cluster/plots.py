"""How the figures of the cluster experiment are drawn: the cluster's runs beside the simulator's."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from lab.report.drawing import COLOURS, finish, svg
from lab.sim.engine.outcome import Outcome
from lab.sim.report.figures import thinned

_WIDE = 10.0
_SECONDS = "seconds since the first job arrived"


def running(runs: Mapping[str, Outcome]) -> str:
    """Return how many tasks run over time."""

    def draw(axes: Sequence[Axes]) -> None:
        for (name, run), colour in zip(runs.items(), COLOURS, strict=False):
            axes[0].plot(thinned(run.series.at), thinned(run.series.running), color=colour, linewidth=1.3, label=name)
        finish(axes[0], "Running tasks", "tasks", _SECONDS)

    return svg("cluster-running", (_WIDE, 3.2), (1, 1), draw)


def job_times(runs: Mapping[str, Outcome]) -> str:
    """Return the part of the jobs that end within a time of their arrival."""

    def draw(axes: Sequence[Axes]) -> None:
        for (name, run), colour in zip(runs.items(), COLOURS, strict=False):
            axes[0].ecdf(run.job_seconds, color=colour, label=name, linewidth=1.5)
        finish(axes[0], "Job time", "part of the jobs", "seconds from arrival to end")
        axes[0].yaxis.set_major_formatter(PercentFormatter(1))

    return svg("cluster-job-times", (_WIDE, 3.4), (1, 1), draw)


def shares(runs: Mapping[str, Outcome]) -> str:
    """Return each queue's dominant share over time, a panel for each run."""
    lines = -(-len(runs) // 2)

    def draw(axes: Sequence[Axes]) -> None:
        for axis in axes[len(runs) :]:
            axis.set_visible(False)
        for number, (axis, (name, run)) in enumerate(zip(axes, runs.items(), strict=False)):
            at = thinned(run.series.at)
            for column, (queue, colour) in enumerate(zip(run.queue_names, COLOURS, strict=False)):
                axis.plot(at, thinned(run.series.queues[:, column]), color=colour, linewidth=1.2, label=queue)
            finish(axis, name, "of the cluster", _SECONDS, legend=number == 0)
            axis.yaxis.set_major_formatter(PercentFormatter(1))

    return svg("cluster-shares", (_WIDE, 2.6 * lines), (lines, 2), draw)
