"""The command `dovetail demo`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lab.controlplane.commands import kubernetes_option
from lab.errors import MissingExtra
from lab.report.files import ReportFile

if TYPE_CHECKING:
    from rich.console import Console

    from lab.demo.seeds import Seeds
    from lab.demo.workload import DemoSize, DemoWorkload

_FILE = ReportFile()
_PICTURES = (".png", ".svg")
_WIDTH = 100


def _picture(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    """Check the picture's form before minutes have gone into it."""
    if path is not None and path.suffix not in _PICTURES:
        raise click.BadParameter(f"{path} ends in {path.suffix!r}; accepted: {', '.join(_PICTURES)}")
    return path


@click.command()
@click.option("--nodes", type=click.IntRange(1, 1000), help="How many nodes.  [default: 20; quick: 10]")
@click.option("--pods", type=click.IntRange(1, 20_000), help="How many pods.  [default: 900; quick: 120]")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The seed of the workload.")
@click.option(
    "--seeds", default=1, show_default=True, type=click.IntRange(1, 100), help="How many seeds, from --seed on."
)
@kubernetes_option
@click.option("--queues", is_flag=True, help="Instead: three queues that come one after the other, and how they share.")
@click.option("--quick", is_flag=True, help="Few short pods: shows that it works, not what it gains.")
@click.option("--output", type=_FILE, default=Path("out/demo.html"), show_default=True, help="Where the report goes.")
@click.option("--picture", type=_FILE, callback=_picture, help="Also draw a .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON instead of a table.")
def demo(
    *,
    nodes: int | None,
    pods: int | None,
    seed: int,
    seeds: int,
    kubernetes: str,
    queues: bool,
    quick: bool,
    output: Path,
    picture: Path | None,
    as_json: bool,
) -> None:
    """Run one workload twice: by the stock scheduler, and with Dovetail.

    The control plane is real and runs on loopback; the nodes are simulated. Takes two to three minutes once the
    programs are built; where they are not, it shows first what the simulator says of the workload. Prints the figures
    side by side and writes a report with plots. With several seeds, by turns on one control plane, it prints how much
    less time each takes, and shows the median seed.
    """
    MissingExtra.unless_installed("matplotlib", "rich", "trustme")
    if queues:
        if seeds > 1:
            raise click.BadParameter("--queues shows one seed; leave one of the two out", param_hint="--seeds")
        _share_by_queues(seed, kubernetes, picture, quick=quick, as_json=as_json)
        return
    from lab.demo.workload import FULL, QUICK, DemoSize

    usual = QUICK if quick else FULL
    size = DemoSize(nodes or usual.nodes, pods or usual.pods, usual.work_seconds)
    compared = _compare(size, range(seed, seed + seeds), kubernetes)
    try:
        compared.write_report(output)
        if picture is not None:
            compared.shown.write_picture(picture)
    finally:
        click.echo(json.dumps(compared.as_json(), indent=2)) if as_json else _print_tables(compared)
    for path in (output, picture):
        if path is not None:
            click.echo(f"{'report' if path is output else 'picture'}: {path.resolve()}", err=as_json)


def _share_by_queues(seed: int, kubernetes: str, picture: Path | None, *, quick: bool, as_json: bool) -> None:
    """Run three queues with Dovetail and show how they shared."""
    from extender.app.logs import configure_logs
    from extender.settings import LogSettings
    from lab.controlplane import commands
    from lab.demo import queues, run, shares, showing

    configure_logs(LogSettings(level="error", format="text"))
    programs = commands.paths(commands.provide(kubernetes))
    workload = queues.three_queues(seed=seed, quick=quick)
    with showing.progress(len(workload.tasks)) as show, run.cluster_of(programs, workload) as control_plane:
        outcome = run.run(control_plane, workload, run.DOVETAIL, show(run.DOVETAIL.name))
    shared = shares.shares(workload, outcome.times)
    if as_json:
        click.echo(json.dumps(queues.as_json(shared), indent=2))
    else:
        queues.show(_console(), shared, outcome.kubernetes)
    if picture is not None:
        queues.picture(shared, picture)
        click.echo(f"picture: {picture.resolve()}", err=as_json)


def _compare(size: "DemoSize", seeds: Sequence[int], kubernetes: str) -> "Seeds":
    from extender.app.logs import configure_logs
    from extender.settings import LogSettings
    from lab.controlplane import commands
    from lab.demo import comparison, showing, workload
    from lab.demo.seeds import Seeds

    configure_logs(LogSettings(level="error", format="text"))
    workloads = {seed: workload.generate(size, seed=seed) for seed in seeds}
    if not commands.is_built(kubernetes):
        _show_simulated(workloads[seeds[0]], seeds[0])
    programs = commands.paths(commands.provide(kubernetes))
    with showing.progress(size.pods) as show:
        return Seeds(comparison.run_by_turns(programs, workloads, show))


def _show_simulated(pods: "DemoWorkload", seed: int) -> None:
    """Show on standard error what the simulator says of the workload, to be read while the programs are built."""
    from rich.console import Console

    from lab.demo import simulated

    simulated.show(Console(stderr=True, highlight=False), simulated.simulate(pods, seed=seed))


def _print_tables(compared: "Seeds") -> None:
    from lab.demo import report

    console, shown = _console(), compared.shown
    if len(compared.comparisons) > 1:
        compared.print(console)
    console.print(shown.about)
    report.table(console, shown.rows)
    for text in shown.notes:
        console.print(text)
        console.print()


def _console() -> "Console":
    from rich.console import Console

    terminal = Console()
    return Console(width=min(terminal.width, _WIDTH) if terminal.is_terminal else _WIDTH, highlight=False)
