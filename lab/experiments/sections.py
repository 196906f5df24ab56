"""A part of an experiment: the runs that it needs, and what it makes of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.experiments.seeds import Seeds
from lab.report.rows import Row

_DIGITS = {"%": 1, "s": 3, "": 0}
"""How many decimals are shown of what is in this unit; 2 of any other."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure: its title, a note on how to read it, and what draws it as an SVG element (when it is asked for)."""

    title: str
    note: str
    draw: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with an id: ours over the seeds, and the paper's, which may be unknown.

    `unit`: percent, times (x), seconds (s), or none for a count.
    """

    id: str
    ours: Seeds
    paper: float | None = None
    note: str = ""
    unit: str = "%"

    def row(self) -> Row:
        """Return it as programs read it: the mean of the seeds, their range in the note."""
        digits = _DIGITS.get(self.unit, 2)
        seeds = len(self.ours.values)
        spread = (
            f"{self.ours.low:.{digits}f} to {self.ours.high:.{digits}f} over {seeds} seeds" if seeds > 1 else "one seed"
        )
        return Row(
            self.id,
            round(self.ours.mean, max(digits, 2)),
            self.unit,
            self.paper,
            "; ".join(filter(None, (spread, self.note))),
        )


@dataclass(frozen=True, slots=True)
class Spots:
    """Where the points of a figure are: its name, its axis, and the label and place of each point."""

    name: str
    axis: str
    labels: Sequence[str]
    places: Sequence[float]


@dataclass(frozen=True, slots=True)
class Listing:
    """A table of text."""

    heads: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Section:
    """What a part came to. The figures in `more` are in the listings already: only programs get to see them as rows."""

    title: str
    about: str
    figures: Sequence[Figure] = ()
    listings: Sequence[Listing] = ()
    notes: Sequence[str] = ()
    plots: Sequence[Plot] = field(default=())
    more: Sequence[Figure] = field(default=())


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part that could not be done, why, and where in the code if that was nobody's intention."""

    part: str
    reason: str
    trace: str = ""
