"""Options that several commands have, and those of a command that has others below it."""

from pathlib import Path

import click
from click.core import ParameterSource

TRACES = Path("../shared/traces")
"""Where the workload traces are beside a checkout."""

traces_option = click.option(
    "--traces",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help=f"Folder of the workload traces. Default: {TRACES}, where it exists.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")


def refuse_before(context: click.Context) -> None:
    """Raise click.UsageError for an option that stands before the name of another command: nobody would read it."""
    for name in context.params:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = next(one.opts[0] for one in context.command.params if one.name == name)
            command = context.invoked_subcommand
            raise click.UsageError(f"{option} stands before {command}; accepted: behind it, if {command} takes it")
