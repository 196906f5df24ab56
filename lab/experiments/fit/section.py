"""A fit as people and programs read it: ours beside the paper's, before and after."""

from collections.abc import Sequence

from lab.experiments.fit.search import Trial
from lab.experiments.fit.targets import Target, with_factors
from lab.experiments.sections import Figure, Listing, Section
from lab.experiments.seeds import Seeds


def section(target: Target, seeds: Sequence[int], first: Trial, best: Trial) -> Section:
    """Return the largest miss, each cell, and each value."""
    return Section(
        title=f"The fit of {target.group}",
        about=(
            f"{target.size.workload} on {target.size.machines}, {target.size.part:g} of the tasks of each job, "
            f"seeds {seeds[0]} to {seeds[-1]}; baselines only: "
            f"{', '.join(target.policies)}. The best was trial {best.number}."
        ),
        figures=[Figure(f"{target.group}.fit", Seeds((best.measured.fit(target),)), None, "largest miss", "p")],
        listings=[_cells(target, first, best), _values(target, first, best)],
    )


def _cells(target: Target, first: Trial, best: Trial) -> Listing:
    lines = [
        (cell.name, *(f"{value:.2f}" for value in (cell.paper, before, after, after - cell.paper)))
        for cell, before, after in zip(target.cells, first.measured.cells, best.measured.cells, strict=True)
    ]
    lengths = [
        (
            f"{name} makespan, s",
            f"{target.seconds:,.0f}" if target.seconds else "",
            f"{before:,.0f}",
            f"{after:,.0f}",
            "",
        )
        for name, before, after in zip(target.policies, first.measured.makespans, best.measured.makespans, strict=True)
    ]
    return Listing(("load above", "paper", "at the beginning", "best", "miss"), [*lines, *lengths])


def _values(target: Target, first: Trial, best: Trial) -> Listing:
    before, after = (getattr(with_factors(target, trial.factors), target.group) for trial in (first, best))
    return Listing(
        ("value", "at the beginning", "best"),
        [(knob.name, str(getattr(before, knob.name)), str(getattr(after, knob.name))) for knob in target.knobs],
    )
