"""The order of a job as one HTML page: when each stage runs, and what that takes of the machines."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from extender.arrays import Floats, Mask
from extender.graph import Dag, Machines, StageOrder
from lab.report import page as parts
from lab.report.drawing import COLOURS, OURS, THEIRS, finish, svg
from lab.sim.dag.showing import words

_WIDE = 10.0
_MOST_STAGES = 60
_POINTS = 400


def page(name: str, dag: Dag, machines: Machines, resources: Sequence[str], order: StageOrder) -> str:
    """Return the page; `resources` [R] are the names of what tasks demand."""
    first = np.array([begins.min() for begins in order.begins])
    rows = np.argsort(first, kind="stable")[:_MOST_STAGES].tolist()
    left_out = len(dag) - len(rows)
    note = "A stage of troublesome tasks, which were placed first, has the other colour. The darker, the more of its "
    note += "tasks run. The dotted line is when it could end at the earliest."
    if left_out:
        note += f" {left_out} stages that begin later are left out."
    return parts.page(
        name,
        (
            parts.heading(name),
            *(parts.paragraph(line) for line in words(name, dag, machines, order)),
            parts.figure(
                "When each stage runs",
                svg("stages", (_WIDE, 1.0 + 0.22 * len(rows)), (1, 1), lambda axes: _stages(axes[0], dag, order, rows)),
                note,
            ),
            parts.figure(
                "What that takes of the machines",
                svg("use", (_WIDE, 3.0), (1, 1), lambda axes: _use(axes[0], dag, machines, resources, order)),
                "What is below 100 % is idle: a task that would fit waits for another, or none fits.",
            ),
            parts.heading("The orders that were tried", 2),
            parts.table(
                ("order", "seconds", "of the bound"),
                [(tried, f"{span:,.1f}", f"{span / order.bounds.tightest:.3f}") for tried, span in order.spans.items()],
                text=(0,),
            ),
        ),
    )


def _stages(axes: Axes, dag: Dag, order: StageOrder, rows: Sequence[int]) -> None:
    edges = np.linspace(0.0, order.span, _POINTS + 1)
    for place, row in enumerate(rows):
        runs = _running(order.begins[row], dag.stages[row].seconds, edges)
        colour = THEIRS if order.trouble[row] else OURS
        for level in (0.0, 0.5):  # light where any task runs, dark where more than half of the most do
            spans = _spans(runs > level * runs.max(), edges)
            axes.broken_barh(spans, (place - 0.4, 0.8), color=colour, alpha=0.5, linewidth=0)
    axes.axvline(order.bounds.tightest, color="#999999", linestyle=":", linewidth=1.2)
    axes.set_yticks(range(len(rows)), [dag.stages[row].name[:40] for row in rows], fontsize=7)
    axes.set_xlim(0.0, order.span * 1.01)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("seconds")


def _use(axes: Axes, dag: Dag, machines: Machines, resources: Sequence[str], order: StageOrder) -> None:
    edges = np.linspace(0.0, order.span, _POINTS + 1)
    used = np.zeros((_POINTS, len(machines.capacity)))
    for stage, begins in zip(dag.stages, order.begins, strict=True):
        used += _running(begins, stage.seconds, edges)[:, np.newaxis] * stage.demand
    whole = np.where(machines.capacity > 0, machines.capacity * machines.count, 1.0)
    for column, name in enumerate(resources):
        colour = COLOURS[column % len(COLOURS)]
        axes.step(edges[:-1], 100 * used[:, column] / whole[column], color=colour, label=name, where="post")
    finish(axes, "Use of the job's share of the machines", "%", "seconds")
    axes.set_ylim(0.0, 104.0)
    axes.set_xlim(0.0, order.span * 1.01)


def _running(begins: Floats, seconds: Floats, edges: Floats) -> Floats:
    """Return how many tasks run in each part of the time [P] between these edges [P + 1], in the mean."""
    done = np.zeros(len(edges))
    for moments, sign in ((np.sort(begins), 1.0), (np.sort(begins + seconds), -1.0)):
        # The seconds that all have been past their moment, by each edge.
        count = np.searchsorted(moments, edges, side="right")
        total = np.concatenate(([0.0], np.cumsum(moments)))[count]
        done += sign * (count * edges - total)
    return np.asarray(np.diff(done) / np.maximum(np.diff(edges), 1e-12))


def _spans(runs: Mask, edges: Floats) -> list[tuple[float, float]]:
    """Return where it is true, as (begin, length)."""
    turns = np.flatnonzero(np.diff(np.concatenate(([False], runs, [False])).astype(np.int8)))
    return [(float(edges[a]), float(edges[b] - edges[a])) for a, b in turns.reshape(-1, 2).tolist()]
