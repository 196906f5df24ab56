"""Names that users give are shown as they are: on a terminal, and in a plot."""

from rich.table import Table

from lab.report.drawing import svg
from lab.report.terminal import console

NAMES = ("[team] a", "out[/tmp/a]", "a:fire:b")


def test_a_terminal_takes_no_part_of_a_name_for_markup(capsys):
    table = Table("queue")
    for name in NAMES:
        table.add_row(name)
    console(80).print(table)
    console(80).print("; ".join(NAMES))
    printed = capsys.readouterr().out
    assert [printed.count(name) for name in NAMES] == [2, 2, 2]


def test_a_terminal_gets_no_control_character_of_a_name(capsys):
    table = Table("queue\x1b[1m", title="\x9b2J")
    table.add_row("\x1b]0;gone\x07")
    console(80).print(table)
    console(80).print("a\x1b[31m\nb")
    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.splitlines())
    assert [name in printed for name in (r"queue\x1b[1m", r"\x9b2J", r"\x1b]0;gone\x07", "a\\x1b[31m\nb")] == [True] * 4


def test_a_plot_takes_no_name_for_a_formula():
    assert svg("names", (3.0, 2.0), (1, 1), lambda axes: axes[0].set_title("$x_{$")).startswith("<svg")
