"""The command `dovetail`."""

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from extender.errors import DovetailError

_FILE = click.Path(dir_okay=False, path_type=Path)
_USER_FILE = Path.home() / ".kube" / "config"


_LABORATORY = ("bench", "control-plane", "demo", "experiment", "simulate")


def _laboratory() -> dict[str, click.Command]:
    """Return the commands of the laboratory by name; none where it is not beside the service, as in the image."""
    if not (Path(__file__).parents[1] / "lab" / "commands.py").is_file():
        return {}
    commands = importlib.import_module("lab.commands").COMMANDS  # it imports us, so we never name it in an import
    return {command.name: command for command in commands}


class _Commands(click.Group):
    """The service's commands, and those of the laboratory where it is."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *_laboratory()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name; say where to find one of the laboratory that is not here."""
        found = super().get_command(ctx, cmd_name) or (_laboratory().get(cmd_name) if cmd_name in _LABORATORY else None)
        if found is None and cmd_name in _LABORATORY:
            ctx.fail(f"{cmd_name!r} is a command of the laboratory, which is not here. {_WHERE}")
        return found

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Say where the laboratory is, where it is not here."""
        if not _laboratory():
            formatter.write_paragraph()
            formatter.write_text(f"The laboratory ({', '.join(_LABORATORY)}) is not here. {_WHERE}")


_WHERE = "Run it in a checkout of the project: `make setup`, then `.venv/bin/dovetail`."


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dovetail")
def cli() -> None:
    """Pack a Kubernetes cluster by all its resources.

    Dovetail is a scheduler extender: kube-scheduler asks it which nodes may take a pod, and which fits it best.
    """


@cli.command()
@click.option("--config", type=_FILE, help="Settings file (kind: DovetailConfiguration). Default: built-in settings.")
@click.option("--kubeconfig", type=_FILE, help="How to reach the API server. Default: the cluster that we run in.")
def serve(config: Path | None, kubeconfig: Path | None) -> None:
    """Answer kube-scheduler's filter, prioritize and preempt calls.

    Also serves /livez, /readyz and /metrics. Logs to standard error. SIGTERM answers what has been asked, then ends.
    """
    from extender import settings
    from extender.app.serving import serve as run

    found = settings.load(config) if config else settings.Settings()
    run(found, kubeconfig)


@cli.command()
@click.option("--config", type=_FILE, help="Settings file (kind: DovetailConfiguration). Default: built-in settings.")
@click.option("--kubeconfig", type=_FILE, help="How to reach the API server. Default: the cluster that we run in.")
def control(config: Path | None, kubeconfig: Path | None) -> None:
    """Release held pods in their turn: nominate the node that the plan chose, then remove the gate.

    Acts only while it holds its Lease, so several replicas may run. Also serves /livez, /readyz and /metrics. Logs to
    standard error. SIGTERM finishes what is being written, gives the Lease up, then ends.
    """
    from extender import settings
    from extender.app.controlling import control as run

    found = settings.load(config) if config else settings.Settings()
    run(found, kubeconfig)


_kubeconfig = click.option(
    "--kubeconfig",
    type=_FILE,
    envvar="KUBECONFIG",
    default=lambda: _USER_FILE if _USER_FILE.is_file() else None,
    help="How to reach the API server. Default: $KUBECONFIG, ~/.kube/config, the cluster that we run in.",
)


_namespace = click.option(
    "--namespace", default="", metavar="NAME", help="Where Dovetail is. Default: where its ClusterRoleBindings say."
)


def _asking(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the options of those who look at a cluster from outside."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON for machines."),
        click.option("--config", type=_FILE, help="Settings file. Default: the ConfigMap of the cluster's Dovetail."),
        _namespace,
        _kubeconfig,
    ):
        command = option(command)
    return command


@cli.group()
def explain() -> None:
    """Explain what became of something, and why."""


@explain.command("pod")
@click.argument("name", metavar="NAMESPACE/NAME")
@click.option("--control", default="", metavar="URL", help="Address of `dovetail control`. Default: through its pods.")
@_asking
def explain_pod(
    name: str, kubeconfig: Path | None, namespace: str, config: Path | None, as_json: bool, control: str
) -> None:
    """Explain why a pod waits, or why it went where it went.

    Reads the cluster and makes the plan that `dovetail control` would make now: queue and shares, position, how the
    best nodes suit it, and what would have to change. Where pods wait for room near their input, `control` is asked for
    how long they have. Exits with 1 where something may not be read; the first line says what.
    """
    from extender.app.inspection import answers as seeing

    text, complete = seeing.explain_pod(seeing.Asked(kubeconfig, config, as_json, namespace, control), name)
    click.echo(text)
    sys.exit(0 if complete else 1)


@cli.command()
@_asking
def queues(kubeconfig: Path | None, namespace: str, config: Path | None, as_json: bool) -> None:
    """Show each queue's share and fair share, what runs, what waits, and its oldest wait.

    Exits with 1 where something may not be read; the first line says what.
    """
    from extender.app.inspection import answers as seeing

    text, complete = seeing.show_queues(seeing.Asked(kubeconfig, config, as_json, namespace))
    click.echo(text)
    sys.exit(0 if complete else 1)


@cli.command()
@click.option("--extender", default="", metavar="URL", help="Address of `dovetail serve`. Default: through its pods.")
@click.option("--control", default="", metavar="URL", help="Address of `dovetail control`. Default: through its pods.")
@_asking
def doctor(
    kubeconfig: Path | None, namespace: str, config: Path | None, as_json: bool, extender: str, control: str
) -> None:
    """Say what is wrong with an installation, and what to do.

    Works with whatever rights you have; the first line says what may not be read. Exits with 1 where there is a
    problem, or something was not read.
    """
    from extender.app.inspection import answers as seeing

    text, well = seeing.examine(seeing.Asked(kubeconfig, config, as_json, namespace, control), extender)
    click.echo(text)
    sys.exit(0 if well else 1)


@cli.command()
@click.option("--config", type=_FILE, help="Settings file; names our schedulers. Default: built-in settings.")
@_kubeconfig
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.option("--json", "as_json", is_flag=True, help="Say it as JSON.")
def drain(config: Path | None, kubeconfig: Path | None, yes: bool, dry_run: bool, as_json: bool) -> None:
    """Take Dovetail's hands off every waiting pod, before it is removed.

    Removes the admission policy that gates pods, then the gate dovetail.dev/hold from every pod and our nominations.
    Gates of others stay. Can be interrupted and repeated. Ends with 1 where something of ours is left.
    """
    from extender import settings
    from extender.app.inspection.drain import run

    if not (yes or dry_run):
        click.confirm("This releases all pods that Dovetail holds, in no order. Go on?", abort=True, err=True)
    found = settings.load(config) if config else settings.Settings()
    if not run(found, kubeconfig, dry_run=dry_run, as_json=as_json):
        sys.exit(1)


@cli.command("validate-config")
@click.argument("file", type=_FILE)
def validate_config(file: Path) -> None:
    """Check a settings file: names each wrong key, its value, and what is accepted. Warns of what is not meant so."""
    from extender import settings
    from extender.control.queues.tree import QueueTree

    found = settings.load(file)
    for warning in QueueTree(found.declared_queues()).warnings():
        click.echo(f"{file}: warning: {warning}", err=True)
    click.echo(f"{file}: valid ({found.api_version} {found.kind}, rule {found.placement.rule})")


_MOST = 1_000_000


class _Finite(click.FloatRange):
    """A number in a range; what is none is in no range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's signature
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return found


_AMOUNT = _Finite(1 / _MOST, _MOST)


@cli.command()
@click.option("--target", type=_Finite(0, 1, max_open=True), help="The part of tasks to start near their input.")
@click.option("--wait", type=_Finite(0, _MOST), help="Instead: what so many seconds of waiting come to.")
@click.option("--from-cluster", is_flag=True, help="Ask the cluster's `dovetail control`. Follows from --kubeconfig.")
@click.option("--metrics", default="", metavar="URL", help="Instead: read the /metrics of one.")
@click.option("--tasks", type=click.IntRange(1, _MOST), help="Tasks of a job.  [default: measured, else 20]")
@click.option("--nodes", type=click.IntRange(1, _MOST), help="Nodes of the cluster.  [default: measured, else 100]")
@click.option("--replicas", type=click.IntRange(1, _MOST), help="Copies of each input.  [default: measured, else 3]")
@click.option("--slots", type=_AMOUNT, help="Tasks per node, where nothing is measured.  [default: 8]")
@click.option("--task-seconds", type=_AMOUNT, help="Length of a task, where nothing is measured.  [default: 20]")
@click.option(
    "--rate",
    type=_AMOUNT,
    help="How many places free up per second under load.  [default: measured, else nodes x slots / task-seconds]",
)
@_kubeconfig
@_namespace
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def locality(
    from_cluster: bool,
    metrics: str,
    kubeconfig: Path | None,
    namespace: str,
    as_json: bool,
    **said: Any,  # noqa: ANN401 - the options that Given takes
) -> None:
    """Say how long a job should wait for room near its input (Delay Scheduling, equation 2).

    From a target to the chances D that it lets pass and the wait W1, or with --wait from a wait to the locality. With
    --from-cluster or --metrics by what `dovetail control` measured, and beside it the locality that came of it.
    """
    from extender.app.inspection import locality_wait as calculating
    from extender.app.inspection import measured as measuring

    given = calculating.Given(**said)
    if (given.target is None) == (given.wait is None):
        raise click.UsageError("give either --target or --wait")
    if from_cluster and metrics:
        raise click.UsageError("give either --from-cluster or --metrics")
    named = click.get_current_context().get_parameter_source("kubeconfig") is ParameterSource.COMMANDLINE
    from_cluster = from_cluster or (named and not metrics)
    if (from_cluster or metrics) and (given.slots or given.task_seconds):
        raise click.UsageError("--slots and --task-seconds are for where nothing is measured; give --rate instead")
    measured = measuring.by_metrics(metrics) if metrics else None
    if from_cluster:
        measured = measuring.by_cluster(kubeconfig, namespace)
    asked = calculating.question(given, measured)
    found = calculating.answer(asked)
    told = calculating.as_json if as_json else calculating.words
    click.echo(told(asked, found, measured))


def main() -> None:
    """Run the command; a mistake of the user ends in one line, not in a traceback."""
    try:
        cli()
    except DovetailError as error:
        click.echo(f"dovetail: {error}", err=True)
        sys.exit(1)
