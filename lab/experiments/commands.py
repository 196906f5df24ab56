"""The command `dovetail experiment`: the papers' experiments again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from extender.errors import DovetailError
from lab.controlplane.commands import kubernetes_option
from lab.errors import MissingExtra
from lab.options import TRACES, json_option, traces_option
from lab.report.files import ReportFile

if TYPE_CHECKING:
    from lab.experiments.running import Part, Perform, Scale
    from lab.experiments.sections import Section, Skipped

_FILE = ReportFile()
_PLAIN_WIDTH = 120

_REAL = "real"
"""The part of UBIS that is not simulated."""

_Added = Callable[[Callable[..., None]], Callable[..., None]]


@dataclass(frozen=True, slots=True)
class _Options:
    """What an experiment that is made of parts is told."""

    quick: bool
    seeds: int | None
    first_seed: int
    as_json: bool
    report: Path | None
    only: tuple[str, ...]
    processes: int | None
    traces: Path | None


def _of_parts(*, seeds: str, tuned: str = "", quick: str = "A small form, under a minute") -> _Added:
    """Return what adds the options of an experiment that is made of parts."""
    options = (
        click.option("--quick", is_flag=True, help=f"{quick}: to see that it works, not to quote."),
        click.option("--seeds", type=click.IntRange(1), help=f"How many seeds.  [default: {seeds}]"),
        click.option(
            "--first-seed", default=10, show_default=True, type=click.IntRange(0), help=f"The first seed{tuned}."
        ),
        json_option,
        click.option("--report", type=_FILE, help="Also write a report with the figures: one HTML file."),
        click.option(
            "--only",
            "only",
            multiple=True,
            metavar="PART",
            help="Only this part; can be repeated. A wrong name shows all.",
        ),
        traces_option,
        click.option("--processes", type=click.IntRange(1), help="How many runs at once.  [default: one per core]"),
    )

    def added(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return command

    return added


@click.group()
def experiment() -> None:
    """Run a paper's experiments again, and print its numbers beside ours."""


@experiment.command()
@_of_parts(seeds="5; quick: 2", tuned="; the planner was tuned on 0 to 2")
def tetris(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Run the experiments of the Tetris paper: its suite, its Facebook trace, and what each part of it is worth.

    All runs are simulated, by the planner that the cluster runs. What cannot run is named with its reason, and the rest
    is done.
    """
    options = _options(given)
    from lab.experiments.tetris.parts import parts
    from lab.experiments.tetris.runs import perform
    from lab.experiments.tetris.scales import FULL, QUICK

    _run("The experiments of Tetris", QUICK if options.quick else FULL, parts, perform, options)


@experiment.command()
@click.argument("workload", type=click.Choice(("suite", "facebook")))
@click.option("--seeds", default=3, show_default=True, type=click.IntRange(1), help="How many seeds, from 0 on.")
@click.option("--trials", default=40, show_default=True, type=click.IntRange(1), help="How many sets of values.")
@click.option("--search-seed", default=1, show_default=True, type=click.IntRange(0), help="The seed of the search.")
@json_option
@click.option("--out", type=_FILE, help="Also write the result, and how it came about, to this file.")
@traces_option
def fit(
    *, workload: str, seeds: int, trials: int, search_seed: int, as_json: bool, out: Path | None, traces: Path | None
) -> None:
    """Look for what the Tetris paper does not publish: values under which its baselines are as full as in its tables.

    Runs the baselines only, never our planner: the suite by table 6, the Facebook-like trace by table 3. A trial takes
    half a minute; those that are better than all before are shown. Nothing is changed but the file of --out.
    """
    MissingExtra.unless_installed("rich")
    from lab.experiments.fit import frozen
    from lab.experiments.fit.search import search
    from lab.experiments.fit.section import section
    from lab.experiments.fit.targets import TARGETS, measure, with_factors

    target, drawn = TARGETS[workload], range(seeds)
    better = []
    for trial in search(
        target,
        lambda factors: measure(target, target.size, drawn, traces or TRACES, with_factors(target, factors)),
        trials,
        search_seed,
    ):
        better.append(trial)
        click.echo(f"trial {trial.number}: largest miss {trial.measured.fit(target):.3f}", err=True)
    if out:
        command = f"dovetail experiment fit {workload} --seeds {seeds} --trials {trials} --search-seed {search_seed}"
        run = frozen.FitRun(command, drawn, trials, search_seed)
        frozen.write(out, frozen.document(target, run, better[0], better[-1]))
    _show(
        _Result("A fit", "Baselines only.", [section(target, drawn, better[0], better[-1])], ()),
        as_json=as_json,
        report=None,
    )


@experiment.command()
@_of_parts(seeds="2; quick: 1", quick="A small form, about a minute")
def delay(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Run the experiments of the Delay Scheduling paper: small jobs, sticky slots, waits, job sizes, Yahoo's traces.

    All runs are simulated, by the planner that the cluster runs. What cannot run is named with its reason, and the rest
    is done.
    """
    options = _options(given)
    from lab.experiments.delay.parts import parts
    from lab.experiments.delay.runs import perform
    from lab.experiments.delay.scales import FULL, QUICK

    _run("The experiments of Delay Scheduling", QUICK if options.quick else FULL, parts, perform, options)


@experiment.command()
@_of_parts(seeds="5; quick: 1")
def ubis(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Run the experiments of the UBIS paper: sleeping maps, three pipelines, a busy cluster, and its constraints.

    Also Alibaba's jobs. All runs are simulated, with and without opportunistic tasks, by the planner that the cluster
    runs. But for the part `real`, which runs only if it is named: one scenario on a real control plane with a real
    Prometheus, for about ten minutes. What cannot run is named with its reason, and the rest is done.
    """
    options = _options(given)
    from lab.experiments.ubis.groups import FULL, QUICK
    from lab.experiments.ubis.parts import parts
    from lab.experiments.ubis.runs import perform

    if_named = {_REAL: lambda: _real(quick=options.quick, seed=options.first_seed)}
    _run("The experiments of UBIS", QUICK if options.quick else FULL, parts, perform, options, if_named=if_named)


def _real(*, quick: bool, seed: int) -> "Section":
    """Return the section of UBIS' scenario on a real control plane."""
    MissingExtra.unless_installed("trustme")
    from lab.controlplane import commands
    from lab.experiments.ubis.real import run, scale, section

    programs = commands.paths(commands.provide())
    return section.section(run.run(programs, scale.QUICK if quick else scale.FULL, seed))


@experiment.command()
@click.option("--quick", is_flag=True, help="Few short pods, over a minute: to see that it works, not to quote.")
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The seed of the workload.")
@click.option("--rounds", default=1, show_default=True, type=click.IntRange(1), help="How many seeds, from --seed on.")
@click.option("--plain-stock", is_flag=True, help="Also run a default scheduler that does not know where blocks are.")
@json_option
@click.option("--report", type=_FILE, help="Also write a report with the figures: one HTML file.")
@kubernetes_option
def cluster(
    *, quick: bool, seed: int, rounds: int, plain_stock: bool, as_json: bool, report: Path | None, kubernetes: str
) -> None:
    """Run one workload of jobs with stages on a real control plane, stock and with Dovetail, and in the simulator.

    Nodes are simulated (KWOK); pods take as long as the simulator says, by where they run and what runs beside them.
    Takes about fifteen minutes a round.
    """
    MissingExtra.unless_installed("rich", "trustme", *(("matplotlib",) if report else ()))
    from extender.app.logs import configure_logs
    from extender.settings import LogSettings
    from lab.controlplane import commands
    from lab.experiments.cluster import tables as cluster_tables
    from lab.experiments.cluster.pods import DOVETAIL, PLAIN, STOCK
    from lab.experiments.cluster.rounds import names_of, run_round
    from lab.experiments.cluster.run import ClusterSetup
    from lab.experiments.cluster.workload import FULL, QUICK
    from lab.report import progress

    configure_logs(LogSettings(level="error", format="text"))
    programs = commands.paths(commands.provide(kubernetes))
    setups = [ClusterSetup.of(QUICK if quick else FULL, number) for number in range(seed, seed + rounds)]
    contenders = (STOCK, DOVETAIL, *((PLAIN,) if plain_stock else ()))
    with progress.each(names_of(setups, contenders), "tasks ended") as show:
        finished_rounds = [run_round(programs, setup, contenders, show) for setup in setups]
    section = cluster_tables.section(finished_rounds)
    _show(_Result("A workload on a real cluster", cluster_tables.ABOUT, [section], ()), as_json=as_json, report=report)
    if any(len(seed.outcomes) < len(seed.observed) + len(seed.simulated) for seed in finished_rounds):
        raise DovetailError("not every task has ended in time; run it alone on the machine, or on a faster one")


@experiment.command()
@_of_parts(seeds="5; quick: 1", quick="A day and a half of the trace")
def peaks(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Compare predictors of nodes' peak use on SURF's jobs: how often they are passed, and how much room they find.

    After the EuroSys paper on peak prediction. Takes some minutes; without the trace nothing can be run, and it says
    so.
    """
    options = _options(given)
    from lab.experiments.peaks.parts import parts
    from lab.experiments.peaks.replay import perform
    from lab.experiments.peaks.scales import FULL, QUICK

    _run("Predictors of peak use", QUICK if options.quick else FULL, parts, perform, options, doing="Replaying")


@experiment.command()
@_of_parts(seeds="5; quick: 1")
def graphene(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Run the experiments of the Graphene paper: single DAGs against bounds and simple orders, and many jobs at a time.

    The DAGs are drawn, with the statistics that the paper publishes. Many jobs run on one simulated cluster, by
    Tez-like schedulers, Tetris and ours. Also TPC-H queries that arrive on ten executors, from the traces. What cannot
    run is named with its reason, and the rest is done. Takes about half an hour.
    """
    options = _options(given)
    from lab.experiments.graphene.parts import FULL, QUICK, parts, perform

    _run("The experiments of Graphene", QUICK if options.quick else FULL, parts, perform, options, doing="Building")


@experiment.command()
@_of_parts(seeds="1")
def packing(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Compare orders and rules by how few machines they need, on clusters of two traces: four measures of packing.

    After figures 4 and 5 of "Evaluating job packing in warehouse-scale computing". Each seed has eleven trials. Takes
    some minutes.
    """
    options = _options(given)
    from lab.experiments.packing.parts import FULL, QUICK, parts, perform

    _run("How few machines would do", QUICK if options.quick else FULL, parts, perform, options, doing="Packing")


def _options(given: Mapping[str, Any]) -> _Options:
    """Return the options of an experiment that is made of parts. Raises MissingExtra where it cannot be shown."""
    options = _Options(**given)
    MissingExtra.unless_installed("rich", *(("matplotlib",) if options.report else ()))
    return options


def _run(
    title: str,
    scale: "Scale",
    parts_of: "Callable[[Any, Sequence[int], Path], Sequence[Part]]",
    perform: "Perform",
    options: _Options,
    *,
    doing: str = "Simulating",
    if_named: "Mapping[str, Callable[[], Section]]" = MappingProxyType({}),
) -> None:
    """Run the parts that are asked for, and show what came of them; those of `if_named` run only so."""
    from lab.experiments.running import run_parts, runs_of
    from lab.report import progress
    from lab.sim.parallel import usable_cores

    first = options.first_seed
    seeds = range(first, first + (options.seeds or scale.seeds))
    parts = parts_of(scale, seeds, options.traces or TRACES)
    names = [*(part.name for part in parts), *if_named]
    unknown = [name for name in options.only if name not in names]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r}; accepted: {', '.join(names)}", param_hint="--only")
    selected = [part for part in parts if not options.only or part.name in options.only]
    with progress.together(list(runs_of(selected)), doing) as show:
        sections, skipped = run_parts(selected, perform, processes=options.processes or usable_cores(), show=show)
    sections += [make() for name, make in if_named.items() if name in options.only]
    _show(_Result(title, scale.about, sections, skipped), as_json=options.as_json, report=options.report)


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of an experiment: its sections, and the parts that could not be run."""

    title: str
    about: str
    sections: "Sequence[Section]"
    skipped: "Sequence[Skipped]"


def _show(result: _Result, *, as_json: bool, report: Path | None) -> None:
    """Print the result of an experiment and write its report. Raises DovetailError if a part failed unexpectedly."""
    for skipped in result.skipped:
        trace = f"\n{skipped.trace}" if skipped.trace else ""
        click.echo(f"{skipped.part}: skipped: {skipped.reason}{trace}", err=True)
    _print_json(result.sections) if as_json else _print_tables(result.about, result.sections)
    if report:
        from lab.experiments import page

        lines = [f"{skipped.part}: skipped: {skipped.reason}" for skipped in result.skipped]
        page.write(report, result.title, result.about, result.sections, lines)
        click.echo(f"report: {report.resolve()}", err=as_json)
    if not result.sections or any(skipped.trace for skipped in result.skipped):
        raise DovetailError("not everything could be run; the lines above say what was skipped, and why")


def _print_json(sections: "Sequence[Section]") -> None:
    from lab.report.rows import to_json

    click.echo(to_json([figure.row() for section in sections for figure in (*section.figures, *section.more)]))


def _print_tables(about: str, sections: "Sequence[Section]") -> None:
    from lab.experiments import tables
    from lab.report.terminal import console

    printed = console(_PLAIN_WIDTH)
    printed.print(about)
    tables.show(printed, sections)
