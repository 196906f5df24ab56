"""The sections of an experiment as tables on a terminal."""

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from lab.experiments.sections import Figure, Listing, Section

HEADS = ("id", "paper", "ours", "from", "to", "attainable")
_LEAST_COLUMNS = 2


def show(console: Console, sections: Sequence[Section]) -> None:
    """Print each section: the paper's numbers beside ours, then the tables."""
    for section in sections:
        console.rule(section.title, align="left")
        console.print(section.about)
        if section.figures:
            console.print(_table(Listing(HEADS, [cells(figure) for figure in section.figures])))
            for figure in section.figures:
                if figure.note:
                    console.print(f"  {figure.id}: {figure.note}")
        for listing in section.listings:
            for table in _that_fit(console, listing):
                console.print(table)
        for note in section.notes:
            console.print(note)
        console.print()


def cells(figure: Figure) -> tuple[str, ...]:
    """Return a number as a line of HEADS."""
    paper = "" if figure.paper is None else f"{figure.paper:g}"
    ours = figure.ours
    attainable = "" if figure.attainable is None else _one(figure.attainable.mean, figure.unit)
    return (figure.id, paper, *(_one(value, figure.unit) for value in (ours.mean, ours.low, ours.high)), attainable)


def _one(value: float, unit: str) -> str:
    if math.isnan(value):
        return ""
    if unit == "p":
        return f"{value:.2f}"
    return f"{value:.1f}" if unit == "%" else f"{value:.2f}{unit}" if unit else f"{value:g}"


def _that_fit(console: Console, listing: Listing) -> list[Table]:
    """Return a listing as one table, or where that is too wide as several; each begins with the first column."""
    table, columns = _table(listing), len(listing.heads)
    with console.capture() as capture:
        console.print(table)
    if columns <= _LEAST_COLUMNS or set(" ".join(listing.heads).split()) <= set(capture.get().split()):
        return [table]  # no heading is cut
    half = (columns + 1) // 2
    parts = ([*range(half)], [0, *range(half, columns)])
    halves = (
        Listing(tuple(listing.heads[at] for at in part), [tuple(line[at] for at in part) for line in listing.lines])
        for part in parts
    )
    return [table for part in halves for table in _that_fit(console, part)]


def _table(listing: Listing) -> Table:
    table = Table(*listing.heads, box=box.SIMPLE_HEAD)
    for column, head in zip(table.columns, listing.heads, strict=True):
        column.min_width = max(map(len, head.split()), default=0)  # words of a heading are not cut
    for column in table.columns[1:]:
        column.justify = "right"
    for line in listing.lines:
        table.add_row(*line)
    return table
