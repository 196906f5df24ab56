"""`dovetail serve`."""

from pathlib import Path

import click

from extender.app.commands.options import exit_codes, service_kubeconfig, settings_file


@click.command(epilog=exit_codes("ended by SIGTERM or SIGINT", "an error"))
@settings_file
@service_kubeconfig
@click.option(
    "--with-control",
    is_flag=True,
    help="Run `dovetail control` in the same process, with the rights of both. Its health and metrics are at the next "
    "port.",
)
def serve(config: Path | None, kubeconfig: Path | None, *, with_control: bool) -> None:
    """Answer kube-scheduler's filter, prioritize and preempt calls.

    Also serves /livez, /readyz and /metrics. Logs to standard error. SIGTERM answers what has been asked, then ends.
    """
    from extender import settings
    from extender.app.serving import serve as run
    from extender.app.together import serve_with_control

    (serve_with_control if with_control else run)(settings.load(config) if config else settings.Settings(), kubeconfig)
