"""The cluster experiment as tables and rows: a workload by the stock scheduler, with Dovetail, and simulated."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from lab.experiments.cluster.figures import RunFigures, WatchFigures
from lab.experiments.cluster.pods import DOVETAIL, PLAIN, STOCK
from lab.experiments.cluster.rounds import (
    SIM,
    SIM_ALL,
    SIM_KUBE,
    Round,
    largest,
    less_than,
    more_than,
    of_run,
    of_watch,
)
from lab.experiments.cluster.workload import QUEUES
from lab.experiments.sections import Figure, Listing, Plot, Section

IDS: Mapping[str, str] = MappingProxyType(
    {
        DOVETAIL.name: "dovetail",
        STOCK.name: "stock",
        PLAIN.name: "plain_stock",
        SIM: "sim",
        SIM_ALL: "sim_all",
        SIM_KUBE: "sim_kube",
    }
)
"""What each run is called in the ids of rows, in the order in which runs are shown."""

_TIMES: Mapping[str, Callable[[RunFigures], float]] = MappingProxyType(
    {
        "makespan": lambda figures: figures.makespan,
        "mean_job_time": lambda figures: figures.mean,
        "median_job_time": lambda figures: figures.median,
    }
)
_PARTS: Mapping[str, Callable[[RunFigures], float]] = MappingProxyType(
    {
        "node_local": lambda figures: figures.node_local,
        "rack_local": lambda figures: figures.rack_local,
        "over_allocated": lambda figures: figures.over,
    }
)
_COUNTS: Mapping[str, tuple[Callable[[WatchFigures], float], str]] = MappingProxyType(
    {
        "lost": (lambda figures: figures.lost, "pods that never ended, failed or vanished"),
        "stuck": (lambda figures: figures.stuck, "pods that never had a node"),
        "double": (lambda figures: figures.double, "pods seen on two nodes, released twice, or made twice"),
    }
)
_DELAYS: Mapping[str, tuple[Callable[[WatchFigures], tuple[float, float]], str]] = MappingProxyType(
    {
        "turn_to_bound": (
            lambda figures: figures.turn_to_bound,
            "from the removal of our gate, for stock from its creation (so it waits for room in this), to its binding",
        ),
        "open_to_created": (
            lambda figures: figures.open_to_created,
            "from the opening of its stage until the pod is seen",
        ),
        "bound_to_running": (lambda figures: figures.bound_to_running, "until its kubelet, which is KWOK, says so"),
        "done_to_ended": (lambda figures: figures.done_to_ended, "from the end of its work until that is seen"),
    }
)
ABOUT = (
    "One workload on real control planes with simulated nodes, by the default scheduler and with Dovetail; and the "
    "same in the simulator."
)
_BASELINE = "less than the default scheduler's, whose maps prefer the nodes of their block (weight 100)"
_GAP = (
    "the larger of makespan's and mean job time's, each the mean over all rounds without signs: Dovetail on the "
    "cluster beside the same in the simulator, told by pods as there"
)
_ALL_GAP = "likewise, beside the planner if it knew, and chose, where everything is read"
_MORE = "how much more on the cluster than simulated"
_NOTES = (
    "Simulated runs are the mean of four: with heartbeats of 0.1 to 0.4 s, as quickly as a control plane tells. A map "
    "that is far from its block reads it from any copy, of its rack if it can, as on the clusters (and as HDFS's "
    "clients do); where the planner knows all, from where it says. The simulated stock scheduler gives a node any map "
    "of a job that has its block there; on a cluster each pod has its own.",
    "All runs have the same machines: the simulator's model of disks and links that are shared in proportion, on the "
    "clusters by the clock on the wall. What over-allocates loses nothing by that, so contention costs less than it "
    "does on real machines (Tetris, 2.1).",
    "Shares are of what all queues held, in the mean over the time while tasks of each waited; the stock scheduler "
    "knows nothing of queues. Over-allocated: percent of the time that a node's disk or link was, by the worst of "
    "them. Slow-down: how many times as long as at their peaks tasks took.",
)


def section(rounds: Sequence[Round]) -> Section:
    """Return the section of these rounds."""
    run_names = {*rounds[0].watch_figures, *rounds[0].simulated}
    names = [name for name in IDS if name in run_names]
    return Section(
        title="The same workload on a real cluster and in the simulator",
        about=_about(rounds),
        figures=_compared(rounds),
        more=[*_all_runs(rounds, names), *_all_watches(rounds)],
        listings=[_runs_listing(rounds, names), _watch_listing(rounds)],
        notes=_NOTES,
        plots=_plots(rounds[0], names),
    )


def _about(rounds: Sequence[Round]) -> str:
    setup = rounds[0].setup
    kubernetes = next(iter(rounds[0].observed.values())).kubernetes
    waits = ", ".join(f"{wait:g}" for wait in setup.waits)
    seeds = ", ".join(str(seed.setup.seed) for seed in rounds)
    return (
        f"Kubernetes {kubernetes}, {setup.machines.name}; seeds {seeds}, the first with {setup.workload.tasks:,} tasks "
        f"of {len(setup.workload.jobs)} jobs, and waits for locality of {waits} s by equation 2."
    )


def _compared(rounds: Sequence[Round]) -> list[Figure]:
    """Return what says how Dovetail did: by itself, beside the stock scheduler, and beside the simulator."""
    figures = [
        Figure(f"cluster.{name}", of_watch(rounds, DOVETAIL.name, count), note=note, unit="")
        for name, (count, note) in _COUNTS.items()
    ]
    for baseline, suffix, note in (
        (STOCK, "vs_stock", _BASELINE),
        (PLAIN, "vs_plain_stock", "likewise, without that hint"),
    ):
        if baseline.name in rounds[0].watch_figures:
            figures += [
                Figure(f"cluster.{name}_{suffix}", less_than(rounds, baseline.name, figure), note=note)
                for name, figure in _TIMES.items()
            ]
    return [*figures, *_gap(rounds, SIM, "sim_gap", _GAP), *_gap(rounds, SIM_ALL, "sim_all_gap", _ALL_GAP)]


def _gap(rounds: Sequence[Round], simulated: str, row: str, note: str) -> list[Figure]:
    """Return how far Dovetail on the cluster is from a simulated run."""
    if simulated not in rounds[0].simulated:
        return []
    gaps = {name: more_than(rounds, simulated, figure) for name, figure in _TIMES.items()}
    whole = Figure(f"cluster.{row}", largest([gaps["makespan"], gaps["mean_job_time"]]), note=note)
    return [whole, *(Figure(f"cluster.{row}.{name}", gap, note=_MORE) for name, gap in gaps.items())]


def _all_runs(rounds: Sequence[Round], names: Sequence[str]) -> list[Figure]:
    """Return every figure of every run."""
    figures = []
    for name in names:
        figures += [
            Figure(f"cluster.{title}.{IDS[name]}", of_run(rounds, name, figure), unit="s")
            for title, figure in _TIMES.items()
        ]
        figures += [
            Figure(f"cluster.{title}.{IDS[name]}", of_run(rounds, name, figure)) for title, figure in _PARTS.items()
        ]
        figures.append(
            Figure(f"cluster.slow_down.{IDS[name]}", of_run(rounds, name, lambda figures: figures.slow_down), unit="x")
        )
        figures += [
            Figure(f"cluster.share.{queue.name}.{IDS[name]}", of_run(rounds, name, _share(queue.name)))
            for queue in QUEUES
        ]
    return figures


def _all_watches(rounds: Sequence[Round]) -> list[Figure]:
    """Return what the watches showed; Dovetail's goes without a name."""
    figures = []
    for name in rounds[0].watch_figures:
        suffix = "" if name == DOVETAIL.name else f".{IDS[name]}"
        if suffix:
            figures += [
                Figure(f"cluster.{title}{suffix}", of_watch(rounds, name, count), note=note, unit="")
                for title, (count, note) in _COUNTS.items()
            ]
        for title, (delay, note) in _DELAYS.items():
            figures += [
                Figure(
                    f"cluster.{title}.{percentile}{suffix}",
                    of_watch(rounds, name, _at(delay, place)),
                    note=note,
                    unit="s",
                )
                for place, percentile in enumerate(("p50", "p99"))
            ]
    return figures


def _runs_listing(rounds: Sequence[Round], names: Sequence[str]) -> Listing:
    def line(label: str, figure: Callable[[RunFigures], float], cell: str) -> tuple[str, ...]:
        return label, *(cell.format(of_run(rounds, name, figure).mean) for name in names)

    weights = sum(queue.weight for queue in QUEUES)
    return Listing(
        ("", *names),
        [
            *(line(name.replace("_", " "), figure, "{:.1f} s") for name, figure in _TIMES.items()),
            *(line(name.replace("_", " "), figure, "{:.1f} %") for name, figure in _PARTS.items()),
            line("slow-down of tasks", lambda figures: figures.slow_down, "{:.2f} x"),
            *(
                line(
                    f"share of {queue.name} (fair: {100 * queue.weight / weights:.0f} %)",
                    _share(queue.name),
                    "{:.1f} %",
                )
                for queue in QUEUES
            ),
        ],
    )


def _watch_listing(rounds: Sequence[Round]) -> Listing:
    names = list(rounds[0].watch_figures)
    counts = [
        (f"{name} pods", *(f"{of_watch(rounds, contender, count).mean:g}" for contender in names))
        for name, (count, _) in _COUNTS.items()
    ]
    delays = [
        (
            f"{name.replace('_', ' ')}, p50 and p99",
            *(_delay_cell(rounds, contender, delay) for contender in names),
        )
        for name, (delay, _) in _DELAYS.items()
    ]
    return Listing(("seen on a watch", *names), [*counts, *delays])


def _delay_cell(rounds: Sequence[Round], contender: str, delay: Callable[[WatchFigures], tuple[float, float]]) -> str:
    return " ".join(f"{of_watch(rounds, contender, _at(delay, place)).mean:.3f} s" for place in (0, 1))


def _share(queue: str) -> Callable[[RunFigures], float]:
    return lambda figures: figures.shares[queue]


def _at(delay: Callable[[WatchFigures], tuple[float, float]], place: int) -> Callable[[WatchFigures], float]:
    return lambda figures: delay(figures)[place]


def _plots(first: Round, names: Sequence[str]) -> list[Plot]:
    """Return the figures of the first round; the simulator's beside the cluster's."""
    runs = {name: first.outcomes[name][0] for name in names if name in first.outcomes}

    def draw(name: str) -> Callable[[], str]:
        def drawn() -> str:
            from lab.experiments.cluster import plots as cluster_plots

            return str(getattr(cluster_plots, name)(runs))

        return drawn

    seed = f"Seed {first.setup.seed}."
    return [
        Plot("Running tasks", f"{seed} More tasks at once only help if they are not slowed down.", draw("running")),
        Plot("Job times", f"{seed} The part of the jobs that end within a time of their arrival.", draw("job_times")),
        Plot("Shares of the queues", f"{seed} The dominant share of what each queue's tasks held.", draw("shares")),
    ]
