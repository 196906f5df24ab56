"""A packing report as one HTML file that loads nothing."""

from pathlib import Path

from lab.packing.figures import plots
from lab.packing.reporting import PackingReport
from lab.packing.words import words
from lab.report import page as parts
from lab.report.files import write_report


def write(path: Path, report: PackingReport) -> None:
    """Write the report with its plots, and what the command says in words."""
    write_report(path, page(report))


def page(report: PackingReport) -> str:
    """Return the report as one HTML document."""
    title = f"How well is it packed? {report.source}"
    sentences = [line for line in words(report) if line]
    return parts.page(
        title,
        (
            parts.heading(title),
            *(parts.figure(name, svg, note) for name, (svg, note) in plots(report).items()),
            parts.heading("In words", 2),
            *(parts.paragraph(line.strip()) for line in sentences),
        ),
    )
