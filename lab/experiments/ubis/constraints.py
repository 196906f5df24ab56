"""C1 to C7 (III), a figure each: what must stay as it was while opportunistic tasks run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lab.experiments.sections import Figure, Listing, Plot, Section
from lab.experiments.seeds import Seeds
from lab.experiments.ubis.groups import Results, UbisPart, UbisScale, cell, compared, over, plot, seeded, with_seeds
from lab.experiments.ubis.pipelines import FIXED, slowdown, slower_jobs
from lab.experiments.ubis.runs import UbisOutcome, UbisRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NEVER = "never"
_MEMORY = 1
_T_ALLOC = FIXED[-1]


def never_waits(outcome: UbisOutcome) -> float:
    """Return the mean seconds that the tasks that are never opportunistic waited."""
    return outcome.waits[_NEVER]


def delay(ours: UbisOutcome, base: UbisOutcome) -> float:
    """Return by how many percent they waited longer than in another run."""
    return 100.0 * (never_waits(ours) / never_waits(base) - 1.0)


def constraints(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part about the constraints: the three pipelines, and a job beside them that is regular only."""
    jobs = replace(scale.pipelines, mix=(*scale.pipelines.mix, _NEVER))
    base = UbisRun(jobs, None, 0, never=frozenset({_NEVER}))
    runs_by = [replace(base, t_alloc=value) for value in scale.t_allocs]

    def section(results: Results) -> Section:
        def by_alloc(figure: str) -> list[Seeds]:
            return [over(results, run, seeds, lambda one: float(getattr(one.counts, figure))) for run in runs_by]

        peak = [over(results, run, seeds, lambda one: 100.0 * float(one.counts.peak[_MEMORY])) for run in runs_by]
        slower = [compared(results, run, base, seeds, slower_jobs) for run in runs_by]
        delays = [compared(results, run, base, seeds, delay) for run in runs_by]
        slowed = [compared(results, run, base, seeds, slowdown) for run in runs_by]
        times = [
            compared(results, run, base, seeds, lambda ours, off: ours.decision_seconds / off.decision_seconds)
            for run in runs_by
        ]
        killed = by_alloc("killed_regular")
        waits = over(results, base, seeds, never_waits)
        chosen = list(scale.t_allocs).index(_T_ALLOC)
        at = f"T_alloc {_T_ALLOC:g}"
        ours, off = results[with_seeds(runs_by[chosen], seeds)[0]], results[with_seeds(base, seeds)[0]]
        note = "Bars: the range over seeds."
        alike = (f"{at}, and without", scale.t_allocs)
        return Section(
            title="The constraints (III)",
            about="The three pipelines, and from second 120 on 400 maps of 60 s that are never opportunistic.",
            figures=[
                Figure(
                    "ubis.regular_delay",
                    delays[chosen],
                    None,
                    f"mean wait of who is never opportunistic, percent more, {at}; aim at most 1",
                )
            ],
            listings=[
                Listing(
                    ("constraint", "what was measured", *(f"T_alloc {value:g}" for value in scale.t_allocs)),
                    [
                        ("C1", "largest use of a node's memory, %", *map(cell, peak)),
                        ("C1, C6", "regular tasks killed by memory", *map(cell, killed)),
                        ("C2", "jobs slower than without, %", *map(cell, slower)),
                        ("C4", f"wait of never-tasks, % more than {waits.mean:.1f} s", *map(cell, delays)),
                        ("C5", "time of a regular plan, times as without", *(f"{one.mean:.2f}" for one in times)),
                        ("C6", "tasks begun as regular slower by, %", *(f"{one.mean:.2f}" for one in slowed)),
                    ],
                )
            ],
            notes=["C7: the jobs are the same values in both; only T_alloc differs. C3 is in the figure of shares."],
            plots=[
                plot(
                    "c1",
                    "C1: nodes",
                    note,
                    ("T_alloc", "% of memory, at most"),
                    alike[1],
                    {"largest use": peak},
                ),
                plot("c2", "C2: job times", note, ("T_alloc", "% of jobs slower"), alike[1], {"slower": slower}),
                _shares(alike[0], ours, off),
                plot("c4", "C4: regular tasks wait no longer", note, ("T_alloc", "%"), alike[1], {"longer by": delays}),
                plot("c5", "C5: time of a plan", note, ("T_alloc", "times"), alike[1], {"with / without": times}),
                plot("c6", "C6: regular tasks", note, ("T_alloc", "%"), alike[1], {"slower by": slowed}),
                _use(alike[0], ours, off),
            ],
        )

    return UbisPart("constraints", seeded((base, *runs_by), seeds), section)


def _shares(words: str, ours: UbisOutcome, off: UbisOutcome) -> Plot:
    """Return the dominant shares of regular resources over time, by queue."""

    def draw() -> str:
        from lab.report.drawing import COLOURS, finish, svg

        def axes_of(axes: "Sequence[Axes]") -> None:
            for axis, outcome, title in zip(axes, (ours, off), ("with", "without"), strict=True):
                for column, (name, colour) in enumerate(zip(outcome.queue_names, COLOURS, strict=False)):
                    axis.plot(outcome.at, outcome.queues_at[:, column], label=name, color=colour)
                finish(axis, title, "dominant share", "seconds")

        return svg("ubis-c3", (10.0, 3.3), (1, 2), axes_of)

    return Plot("C3: regular shares of queues", f"{words}; one seed.", draw)


def _use(words: str, ours: UbisOutcome, off: UbisOutcome) -> Plot:
    """Return the use of CPU and memory over time, with and without."""

    def draw() -> str:
        from lab.report.drawing import COLOURS, finish, svg

        def axes_of(axes: "Sequence[Axes]") -> None:
            for axis, column, title in zip(axes, (0, _MEMORY), ("CPU", "memory"), strict=True):
                for outcome, label, colour in ((ours, "with", COLOURS[0]), (off, "without", COLOURS[1])):
                    axis.plot(outcome.at, 100.0 * np.asarray(outcome.use_at[:, column]), label=label, color=colour)
                finish(axis, title, "% used", "seconds")

        return svg("ubis-c7", (10.0, 3.3), (1, 2), axes_of)

    return Plot("C7: the same jobs, nothing edited", f"{words}; one seed.", draw)
