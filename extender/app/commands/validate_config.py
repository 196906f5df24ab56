"""`dovetail validate-config`."""

from pathlib import Path

import click

from extender.app.commands.options import FILE, exit_codes


@click.command("validate-config", epilog=exit_codes("the file is valid", "it is not, or cannot be read"))
@click.argument("file", type=FILE)
def validate_config(file: Path) -> None:
    """Check a settings file: name each wrong key, its value, and what is accepted; warn of likely mistakes."""
    from extender import settings
    from extender.control.queues.tree import QueueTree

    valid = settings.load(file)
    for warning in QueueTree(valid.declared_queues()).warnings():
        click.echo(f"{file}: warning: {warning}", err=True)
    click.echo(f"{file}: valid ({valid.api_version} {valid.kind}, rule {valid.placement.rule})")
