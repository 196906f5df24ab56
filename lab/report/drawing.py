"""How plots are drawn: without a display, in one style, as SVG that loads nothing and is the same each time."""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "text.parse_math": False,  # a queue may be named $a$
}
OURS, THEIRS = "#1f6fb2", "#c8553d"
COLOURS = (OURS, THEIRS, "#5b8c5a", "#8a6fae", "#d9a441", "#4a4a4a", "#59a5a5", "#b5648e", "#8c6d46", "#9a9a9a")
"""Told apart by most eyes, on paper too; the first is ours where there is ours."""

_LINES = ("-", "--", "-.")
_MANY = 10

_PROLOG = re.compile(r"^.*?(?=<svg\b)|<metadata>.*?</metadata>\s*", re.DOTALL)

Draw = Callable[[Sequence[Axes]], None]
"""What draws on the axes of a figure, row by row."""


def svg(name: str, size: tuple[float, float], grid: tuple[int, int], draw: Draw) -> str:
    """Return a figure of `grid` (rows, columns) plots and `size` inches as an SVG element.

    `name` makes the ids in it its own: no two figures of a page may have the same.
    """
    with mpl.rc_context(STYLE | {"svg.hashsalt": name}):
        written = io.StringIO()
        _figure(size, grid, draw).savefig(written, format="svg", metadata={"Date": None})
    return _PROLOG.sub("", written.getvalue())


def strokes(first: int = 0) -> Iterator[dict[str, Any]]:
    """Yield colours and line styles without end, as plots take them; no two of the first 30 are alike."""
    return islice(cycle({"color": colour, "linestyle": line} for line in _LINES for colour in COLOURS), first, None)


def finish(axes: Axes, title: str, y: str, x: str, *, legend: bool = True) -> None:
    """Give a plot its title, its units and its zero, and a legend if anything in it has a name."""
    axes.set_title(title)
    axes.set_ylabel(y)
    axes.set_xlabel(x)
    axes.set_ylim(bottom=0)
    named = len(axes.get_legend_handles_labels()[0])
    if legend and named:
        axes.legend(fontsize=8) if named <= _MANY else axes.legend(fontsize=5, ncols=2)


def name_lines(axes: Axes) -> None:
    """Name the lines of these axes, and so those of all others that have the same, above the figure."""
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8)


def _figure(size: tuple[float, float], grid: tuple[int, int], draw: Draw) -> Figure:
    figure = Figure(figsize=size, layout="constrained")
    draw(list(np.ravel(figure.subplots(*grid))))
    return figure
