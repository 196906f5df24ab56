"""How far the runs are: a bar for each on a terminal, a line for each quarter elsewhere. On standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lab.demo.run import Show

_PARTS = 4


@contextmanager
def progress(pods: int) -> Iterator[Callable[[str], Show]]:
    """Return what gives each run its bar, by its name."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda name: _lines(name, pods)
        return
    columns = (
        TextColumn("{task.description:<16}"),
        BarColumn(bar_width=18),
        MofNCompleteColumn(),
        TextColumn("pods ended, {task.fields[running]:>3} run"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:
        yield lambda name: _bar(bars, name, pods)


def _bar(bars: Progress, name: str, pods: int) -> Show:
    task = bars.add_task(name, total=pods, running=0)
    return lambda finished, running: bars.update(task, completed=finished, running=running)


def _lines(name: str, pods: int) -> Show:
    click.echo(f"{name}: {pods} pods", err=True)
    shown = 0

    def show(finished: int, running: int) -> None:
        nonlocal shown
        if finished * _PARTS // pods > shown:
            shown = finished * _PARTS // pods
            click.echo(f"{name}: {finished} of {pods} pods have ended, {running} run", err=True)

    return show
