"""An experiment from its parts to their sections: every run once, over all cores."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lab.experiments.sections import Section, Skipped
from lab.sim.parallel import Failed, Show, Tell, run_all


class Scale(Protocol):
    """How large an experiment is."""

    @property
    def about(self) -> str:
        """What it is, in words."""

    @property
    def seeds(self) -> int:
        """How many seeds it has if nobody says how many."""


class Run(Protocol):
    """A run, hashable: equal ones have equal outcomes."""

    @property
    def name(self) -> str:
        """The name that is shown; different runs of an experiment have different names."""


class Part(Protocol):
    """A part of an experiment."""

    @property
    def name(self) -> str:
        """What `--only` takes."""

    def runs(self) -> Sequence[Run]:
        """Return the runs that it needs; parts may share some."""

    def section(self, results: Any, /) -> Section:  # noqa: ANN401 - the outcomes of its own kind of runs, by run
        """Return the section that the results make."""


Perform = Callable[[Any, Tell], Any]
"""Performs a run of one experiment; a module's own function."""


def runs_of(parts: Sequence[Part]) -> dict[str, Run]:
    """Return the runs that these parts need by their names, each once, in the order in which they are first needed."""
    return {run.name: run for part in parts for run in part.runs()}


def run_parts(
    parts: Sequence[Part], perform: Perform, *, processes: int, show: Show
) -> tuple[list[Section], list[Skipped]]:
    """Return the sections of the parts, and the parts that are skipped because one of their runs failed."""
    runs = runs_of(parts)
    answers = run_all(perform, runs, processes=processes, show=show)
    outcomes = {runs[name]: answer for name, answer in answers.items() if not isinstance(answer, Failed)}
    sections, skipped = [], []
    for part in parts:
        failures = ((name, answers[name]) for name in runs_of([part]))
        failed = next(((name, answer) for name, answer in failures if isinstance(answer, Failed)), None)
        if failed is None:
            sections.append(part.section(outcomes))
        else:
            name, failure = failed
            skipped.append(Skipped(part.name, f"{name}: {failure.reason}", failure.trace))
    return sections, skipped
