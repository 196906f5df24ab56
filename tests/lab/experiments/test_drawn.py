"""What experiments print and draw is there to be read."""

import io

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from lab.experiments import curves, tables
from lab.experiments.sections import Listing, Section
from lab.experiments.seeds import Seeds

HEADS = ("jobs", "evictions by", "makespan less by, %", "opportunistic, %", "preempted, %", "for CPU", "for memory")


def test_the_words_of_a_wide_tables_headings_are_not_cut():
    heads = (*HEADS, "moved", "seconds lost", "regular ones slower by, %")
    section = Section("Title", "About.", listings=[Listing(heads, [("bursts, CPU by weight", *["pressure"] * 9)])])
    written = io.StringIO()
    tables.show(Console(file=written, width=120), [section])
    assert "opportunistic," in written.getvalue()
    assert "…" not in written.getvalue()


@pytest.mark.parametrize("values", [(-31.0, -7.0), (-7.0, 9.0), (7.0, 31.0)])
def test_a_curve_is_within_its_axes_which_show_zero(monkeypatch, values):
    drawn = []

    def draw(*arguments):
        drawn.append(Figure().subplots())
        arguments[-1](drawn)
        return ""

    monkeypatch.setattr(curves, "svg", draw)
    curves.curves("c4", [0.5, 0.9], {"longer by": [Seeds((value,)) for value in values]}, "%", "T_alloc", [])
    low, high = drawn[0].get_ylim()
    assert low <= min(0.0, *values)
    assert high >= max(0.0, *values)
