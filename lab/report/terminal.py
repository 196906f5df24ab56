"""Where tables are printed: a terminal as wide as it is, anything else as wide as is said."""

from rich.console import Console


def console(width: int) -> Console:
    """Return standard output. Text stays as it is: brackets and colons in users' names are no markup and no emoji."""
    terminal = Console(highlight=False, markup=False, emoji=False)
    if not terminal.is_terminal:
        terminal.width = width
    return terminal
