"""The group of all commands: the service's own, and those of the laboratory where it is beside the service."""

import importlib
from pathlib import Path

import click

LABORATORY = ("bench", "control-plane", "demo", "experiment", "graph", "packing", "playground", "simulate")
_CHECKOUT = Path(__file__).parents[3]
_WHERE = "Run it in a checkout of the project: `make setup`, then `.venv/bin/dovetail`."


def laboratory_commands() -> dict[str, click.Command]:
    """Return the commands of the laboratory by name; none where it is not beside the service, as in the image."""
    if not (_CHECKOUT / "lab" / "commands.py").is_file():
        return {}
    commands = importlib.import_module("lab.commands").COMMANDS  # it imports us, so we never name it in an import
    return {command.name: command for command in commands}


class Commands(click.Group):
    """The service's commands, and those of the laboratory where it is."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *laboratory_commands()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; say where to find one of the laboratory that is not here."""
        command = super().get_command(ctx, cmd_name)
        if command is not None or cmd_name not in LABORATORY:
            return command
        laboratory = laboratory_commands()
        if not laboratory:
            ctx.fail(f"{cmd_name!r} is a command of the laboratory, which is not here. {_WHERE}")
        return laboratory.get(cmd_name)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """State the exit codes; say where the laboratory is, where it is not here."""
        super().format_epilog(ctx, formatter)
        if not laboratory_commands():
            formatter.write_paragraph()
            formatter.write_text(f"The laboratory ({', '.join(LABORATORY)}) is not here. {_WHERE}")
