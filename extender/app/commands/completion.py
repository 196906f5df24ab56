"""`dovetail completion`."""

import click
from click.shell_completion import get_completion_class

from extender.app.commands.options import exit_codes

_SHELLS = ("bash", "zsh", "fish")
PROGRAM = "dovetail"


@click.command(epilog=exit_codes("printed", "an error"))
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what makes a shell complete Dovetail's commands and options.

    bash: source <(dovetail completion bash); zsh: the same, with zsh; fish: dovetail completion fish | source. For all
    later shells, write the line to ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(kind(context.find_root().command, {}, PROGRAM, f"_{PROGRAM.upper()}_COMPLETE").source())
