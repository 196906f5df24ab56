"""`dovetail control`."""

from pathlib import Path

import click

from extender.app.commands.options import exit_codes, service_kubeconfig, settings_file


@click.command(epilog=exit_codes("ended by SIGTERM or SIGINT", "an error"))
@settings_file
@service_kubeconfig
def control(config: Path | None, kubeconfig: Path | None) -> None:
    """Release held pods in their turn: nominate the node that the plan chose, then remove the gate.

    Acts only while it holds its Lease, so several replicas may run. Also serves /livez, /readyz and /metrics. Logs to
    standard error. SIGTERM finishes what is being written, gives the Lease up, then ends.
    """
    from extender import settings
    from extender.app.controlling import control as run

    run(settings.load(config) if config else settings.Settings(), kubeconfig)
