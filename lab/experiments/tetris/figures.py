"""How the figures of an experiment are drawn; what they show is decided elsewhere."""

from collections.abc import Mapping

from extender.arrays import Floats
from lab.report.drawing import svg
from lab.sim.engine.measures import Series
from lab.sim.report.figures import draw_changes, draw_running, draw_use

_WIDE = 10.0


def changes(name: str, by_baseline: Mapping[str, Floats], title: str) -> str:
    """Return the CDF of job-time changes against each baseline (Tetris, figures 4a and 7)."""
    return svg(f"{name}-changes", (_WIDE, 3.4), (1, 1), lambda axes: draw_changes(axes[0], by_baseline, title))


def running(name: str, runs: Mapping[str, Series]) -> str:
    """Return how many tasks run over time under each policy (figure 5a)."""
    return svg(f"{name}-running", (_WIDE, 3.2), (1, 1), lambda axes: draw_running(axes[0], runs))


def use(name: str, runs: Mapping[str, Series]) -> str:
    """Return what is used and wanted of each dimension over time, a panel for each policy (figures 5b and 5c)."""
    lines = -(-len(runs) // 2)
    return svg(f"{name}-use", (_WIDE, 2.6 * lines), (lines, 2), lambda axes: draw_use(axes, runs))
