"""Where tables are printed."""

from rich.table import Table

from lab.report.terminal import console


def test_a_paragraph_that_goes_to_a_file_is_one_line_and_a_table_as_wide_as_is_said(capsys):
    table = Table("word " * 10)
    printed = console(40)
    printed.print("word " * 20)
    printed.print(table)
    paragraph, *lines = capsys.readouterr().out.splitlines()
    assert paragraph == "word " * 20
    assert max(map(len, lines)) == 40
