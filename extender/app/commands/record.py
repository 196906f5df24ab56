"""`dovetail record`."""

import errno
import os
import signal
import sys
from pathlib import Path

import click

from extender.app.commands.options import FILE, connection, exit_codes, settings_file


@click.command(epilog=exit_codes("ended by SIGINT or SIGTERM", "an error"))
@connection
@settings_file
@click.option(
    "--append",
    type=FILE,
    help="Write to this file instead of standard output. If the file exists, go on with it, and note what was missed.",
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Write pseudonyms in place of names. Their key is not kept, so --append cannot go on with such a file.",
)
def record(*, kubeconfig: Path | None, context: str, config: Path | None, append: Path | None, anonymous: bool) -> None:
    """Write what a cluster does, until Ctrl-C: its nodes as they come and go, and each pod when it ends.

    Reads nodes and pods, and changes nothing. One JSON object a line, on standard output. Logs go to standard error.
    """
    from extender import settings
    from extender.adapters.kube.api import connect
    from extender.app.logs import configure_logs
    from extender.app.recording import Recording, go_on
    from extender.cluster.recording.past import NOTHING
    from extender.errors import DovetailError
    from extender.settings.sections import LogSettings

    configure_logs(LogSettings(level="warning", format="text"))
    in_force = settings.load(config) if config else settings.Settings()
    api = connect(kubeconfig, context)
    past = go_on(append) if append else NOTHING
    if anonymous and past is not NOTHING:
        raise click.UsageError(f"--anonymous: {append} has plain names; accepted: a file that is not there yet")
    try:
        output = append.open("ab") if append else sys.stdout.buffer
        recording = Recording(api, output, in_force, past=past, anonymous=anonymous)
        for ending in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ending, lambda _number, _frame: recording.stop())
        recording.run()
        click.echo(
            f"{recording.summary}. Replay it: dovetail simulate --workload recording:{append or 'FILE'}", err=True
        )
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever read it has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise DovetailError(f"the recording cannot be written: {error.strerror}") from None
