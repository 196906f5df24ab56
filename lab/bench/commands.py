"""The command `dovetail bench`: every benchmark, or one of them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from extender.app.commands.options import NumberRange
from extender.errors import TraceError
from lab.bench.showing import progress, show
from lab.controlplane.commands import kubernetes_option, paths, provide
from lab.errors import ControlPlaneError, MissingExtra
from lab.options import TRACES, json_option, refuse_before, traces_option

if TYPE_CHECKING:
    from lab.report.rows import Report


@dataclass(frozen=True, slots=True)
class Options:
    """What all benchmarks are told."""

    as_json: bool
    quick: bool
    seeds: int = 5
    first_seed: int = 3
    traces: Path | None = None


def _form(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what every benchmark can be told."""
    for option in (
        click.option("--quick", is_flag=True, help="A small form, in seconds: to see that it works, not to quote."),
        json_option,
    ):
        command = option(command)
    return command


def _replays(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what replays of traces can be told."""
    for option in (
        traces_option,
        click.option(
            "--first-seed",
            default=3,
            show_default=True,
            type=click.IntRange(0),
            help="The first seed; the default rule and step were chosen on 0 to 2.",
        ),
        click.option("--seeds", default=5, show_default=True, type=click.IntRange(1), help="How many seeds."),
    ):
        command = option(command)
    return command


@click.group(invoke_without_command=True)
@_replays
@_form
@click.pass_context
def bench(context: click.Context, /, **given: Any) -> None:  # noqa: ANN401 - click's own
    """Measure placement, the order, and how fast the verbs, the planner, the loops, the simulator and others are.

    Without a command, all of it; what cannot run is named with its reason.
    """
    if context.invoked_subcommand is not None:
        refuse_before(context)
        return
    options = Options(**given)
    MissingExtra.unless_installed("rich")
    reports = [_extender(options), _simulator(options), _loops(options), _order(options), _packing(options)]
    if programs := _programs_if_any():
        reports.append(_cluster(options, programs))
    if options.traces or TRACES.is_dir():
        reports.append(_placement(options))
    else:
        click.echo(f"placement: skipped: no workload traces at {TRACES}; say where with --traces", err=True)
    show(reports, as_json=options.as_json)


@bench.command()
@_replays
@_form
@click.option("--shape-step", type=NumberRange(0, 1), help="Instead of the default step (placement.shapeStep).")
@click.option(
    "--ranking", "names", multiple=True, help="Only this rule, and no samples; can be repeated. A wrong name shows all."
)
def placement(shape_step: float | None, names: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401 - click's own
    """Compare the ranking rules: how much of a cluster each fills, by replays of real workloads.

    Pods of two traces (openb: a GPU cluster of many node shapes; Alibaba 2017: batch tasks on equal
    machines) arrive in random order and none leaves. Rules and baselines get the same arrivals.
    Then on openb: the choice from as many nodes as kube-scheduler asks about, beside that from all.
    """
    _run(_placement, given, shape_step, names)


@bench.command()
@_form
def extender(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Time filter, prioritize and filter that chooses, beside a handler that only decodes and encodes.

    At 100 to 5,000 nodes, and at two sizes with GPUs. All are called in turn over kept-alive loopback connections to
    one server, which runs in a process of its own.
    """
    _run(_extender, given)


@bench.command()
@_form
def simulator(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Time a replay of the paper's deployment suite, and one plan for 5,000 nodes and 100,000 waiting tasks."""
    _run(_simulator, given)


@bench.command()
@_form
def loops(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Time a turn of control's loops for 5,000 nodes, with 20,000 pods on idle room and without them."""
    _run(_loops, given)


@bench.command()
@_form
@click.option("--first-seed", default=0, show_default=True, type=click.IntRange(0), help="The first seed.")
def order(first_seed: int, **given: Any) -> None:  # noqa: ANN401 - click's own
    """Try the order on deep and aged backlogs, in the simulator: job times, shares, room kept idle.

    Fifty DAG jobs on ten slots beside DRF; an hour of one-pod jobs in three queues; random clusters with tasks that
    are hard or impossible to place.
    """
    _run(_order, given, first_seed)


@bench.command()
@_form
def packing(**given: Any) -> None:  # noqa: ANN401 - click's own
    """Time what the measures of packing cost: compaction, inflation and hole filling on up to 10,000 machines."""
    _run(_packing, given)


@bench.command()
@_form
@kubernetes_option
@click.option(
    "--nodes",
    "sizes",
    multiple=True,
    type=click.IntRange(1, 10_000),
    help="How many nodes; can be repeated.  [default: 1000, 5000]",
)
@click.option("--pods", type=click.IntRange(1, 20_000), help="How many pods in each run.  [default: 1000]")
@click.option(
    "--jobs",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    help="How many jobs the pods are of; no two jobs are alike.",
)
@click.option("--runs", type=click.IntRange(1), help="How often each contender runs.  [default: 2]")
@click.option(
    "--contender",
    "names",
    multiple=True,
    help="Which to time; can be repeated. A wrong name shows all.  [default: stock, auto, gates, filter]",
)
def cluster(kubernetes: str, names: tuple[str, ...], **given: Any) -> None:  # noqa: ANN401 - click's own
    """Time how fast pods are bound on a real control plane: the stock scheduler, and Dovetail.

    The contenders take turns on one control plane, which runs on loopback with simulated nodes. The clock runs from
    the first create call to the last bind.
    """
    options = Options(as_json=given.pop("as_json"), quick=given.pop("quick"))
    MissingExtra.unless_installed("rich", "trustme")
    show([_cluster(options, paths(provide(kubernetes)), names, **given)], as_json=options.as_json)


@bench.command()
@json_option
@kubernetes_option
@click.option(
    "--minutes", default=6.0, show_default=True, type=NumberRange(0.5, 240), help="How many minutes to measure."
)
@click.option(
    "--backlog",
    default=1_200,
    show_default=True,
    type=click.IntRange(1, 20_000),
    help="How many jobs of each queue wait.",
)
def live(kubernetes: str, as_json: bool, minutes: float, backlog: int) -> None:
    """Measure two queues' shares of a standing backlog, beside the fair ones, on a real control plane.

    The queues have weights 3 (with a minimum of a quarter) and 1. In each, --backlog one-pod jobs wait all the time,
    for 160 slots.
    """
    MissingExtra.unless_installed("rich", "trustme")
    from extender.app.logs import configure_logs
    from extender.settings import LogSettings
    from lab.bench.order import live as measuring

    configure_logs(LogSettings(level="error", format="text"))
    case = measuring.LiveCase(backlog=backlog)
    seconds = 60 * minutes
    with progress("Watching the shares", int(seconds)) as advance:
        looks = measuring.watch(paths(provide(kubernetes)), case, seconds, lambda _look: advance())
    show([measuring.report(case, looks)], as_json=as_json)


@bench.command()
@_form
@kubernetes_option
@click.option("--runs", type=click.IntRange(1), help="How many recorded runs.  [default: 3; quick: 1]")
def replay(kubernetes: str, runs: int | None, **given: Any) -> None:  # noqa: ANN401 - click's own
    """Record runs of the stock scheduler on a real control plane, and compare them with their simulation.

    Each run takes about four minutes: jobs of 3 to 12 pods keep 64 cores full.
    """
    options = Options(**given)
    MissingExtra.unless_installed("rich", "trustme")
    show([_replay(options, paths(provide(kubernetes)), runs)], as_json=options.as_json)


def _run(measured: "Callable[..., Report]", given: Mapping[str, Any], *more: object) -> None:
    """Run one benchmark by what it is told, and show what came of it."""
    options = Options(**given)
    MissingExtra.unless_installed("rich")
    show([measured(options, *more)], as_json=options.as_json)


def _extender(options: Options) -> "Report":
    """Run the extender benchmark."""
    from lab.bench.speed import verbs

    plain, devices, calls = (
        (verbs.SIZES[:2], verbs.WITH_DEVICES[:1], 50) if options.quick else (verbs.SIZES, verbs.WITH_DEVICES, 1_000)
    )
    with progress("Calling", (len(plain) + len(devices)) * (calls + calls // 10)) as advance:
        timings = [*verbs.measure(plain, calls, advance), *verbs.measure(devices, calls, advance, devices=True)]
    return verbs.report(timings)


def _simulator(options: Options) -> "Report":
    """Run the simulator benchmark."""
    from lab.bench.speed import simulator as measuring
    from lab.report.progress import each

    size, run = (measuring.QUICK, measuring.SMALL_SUITE) if options.quick else (measuring.FULL, measuring.SUITE)
    with each(["replay"], "tasks") as tell:
        outcome = measuring.replay(run, lambda done, total: tell("replay", done, total))
    with progress("Planning", measuring.PLANS) as advance:
        timings = list(measuring.plans(size, advance))
    return measuring.report(outcome, timings, size, measuring.steps(size))


def _loops(options: Options) -> "Report":
    """Run the benchmark of control's loops."""
    from extender.app.logs import configure_logs
    from extender.settings import LogSettings
    from lab.bench.speed import turns as measuring

    configure_logs(LogSettings(level="error", format="text"))
    scale, count = (measuring.QUICK, 4) if options.quick else (measuring.FULL, measuring.TURNS)
    with progress("Taking turns", count) as advance:
        return measuring.report(scale, *measuring.measure(scale, count, advance))


def _order(options: Options, first_seed: int = 0) -> "Report":
    """Run the benchmark of the order."""
    from lab.bench.order import rows as measuring

    size = measuring.QUICK if options.quick else measuring.FULL
    with progress("Replaying", size.runs) as advance:
        return measuring.measure(size, advance, first_seed)


def _packing(options: Options) -> "Report":
    """Run the benchmark of the measures of packing."""
    from lab.bench.speed import packing as measuring

    sizes = measuring.QUICK if options.quick else measuring.FULL
    runs = [(size, measuring.OURS) for size in sizes] + [(sizes[-1], rule) for rule in measuring.OTHERS]
    with progress("Packing", len(runs)) as advance:
        return measuring.report([measuring.measure(size, rule, advance) for size, rule in runs])


def _placement(options: Options, shape_step: float | None = None, names: Sequence[str] = ()) -> "Report":
    """Run the placement benchmark; without names the choice from a sample, too. Raises TraceError."""
    from extender.verdict import Placement
    from lab.bench.placement import packing as measuring
    from lab.bench.placement import sampling
    from lab.bench.placement.rankings import rankings
    from lab.report.rows import Report

    default = Placement() if shape_step is None else Placement(shape_step=shape_step)
    known = {ranking.name: ranking for ranking in rankings(default)}
    compared = [known[name] for name in _known(names, known, "--ranking")]
    samples = sampling.QUICK_SAMPLES if options.quick else sampling.SAMPLES
    seeds = range(options.first_seed, options.first_seed + (1 if options.quick else options.seeds))
    scenes = measuring.scenes(_traces(options.traces), quick=options.quick)
    replays = sum(len(scene.compared(compared)) for scene in scenes) + (0 if names else 1 + len(samples))
    with progress("Replaying", replays * len(seeds)) as advance:
        report = measuring.measure(scenes, compared, seeds, advance)
        if names:
            return report
        sampled = sampling.measure(scenes[0], default, samples, seeds, advance)
    return Report([*report.rows, *sampled.rows], [*report.tables, *sampled.tables])


def _cluster(
    options: Options,
    programs: Mapping[str, Path],
    names: Sequence[str] = (),
    *,
    sizes: Sequence[int] = (),
    pods: int | None = None,
    jobs: int = 10,
    runs: int | None = None,
) -> "Report":
    """Run the cluster benchmark. Raises ControlPlaneError."""
    from extender.app.logs import configure_logs
    from extender.settings import LogSettings
    from lab.bench.cluster import contenders, contest, contest_rows, throughput
    from lab.bench.cluster import runs as measuring
    from lab.report.rows import Report

    configure_logs(LogSettings(level="error", format="text"))
    known = {contender.name: contender for contender in contenders.CONTENDERS}
    compared = [known[name] for name in _known(names, known, "--contender")] if names else contenders.USUAL
    pods, runs = pods or (200 if options.quick else 1_000), runs or (1 if options.quick else 2)
    usual = (200,) if options.quick else (1_000, 5_000)
    burst, steady = (20, 20) if options.quick else (100, 1_200)
    planned = [
        measuring.ClusterSize(nodes, pods, jobs, runs, 60 + pods / 10, burst, 0 if number else steady)
        for number, nodes in enumerate(sizes or usual)
    ]
    with progress("Scheduling", sum(size.runs for size in planned) * len(compared)) as advance:
        report = throughput.report(
            [run for size in planned for run in measuring.measure(programs, size, advance, compared)]
        )
    if not (contenders.AUTO in compared and contenders.GATES in compared):
        return report
    case = contest.ContestCase(nodes=2, few=4, many=24, seconds=(1.0, 2.0)) if options.quick else contest.ContestCase()
    with progress("Waiting for turns", 2) as advance:
        phases = contest_rows.report(*(contest.run(programs, order, case, advance) for order in ("gates", "auto")))
    return Report([*report.rows, *phases.rows], [*report.tables, *phases.tables])


def _replay(options: Options, programs: Mapping[str, Path], runs: int | None) -> "Report":
    """Run the benchmark of replays. Raises ControlPlaneError."""
    from tempfile import TemporaryDirectory

    from lab.bench.replay import gaps as measuring
    from lab.bench.replay.recorded_run import ReplayCase, record

    case, usual, seeds = (
        (ReplayCase(jobs=6, arrivals=5.0), 1, 2) if options.quick else (ReplayCase(), 3, measuring.SEEDS)
    )
    runs = runs or usual
    gaps = []
    with TemporaryDirectory() as folder, progress("Recording and replaying", runs * (1 + seeds)) as advance:
        for seed in range(1, runs + 1):
            file = Path(folder) / f"recording-{seed}"
            pods = record(programs, case, seed, file)
            advance()
            gaps.append(measuring.gap_of(file, pods, advance, seeds))
    return measuring.report(gaps)


def _programs_if_any() -> dict[str, Path]:
    """Return the programs of a control plane; none, with the reason said, where they cannot be had."""
    try:
        MissingExtra.unless_installed("trustme")
        return paths(provide())
    except (MissingExtra, ControlPlaneError) as error:
        click.echo(f"cluster: skipped: {error}", err=True)
        return {}


def _known(names: Sequence[str], known: Collection[str], option: str) -> Sequence[str]:
    """Return the names, or all that are known where none was given. Raises BadParameter."""
    unknown = [name for name in names if name not in known]
    if unknown:
        raise click.BadParameter(f"{unknown[0]!r}; accepted: {', '.join(known)}", param_hint=option)
    return names or list(known)


def _traces(given: Path | None) -> Path:
    """Return the folder of the traces. Raises TraceError where there is none."""
    from lab.bench.placement import traces

    folder = given or TRACES
    if not folder.is_dir():
        needed = ", ".join(map(str, (traces.OPENB_NODES, traces.OPENB_PODS, traces.ALIBABA_JOBS)))
        raise TraceError(f"no workload traces at {folder}; say with --traces which folder holds {needed}")
    return folder
