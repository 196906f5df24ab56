"""How curves over the seeds are drawn: one for each label, with the range of the seeds at each point."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from lab.experiments.sections import Spots
from lab.experiments.seeds import Seeds
from lab.report.drawing import COLOURS, finish, svg

_WIDE = 10.0
_MANY = 6


def panels(name: str, spots: Spots, panels: Mapping[str, Mapping[str, Sequence[Seeds]]], unit: str) -> str:
    """Return one panel for each title: a curve over the spots for each baseline, with the range of the seeds."""

    def draw(axes: Sequence[Axes]) -> None:
        for axis, (title, curves) in zip(axes, panels.items(), strict=True):
            for (label, seeds), colour in zip(curves.items(), COLOURS, strict=False):
                _draw_curve(axis, spots, seeds, f"vs {label}", colour)
            finish(axis, title[:1].upper() + title[1:], unit, spots.axis)
            _show_all(axis, curves)
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
        _show_all(axes[0], by_label)
        _name_spots(axes[0], spots)

    return svg(name, (_WIDE, 3.4), (1, 1), draw)


def _draw_curve(axes: Axes, spots: Spots, seeds: Sequence[Seeds], label: str, colour: str) -> None:
    mean = np.array([point.mean for point in seeds])
    reach = np.array([[point.mean - point.low for point in seeds], [point.high - point.mean for point in seeds]])
    axes.errorbar(spots.places, mean, np.maximum(reach, 0), color=colour, label=label, marker="o", ms=4, capsize=2)


def _show_all(axes: Axes, curves: Mapping[str, Sequence[Seeds]]) -> None:
    """Let the axis reach from zero, or the lowest seed where that is negative, to the highest, or zero."""
    low = min((point.low for seeds in curves.values() for point in seeds), default=0.0)
    axes.set_ylim(bottom=min(0.0, 1.1 * low), top=max(0.0, axes.get_ylim()[1]))


def _name_spots(axes: Axes, spots: Spots) -> None:
    turned = len(spots.labels) > _MANY or max(map(len, spots.labels)) > _MANY
    axes.set_xticks(spots.places, spots.labels, rotation=20 if turned else 0, fontsize=8)
