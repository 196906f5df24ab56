"""The report of an experiment: one HTML file that loads nothing."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.experiments.sections import Section
from lab.experiments.tables import HEADS, cells
from lab.report import page as parts
from lab.report.files import write_report


def write(path: Path, title: str, about: str, sections: Sequence[Section], skipped: Sequence[str]) -> None:
    """Write the sections with their figures, and the parts that were skipped."""
    body = [parts.heading(title), parts.paragraph(about), *(parts.paragraph(text) for text in skipped)]
    for section in sections:
        body += _section(section)
    write_report(path, parts.page(f"Dovetail: {title}", body))


def _section(section: Section) -> Iterator[str]:
    yield parts.heading(section.title, 2)
    yield parts.paragraph(section.about)
    if section.figures:
        lines = [(*cells(figure), figure.note) for figure in section.figures]
        yield parts.table((*HEADS, "note"), lines, text=(len(HEADS),))
    for listing in section.listings:
        yield parts.table(listing.heads, listing.lines)
    for note in section.notes:
        yield parts.paragraph(note, note=True)
    for plot in section.plots:
        yield parts.figure(plot.title, plot.draw(), plot.note, level=3)
