"""How the figures of an experiment are drawn; what they show is decided elsewhere."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from extender.arrays import Floats
from lab.experiments.tetris.gains import Seeds
from lab.experiments.tetris.sections import Spots
from lab.report.drawing import COLOURS, finish, svg
from lab.sim.engine.measures import Series
from lab.sim.report.figures import draw_changes, draw_running, draw_use

_WIDE = 10.0
_MANY = 6


def panels(name: str, spots: Spots, panels: Mapping[str, Mapping[str, Sequence[Seeds]]], unit: str) -> str:
    """Return one panel for each title: a curve over the spots for each baseline, with the range of the seeds."""

    def draw(axes: Sequence[Axes]) -> None:
        for axis, (title, curves) in zip(axes, panels.items(), strict=True):
            for (label, seeds), colour in zip(curves.items(), COLOURS, strict=False):
                _draw_curve(axis, spots, seeds, f"vs {label}", colour)
            finish(axis, title[:1].upper() + title[1:], unit, spots.axis)
            low = min((it.low for seeds in curves.values() for it in seeds), default=0.0)
            axis.set_ylim(bottom=min(0.0, 1.1 * low))
            _name_spots(axis, spots)

    return svg(f"{spots.name}-{name}", (_WIDE, 3.3), (1, len(panels)), draw)


def curves(
    name: str,
    places: Sequence[float],
    by_label: Mapping[str, Sequence[Seeds]],
    unit: str,
    x: str,
    labels: Sequence[str],
) -> str:
    """Return a curve for each label over the places, which have these `labels`, else their numbers."""

    def draw(axes: Sequence[Axes]) -> None:
        spots = Spots(name, x, list(labels) or [f"{place:g}" for place in places], places)
        for (label, seeds), colour in zip(by_label.items(), COLOURS, strict=False):
            _draw_curve(axes[0], spots, seeds, label, colour)
        finish(axes[0], "", unit, x)
        _name_spots(axes[0], spots)

    return svg(name, (_WIDE, 3.4), (1, 1), draw)


def changes(name: str, by_baseline: Mapping[str, Floats], title: str) -> str:
    """Return the CDF of job-time changes against each baseline (Tetris, figures 4a and 7)."""
    return svg(f"{name}-changes", (_WIDE, 3.4), (1, 1), lambda axes: draw_changes(axes[0], by_baseline, title))


def running(name: str, runs: Mapping[str, Series]) -> str:
    """Return how many tasks run over time under each policy (figure 5a)."""
    return svg(f"{name}-running", (_WIDE, 3.2), (1, 1), lambda axes: draw_running(axes[0], runs))


def use(name: str, runs: Mapping[str, Series]) -> str:
    """Return what is used and wanted of each dimension over time, a panel for each policy (figures 5b and 5c)."""

    def draw(axes: Sequence[Axes]) -> None:
        highest = max((float(series.demanded.max(initial=0)) for series in runs.values()), default=1.0)
        longest = max((float(np.ptp(series.at)) / 3600 for series in runs.values() if len(series.at)), default=1.0)
        for number, (axis, (policy, series)) in enumerate(zip(axes, runs.items(), strict=False)):
            draw_use(axis, series, policy, legend=number == 0)
            axis.set_ylim(top=min(max(1.05, highest), 2.0))
            axis.set_xlim(0, longest)
        for axis in axes[len(runs) :]:
            axis.set_visible(False)

    lines = -(-len(runs) // 2)
    return svg(f"{name}-use", (_WIDE, 2.6 * lines), (lines, 2), draw)


def _draw_curve(axes: Axes, spots: Spots, seeds: Sequence[Seeds], label: str, colour: str) -> None:
    mean = np.array([it.mean for it in seeds])
    reach = np.array([[it.mean - it.low for it in seeds], [it.high - it.mean for it in seeds]])
    axes.errorbar(spots.places, mean, np.maximum(reach, 0), color=colour, label=label, marker="o", ms=4, capsize=2)


def _name_spots(axes: Axes, spots: Spots) -> None:
    turned = len(spots.labels) > _MANY or max(map(len, spots.labels)) > _MANY
    axes.set_xticks(spots.places, spots.labels, rotation=20 if turned else 0, fontsize=8)
