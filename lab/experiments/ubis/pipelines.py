"""Figures 6 to 8: three pipelines on nineteen nodes by T_alloc."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds
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
    task_seconds,
    total_job_seconds,
    with_seeds,
)
from lab.experiments.ubis.jobs import PIPELINES
from lab.experiments.ubis.runs import HEARTBEAT_SECONDS, UbisOutcome, UbisRun

FIXED = (0.8, 0.9)
"""The T_alloc at which other things are varied: the default, and the paper's best."""


def slower_jobs(ours: UbisOutcome, base: UbisOutcome) -> float:
    """Return the percentage of the jobs that took longer than in another run, by more than a heartbeat.

    Jobs begin at heartbeats, and end at any time.
    """
    return _longer(ours.job_seconds, base.job_seconds)


def bound(results: Results, base: UbisRun, seeds: Sequence[int]) -> Seeds:
    """Return by how many percent the makespan of a run could be less at most: its longest chain of stages stays."""
    return over(results, base, seeds, lambda outcome: 100.0 * (1.0 - outcome.chain / outcome.makespan))


def later_jobs(ours: UbisOutcome, base: UbisOutcome) -> float:
    """Return the percentage of the jobs that ended later than in another run, by more than a heartbeat.

    A job that follows another begins sooner where that is faster, and may then take longer beside others.
    """
    return _longer(ours.job_ends, base.job_ends)


def _longer(ours: Mapping[str, float], base: Mapping[str, float]) -> float:
    more = [ours[name] - seconds for name, seconds in base.items()]
    return 100.0 * float(np.mean([seconds > HEARTBEAT_SECONDS + 1e-6 for seconds in more]))


def slowdown(ours: UbisOutcome, base: UbisOutcome) -> float:
    """Return by how many percent tasks that began as regular took longer than in another run."""
    return round(100.0 * (ours.slowdown / base.slowdown - 1.0), 6) + 0.0  # + 0.0: no -0.0


def _seconds_of(name: str) -> Callable[[UbisOutcome], float]:
    """Return the seconds of a job of an outcome."""
    return lambda outcome: outcome.job_seconds[name]


def pipelines(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part with figures 6 to 8."""
    base = UbisRun(scale.pipelines, None, 0)
    runs_by = [replace(base, t_alloc=value) for value in scale.t_allocs]

    def section(results: Results) -> Section:
        gains, totals, tasks, slowed = (
            [compared(results, run, base, seeds, figure) for run in runs_by]
            for figure in (less(makespan), less(total_job_seconds), less(task_seconds), slowdown)
        )
        slower, later = (
            [compared(results, run, base, seeds, figure) for run in runs_by] for figure in (slower_jobs, later_jobs)
        )
        killed = [over(results, run, seeds, lambda outcome: outcome.counts.killed_regular) for run in runs_by]
        best = max(range(len(runs_by)), key=lambda place: gains[place].mean)
        best_total = max(range(len(runs_by)), key=lambda place: totals[place].mean)
        at = f"T_alloc {scale.t_allocs[best]:g}"
        names = list(results[with_seeds(base, seeds)[0]].job_seconds)
        seconds = {name: [over(results, run, seeds, _seconds_of(name)) for run in runs_by] for name in names}
        alone = {name: over(results, base, seeds, _seconds_of(name)) for name in names}
        return Section(
            title="Three pipelines (figures 6 to 8)",
            about=(
                f"A TPC-DS query, teragen + terasort + teravalidate, and Wordcount on {scale.pipelines.nodes} nodes of "
                "56 vcores and 130 GB, submitted together. Percent less than the same planner without opportunistic "
                "tasks."
            ),
            figures=[
                Figure("ubis.makespan", gains[best], 30, f"percent less, {at}; aim 35"),
                Figure(
                    "ubis.total_job_time",
                    totals[best_total],
                    25,
                    f"percent less, T_alloc {scale.t_allocs[best_total]:g}; aim 30",
                ),
                Figure(
                    "ubis.makespan.bound",
                    bound(results, base, seeds),
                    None,
                    "percent less if nothing ever waited: the longest chain of stages; no schedule has more",
                ),
                Figure("ubis.regular_slowdown", slowed[best], None, f"tasks begun as regular, {at}; aim at most 2"),
                Figure(
                    "ubis.regular_killed",
                    Seeds(tuple(max(point.values[row] for point in killed) for row in range(len(seeds)))),
                    None,
                    "the most at any T_alloc; aim 0",
                    unit="",
                ),
                Figure("ubis.jobs_slower", slower[best], None, f"of all jobs, {at}; aim at most 2"),
                Figure("ubis.jobs_later", later[best], None, f"of all jobs, {at}"),
            ],
            listings=[
                Listing(
                    (
                        "T_alloc",
                        "makespan less by, %",
                        "total job time, %",
                        "task time, %",
                        "opportunistic, %",
                        "preempted, %",
                        "killed by memory",
                        "regular ones slower by, %",
                        "slower jobs, %",
                        "later jobs, %",
                    ),
                    [
                        (
                            f"{scale.t_allocs[place]:g}",
                            *(cell(book[place]) for book in (gains, totals, tasks)),
                            cell(over(results, run, seeds, share)),
                            f"{over(results, run, seeds, preempted).mean:.2f}",
                            cell(over(results, run, seeds, lambda outcome: outcome.counts.killed_opportunistic)),
                            f"{slowed[place].mean:.2f}",
                            cell(slower[place]),
                            cell(later[place]),
                        )
                        for place, run in enumerate(runs_by)
                    ],
                ),
                Listing(
                    ("job", "without, s", *(f"T_alloc {value:g}, s" for value in scale.t_allocs)),
                    [
                        (name, cell(alone[name]), *(cell(point) for point in seconds[name]))
                        for name in PIPELINES
                        if name in seconds
                    ],
                ),
            ],
            plots=[
                plot(
                    "6",
                    "Improvement (figure 6)",
                    "Percent less than without; bars: the range over seeds.",
                    ("T_alloc", "%"),
                    scale.t_allocs,
                    {"makespan": gains, "total job time": totals},
                ),
                plot(
                    "7",
                    "Deterioration of task times (figure 7)",
                    "Percent more of all tasks' seconds, and of those that began as regular.",
                    ("T_alloc", "%"),
                    scale.t_allocs,
                    {
                        "all tasks": [Seeds(tuple(-value for value in point.values)) for point in tasks],
                        "begun as regular": slowed,
                    },
                ),
                plot(
                    "8",
                    "Job times (figure 8)",
                    "Seconds from when a job could begin to its last end.",
                    ("T_alloc", "s"),
                    scale.t_allocs,
                    seconds,
                ),
            ],
            more=[
                Figure(f"ubis.{name}.{value:g}", book[place])
                for name, book in (("makespan", gains), ("total_job_time", totals))
                for place, value in enumerate(scale.t_allocs)
            ],
        )

    return UbisPart("pipelines", seeded((base, *runs_by), seeds), section)
