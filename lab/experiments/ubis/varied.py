"""The three pipelines with one thing varied: which there are, how often use is sampled, and who knows of I/O."""

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
    plot,
    preempted,
    seeded,
    share,
    task_seconds,
    total_job_seconds,
)
from lab.experiments.ubis.pipelines import FIXED, slowdown, slower_jobs
from lab.experiments.ubis.runs import UbisRun

_FEWER = (("etl",), ("tpcds", "etl"))
"""The pipeline with the longest chain alone, and beside the one that computes little."""


def fewer_pipelines(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part that leaves pipelines away: what the longest chain takes alone, and whom others slow down."""
    all_three = UbisRun(scale.pipelines, None, 0)
    bases = {" + ".join(mix): replace(all_three, jobs=replace(scale.pipelines, mix=mix)) for mix in _FEWER}

    def section(results: Results) -> Section:
        lines = [
            (
                words,
                "without" if run.t_alloc is None else f"{run.t_alloc:g}",
                cell(over(results, run, seeds, makespan)),
                cell(compared(results, run, base, seeds, less(makespan))),
                cell(compared(results, run, all_three, seeds, less(makespan))),
                cell(compared(results, run, base, seeds, slower_jobs)),
            )
            for words, base in bases.items()
            for run in _with_and_without(base, scale)
        ]
        heads = (
            "pipelines",
            "T_alloc",
            "makespan, s",
            "less by, %",
            "less than all three without, %",
            "slower jobs, %",
        )
        return Section(
            title="Fewer pipelines",
            about="What is left of the three pipelines if Wordcount is not there, or only ETL is.",
            figures=[
                Figure(
                    "ubis.makespan.etl_alone",
                    compared(results, bases["etl"], all_three, seeds, less(makespan)),
                    None,
                    "percent less than all three, for ETL alone on the cluster, without opportunistic tasks",
                )
            ],
            listings=[Listing(heads, lines)],
        )

    runs = [all_three, *(run for base in bases.values() for run in _with_and_without(base, scale))]
    return UbisPart("fewer", seeded(runs, seeds), section)


def _with_and_without(base: UbisRun, scale: UbisScale) -> list[UbisRun]:
    return [base, *(replace(base, t_alloc=value) for value in scale.t_allocs)]


def scrapes(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part that varies how often use is sampled."""
    base = UbisRun(scale.pipelines, None, 0)
    fixed = [value for value in FIXED if value in scale.t_allocs]
    books = {value: [replace(base, t_alloc=value, scrape=scrape) for scrape in scale.scrapes] for value in fixed}

    def section(results: Results) -> Section:
        gains = {
            f"T_alloc {value:g}": [compared(results, run, base, seeds, less(makespan)) for run in runs]
            for value, runs in books.items()
        }
        lines = [
            (
                f"{value:g}",
                f"{run.scrape:g}",
                cell(compared(results, run, base, seeds, less(makespan))),
                cell(compared(results, run, base, seeds, less(total_job_seconds))),
                cell(over(results, run, seeds, share)),
                f"{over(results, run, seeds, preempted).mean:.2f}",
                cell(over(results, run, seeds, lambda outcome: outcome.counts.killed_opportunistic)),
                cell(over(results, run, seeds, lambda outcome: outcome.counts.killed_regular)),
            )
            for value, runs in books.items()
            for run in runs
        ]
        heads = ("T_alloc", "scrape, s", "makespan less by, %", "total job time, %", "opportunistic, %", "preempted, %")
        return Section(
            title="How often use is sampled",
            about="The three pipelines; means are over four scrapes, and known a second late.",
            listings=[Listing((*heads, "opportunistic ones killed", "regular ones killed"), lines)],
            plots=[
                plot(
                    "scrapes",
                    "Makespan by scrapes",
                    "Percent less than without; bars: the range over seeds.",
                    ("seconds between scrapes", "%"),
                    scale.scrapes,
                    gains,
                )
            ],
            more=[
                Figure(
                    f"ubis.makespan.{run.t_alloc:g}.{run.scrape:g}s",
                    compared(results, run, base, seeds, less(makespan)),
                )
                for runs in books.values()
                for run in runs
                if run.scrape != base.scrape
            ],
        )

    runs = [base, *(run for book in books.values() for run in book)]
    return UbisPart("scrapes", seeded(runs, seeds), section)


def variants(scale: UbisScale, seeds: Sequence[int]) -> UbisPart:
    """Return the part that varies who knows of disks and links, and what counts for tasks that are not measured."""
    plain = UbisRun(scale.pipelines, None, 0)
    paper = replace(plain, io=False, io_first=False)
    pairs = (
        ("disks and links planned, regular tasks first", plain, plain),
        ("planned, but they know no order", replace(plain, io_first=False), replace(plain, io_first=False)),
        ("not planned, and they know no order (as the paper's)", paper, paper),
        ("scrapes of 15 s", replace(plain, scrape=15.0), plain),
        (
            "scrapes of 15 s, what ended tasks used not taken off",
            replace(plain, scrape=15.0, without_gone=False),
            plain,
        ),
        ("tasks count in full until they are measured (as the paper's)", replace(plain, learns=False), plain),
        ("one queue for all", replace(plain, jobs=replace(scale.pipelines, one_queue=True)), None),
    )

    def section(results: Results) -> Section:
        lines, more = [], []
        for number, (words, run, base) in enumerate(pairs):
            ours, other = replace(run, t_alloc=FIXED[-1]), base or run
            figures = [
                compared(results, ours, other, seeds, figure)
                for figure in (less(makespan), less(total_job_seconds), less(task_seconds), slowdown, slower_jobs)
            ]
            lines.append((words, *(cell(figure) for figure in figures), cell(over(results, ours, seeds, share))))
            more.append(Figure(f"ubis.variant.{number}.makespan", figures[0], None, words))
        return Section(
            title="Variants",
            about="The three pipelines at T_alloc 0.9, each against the same without opportunistic tasks.",
            listings=[
                Listing(
                    (
                        "",
                        "makespan less by, %",
                        "total job time, %",
                        "task time, %",
                        "regular ones slower by, %",
                        "slower jobs, %",
                        "opportunistic, %",
                    ),
                    lines,
                )
            ],
            more=more,
        )

    bases = [base or run for _, run, base in pairs]
    runs = dict.fromkeys([*bases, *(replace(run, t_alloc=FIXED[-1]) for _, run, _ in pairs)])
    return UbisPart("variants", seeded(runs, seeds), section)
