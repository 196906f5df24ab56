"""The command `dovetail simulate`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from extender.errors import MissingExtra
from lab.report.files import ReportFile

if TYPE_CHECKING:
    from lab.sim.engine.outcome import Outcome
    from lab.sim.runs import Run

TRACES = Path("../shared/traces")
"""The default folder of the workload traces."""

_FILE = ReportFile()
_PLAIN_WIDTH = 120


def _list(context: click.Context, _option: click.Parameter, listed: bool) -> None:
    """Print what can be named, and end."""
    if not listed:
        return
    from lab.sim.schedulers.policies import POLICIES
    from lab.sim.workloads.specs import MACHINES, WORKLOADS

    for title, choices in (
        ("workloads", WORKLOADS),
        ("machines", MACHINES),
        ("policies", {name: choice.about for name, choice in POLICIES.items()} | {"recorded": "what was done"}),
    ):
        click.echo(f"{title}:")
        for name, about in choices.items():
            click.echo(f"  {name}\n      {about}")
    context.exit()


@click.command()
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="What can be named below."
)
@click.option("--workload", required=True, metavar="SPEC", help="What is replayed: see --list.")
@click.option("--policy", "policies", required=True, metavar="NAME[,NAME...]", help="Who schedules it; see --list.")
@click.option("--machines", required=True, metavar="SPEC", help="On what; see --list.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="What is drawn is drawn by this.")
@click.option(
    "--heartbeat",
    default=3.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Seconds between two plans; 0: whenever something happens, as always with a recording unless it is given.",
)
@click.option(
    "--loss",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0),
    help="How much goodput contention on disk and network wastes, besides sharing.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead of a table.")
@click.option("--report", type=_FILE, help="Also write a report with plots: one HTML file.")
@click.option(
    "--traces",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder of the workload traces. Default: {TRACES}, where it exists.",
)
@click.option("--processes", type=click.IntRange(1), help="How many runs at once.  [default: one per core]")
def simulate(
    *,
    workload: str,
    policies: str,
    machines: str,
    seed: int,
    heartbeat: float,
    loss: float,
    as_json: bool,
    report: Path | None,
    traces: Path | None,
    processes: int | None,
) -> None:
    """Replay a workload through one or more schedulers, in simulated time.

    Machines have six dimensions; tasks that over-allocate disk, network or CPU slow each other down. Dovetail's own
    policies are the planner itself. The first policy is what the others are compared with.
    """
    MissingExtra.unless_installed("rich", *(("matplotlib",) if report else ()))
    from lab.sim.engine.clock import SimulationSettings
    from lab.sim.runs import Run, recording
    from lab.sim.workloads import specs

    folder = traces or TRACES
    replay = recording(workload)
    if replay and click.get_current_context().get_parameter_source("heartbeat") is ParameterSource.DEFAULT:
        heartbeat = 0.0  # what was recorded waited for no heartbeat
    runs = {
        name: Run(workload, machines, name, seed, settings=SimulationSettings(heartbeat, loss), traces=folder)
        for name in _names(policies)
    }
    told = replay.workload.about if replay else specs.workload(workload, seed, folder).about
    on = machines if replay and machines == replay.machines.name else specs.machines(machines).name
    about = " ".join((_about(told, on, heartbeat, loss), *(replay.notes if replay else ())))
    outcomes = _perform(runs, processes)
    if report:
        from lab.sim.report import page

        page.write(report, about, outcomes)
    _print_json(outcomes) if as_json else _print_table(about, outcomes)
    if report:
        click.echo(f"report: {report.resolve()}", err=as_json)


def _names(policies: str) -> list[str]:
    """Return the policies that were named, each once. Raises click.BadParameter for one that does not exist."""
    from lab.sim.schedulers.policies import POLICIES

    names = list(dict.fromkeys(name.strip() for name in policies.split(",")))
    accepted = [*POLICIES, "recorded"]
    for name in names:
        if name not in accepted:
            raise click.BadParameter(f"{name!r}; accepted: {', '.join(accepted)}", param_hint="--policy")
    return names


def _perform(tasks: dict[str, "Run"], processes: int | None) -> "list[Outcome]":
    from lab.report import progress
    from lab.sim import parallel, runs

    with progress.each(list(tasks), "tasks") as show:
        results = parallel.run_all(runs.perform, tasks, processes=processes or parallel.usable_cores(), show=show)
    return list(parallel.unless_failed(results).values())


def _about(workload: str, machines: str, heartbeat: float, loss: float) -> str:
    beat = f"a plan every {heartbeat:g} s" if heartbeat else "a plan whenever something happens"
    wasted = f"contention wastes goodput (loss {loss:g})" if loss else "contention wastes nothing beyond sharing"
    return f"{workload[:1].upper()}{workload[1:]}; machines {machines}; {beat}; {wasted}."


def _print_table(about: str, runs: "Sequence[Outcome]") -> None:
    from rich.console import Console

    from lab.sim.report import tables

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(width=_PLAIN_WIDTH, highlight=False)
    console.print(about)
    console.print(tables.table(runs))
    for note in tables.NOTES:
        console.print(note)
        console.print()


def _print_json(runs: "Sequence[Outcome]") -> None:
    from lab.sim.report import tables

    click.echo(json.dumps(tables.as_json(runs)))
