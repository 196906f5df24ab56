"""Where tables are printed: a terminal as wide as it is, anything else as wide as is said, and text unwrapped."""

from typing import Any

from rich.console import Console
from rich.text import Text

from extender.words import visible_lines


class _Visible(Console):
    """Standard output, which gets nothing but letters of a text."""

    def render_str(self, text: str, **style: Any) -> Text:  # noqa: ANN401 - rich's own
        return super().render_str(visible_lines(text), **style)


def console(width: int) -> Console:
    """Return standard output. Text stays as it is: brackets and colons in users' names are no markup and no emoji."""
    terminal = _Visible(highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal:
        terminal.width = width
        terminal.soft_wrap = True
    return terminal
