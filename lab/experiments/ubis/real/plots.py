"""How a run on the real cluster is drawn: what each node used and had allocated, over time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from extender.arrays import Floats
from extender.cluster.resources import CPU, DISK_READ, MEMORY
from lab.experiments.ubis.real.course import FinishedRun
from lab.experiments.ubis.real.decisions import decisions
from lab.experiments.ubis.real.phases import GUARDED
from lab.experiments.ubis.real.scale import OFFERED, T_ALLOC, T_PREEMPT
from lab.report.drawing import COLOURS, finish, svg

_WIDE = 10.0
_SECONDS = "seconds since the Jobs were made"
_GREY = "#4a4a4a"
_NAMES = {CPU: "CPU", MEMORY: "memory", DISK_READ: "disk"}


def use(course: FinishedRun) -> str:
    """Return a panel for each node: CPU that is used, that regular pods have reserved, the limits, and evictions."""
    lines = -(-len(course.nodes) // 2)
    begun = course.span("fill").begun
    evicted = decisions(course, GUARDED)

    def draw(axes: Sequence[Axes]) -> None:
        for axis in axes[len(course.nodes) :]:
            axis.set_visible(False)
        for number, (axis, node) in enumerate(zip(axes, course.nodes, strict=False)):
            _draw_outages(axis, course, begun)
            for dimension, colour in zip((CPU, MEMORY, DISK_READ), (COLOURS[0], COLOURS[2], COLOURS[4]), strict=True):
                samples = course.measured.node(node, dimension)
                part = samples.use / OFFERED[dimension]
                axis.plot(samples.at - begun, part, color=colour, linewidth=1.1, label=f"{_NAMES[dimension]} used")
            at, part = allocated(course, node)
            axis.step(at - begun, part, where="post", color=COLOURS[1], linewidth=1.1, label="CPU allocated")
            for limit, style in ((T_ALLOC, "--"), (T_PREEMPT, ":")):
                axis.axhline(limit, color=_GREY, linewidth=0.9, linestyle=style)
            seconds = [one.at - begun for one in evicted if one.node == node]
            axis.plot(seconds, [1.06] * len(seconds), "v", color=COLOURS[1], ms=5, label="evictions")
            finish(axis, node, "of the node", _SECONDS, legend=False)
            axis.set_xlim(0, course.spans[-1].ended - begun)
            axis.set_ylim(0, 1.15)
            axis.yaxis.set_major_formatter(PercentFormatter(1))
            if number == 0:
                axis.legend(fontsize=7, ncols=3, loc="lower left")

    return svg("ubis-real", (_WIDE, 2.9 * lines), (lines, 2), draw)


def allocated(course: FinishedRun, node: str) -> tuple[Floats, Floats]:
    """Return when the part of a node's CPU changed that kube-scheduler counts as reserved, and to what [E each]."""
    counted: dict[str, float] = {}
    at, part = [], []
    for state in course.states:
        if state.node == node:
            counted[state.uid] = state.counted.get(CPU, 0.0) if state.there else 0.0
            at.append(state.at)
            part.append(sum(counted.values()) / OFFERED[CPU])
    return np.array(at), np.array(part)


def _draw_outages(axis: Axes, course: FinishedRun, begun: float) -> None:
    for span in course.spans:
        if span.name == "outage":
            axis.axvspan(span.begun - begun, span.ended - begun, color="#eeeeee", zorder=0)
            axis.text(span.begun - begun, 1.1, span.kind, fontsize=6, color=_GREY)
