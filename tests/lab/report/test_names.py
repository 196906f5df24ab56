"""Names that users give are shown as they are."""

from rich.table import Table

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
