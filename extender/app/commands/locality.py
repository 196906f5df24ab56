"""`dovetail locality`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from extender.app.commands.options import NumberRange, connection, exit_codes, install_namespace

if TYPE_CHECKING:
    from extender.app.inspection.locality_wait import Given

_MOST = 1_000_000
_AMOUNT = NumberRange(1 / _MOST, _MOST)


@click.command(epilog=exit_codes("answered", "an error, or not measured yet"))
@click.option("--target", type=NumberRange(0, 1, max_open=True), help="The part of tasks to start near their input.")
@click.option("--wait", type=NumberRange(0, _MOST), help="Instead: what so many seconds of waiting come to.")
@click.option(
    "--from-cluster",
    is_flag=True,
    help="Ask the cluster's `dovetail control`. Follows from --kubeconfig and --context.",
)
@click.option("--metrics", default="", metavar="URL", help="Instead: read the /metrics of a `dovetail control`.")
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
@connection
@install_namespace("--namespace")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def locality(
    *,
    from_cluster: bool,
    metrics: str,
    kubeconfig: Path | None,
    context: str,
    install_namespace: str,
    as_json: bool,
    **given_options: Any,  # noqa: ANN401 - the options that Given takes
) -> None:
    """Say how long a job should wait for room near its input (Delay Scheduling, equation 2).

    With --target: how many chances to start elsewhere a job lets pass (D), and how long it waits (W1). With --wait:
    which part of its tasks then start near their input. With --from-cluster or --metrics this goes by what `dovetail
    control` measured, and the part that did start near it is shown beside.
    """
    from extender.app.inspection import locality_wait
    from extender.app.inspection.measured import by_cluster, by_metrics

    given = locality_wait.Given(**given_options)
    from_cluster = from_cluster or (_names_a_cluster() and not metrics)
    _check(given, metrics, from_cluster)
    measured = by_metrics(metrics) if metrics else None
    if from_cluster:
        measured = by_cluster(kubeconfig, context, install_namespace)
    question = locality_wait.question(given, measured)
    answer = locality_wait.answer(question)
    printed = locality_wait.as_json if as_json else locality_wait.words
    click.echo(printed(question, answer, measured))


def _names_a_cluster() -> bool:
    """Say whether the command line itself names a cluster."""
    source = click.get_current_context().get_parameter_source
    return ParameterSource.COMMANDLINE in (source("kubeconfig"), source("context"))


def _check(given: "Given", metrics: str, from_cluster: bool) -> None:
    """Refuse options that do not go together."""
    if (given.target is None) == (given.wait is None):
        raise click.UsageError("give either --target or --wait")
    if from_cluster and metrics:
        raise click.UsageError("give either --from-cluster or --metrics")
    if (from_cluster or metrics) and (given.slots or given.task_seconds):
        raise click.UsageError("--slots and --task-seconds are for where nothing is measured; give --rate instead")
