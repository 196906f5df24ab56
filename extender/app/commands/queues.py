"""`dovetail queues`."""

import sys

import click

from extender.app.commands.options import ANSWERED, asking
from extender.app.inspection.query import Query


@click.command(epilog=ANSWERED)
@asking("--namespace")
def queues(query: Query) -> None:
    """Show each queue's share and fair share, what runs, what waits, and its oldest wait."""
    from extender.app.inspection import answers

    text, complete = answers.show_queues(query)
    click.echo(text)
    sys.exit(0 if complete else 1)
