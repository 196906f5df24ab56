"""T_alloc by itself: the three pipelines by predicted peaks, against the best of the fixed thresholds."""

from collections.abc import Sequence
from dataclasses import replace

from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.ubis.groups import (
    Results,
    UbisPart,
    UbisScale,
    cell,
    compared,
    less,
    makespan,
    over,
    preempted,
    seeded,
    share,
    total_job_seconds,
)
from lab.experiments.ubis.pipelines import slowdown
from lab.experiments.ubis.runs import UbisOutcome, UbisRun


def auto(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part that compares `auto` with the fixed thresholds."""
    base = UbisRun(scale.pipelines, None, 0)
    fixed = [replace(base, t_alloc=value) for value in scale.t_allocs]
    ours = replace(base, auto=True)

    def section(results: Results) -> Section:
        gains = [compared(results, run, base, seeds, less(makespan)) for run in fixed]
        best = fixed[max(range(len(fixed)), key=lambda place: gains[place].mean)]
        more_preempted = compared(results, ours, best, seeds, lambda one, other: preempted(one) - preempted(other))
        at = f"T_alloc {best.t_alloc:g}"
        gain = compared(results, ours, base, seeds, less(makespan))
        return Section(
            title="T_alloc by itself",
            about=(
                "The three pipelines by the predicted peak of each node, and by fixed thresholds. Percent less than "
                "the same planner without opportunistic tasks."
            ),
            figures=[
                Figure(
                    "ubis.auto.makespan",
                    gain,
                    None,
                    f"percent less; aim: at least the best fixed, {max(one.mean for one in gains):.1f} ({at})",
                ),
                Figure(
                    "ubis.auto.preemptions_vs_best_fixed",
                    more_preempted,
                    None,
                    f"points of all starts more than {at}; aim at most 0",
                    unit="",
                ),
            ],
            listings=[
                Listing(
                    (
                        "",
                        "makespan less by, %",
                        "total job time, %",
                        "opportunistic, %",
                        "preempted, %",
                        "killed by memory",
                        "regular ones slower by, %",
                    ),
                    [_line(results, run, base, seeds) for run in (ours, *fixed)],
                )
            ],
        )

    return UbisPart("auto", seeded((base, ours, *fixed), seeds), section)


def _line(results: Results, run: UbisRun, base: UbisRun, seeds: Sequence[int]) -> tuple[str, ...]:
    def killed(outcome: UbisOutcome) -> float:
        return outcome.counts.killed_opportunistic + outcome.counts.killed_regular

    return (
        "auto" if run.auto else f"T_alloc {run.t_alloc:g}",
        cell(compared(results, run, base, seeds, less(makespan))),
        cell(compared(results, run, base, seeds, less(total_job_seconds))),
        cell(over(results, run, seeds, share)),
        f"{over(results, run, seeds, preempted).mean:.2f}",
        cell(over(results, run, seeds, killed)),
        f"{compared(results, run, base, seeds, slowdown).mean:.2f}",
    )
