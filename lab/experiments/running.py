"""An experiment from its parts to their sections: every run once, over all cores."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from lab.experiments.sections import Section, Skipped
from lab.sim.parallel import Failed, Show, Tell, run_all


class Named(Protocol):
    """A part of an experiment, whatever its runs are."""

    @property
    def name(self) -> str:
        """What `--only` takes."""


Part = TypeVar("Part", bound=Named)
Run = TypeVar("Run")
Outcome = TypeVar("Outcome")
AnyPart = TypeVar("AnyPart", contravariant=True)


class RunParts(Protocol[AnyPart]):
    """Runs the parts of one experiment."""

    def __call__(
        self, parts: Sequence[AnyPart], /, *, processes: int, show: Show
    ) -> tuple[list[Section], list[Skipped]]:
        """Return the sections of the parts, and the parts that are skipped because one of their runs failed."""


def run_parts(
    parts: Sequence[Part],
    runs_of: Callable[[Sequence[Part]], Mapping[str, Run]],
    perform: Callable[[Run, Tell], Outcome],
    section_of: Callable[[Part, Mapping[Run, Outcome]], Section],
    *,
    processes: int,
    show: Show,
) -> tuple[list[Section], list[Skipped]]:
    """Return the sections of the parts, and the parts that are skipped because one of their runs failed.

    `runs_of` says which runs parts need, by name; parts may share some. `section_of` makes a part's section of the
    outcomes of all runs.
    """
    runs = runs_of(parts)
    answers = run_all(perform, runs, processes=processes, show=show)
    outcomes = {runs[name]: answer for name, answer in answers.items() if not isinstance(answer, Failed)}
    sections, skipped = [], []
    for part in parts:
        failures = ((name, answers[name]) for name in runs_of([part]))
        failed = next(((name, answer) for name, answer in failures if isinstance(answer, Failed)), None)
        if failed is None:
            sections.append(section_of(part, outcomes))
        else:
            name, failure = failed
            skipped.append(Skipped(part.name, f"{name}: {failure.reason}", failure.trace))
    return sections, skipped
