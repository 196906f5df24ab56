import io

from rich.console import Console

from lab.experiments.sections import Listing, Section
from lab.experiments.tables import show


def shown(width, columns):
    heads = ("job", *(f"heading-{number}" for number in range(columns)))
    line = ("bursts", *(f"{number}" for number in range(columns)))
    console = Console(file=io.StringIO(), width=width)
    show(console, [Section("a title", "about", [], [Listing(heads, [line])])])
    return console.file.getvalue().splitlines()


def test_a_table_that_is_too_wide_is_several_that_show_every_column_beside_the_first():
    lines = shown(40, 8)
    assert max(map(len, lines)) <= 40
    assert [line.split() for line in lines if "heading" in line] == [
        ["job", "heading-0", "heading-1"],
        ["job", "heading-2", "heading-3"],
        ["job", "heading-4", "heading-5"],
        ["job", "heading-6", "heading-7"],
    ]
    assert [line.split() for line in lines if "bursts" in line][-1] == ["bursts", "6", "7"]


def test_no_heading_is_cut_where_other_headings_wrap():
    heads = ("jobs", "CPU evictions by", "makespan less by, %", "opportunistic, %", "preempted, %", "for CPU")
    heads = (*heads, "for memory", "moved", "seconds lost", "regular ones slower by, %")
    console = Console(file=io.StringIO(), width=120)
    lines = [("bursts, CPU by weight", "pressure", *["0.0"] * 8)]
    show(console, [Section("a title", "about", [], [Listing(heads, lines)])])
    assert {"regular", "slower"} <= set(console.file.getvalue().split())


def test_a_table_that_fits_is_one():
    assert sum("heading" in line for line in shown(120, 8)) == 1
