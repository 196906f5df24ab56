"""An experiment from its parts to what they came to: every run once, over all cores."""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.experiments.tetris.runs import Found, name, perform
from lab.experiments.tetris.sections import Part, Section
from lab.sim.parallel import Failed, Show, run_all
from lab.sim.runs import Run


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part that could not be done, why, and where in the code if that was nobody's intention."""

    part: str
    reason: str
    trace: str = ""


def runs_of(parts: Sequence[Part]) -> dict[str, Run]:
    """Return the runs that these parts need by their names, each once, in the order in which they are first needed."""
    return {name(run): run for part in parts for run in part.runs()}


def run_parts(parts: Sequence[Part], *, processes: int, show: Show) -> tuple[list[Section], list[Skipped]]:
    """Return what the parts came to, and those of which a run failed."""
    asked = runs_of(parts)
    found = run_all(perform, asked, processes=processes, show=show)
    results = {asked[called]: result for called, result in found.items() if isinstance(result, Found)}
    skipped = {part.name: reason for part in parts if (reason := _why(part, found))}
    return [part.section(results) for part in parts if part.name not in skipped], list(skipped.values())


def _why(part: Part, found: "dict[str, Found | Failed]") -> Skipped | None:
    """Return why a part cannot be done: the first of its runs that failed."""
    for called in runs_of([part]):
        result = found[called]
        if isinstance(result, Failed):
            return Skipped(part.name, f"{called}: {result.reason}", result.trace)
    return None
