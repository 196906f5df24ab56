"""The command `dovetail`: its commands put together (`extender.app.commands`)."""

import errno
import io
import os
import sys
from pathlib import Path

import click

from extender.app.commands.completion import PROGRAM, completion
from extender.app.commands.control import control
from extender.app.commands.doctor import doctor
from extender.app.commands.drain import drain
from extender.app.commands.explain import explain
from extender.app.commands.laboratory import Commands
from extender.app.commands.locality import locality
from extender.app.commands.options import exit_codes
from extender.app.commands.queues import queues
from extender.app.commands.record import record
from extender.app.commands.serve import serve
from extender.app.commands.validate_config import validate_config
from extender.errors import DovetailError
from extender.words import visible_lines


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=exit_codes("done", "an error, named in one line on standard error, or what the command's help says"),
)
@click.version_option(package_name="dovetail")
def cli() -> None:
    """Pack a Kubernetes cluster by all its resources.

    Dovetail is a scheduler extender: kube-scheduler asks it which nodes may take a pod, and which fits it best.
    """


for command in (serve, control, explain, queues, doctor, drain, locality, record, validate_config, completion):
    cli.add_command(command)


def main() -> None:
    """Run the command; a mistake of the user ends in one line, not in a traceback."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: it has ended, or nobody reads it
            setattr(sys, name, Path(os.devnull).open(mode, errors="backslashreplace"))  # noqa: SIM115 - as long as we last
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not have every letter of a name
    try:
        cli(prog_name=PROGRAM)
    except DovetailError as error:
        click.echo(f"dovetail: {visible_lines(str(error))}", err=True)
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENOSPC and error.filename is None:
            raise
        about = error.filename or "what was to be written does not fit"
        click.echo(f"dovetail: {visible_lines(str(about))}: {error.strerror}", err=True)
        sys.exit(1)
