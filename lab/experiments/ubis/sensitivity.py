"""Figures 4 and 5: table I's sleeping maps on one node, by T_alloc and by T_preempt."""

from collections.abc import Callable, Sequence

from lab.experiments.sections import Figure, Listing, Plot, Section
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
    share,
    with_seeds,
)
from lab.experiments.ubis.jobs import SLEEPS, SleepJobs
from lab.experiments.ubis.runs import UbisOutcome, UbisRun

T_ALLOC, T_PREEMPT = 0.8, 0.9
"""Figure 5 has this T_alloc, figure 4 this T_preempt."""

_HIGHEST = 0.9
_ABOUT = (
    "315 maps of 1 core and 2 GB on 64 cores and 130 GB, which use 200 MB and grow to a part of their heap (table I). "
    "Of all containers, the part that was opportunistic, and the part that was preempted."
)


def sleep(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part with figures 4 and 5."""
    t_allocs = [value for value in scale.t_allocs if value <= _HIGHEST]
    runs = [
        run
        for kind in SLEEPS
        for one in (
            _run(scale, kind, None, T_PREEMPT),
            *(_run(scale, kind, value, T_PREEMPT) for value in t_allocs),
            *(_run(scale, kind, T_ALLOC, value) for value in scale.t_preempts),
        )
        for run in with_seeds(one, seeds)
    ]

    def section(results: Results) -> Section:
        def by_alloc(figure: Callable[[UbisOutcome], float]) -> dict[str, list[Seeds]]:
            return {
                kind: [over(results, _run(scale, kind, value, T_PREEMPT), seeds, figure) for value in t_allocs]
                for kind in SLEEPS
            }

        shares, evicted = by_alloc(share), by_alloc(preempted)
        by_preempt = {
            kind: [over(results, _run(scale, kind, T_ALLOC, value), seeds, preempted) for value in scale.t_preempts]
            for kind in SLEEPS
        }
        gains = {
            kind: [
                compared(
                    results,
                    _run(scale, kind, value, T_PREEMPT),
                    _run(scale, kind, None, T_PREEMPT),
                    seeds,
                    less(makespan),
                )
                for value in t_allocs
            ]
            for kind in SLEEPS
        }
        last = t_allocs.index(_HIGHEST)
        return Section(
            title="Sleeping maps (figures 4 and 5)",
            about=_ABOUT,
            figures=[
                Figure("ubis.share.sleep.0.9", shares["sleep"][last], 60, "opportunistic, of all containers"),
                Figure(
                    "ubis.preempted.sleep",
                    Seeds(tuple(max(point.values[row] for point in evicted["sleep"]) for row in range(len(seeds)))),
                    0,
                    "preempted, of all containers, at the T_alloc with most",
                ),
            ],
            listings=[
                Listing(
                    ("job", "T_alloc", "opportunistic, %", "preempted, %", "makespan less by, %"),
                    [
                        (kind, f"{value:g}", *(cell(book[kind][place]) for book in (shares, evicted, gains)))
                        for kind in SLEEPS
                        for place, value in enumerate(t_allocs)
                    ],
                ),
                Listing(
                    ("job", *(f"preempted, %, at T_preempt {value:g}" for value in scale.t_preempts)),
                    [(kind, *(cell(point) for point in by_preempt[kind])) for kind in SLEEPS],
                ),
            ],
            notes=[
                "Paper: opportunistic 30 to 40 % at T_alloc 0.5, 48 to 60 % at 0.9; no preemption of Sleep, most of "
                "G-Sleep, less than 10 % of all containers more at 0.9 than at 0.5."
            ],
            plots=_plots(t_allocs, scale.t_preempts, shares, evicted, by_preempt),
            more=[
                Figure(f"ubis.{name}.{kind}.{value:g}", book[kind][place])
                for name, book in (("share", shares), ("preempted", evicted))
                for kind in SLEEPS
                for place, value in enumerate(t_allocs)
                if (name, kind, value) != ("share", "sleep", _HIGHEST)
            ],
        )

    return UbisPart("sleep", runs, section)


def _run(scale: UbisScale, kind: str, t_alloc: float | None, t_preempt: float) -> UbisRun:
    return UbisRun(SleepJobs(kind, scale.maps), t_alloc, 0, memory=t_preempt, cpu=t_preempt)


def _plots(
    t_allocs: Sequence[float],
    t_preempts: Sequence[float],
    shares: dict[str, list[Seeds]],
    evicted: dict[str, list[Seeds]],
    by_preempt: dict[str, list[Seeds]],
) -> list[Plot]:
    note = "T_preempt 0.9; bars: the range over seeds."
    fixed = "T_alloc 0.8; bars: the range over seeds."
    return [
        plot("4a", "Opportunistic containers (figure 4a)", note, ("T_alloc", "% of containers"), t_allocs, shares),
        plot("4b", "Preempted containers (figure 4b)", note, ("T_alloc", "% of containers"), t_allocs, evicted),
        plot("5", "Preempted by T_preempt (figure 5)", fixed, ("T_preempt", "% of containers"), t_preempts, by_preempt),
    ]
