"""The command `dovetail simulate`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from extender.app.commands.options import NumberRange
from extender.cluster.resources import DIMENSIONS
from extender.errors import DovetailError
from lab.errors import MissingExtra
from lab.options import TRACES, traces_option
from lab.report.files import ReportFile

if TYPE_CHECKING:
    from lab.sim.engine.outcome import Outcome
    from lab.sim.runs import Run
    from lab.sim.workloads.workload import Machines, Workload

_FILE = ReportFile()
_PLAIN_WIDTH = 120
_COMPARED = "kube-default,dovetail"
"""The policies where none is named: what a cluster has, and what it would have."""


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


def _schema(context: click.Context, _option: click.Parameter, name: str | None) -> None:
    """Print the schema of a format, and end."""
    if name is None:
        return
    from lab.sim.files.format import schema

    click.echo(json.dumps(schema(name), indent=2))
    context.exit()


@click.command()
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list,
    help="List the workloads, machines and policies that the options below accept.",
)
@click.option(
    "--schema",
    type=click.Choice(["workload", "machines"]),
    is_eager=True,
    expose_value=False,
    callback=_schema,
    help="Print the JSON Schema of a line of a workload or machines file.",
)
@click.option(
    "--workload",
    required=True,
    metavar="SPEC|FILE",
    help="The workload: a name from --list, or a .jsonl, .csv or .json file.",
)
@click.option(
    "--policy",
    "policies",
    metavar="NAME[,NAME...]",
    help="Schedulers, from --list.  [default: kube-default,dovetail; on a recording's machines also recorded]",
)
@click.option(
    "--machines",
    metavar="SPEC|FILE",
    help="The machines: a name from --list, or a .jsonl file.  [default with a recording: recorded; else required]",
)
@click.option(
    "--settings",
    "settings_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The settings file of serve and control: queues, and the policy by which `dovetail` and `graphene` plan.",
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE[,VALUE...]",
    help="One key of the settings: policy.fairness=0.5. With several values `dovetail` and `graphene` run with each.",
)
@click.option(
    "--know",
    default=1.0,
    show_default=True,
    type=NumberRange(0, 1),
    metavar="PART",
    help="How much schedulers know of durations. 0.5: what they expect of a stage is wrong by a random factor between "
    "0.5 and 2; 0: they expect the same of all.",
)
@click.option(
    "--know-demands",
    default=1.0,
    show_default=True,
    type=NumberRange(1e-6, 1),
    metavar="PART",
    help="How much schedulers know of demands. 0.5: what a stage declares of CPU, of memory, and of disk and network "
    "is each wrong by a random factor between 0.5 and 2. Tasks use what the workload says; where memory runs out, a "
    "task is killed.",
)
@click.option(
    "--estimate",
    is_flag=True,
    help="Promise the next tasks of a stage what its finished ones were measured to use, in place of what it declares; "
    "machines offer what running tasks do not use. Every policy goes by it.",
)
@click.option(
    "--tail",
    type=NumberRange(1, min_open=True),
    metavar="SHAPE",
    help="Multiply how long each task takes by a random number, from a Pareto distribution of this shape with a mean "
    "of 1; schedulers do not know it. The smaller the shape, the longer the longest task. Above 1.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The seed of all random numbers.")
@click.option(
    "--heartbeat",
    default=3.0,
    show_default=True,
    type=NumberRange(0),
    help="Seconds between two plans; 0: a plan whenever something happens, which is the default with a recording.",
)
@click.option(
    "--loss",
    default=0.0,
    show_default=True,
    type=NumberRange(0),
    help="How much of what contention wastes counts (seeks, incast): 0 none, 1 what is published.",
)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead of a table.")
@click.option("--report", type=_FILE, help="Also write a report with plots: one HTML file.")
@traces_option
@click.option("--processes", type=click.IntRange(1), help="How many runs at once.  [default: one per core]")
def simulate(
    *,
    workload: str,
    policies: str | None,
    machines: str | None,
    settings_file: Path | None,
    changes: tuple[str, ...],
    know: float,
    know_demands: float,
    estimate: bool,
    tail: float | None,
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
    from lab.sim import sweep
    from lab.sim.engine.clock import SimulationSettings
    from lab.sim.recorded.reading import FORM, MACHINES, RECORDED, STEADY
    from lab.sim.runs import Run, inputs_of, recording
    from lab.sim.workloads.parameters import Parameters

    # 1. What is replayed, and on what.
    _refuse_pipes(workload.removeprefix(FORM), machines)
    replay = recording(workload)
    if replay and click.get_current_context().get_parameter_source("heartbeat") is ParameterSource.DEFAULT:
        heartbeat = 0.0  # what was recorded waited for no heartbeat
    machines = machines or (MACHINES if replay else None)
    if not machines:
        raise click.MissingParameter(param_hint="'--machines'", param_type="option")
    names = _names(policies or (f"{RECORDED},{_COMPARED}" if machines in (MACHINES, STEADY) else _COMPARED))
    run = Run(
        workload,
        machines,
        names[0],
        seed,
        know=know,
        know_demands=know_demands,
        tail=tail,
        settings=SimulationSettings(heartbeat, loss, estimate=estimate),
        traces=traces or TRACES,
    )
    # 2. By whom, and by which settings.
    _refuse_unheard(changes, names)
    runs = _runs(run, names, sweep.documents(settings_file, changes))
    replayed, cluster = inputs_of(min(runs.values(), key=lambda run: run.policy == RECORDED), Parameters())
    if RECORDED in names and not (replay and machines in (MACHINES, STEADY)):
        needed = f"--workload {FORM}FILE and --machines {MACHINES} or {STEADY}"
        raise click.BadParameter(f"{RECORDED!r} is what was done; needed: {needed}", param_hint="--policy")
    _refuse_blind(names, replayed, cluster)
    # 3. Run all of it, and show it.
    outcomes, failures = _perform(runs, processes)
    about = " ".join((_about(replayed.about, cluster.name, heartbeat, loss), *(replay.notes if replay else ())))
    _show(about, outcomes, report, as_json=as_json)
    if failures:
        raise DovetailError("\n".join((*failures, "what is shown is of the others")))


def _refuse_unheard(changes: Sequence[str], policies: Sequence[str]) -> None:
    """Raise click.BadParameter where a key of the policy is to change by which none of the policies goes."""
    from lab.sim.schedulers.policies import BY_SETTINGS

    key = next((change for change in changes if change.startswith("policy.")), None)
    if key and not BY_SETTINGS.intersection(policies):
        accepted = " or ".join(sorted(BY_SETTINGS))
        raise click.BadParameter(f"{key}: no policy that runs goes by it; needed: {accepted}", param_hint="--set")


def _refuse_pipes(*specs: str | None) -> None:
    """Raise click.BadParameter for a pipe: each run reads its files anew."""
    for spec in specs:
        if spec and Path(spec).is_fifo():
            raise click.BadParameter(f"{spec} is a pipe, which can be read once only; accepted: a file")


def _names(policies: str) -> list[str]:
    """Return the policies that were named, each once. Raises click.BadParameter for one that does not exist."""
    from lab.sim.schedulers.policies import POLICIES

    names = list(dict.fromkeys(name.strip() for name in policies.split(",")))
    accepted = [*POLICIES, "recorded"]
    for name in names:
        if name not in accepted:
            raise click.BadParameter(f"{name!r}; accepted: {', '.join(accepted)}", param_hint="--policy")
    return names


def _refuse_blind(policies: "Sequence[str]", workload: "Workload", machines: "Machines") -> None:
    """Raise click.BadParameter for a policy that does not see what the files ask for."""
    from lab.sim.schedulers.policies import POLICIES

    if (
        len(machines.axis) == len(DIMENSIONS)
        and not machines.changes
        and all(
            machines.allowed(constraints).all()
            for constraints in {stage.constraints for job in workload.jobs for stage in job.stages}
        )
    ):
        return
    for name in policies:
        if name in POLICIES and not POLICIES[name].whole:
            seeing = ", ".join(policy for policy, choice in POLICIES.items() if choice.whole)
            raise click.BadParameter(
                f"{name!r} does not see resources beyond {', '.join(DIMENSIONS)}; nor node selectors, taints, and "
                f"machines that come and go; accepted with these files: {seeing}",
                param_hint="--policy",
            )


def _runs(run: "Run", policies: Sequence[str], documents: Mapping[str, str]) -> "dict[str, Run]":
    """Return the run by each policy, by its title; who goes by settings has one for each of the titled documents."""
    from lab.sim.schedulers.policies import BY_SETTINGS

    runs = {}
    for policy in policies:
        for title, document in documents.items():
            called = f"{policy} {title}".strip() if policy in BY_SETTINGS else policy
            runs[called] = replace(run, policy=policy, document=document, title=called)
    return runs


def _perform(tasks: dict[str, "Run"], processes: int | None) -> "tuple[list[Outcome], list[str]]":
    """Return the outcomes, and why the other runs failed. Raises DovetailError where all did, or one by a bug."""
    from lab.report import progress
    from lab.sim import parallel, runs

    with progress.each(list(tasks), "tasks") as show:
        results = parallel.run_all(runs.perform, tasks, processes=processes or parallel.usable_cores(), show=show)
    failed = {name: result for name, result in results.items() if isinstance(result, parallel.Failed)}
    if len(failed) == len(results) or any(failure.trace for failure in failed.values()):
        parallel.unless_failed(results)
    outcomes = [result for result in results.values() if not isinstance(result, parallel.Failed)]
    return outcomes, [f"{name}: {failure.reason}" for name, failure in failed.items()]


def _show(about: str, outcomes: "Sequence[Outcome]", report: Path | None, *, as_json: bool) -> None:
    """Print the outcomes, and write the report; they are printed also where it cannot be written."""
    try:
        if report:
            from lab.sim.report import page

            page.write(report, about, outcomes)
    finally:
        _print_json(about, outcomes) if as_json else _print_table(about, outcomes)
    if report:
        click.echo(f"report: {report.resolve()}", err=as_json)


def _about(workload: str, machines: str, heartbeat: float, loss: float) -> str:
    beat = f"a plan every {heartbeat:g} s" if heartbeat else "a plan whenever something happens"
    wasted = f"contention wastes goodput (loss {loss:g})" if loss else "contention wastes nothing beyond sharing"
    return f"{workload[:1].upper()}{workload[1:]}; machines {machines}; {beat}; {wasted}."


def _print_table(about: str, runs: "Sequence[Outcome]") -> None:
    from lab.report.terminal import console
    from lab.sim.report import tables

    printed = console(_PLAIN_WIDTH)
    printed.print(about)
    printed.print(tables.table(runs, printed.width))
    for note in tables.NOTES:
        printed.print(note)
        printed.print()


def _print_json(about: str, runs: "Sequence[Outcome]") -> None:
    from lab.sim.report import tables

    click.echo(json.dumps({"about": about} | tables.as_json(runs)))
