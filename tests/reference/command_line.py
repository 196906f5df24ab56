"""Writes docs/reference/command-line.md from click's own help.

`python -m tests.reference.command_line` writes the file; a test compares it (tests/service/app/commands).
"""

from collections.abc import Iterator
from pathlib import Path

import click

from extender.app.commands.completion import PROGRAM
from extender.app.commands.laboratory import laboratory_commands
from extender.cli import cli

FILE = Path("docs/reference/command-line.md")
WIDTH = 100
HEAD = """# The command line

<!-- Written by `python -m tests.reference.command_line` from the commands' own help. Do not edit. -->

`dovetail` has kubectl's habits: `--kubeconfig` and `--context` say which cluster, `-n` names a pod's namespace, `-o`
says how to print the answer. `--install-namespace` says where Dovetail itself is installed, where it cannot be found.

## Exit codes

| code | |
|---|---|
| 0 | done. `doctor`: no problem was found, and everything could be read |
| 1 | an error, in one line on standard error. Or the answer is printed and is not good: something could not be read (`explain`, `queues`, `doctor`; the first line says what), there is a problem (`doctor`), something of ours is left (`drain`), the file is not valid (`validate-config`) |
| 2 | the command line is wrong: standard error says why |

## Completion

`source <(dovetail completion bash)` in `~/.bashrc`, the same with `zsh` in `~/.zshrc`, or
`dovetail completion fish | source` in `~/.config/fish/config.fish`.
"""  # noqa: E501 - a table's row is one line
LABORATORY = "The commands of the laboratory are there in a checkout of the project only."


def page() -> str:
    """Return the whole page: the service's commands, then the laboratory's."""
    laboratory = laboratory_commands()
    service = {name: command for name, command in cli.commands.items() if name not in laboratory}
    parts = [HEAD, *_sections(service), f"## The laboratory\n\n{LABORATORY}\n", *_sections(laboratory)]
    return "\n".join(parts)


def _sections(commands: dict[str, click.Command]) -> Iterator[str]:
    root = _context(cli, PROGRAM, None)
    for name in sorted(commands):
        yield from _section(commands[name], f"{PROGRAM} {name}", _context(commands[name], name, root))


def _section(command: click.Command, title: str, context: click.Context) -> Iterator[str]:
    """Yield a command's help; of a group, also that of its commands."""
    command._help_option = None  # click keeps it as it was when the command was first asked, perhaps by itself
    yield f"## `{title}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            inner = command.commands[name]
            yield from _section(inner, f"{title} {name}", _context(inner, name, context))


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    return click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )


if __name__ == "__main__":
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(page())
