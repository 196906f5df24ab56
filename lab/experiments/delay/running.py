"""The delay experiment from its parts to their sections: every run once, over all cores."""

from collections.abc import Sequence

from lab.experiments.delay.groups import DelayPart
from lab.experiments.delay.runs import DelayOutcome, DelayRun, perform
from lab.experiments.sections import Section, Skipped
from lab.sim.parallel import Failed, Show, run_all


def runs_of(parts: Sequence[DelayPart]) -> dict[str, DelayRun]:
    """Return the runs that these parts need by their names, each once."""
    return {run.name: run for part in parts for run in part.runs()}


def run_parts(parts: Sequence[DelayPart], *, processes: int, show: Show) -> tuple[list[Section], list[Skipped]]:
    """Return the sections of the parts, and the parts that are skipped because one of their runs failed."""
    runs = runs_of(parts)
    answers = run_all(perform, runs, processes=processes, show=show)
    results = {runs[name]: answer for name, answer in answers.items() if isinstance(answer, DelayOutcome)}
    failures = {runs[name]: (name, answer) for name, answer in answers.items() if isinstance(answer, Failed)}
    sections, skipped = [], []
    for part in parts:
        failed = [failures[run] for run in part.runs() if run in failures]
        if failed:
            name, failure = failed[0]
            skipped.append(Skipped(part.name, f"{name}: {failure.reason}", failure.trace))
        else:
            sections.append(part.make(results))
    return sections, skipped
