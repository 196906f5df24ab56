"""Options of a command that has others below it, and does something by itself as well."""

import click
from click.core import ParameterSource


def refuse_before(context: click.Context) -> None:
    """Raise click.UsageError for an option that stands before the name of another command: nobody would read it."""
    for name in context.params:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = next(one.opts[0] for one in context.command.params if one.name == name)
            command = context.invoked_subcommand
            raise click.UsageError(f"{option} stands before {command}; accepted: behind it, if {command} takes it")
