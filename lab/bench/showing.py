"""How benchmarks are shown: tables or JSON at the end, a progress bar before."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lab.report.rows import Report

_PLAIN_WIDTH = 130


def show(reports: Sequence["Report"], *, as_json: bool) -> None:
    """Print the reports as tables, or all their rows as one JSON object."""
    from rich.console import Console

    from lab.report.rows import to_json

    if as_json:
        click.echo(to_json([row for report in reports for row in report.rows]))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH)
    for report in reports:
        for table in report.tables:
            console.print(table)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a progress bar on stderr, if that is a terminal; yields what advances it."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
