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


def test_a_plot_takes_no_name_for_a_formula():
    assert svg("names", (3.0, 2.0), (1, 1), lambda axes: axes[0].set_title("$x_{$")).startswith("<svg")
