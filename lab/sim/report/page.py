"""The report of a simulation: one HTML file that loads nothing."""

from collections.abc import Sequence
from pathlib import Path

from lab.report import page as parts
from lab.report.files import write_report
from lab.sim.engine.outcome import Outcome
from lab.sim.report import figures, tables


def write(path: Path, about: str, runs: Sequence[Outcome]) -> None:
    """Write the outcomes of the runs, with plots."""
    write_report(path, page(about, runs))


def page(about: str, runs: Sequence[Outcome]) -> str:
    """Return the report as one HTML document."""
    return parts.page(
        "Dovetail: a simulation",
        (
            parts.heading("One workload, by " + ", ".join(run.policy for run in runs)),
            parts.paragraph(about),
            parts.table(("", *(run.policy for run in runs)), [(line.name, *line.cells) for line in tables.lines(runs)]),
            *(parts.paragraph(text, note=True) for text in tables.NOTES),
            *(parts.figure(title, svg, note) for title, (svg, note) in figures.plots(runs).items()),
        ),
    )
