"""Rows and a table of `contest`: how far `order: auto` is from gates, and what it does in each phase."""

from collections import Counter

from rich.table import Table

from lab.bench.cluster.contest import Contest, Phase
from lab.report.rows import Report, Row

_HELD, _STARTED = "held", "started"


def report(gates: Contest, auto: Contest) -> Report:
    """Return the rows, and a table of the phases of both."""
    apart = {_HELD: abs(auto.held - gates.held), _STARTED: abs(auto.started - gates.started)}
    note = (
        f"of the queue of weight 3 beside one of 1, while both wait: room in use {auto.held:.1f} % (gates "
        f"{gates.held:.1f} %), pods started {auto.started:.1f} % (gates {gates.started:.1f} %); the larger difference"
    )
    rows = [Row("order_error.auto", round(max(apart.values()), 2), "points", note=note)]
    for phase in auto.phases:
        name = phase.name.replace(" ", "_")
        rows += [
            Row(f"phase.{name}.gated", phase.gated, "pods", note=f"of {phase.pods}, held at creation"),
            Row(f"phase.{name}.refusals", phase.refusals, "refusals", note="kube-scheduler found no node for a pod"),
            Row(f"phase.{name}.writes_per_pod", round(_writes(phase), 2), "writes", note=_parts(phase)),
        ]
    table = Table(title="Room, a backlog, room again: what each order does")
    for heading in ("order", "phase", "pods", "held at creation", "refusals", "writes a pod"):
        table.add_column(heading, justify="left" if heading in ("order", "phase") else "right")
    for contest in (gates, auto):
        for phase in contest.phases:
            counts = (phase.pods, phase.gated, phase.refusals)
            table.add_row(contest.order, phase.name, *map(str, counts), f"{_writes(phase):.2f}")
    table.caption = f"order_error.auto: {rows[0].ours} points: {note}"
    return Report(rows, [table])


def _writes(phase: Phase) -> float:
    return sum(phase.writes.values()) / phase.pods


def _parts(phase: Phase) -> str:
    counted = Counter(phase.writes).most_common()
    return "by the API server's count: " + ", ".join(f"{what} {count / phase.pods:.2f}" for what, count in counted)
