"""Lays out plain text for a terminal: tables, wrapped lines, cut names. The service's image has no library for it."""

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.words import visible

_LEAST_LAST = 20
"""So wide the last column of a table stays, whatever is cut in the first."""
_LEAST_FIRST = 10
"""So wide the first column stays, even where the table is too wide then."""
_LEAST_WIDTH = 60
"""On a terminal that is narrower still, lines are as long as this: less is left of a text than stands before it."""


@dataclass(frozen=True, slots=True)
class Page:
    """So many columns a line may have, and so many letters a name."""

    width: int = 100
    longest_name: int = 34

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
        """Return rows under heads, two spaces between columns; those in `right` end at their right edge.

        A table that is too wide has its last column wrapped, then its first column cut.
        """
        rows = [[visible(cell) for cell in row] for row in rows]
        widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
        excess = max(sum(widths) + 2 * (len(widths) - 1) - self.width, 0)
        from_last = min(excess, max(widths[-1] - _LEAST_LAST, 0))
        widths[-1] -= from_last
        widths[0] = max(widths[0] - (excess - from_last), min(widths[0], _LEAST_FIRST))
        lines = []
        for first, *others, last in (heads, *rows):
            cells = [_cut(first, widths[0]), *others]
            for number, part in enumerate(textwrap.wrap(last, widths[-1]) or [""]):
                line = [*(cells if number == 0 else [""] * len(cells)), part]
                lines.append(_aligned(line, widths, right))
        return "\n".join(lines)

    def wrapped(self, text: str, first: str, later: str) -> list[str]:
        """Return a text as lines, the first of which begins with `first`, the others with `later`."""
        return textwrap.wrap(
            visible(text), self.width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
        )

    def name(self, name: str) -> str:
        """Return a name, cut where it is too long."""
        return _cut(visible(name), self.longest_name)

    def incomplete(self, unread: Mapping[str, str]) -> list[str]:
        """Return the lines that come before an answer for which this could not be read, by name and reason."""
        if not unread:
            return []
        reasons = (f"{name}: {why}" for name, why in sorted(unread.items()))
        return [*self.wrapped(f"INCOMPLETE, as this could not be read: {'; '.join(reasons)}", "", "  "), ""]


def page_of_terminal() -> Page:
    """Return a page as wide as the terminal that is written to, where it is one and narrower than others."""
    if not sys.stdout.isatty():
        return NARROW
    columns = shutil.get_terminal_size((NARROW.width, 0)).columns
    return Page(width=min(max(columns, _LEAST_WIDTH), NARROW.width))


NARROW = Page()
WIDE = Page(width=10_000, longest_name=10_000)
"""Nothing is wrapped or cut."""


def _aligned(cells: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    aligned = (
        cell.rjust(width) if column in right else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join(aligned).rstrip()


def _cut(name: str, longest: int) -> str:
    return name if len(name) <= longest else f"{name[: longest - 3]}..."
