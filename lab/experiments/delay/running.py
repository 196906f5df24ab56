"""The delay experiment from its parts to what they came to: every run once, over all cores."""

from collections.abc import Sequence

from lab.experiments.delay.groups import DelayPart
from lab.experiments.delay.trials import Measured, Trial, perform
from lab.experiments.tetris.running import Skipped
from lab.experiments.tetris.sections import Section
from lab.sim.parallel import Failed, Show, run_all


def trials_of(parts: Sequence[DelayPart]) -> dict[str, Trial]:
    """Return the runs that these parts need by their names, each once."""
    return {trial.name: trial for part in parts for trial in part.trials()}


def try_parts(parts: Sequence[DelayPart], *, processes: int, show: Show) -> tuple[list[Section], list[Skipped]]:
    """Return what the parts came to, and those of which a run failed."""
    asked = trials_of(parts)
    found = run_all(perform, asked, processes=processes, show=show)
    results = {asked[name]: result for name, result in found.items() if isinstance(result, Measured)}
    failed = {asked[name]: (name, result) for name, result in found.items() if isinstance(result, Failed)}
    sections, skipped = [], []
    for part in parts:
        wrong = [failed[trial] for trial in part.trials() if trial in failed]
        if wrong:
            name, result = wrong[0]
            skipped.append(Skipped(part.name, f"{name}: {result.reason}", result.trace))
        else:
            sections.append(part.make(results))
    return sections, skipped
