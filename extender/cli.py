"""The command `dovetail`."""

import sys

import click

from extender.errors import DovetailError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dovetail")
def cli() -> None:
    """Pack a Kubernetes cluster by all its resources."""


def main() -> None:
    """Run the command; a mistake of the user ends in one line, not in a traceback."""
    try:
        cli()
    except DovetailError as error:
        click.echo(f"dovetail: {error}", err=True)
        sys.exit(1)
