"""What is compared: the predictors with each other, and `auto` by its history and by its budget of evictions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from extender.policy.peak import PeakTuning
from lab.experiments.peaks.predictors import AUTO, ORACLE, PREDICTORS, WORDS
from lab.experiments.peaks.replay import HORIZONS, MAIN, PeakOutcome, PeakRun, PeakSetup
from lab.experiments.peaks.scales import CORES, NODES, PeakScale
from lab.experiments.peaks.trace import STEP_SECONDS
from lab.experiments.sections import Figure, Listing, Plot, Section
from lab.experiments.seeds import Seeds, seed_words

Results = Mapping[PeakRun, PeakOutcome]
Read = Callable[[PeakOutcome], float]

_TOP: Mapping[str, tuple[Read, str]] = {
    "over_capacity": (lambda outcome: outcome.over_capacity, "over capacity"),
    "evicted": (lambda outcome: outcome.evicted, "evicted"),
    "lost": (lambda outcome: outcome.lost, "work lost"),
    "gained": (lambda outcome: outcome.gained, "work gained"),
    "used": (lambda outcome: outcome.used, "CPU used"),
}
"""What is counted of pods packed on top: by the word in a row's id, and as the head of a column."""


@dataclass(frozen=True, slots=True)
class PeakPart:
    """A part: its name, and its setups and predictors by a label each; and the function that makes its section."""

    name: str
    contenders: Mapping[str, tuple[PeakSetup, str]]
    seeds: Sequence[int]
    make: Callable[["PeakPart", Results], Section]

    def runs(self) -> list[PeakRun]:
        """Return all runs; parts may share some."""
        return [PeakRun(setup, name, seed) for setup, name in self.contenders.values() for seed in self.seeds]

    def section(self, results: Results) -> Section:
        """Return the section that the results make."""
        return self.make(self, results)

    def over(self, results: Results, label: str, read: Read) -> Seeds:
        """Return a figure of the contender with this label for each seed."""
        setup, name = self.contenders[label]
        return Seeds(tuple(read(results[PeakRun(setup, name, seed)]) for seed in self.seeds))


def parts(scale: PeakScale, seeds: Sequence[int], traces: Path) -> list[PeakPart]:
    """Return the parts of the experiment at this scale, over these seeds."""
    setup = PeakSetup(NODES, CORES, scale.steps, traces)
    histories = {
        f"{_words(warm_up)} of {_words(samples)}": (
            replace(setup, tuning=PeakTuning(warm_up_seconds=warm_up * STEP_SECONDS), samples=samples),
            AUTO,
        )
        for warm_up, samples in scale.histories
    }
    budgets = {f"{100 * budget:g} %": (replace(setup, budget=budget), AUTO) for budget in scale.budgets}
    return [
        PeakPart("predictors", {name: (setup, name) for name in PREDICTORS}, seeds, _predictors),
        PeakPart("history", histories, seeds, _histories),
        PeakPart("budget", budgets, seeds, _budgets),
    ]


def _predictors(part: PeakPart, results: Results) -> Section:
    figures, more, judged, top, by_horizon = [], [], [], [], []
    for name in part.contenders:
        violations = part.over(results, name, _violations(MAIN))
        savings = part.over(results, name, _savings)
        figures += [
            Figure(f"peak.violations.{name}", violations, note=WORDS[name]),
            Figure(f"peak.savings.{name}", savings),
        ]
        counted = {word: part.over(results, name, read) for word, (read, _) in _TOP.items()}
        more += [Figure(f"peak.{word}.{name}", seeds) for word, seeds in counted.items()]
        judged.append((WORDS[name], _cell(violations), _cell(savings)))
        top.append((WORDS[name], *(_cell(seeds) for seeds in counted.values())))
        if name != ORACLE:
            horizons = [part.over(results, name, _violations(place)) for place in range(len(HORIZONS))]
            by_horizon.append((WORDS[name], *map(_cell, horizons)))
    sigmas = part.over(results, AUTO, lambda outcome: outcome.sigmas)
    return Section(
        title="Predictors on SURF",
        about=f"Horizon {_words(HORIZONS[MAIN])}; {seed_words(part.seeds)}. Percent, means over the seeds.",
        figures=figures,
        listings=[
            Listing(("regular pods", "violations", "savings"), judged),
            Listing(("violations within", *map(_words, HORIZONS)), by_horizon),
            Listing(("packed on top", *(head for _, head in _TOP.values())), top),
        ],
        notes=(
            "Violations: node-intervals in which the pods that were there passed the predicted peak within the "
            "horizon. Savings: 1 - predicted peaks / requests.",
            "Over capacity: node-intervals in which all pods want more CPU than the node has. Evicted: of "
            "opportunistic starts. Work lost: of opportunistic work. Work gained: what was not lost, in percent of "
            "the regular pods' work.",
            f"auto: N was {sigmas.mean:.1f} in the mean.",
        ),
        plots=[_plot(part, results)],
        more=more,
    )


def _histories(part: PeakPart, results: Results) -> Section:
    return _auto_section(part, results, "auto by its history", "warm-up of history", "peak.history")


def _budgets(part: PeakPart, results: Results) -> Section:
    return _auto_section(part, results, "auto by its budget", "budget an hour", "peak.budget")


def _auto_section(part: PeakPart, results: Results, title: str, head: str, row: str) -> Section:
    reads: Mapping[str, tuple[Read, str]] = {
        "violations": (_violations(MAIN), "violations"),
        "savings": (_savings, "savings"),
        **_TOP,
        "rate": (lambda outcome: outcome.rate, "evicted an hour"),
    }
    lines, more = [], []
    for label in part.contenders:
        by_word = {word: part.over(results, label, read) for word, (read, _) in reads.items()}
        sigmas = part.over(results, label, lambda outcome: outcome.sigmas)
        lines.append((label, *map(_cell, by_word.values()), f"{sigmas.mean:.1f}"))
        key = label.replace(" %", "").replace(" of ", "_of_").replace(" ", "")
        more += [Figure(f"{row}.{word}.{key}", seeds) for word, seeds in by_word.items()]
    return Section(
        title=title,
        about=(
            f"Horizon {_words(HORIZONS[MAIN])}; {seed_words(part.seeds)}. Percent, means over the seeds; evicted an "
            f"hour and budget: of the opportunistic pods that run."
        ),
        listings=[Listing((head, *(text for _, text in reads.values()), "N"), lines)],
        more=more,
    )


def _plot(part: PeakPart, results: Results) -> Plot:
    points = {
        WORDS[name]: (part.over(results, name, _savings), part.over(results, name, _violations(MAIN)))
        for name in part.contenders
    }

    def draw() -> str:
        from lab.experiments.peaks import plots

        return plots.violations_by_savings("peaks", points)

    return Plot(
        "Violations against savings", "The mean over the seeds, and their range; below and right is best.", draw
    )


def _savings(outcome: PeakOutcome) -> float:
    return outcome.savings


def _violations(place: int) -> Read:
    return lambda outcome: outcome.violations[place]


def _cell(seeds: Seeds) -> str:
    return f"{seeds.mean:.2f}"


def _words(steps: int) -> str:
    """Return a time of so many steps in words."""
    minutes = steps * STEP_SECONDS / 60
    return f"{minutes / 60:g} h" if minutes >= 60 else f"{minutes:g} min"
