"""How far runs are, on standard error: bars on a terminal, a line now and then elsewhere."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

Show = Callable[[str, int, int], None]
"""Shows how far the run of this name is: how much has ended, of how much."""

_LINES = 10


@contextmanager
def each(names: Sequence[str], unit: str) -> Iterator[Show]:
    """Show a bar for each run: how many of its `unit` have ended."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(names).show
        return
    wide = max(map(len, names), default=0)
    columns = (
        TextColumn(f"{{task.description:<{wide}}}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        tasks = {name: bars.add_task(name, total=None) for name in names}

        def show(name: str, done: int, total: int) -> None:
            before = bars.tasks[tasks[name]].total
            if before is not None and done == total == 1:  # the end, told by who does not know how much there was
                done, total = int(before), int(before)
            bars.update(tasks[name], completed=done, total=total)

        yield show


@contextmanager
def together(names: Sequence[str], what: str) -> Iterator[Show]:
    """Show one bar for all runs: how many have ended, with the parts of those that run."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(names).show
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[ended]} of {task.total} runs"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(what, total=len(names), ended=0)
        parts: dict[str, float] = {}

        def show(name: str, done: int, total: int) -> None:
            parts[name] = done / total if total else 1.0
            ended = sum(part >= 1 for part in parts.values())
            bars.update(task, completed=sum(parts.values()), ended=ended)

        yield show


class _Lines:
    """Says what has ended, in about ten lines however many runs there are."""

    def __init__(self, names: Sequence[str]) -> None:
        self._count = len(names)
        self._ended: set[str] = set()

    def show(self, name: str, done: int, total: int) -> None:
        if done < total or name in self._ended:
            return
        before = len(self._ended) * _LINES // self._count
        self._ended.add(name)
        if len(self._ended) * _LINES // self._count > before:
            click.echo(f"{len(self._ended)} of {self._count} runs have ended, the last: {name}", err=True)
