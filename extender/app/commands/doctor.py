"""`dovetail doctor`."""

import sys
from dataclasses import replace

import click

from extender.app.commands.options import asking, exit_codes
from extender.app.inspection.query import Query


@click.command(epilog=exit_codes("no problem was found", "a problem, an error, or something could not be read"))
@click.option("--extender", default="", metavar="URL", help="Address of `dovetail serve`. Default: through its pods.")
@click.option("--control", default="", metavar="URL", help="Address of `dovetail control`. Default: through its pods.")
@asking("--namespace")
def doctor(query: Query, extender: str, control: str) -> None:
    """Say what is wrong with an installation, and what to do.

    Works with whatever rights you have; the first line says what may not be read.
    """
    from extender.app.inspection import answers

    text, well = answers.examine(replace(query, control=control), extender)
    click.echo(text)
    sys.exit(0 if well else 1)
