"""The order of a job, for people and for machines."""

from typing import Any

import numpy as np
from rich import box
from rich.console import Group
from rich.table import Table

from extender.arrays import Floats
from extender.graph import Dag, Machines, StageOrder
from extender.words import many

_WIDTH = 48
_MOST_STAGES = 60


def text(name: str, dag: Dag, machines: Machines, order: StageOrder) -> Group:
    """Return what was found, the orders that were tried, and when each stage runs."""
    return Group("\n".join(words(name, dag, machines, order)), _tried(order), _chart(dag, order))


def words(name: str, dag: Dag, machines: Machines, order: StageOrder) -> list[str]:
    """Return in sentences what was found."""
    trouble = [dag.stages[row].name for row in np.flatnonzero(order.trouble).tolist()]
    bounds = order.bounds
    return [
        f"{name}: {many(len(dag), 'stage')}, {many(int(dag.count.sum()), 'task')} on {many(machines.count, 'machine')}",
        f"{order.span:,.1f} s by the order found ({order.won}), "
        f"{100 * (order.span / bounds.tightest - 1):.1f} % above what no order can pass",
        f"At least {bounds.tightest:,.1f} s: longest path {bounds.cp_len:,.1f}, all work {bounds.t_work:,.1f}, "
        f"one stage whole {bounds.mod_cp:,.1f}, the paper's bound {bounds.new_lb:,.1f}",
        f"Placed first, as troublesome: {', '.join(trouble) or 'none'}",
    ]


def _tried(order: StageOrder) -> Table:
    table = Table("order", box=box.SIMPLE_HEAD)
    table.add_column("seconds", justify="right")
    table.add_column("of the bound", justify="right")
    for name, span in order.spans.items():
        table.add_row(name, f"{span:,.1f}", f"{span / order.bounds.tightest:.3f}")
    return table


def _chart(dag: Dag, order: StageOrder) -> Table:
    """Return the stages as they begin, each with a bar from 0 to the end; `.` where it has begun and no task runs."""
    table = Table("stage", box=box.SIMPLE_HEAD)
    for heading in ("tasks", "from s", "to s"):
        table.add_column(heading, justify="right")
    table.add_column("0 to the end", no_wrap=True)
    first = np.array([begins.min() for begins in order.begins])
    rows = np.argsort(first, kind="stable").tolist()
    for row in rows[:_MOST_STAGES]:
        stage, begins = dag.stages[row], order.begins[row]
        ends = begins + stage.seconds
        bar = _bar(begins, ends, order.span)
        table.add_row(stage.name, f"{len(begins):,}", f"{begins.min():,.1f}", f"{ends.max():,.1f}", bar)
    if len(rows) > _MOST_STAGES:
        table.add_row(f"{len(rows) - _MOST_STAGES} more: see --json")
    return table


def _bar(begins: Floats, ends: Floats, span: float) -> str:
    edges = np.linspace(0.0, span, _WIDTH + 1)
    # A column is filled where a task runs at any moment of it: begun before its end, and not all ended by its begin.
    begun = np.searchsorted(np.sort(begins), edges[1:], side="left")
    ended = np.searchsorted(np.sort(ends), edges[:-1], side="right")
    runs = begun > ended
    between = (begun > 0) & (ended < len(ends))
    return "".join("#" if run else "." if waits else " " for run, waits in zip(runs, between, strict=True)).rstrip()


def as_json(name: str, dag: Dag, machines: Machines, order: StageOrder) -> dict[str, Any]:
    """Return everything as plain values."""
    bounds = order.bounds
    return {
        "job": name,
        "machines": machines.count,
        "seconds": order.span,
        "won": order.won,
        "tried": dict(order.spans),
        "bounds": {
            "cp_len": bounds.cp_len,
            "t_work": bounds.t_work,
            "mod_cp": bounds.mod_cp,
            "new_lb": bounds.new_lb,
            "tightest": bounds.tightest,
        },
        "stages": [
            {
                "stage": stage.name,
                "troublesome": bool(order.trouble[row]),
                "ranks": np.asarray(order.ranks[row]).tolist(),
                "begins": order.begins[row].tolist(),
            }
            for row, stage in enumerate(dag.stages)
        ],
    }
