"""The sections of an experiment: figures beside the paper's, tables of text, plots; and the parts that were skipped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lab.experiments.seeds import Seeds
from lab.report.rows import Row

_DIGITS = {"%": 1, "s": 3, "": 0, "p": 2}
"""The number of decimals by unit; 2 for any other."""


@dataclass(frozen=True, slots=True)
class Plot:
    """A figure: its title, a note on how to read it, and a function that draws it as an SVG element."""

    title: str
    note: str
    draw: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with an id: ours over the seeds, and the paper's, which may be unknown.

    `unit`: percent, times (x), seconds (s), a probability (p), or none for a count. `attainable`: what no scheduler
    could have more of (None: not known).
    """

    id: str
    ours: Seeds
    paper: float | None = None
    note: str = ""
    unit: str = "%"
    attainable: Seeds | None = None

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
            None if self.attainable is None else round(self.attainable.mean, max(digits, 2)),
        )


@dataclass(frozen=True, slots=True)
class Spots:
    """The points of a figure on its axis: the label and the place of each."""

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
    """The result of a part. The figures in `more` are in the listings already; only programs see them as rows."""

    title: str
    about: str
    figures: Sequence[Figure] = ()
    listings: Sequence[Listing] = ()
    notes: Sequence[str] = ()
    plots: Sequence[Plot] = field(default=())
    more: Sequence[Figure] = field(default=())


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part that could not be run: the reason, and the traceback if it is a bug."""

    part: str
    reason: str
    trace: str = ""
