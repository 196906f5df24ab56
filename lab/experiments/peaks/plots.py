"""How the predictors are drawn: what each saves, and how often it is passed."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from lab.experiments.seeds import Seeds
from lab.report.drawing import COLOURS, finish, svg


def violations_by_savings(name: str, points: Mapping[str, tuple[Seeds, Seeds]]) -> str:
    """Return one point for each predictor: (savings, violations), with the range of the seeds."""

    def draw(axes: Sequence[Axes]) -> None:
        for (label, (savings, violations)), colour in zip(points.items(), COLOURS, strict=False):
            axes[0].errorbar(
                [savings.mean],
                [violations.mean],
                yerr=_reach(violations),
                xerr=_reach(savings),
                color=colour,
                label=label,
                marker="o",
                ms=6,
                capsize=2,
                linestyle="none",
            )
        finish(axes[0], "", "violations, % of node-intervals", "savings, % of requests")

    return svg(name, (7.0, 4.2), (1, 1), draw)


def _reach(seeds: Seeds) -> np.ndarray:
    """Return how far the seeds reach below and above their mean [2, 1]."""
    return np.maximum([[seeds.mean - seeds.low], [seeds.high - seeds.mean]], 0.0)
