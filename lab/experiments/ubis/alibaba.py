"""Jobs of Alibaba's trace: T_alloc, how often use is sampled, memory above requests, and arrivals over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from extender.cluster.resources import CPU_INDEX, MEMORY_INDEX
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds
from lab.experiments.ubis.alibaba_jobs import RAISED, AlibabaJobs
from lab.experiments.ubis.groups import (
    Results,
    UbisPart,
    UbisScale,
    cell,
    compared,
    less,
    makespan,
    over,
    plot,
    preempted,
    seeded,
    share,
    total_job_seconds,
)
from lab.experiments.ubis.pipelines import FIXED, slower_jobs
from lab.experiments.ubis.runs import UbisOutcome, UbisRun

SCRAPES = (1.0, 15.0)
"""Seconds between two scrapes."""

LOAD = 1.2
"""Where jobs arrive over time, they request so many times what there is."""

_MUCH = 5.0
_AIMS = {1.0: 40, 15.0: 30}
_ABOUT = (
    "DAGs with what they requested and used of CPU and memory. Memory over time is synthetic. Percent less than the "
    "same planner without opportunistic tasks."
)
_NOTE = (
    "At most: if CPU or memory, the scarcer of them, were used up to T_alloc until the end, and not before the longest "
    "chain of stages is over. Raised: memory is requested "
    f"as it is used, where that is more. Paced: jobs come over time, and request {LOAD:g} times what there is. SURF's "
    "use of CPU over time is replayed by `dovetail experiment peaks`."
)
_HEADS = (
    "makespan less by, %",
    "at most, %",
    "total job time, %",
    "opportunistic, %",
    "preempted, %",
    "regular ones slower by, %",
    "slower jobs, %",
    f"by over {_MUCH:g} %",
    "killed by memory",
    "regular killed",
)


def regular_slowdown(ours: UbisOutcome, base: UbisOutcome) -> float:
    """Return by how many percent tasks that begin as regular take longer than the same tasks in another run."""
    regular = ~ours.counts.opportunistic_at_start
    return 100.0 * float(ours.stretch[regular].mean() / base.stretch[regular].mean() - 1.0)


def much_slower_jobs(ours: UbisOutcome, base: UbisOutcome) -> float:
    """Return the percentage of the jobs that took longer by more than 5 % than in another run."""
    much = 1.0 + _MUCH / 100.0
    return 100.0 * float(
        np.mean([ours.job_seconds[name] > much * seconds for name, seconds in base.job_seconds.items()])
    )


def at_most(t_alloc: float) -> Callable[[UbisOutcome, UbisOutcome], float]:
    """Return by how many percent the makespan would be less if CPU or memory were used up to T_alloc all the time.

    The scarcer of them counts, by what a run without opportunistic tasks uses: that is all the work. The makespan is no
    less than the longest chain of stages.
    """

    def percent(_: UbisOutcome, base: UbisOutcome) -> float:
        scarcer = float(base.use[[CPU_INDEX, MEMORY_INDEX]].max())
        return 100.0 * (1.0 - max(scarcer / t_alloc, base.chain / base.makespan))

    return percent


def alibaba(scale: UbisScale, seeds: Sequence[int], few: Sequence[int]) -> UbisPart:
    """Return the part with Alibaba's jobs; memory and arrivals are varied over `few` of the seeds."""
    base = UbisRun(scale.alibaba, None, 0)
    books = {scrape: [replace(base, t_alloc=value, scrape=scrape) for value in scale.t_allocs] for scrape in SCRAPES}
    varied = {words: _pairs(scale, jobs) for words, jobs in _varied(scale).items()}

    def section(results: Results) -> Section:
        gains, totals = (
            {
                scrape: [compared(results, run, base, seeds, less(figure)) for run in runs]
                for scrape, runs in books.items()
            }
            for figure in (makespan, total_job_seconds)
        )
        best = {
            scrape: max(range(len(runs)), key=lambda place: gains[scrape][place].mean) for scrape, runs in books.items()
        }
        return Section(
            title="Alibaba's jobs of 2018",
            about=f"{_ABOUT} {scale.alibaba.label}.",
            figures=_figures(results, base, books, best, seeds),
            listings=[
                Listing(
                    ("scrape, s", "T_alloc", *_HEADS),
                    [_line(results, run, base, seeds) for runs in books.values() for run in runs],
                ),
                *(
                    Listing(
                        (f"{words}; scrape, s", "T_alloc", *_HEADS),
                        [_line(results, run, other, few) for run, other in pairs],
                    )
                    for words, pairs in varied.items()
                ),
            ],
            notes=[_NOTE],
            plots=[
                plot(
                    "alibaba",
                    "Makespan and job time by T_alloc",
                    "Percent less than without; bars: the range over seeds.",
                    ("T_alloc", "%"),
                    scale.t_allocs,
                    {
                        f"{words}, scrapes of {scrape:g} s": book[scrape]
                        for words, book in (("makespan", gains), ("total job time", totals))
                        for scrape in books
                    },
                )
            ],
            more=[
                *(
                    Figure(f"alibaba.{name}.{value:g}.{scrape:g}s", book[scrape][place])
                    for name, book in (("makespan", gains), ("total_job_time", totals))
                    for scrape in books
                    for place, value in enumerate(scale.t_allocs)
                ),
                *(
                    Figure(
                        f"alibaba.{name}.{words}.{run.t_alloc:g}.{run.scrape:g}s",
                        compared(results, run, other, few, less(figure)),
                    )
                    for words, pairs in varied.items()
                    for run, other in pairs
                    for name, figure in (("makespan", makespan), ("total_job_time", total_job_seconds))
                ),
            ],
        )

    main = [base, *(run for runs in books.values() for run in runs)]
    others = dict.fromkeys(run for pairs in varied.values() for pair in pairs for run in pair)
    return UbisPart("alibaba", seeded(main, seeds) + seeded(others, few), section)


def _varied(scale: UbisScale) -> dict[str, AlibabaJobs]:
    """Return the other forms of the jobs, by the word in a row's id."""
    return {"raised": replace(scale.alibaba, memory=RAISED), "paced": replace(scale.alibaba, load=LOAD)}


def _pairs(scale: UbisScale, jobs: AlibabaJobs) -> list[tuple[UbisRun, UbisRun]]:
    """Return the runs of a form of the jobs, each with what it is compared with."""
    base = UbisRun(jobs, None, 0)
    fixed = [value for value in FIXED if value in scale.t_allocs]
    return [(replace(base, t_alloc=value, scrape=scrape), base) for scrape in SCRAPES for value in fixed]


def _figures(
    results: Results,
    base: UbisRun,
    books: Mapping[float, Sequence[UbisRun]],
    best: Mapping[float, int],
    seeds: Sequence[int],
) -> list[Figure]:
    """Return the rows of the jobs with capped memory, all there at once, each at its best T_alloc for makespan."""
    figures = []
    for scrape, runs in books.items():
        run = runs[best[scrape]]
        mark = "" if scrape == SCRAPES[0] else f".{scrape:g}s"
        at = f"T_alloc {run.t_alloc:g}, scrapes of {scrape:g} s"
        aim = _AIMS[scrape]
        figures += [
            Figure(
                f"alibaba.makespan{mark}",
                compared(results, run, base, seeds, less(makespan)),
                None,
                f"percent less, {at}; aim {aim}",
            ),
            Figure(
                f"alibaba.total_job_time{mark}",
                compared(results, run, base, seeds, less(total_job_seconds)),
                None,
                f"percent less, {at}",
            ),
            Figure(f"alibaba.preempted{mark}", over(results, run, seeds, preempted), None, f"of all starts, {at}"),
            Figure(
                f"alibaba.regular_slowdown{mark}",
                compared(results, run, base, seeds, regular_slowdown),
                None,
                f"percent more than the same tasks, {at}",
            ),
            Figure(
                f"alibaba.jobs_slower{mark}",
                compared(results, run, base, seeds, slower_jobs),
                None,
                f"of all jobs, however little, {at}",
            ),
            Figure(
                f"alibaba.regular_killed{mark}",
                _most_killed(results, runs, seeds),
                None,
                "the most at any T_alloc",
                unit="",
            ),
        ]
    return figures


def _most_killed(results: Results, runs: Sequence[UbisRun], seeds: Sequence[int]) -> Seeds:
    """Return how many regular tasks memory killed, in the run with the most."""
    return Seeds(
        tuple(float(max(results[replace(run, seed=seed)].counts.killed_regular for run in runs)) for seed in seeds)
    )


def _line(results: Results, run: UbisRun, base: UbisRun, seeds: Sequence[int]) -> tuple[str, ...]:
    """Return a line of a table: a run beside what it is compared with."""
    bound = at_most(run.t_alloc or 1.0)
    return (
        f"{run.scrape:g}",
        f"{run.t_alloc:g}",
        *(
            cell(compared(results, run, base, seeds, figure))
            for figure in (less(makespan), bound, less(total_job_seconds))
        ),
        cell(over(results, run, seeds, share)),
        f"{over(results, run, seeds, preempted).mean:.2f}",
        f"{compared(results, run, base, seeds, regular_slowdown).mean:.2f}",
        *(cell(compared(results, run, base, seeds, figure)) for figure in (slower_jobs, much_slower_jobs)),
        cell(over(results, run, seeds, lambda outcome: outcome.counts.killed_opportunistic)),
        cell(over(results, run, seeds, lambda outcome: outcome.counts.killed_regular)),
    )
