"""`dovetail drain`."""

import sys
from pathlib import Path
from typing import Literal

import click

from extender.app.commands.options import FILE, connection, exit_codes


@click.command(
    epilog=exit_codes(
        "nothing of ours is left, but on pods that came meanwhile", "something is left, an error, or not confirmed"
    )
)
@click.option("--config", type=FILE, help="Settings file; names our schedulers. Default: built-in settings.")
@connection
@click.option(
    "--opportunistic",
    "way",
    default="promote",
    show_default=True,
    type=click.Choice(["promote", "evict"]),
    help="What becomes of running opportunistic pods.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--json", "as_json", is_flag=True, help="Say it as JSON.")
def drain(
    *,
    config: Path | None,
    kubeconfig: Path | None,
    context: str,
    way: Literal["promote", "evict"],
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Release every pod that Dovetail holds, before Dovetail is removed.

    Removes the admission policy that gates pods, then the gate dovetail.dev/hold from every pod and our nominations.
    Gates of others stay. Opportunistic pods that wait get their requests back; those that run are promoted or evicted.
    Can be interrupted and repeated.
    """
    from extender import settings
    from extender.app.inspection.drain import run

    if not (yes or dry_run):
        click.echo("This releases all pods that Dovetail holds, in no order. Go on? [y/N]: ", nl=False, err=True)
        if sys.stdin.buffer.readline(10).strip().lower() not in {b"y", b"yes"}:  # what is sent may have no line's end
            raise click.Abort
    in_force = settings.load(config) if config else settings.Settings()
    if not run(in_force, kubeconfig, context=context, dry_run=dry_run, as_json=as_json, way=way):
        sys.exit(1)
