"""Figure 9: on a cluster that is as busy as T_alloc allows nothing changes, and small jobs do a large one no harm."""

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
    over,
    seeded,
    share,
)
from lab.experiments.ubis.runs import UbisOutcome, UbisRun

_LARGE, _SMALL = "terasort-2tb", "small"
_CPU = 0


def terasort(outcome: UbisOutcome) -> float:
    """Return the seconds of the large Terasort."""
    return outcome.job_seconds["terasort"]


def cpu(outcome: UbisOutcome) -> float:
    """Return the percentage of all CPU that was used, in the mean until the last end."""
    return 100.0 * float(outcome.use[_CPU])


def busy(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part with figure 9."""
    alone = UbisRun(replace(scale.pipelines, mix=(_LARGE,)), None, 0)
    both = replace(alone, jobs=replace(scale.pipelines, mix=(_LARGE, _SMALL)))
    rows = (
        ("TS (0)", alone),
        ("TS (its mean use of CPU)", replace(alone, t_alloc=0.0, at_mean_use=True)),
        ("TS (0.8)", replace(alone, t_alloc=0.8)),
        ("TS + WC (0.8)", replace(both, t_alloc=0.8)),
    )

    def section(results: Results) -> Section:
        lines = [
            (
                words,
                cell(over(results, run, seeds, cpu)),
                cell(over(results, run, seeds, share)),
                cell(compared(results, run, alone, seeds, less(terasort))),
            )
            for words, run in rows
        ]
        paper = (("16.4", "0", ""), ("17.2", "0", "1.2"), ("", "25", "15.3"), ("", "", "10.8"))
        return Section(
            title="A cluster that is busy already (figure 9)",
            about=(
                "Terasort of 2 TB alone, with T_alloc as much as it uses of the CPU in the mean, with 0.8, and with a "
                "small Wordcount beside it."
            ),
            figures=[
                Figure("ubis.busy.opportunistic", over(results, rows[1][1], seeds, share), 0, "of all containers"),
                Figure("ubis.busy.faster", compared(results, rows[1][1], alone, seeds, less(terasort)), 1.22),
                Figure("ubis.busy.faster.0.8", compared(results, rows[2][1], alone, seeds, less(terasort)), 15.28),
                Figure("ubis.busy.faster.beside", compared(results, rows[3][1], alone, seeds, less(terasort)), 10.8),
            ],
            listings=[
                Listing(
                    (
                        "run (T_alloc)",
                        "CPU used, %",
                        "paper",
                        "opportunistic, %",
                        "paper",
                        "Terasort faster by, %",
                        "paper",
                    ),
                    [
                        (line[0], line[1], published[0], line[2], published[1], line[3], published[2])
                        for line, published in zip(lines, paper, strict=True)
                    ],
                )
            ],
        )

    return UbisPart("busy", seeded((run for _, run in rows), seeds), section)
