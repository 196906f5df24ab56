"""How a long step is shown: a running clock on a terminal, plain lines elsewhere, or nothing."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import click

Show = Callable[[str], AbstractContextManager[object]]
"""Given what is being done, a block that lasts as long as it."""


def quietly(_text: str) -> AbstractContextManager[object]:
    """Show nothing."""
    return nullcontext()


@contextmanager
def aloud(text: str) -> Iterator[None]:
    """Show the step and its time on stderr: as a running clock if that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    begun = time.monotonic()
    if console.is_terminal:
        with _clock(text):
            yield
    else:
        click.echo(f"{text} ...", err=True)
        yield
    click.echo(f"{text}: {time.monotonic() - begun:.0f} s", err=True)


@contextmanager
def _clock(text: str) -> Iterator[None]:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(text, total=None)
        yield
