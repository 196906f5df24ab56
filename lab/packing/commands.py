"""The command `dovetail packing`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from extender.app.commands.options import NumberRange, connection, exit_codes, settings_file
from extender.words import visible_lines
from lab.errors import MissingExtra
from lab.report.files import ReportFile

if TYPE_CHECKING:
    from lab.packing.moment import ClusterMoment

_POLICIES = ("first-fit", "best-fit", "most-allocated", "stock", "fgd", "dovetail")
_ORDERS = ("arrival", "cpu", "memory", "sum")


def _compared(_context: click.Context, _option: click.Parameter, given: str) -> list[str]:
    names = [name.strip() for name in given.split(",")]
    unknown = next((name for name in names if name not in _POLICIES), None)
    if unknown is not None:
        raise click.BadParameter(f"{unknown!r}; accepted: {', '.join(_POLICIES)}, with commas between them")
    return list(dict.fromkeys(names))


@click.group()
def packing() -> None:
    """Say how well a cluster is packed, and how few nodes would do."""


@packing.command(epilog=exit_codes("reported", "an error"))
@click.argument("source", type=click.Path(path_type=Path), required=False)
@connection
@settings_file
@click.option(
    "--compare",
    "names",
    default="dovetail",
    show_default=True,
    metavar="NAME,NAME",
    callback=_compared,
    help="How nodes are chosen: dovetail, stock (kube-scheduler's), most-allocated, fgd, best-fit, first-fit.",
)
@click.option("--order", default="arrival", show_default=True, type=click.Choice(_ORDERS), help="Which tasks go first.")
@click.option(
    "--tau",
    default=0.6,
    show_default=True,
    type=NumberRange(0, 100, max_open=True),
    help="Percent of the tasks that may find no place.",
)
@click.option(
    "--mu", default=1, show_default=True, type=click.IntRange(1), help="By how many nodes the answer may be off."
)
@click.option(
    "--trials",
    default=11,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="How many random orders of the nodes to try.",
)
@click.option(
    "--unit",
    default=10.0,
    show_default=True,
    type=NumberRange(0, 100, min_open=True),
    help="The size of the unit that fills holes, in percent of what --unit-of says.",
)
@click.option(
    "--unit-of",
    default="median",
    show_default=True,
    type=click.Choice(("median", "node", "tasks")),
    help="The median node; each node itself; or this percentile of what tasks ask for.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="The seed of all random numbers.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of words.")
@click.option("--report", "file", type=ReportFile(), help="Also write a report with plots: one HTML file.")
def report(
    *,
    source: Path | None,
    kubeconfig: Path | None,
    context: str,
    config: Path | None,
    names: list[str],
    order: str,
    tau: float,
    mu: int,
    trials: int,
    unit: float,
    unit_of: str,
    seed: int,
    as_json: bool,
    file: Path | None,
) -> None:
    """Say how many nodes would hold a workload, how much more would fit, and what is stranded.

    SOURCE is a file of `dovetail record`, of which the last checkpoint counts, or the folder of a trace. Without it the
    cluster is read: its nodes and pods, once. Nothing is changed. The measures are those of "Evaluating job packing in
    warehouse-scale computing".
    """
    MissingExtra.unless_installed(*(("matplotlib",) if file else ()))
    from lab.packing.compaction import CompactionLimits, Policy
    from lab.packing.reporting import Asked, report_of, steps
    from lab.packing.words import words

    moment = _live(kubeconfig, context, config) if source is None else _read(source)
    asked = Asked([Policy(order, name) for name in names], CompactionLimits(tau / 100, mu, trials, seed), unit, unit_of)
    with click.progressbar(length=steps(asked), label="Packing", file=sys.stderr) as bar:
        result = report_of(moment, asked, lambda: bar.update(1))
    try:
        if file is not None:
            from lab.packing import page

            page.write(file, result)
    finally:
        if as_json:
            click.echo(msgspec.json.encode(result).decode())
        else:
            click.echo(visible_lines("\n".join(words(result))))


def _read(source: Path) -> "ClusterMoment":
    from lab.packing.checkpoints import read_recording
    from lab.packing.traces import read_trace

    return read_trace(source) if source.is_dir() else read_recording(source)


def _live(kubeconfig: Path | None, context: str, config: Path | None) -> "ClusterMoment":
    from extender import settings
    from extender.adapters.kube.api import connect, understood
    from lab.packing.live import read_cluster

    in_force = settings.load(config) if config else settings.Settings()
    with understood("the cluster"):
        return read_cluster(connect(kubeconfig, context), in_force, context or "this cluster")
