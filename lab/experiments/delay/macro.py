"""Whole workloads: Facebook's job sizes (Delay Scheduling, 5.1), and what really ran at Yahoo."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from extender.policy.locality import rate_of_room, wait_for
from lab.experiments.delay.groups import (
    DelayPart,
    Results,
    RunGroup,
    cell,
    cluster_words,
    local,
    makespan,
    mean_seconds,
    plot,
    rack_local,
)
from lab.experiments.delay.runs import FIFO, DelayContender, DelayOutcome, YahooTrace
from lab.experiments.delay.scales import BINS, DelayScale
from lab.experiments.delay.scans import TASK_SECONDS, Scans
from lab.experiments.delay.skips import skips_in_all
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds, paired, seed_words
from lab.sim.workloads.yahoo import maps as maps_of

_GAP_SECONDS = 14.0
"""Between two jobs in the mean (5.1)."""

# Facebook's job sizes (5.1, table 2, figures 5 to 8)


def bins(scale: DelayScale, seeds: Sequence[int], name: str, title: str, slower: float) -> DelayPart:
    """Return a part on Facebook's job sizes (5.1, table 2), of tasks `slower` times as long as reading takes."""
    contenders = [
        DelayContender("fifo", FIFO, waits=(0.0,)),
        DelayContender("naive", waits=(0.0,)),
        DelayContender("delay", waits=(5.0,)),
        DelayContender("ours", waits=(5.0,), whole=True),
        DelayContender("ours, no waits", whole=True),
    ]
    sizes = tuple(maps for maps, jobs in scale.bins for _ in range(jobs))
    group = RunGroup(Scans(sizes, gap=_GAP_SECONDS, slower=slower), scale.ec2, contenders, seeds)

    def section(results: Results) -> Section:
        lines = []
        for number, (maps, jobs) in enumerate(scale.bins, start=1):
            lines.append(
                (
                    f"{number}: {maps} maps x {jobs}",
                    *(f"{group.over(results, contender.name, _local_of(maps)).mean:.0f}" for contender in contenders),
                    *(f"{group.over(results, contender.name, _seconds_of(maps)).mean:.0f}" for contender in contenders),
                    f"{_faster(group, results, maps).mean:.0f}",
                )
            )
        heads = (
            "bin",
            *(f"{contender.name} local %" for contender in contenders),
            *(f"{contender.name} s" for contender in contenders),
            "delay faster %",
        )
        return Section(
            title=title,
            about=(
                f"{cluster_words(scale.ec2)}; {len(sizes)} jobs, {_GAP_SECONDS:g} s apart in the mean; W1 = 5 s; "
                f"{seed_words(seeds)}."
            ),
            figures=_bin_figures(group, results, name, scale.bins),
            listings=[Listing(heads, lines), *([_later(group, results, scale, slower)] if slower > 1 else [])],
            notes=(
                "Job times are means over the jobs of a bin; the last column is the mean of (naive / delay - 1) over "
                "jobs, as in figure 7.",
                *((_LATER,) if slower > 1 else ()),
            ),
            plots=[
                plot(
                    f"{name}-locality",
                    title="Node locality by bin (figure 6)",
                    x="maps of a job",
                    unit="%",
                    places=list(range(1, len(scale.bins) + 1)),
                    curves={
                        contender.name: [group.over(results, contender.name, _local_of(maps)) for maps, _ in scale.bins]
                        for contender in contenders
                    },
                    labels=[str(maps) for maps, _ in scale.bins],
                ),
            ],
        )

    return DelayPart(f"facebook-{name}", [group], section)


_LATER = (
    "Later: what waiting adds to job times, where being near gains nothing. By 3.5: how long it takes until "
    "slots beside all the input have freed up, in a full cluster, for a job that is first in turn."
)


def _later(group: RunGroup, results: Results, scale: DelayScale, slower: float) -> Listing:
    """Return by how much jobs end later with delay scheduling, beside the delay that the formula of 3.5 expects."""
    nodes, rate = scale.ec2.nodes, rate_of_room(scale.ec2.nodes * scale.ec2.slots, TASK_SECONDS * slower)
    lines = []
    for maps, _ in scale.bins:
        naive, delay = (group.over(results, name, _seconds_of(maps)).mean for name in ("naive", "delay"))
        expected = wait_for(skips_in_all(tasks=maps, nodes=nodes, replicas=3), rate)
        lines.append((f"{maps} maps", f"{naive:.1f}", f"{delay:.1f}", f"{delay - naive:.1f}", f"{expected:.1f}"))
    return Listing(("", "naive s", "delay s", "later s", "by 3.5 s"), lines)


def _local_of(maps: int) -> Callable[[DelayOutcome], float]:
    return lambda outcome: outcome.local(outcome.maps_all == maps)


def _seconds_of(maps: int) -> Callable[[DelayOutcome], float]:
    return lambda outcome: float(outcome.seconds[outcome.maps_all == maps].mean())


def _bin_figures(group: RunGroup, results: Results, name: str, bins: Sequence[tuple[int, int]]) -> list[Figure]:
    """Return the paper's numbers: locality of the worst bin, speed-up of bin 5, and that nothing is lost."""
    worst = group.over(
        results, "delay", lambda outcome: min(outcome.local(outcome.maps_all == maps) for maps, _ in bins)
    )
    mean = group.ratio(results, "delay", "naive", mean_seconds)
    less = Seeds(tuple(100 * (1 - ratio) for ratio in mean.values))
    own = group.ratio(results, "ours", "ours, no waits", mean_seconds)
    span = group.ratio(results, "delay", "naive", makespan)
    figures = [
        Figure(f"facebook.{name}.node_local_worst_bin", worst, 99, "with W1 = 5 s; 99-100 in figure 6"),
        Figure(
            f"facebook.{name}.job_time_ours",
            Seeds(tuple(100 * (1 - ratio) for ratio in own.values)),
            0 if name == "cpu" else None,
            "the planner as a cluster runs it, with W1 = 5 s and without",
        ),
        Figure(
            f"facebook.{name}.job_time",
            less,
            0 if name == "cpu" else None,
            "less mean job time with delay scheduling than with naive fair sharing",
        ),
        Figure(
            f"facebook.{name}.makespan",
            Seeds(tuple(100 * (1 - ratio) for ratio in span.values)),
            None,
            "less makespan, likewise",
        ),
    ]
    if name == "io" and len(bins) == len(BINS):
        figures.append(
            Figure(
                "facebook.io.faster.bin5",
                _faster(group, results, bins[4][0]),
                44,
                "jobs of 100 maps, as figure 7",
            )
        )
    return figures


def _faster(group: RunGroup, results: Results, maps: int) -> Seeds:
    """Return by how many percent jobs with this number of maps are faster in the mean with delay scheduling."""

    def percent(slow: DelayOutcome, fast: DelayOutcome) -> float:
        jobs = slow.maps_all == maps
        return float(100 * (slow.seconds[jobs] / fast.seconds[jobs] - 1).mean())

    return paired(group.outcomes(results, "naive"), group.outcomes(results, "delay"), percent)


# Yahoo's traces


def yahoo(traces: Path, name: str, slots: int, seeds: Sequence[int], *, brief: bool) -> DelayPart:
    """Return the part on one of Yahoo's traces."""
    contenders = [DelayContender("naive", waits=(0.0, 0.0)), DelayContender("delay", waits=(15.0, 15.0))]
    if not brief:
        contenders += [DelayContender("fifo", FIFO, waits=(0.0, 0.0)), DelayContender("delay, 5 s", waits=(5.0, 5.0))]
    group = RunGroup(YahooTrace(name, traces, slots), None, contenders, seeds)

    def section(results: Results) -> Section:
        real = np.array([task.level for task in maps_of(traces, name) if task.level is not None])
        node, rack = (float(100 * (real <= level).mean()) for level in (0, 1))
        lines = [("in reality", f"{node:.1f} %", f"{rack:.1f} %", "", "")]
        lines += [
            (
                contender.name,
                cell(group.over(results, contender.name, local)),
                cell(group.over(results, contender.name, rack_local)),
                cell(group.over(results, contender.name, makespan), "s"),
                cell(group.over(results, contender.name, mean_seconds), "s"),
            )
            for contender in contenders
        ]
        figures = [
            Figure(
                f"{name}.node_local",
                group.over(results, "delay", local),
                round(node, 1),
                "W1 = W2 = 15 s; beside it what was realised on the real cluster",
            ),
            Figure(
                f"{name}.rack_local",
                group.over(results, "delay", rack_local),
                round(rack, 1),
                "likewise, node or rack",
            ),
            Figure(
                f"{name}.node_local_without", group.over(results, "naive", local), round(node, 1), "naive fair sharing"
            ),
        ]
        return Section(
            title=f"Yahoo's trace {name}",
            about=f"{len(real):,} maps whose places are known; {slots} slots per host, as many as one ran at once.",
            figures=figures,
            listings=[
                Listing(("who", "node-local", "rack-local", "makespan", "job time"), lines),
                _by_size(traces, name, group, results),
            ],
            notes=(
                "Job times are of maps alone, each as long as in reality: waiting shows in them, the gain of locality "
                "does not.",
            ),
        )

    return DelayPart(name, [group], section)


_SIZES = (50, 150, 400, 10_000)


def _by_size(traces: Path, name: str, group: RunGroup, results: Results) -> Listing:
    """Return the node locality of jobs by their number of maps: in the trace, and with each contender."""
    real: dict[str, list[int | None]] = defaultdict(list)
    for task in maps_of(traces, name):
        real[task.job].append(task.level)
    lines = []
    for low, high in pairwise((0, *_SIZES)):
        jobs = [job for job in real.values() if low < len(job) <= high]
        levels = [level for job in jobs for level in job if level is not None]
        if levels:
            ours = (group.over(results, contender.name, _local_in(low, high)) for contender in group.contenders)
            local_part = 100 * sum(level == 0 for level in levels) / len(levels)
            lines.append((f"{low + 1} to {high}", f"{len(levels):,}", f"{local_part:.1f} %", *map(cell, ours)))
    return Listing(("maps of a job", "maps", "in reality", *(contender.name for contender in group.contenders)), lines)


def _local_in(low: int, high: int) -> Callable[[DelayOutcome], float]:
    return lambda outcome: outcome.local((outcome.maps_all > low) & (outcome.maps_all <= high))
