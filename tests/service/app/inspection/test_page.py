"""How text is laid out for a terminal."""

import sys
from types import SimpleNamespace

import pytest

from extender.app.inspection.page import NARROW, Page, page_of_terminal


def test_what_could_not_be_read_comes_first():
    assert NARROW.incomplete({}) == []
    why = "you may not (403)"
    lines = NARROW.incomplete(dict.fromkeys(("pods", "nodes", "persistentvolumes"), why))
    assert lines == [
        "INCOMPLETE, as this could not be read: nodes: you may not (403); persistentvolumes: you may not",
        "  (403); pods: you may not (403)",
        "",
    ]


@pytest.mark.parametrize(
    "laid_out",
    [
        lambda text: NARROW.wrapped(text, "", ""),
        lambda text: [NARROW.name(text)],
        lambda text: NARROW.table(["A", "B"], [[text, text]]).splitlines()[1:],
    ],
    ids=["wrapped", "name", "table"],
)
def test_what_users_wrote_moves_no_cursor_and_begins_no_line(laid_out):
    """Annotations are free text, and whoever asks why a pod waits may be an administrator."""
    lines = laid_out("\x1b[2Jgone\n\u202eok\x07")
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert r"\x1b[2Jgone \u202eok\x07" in lines[0]


@pytest.mark.parametrize(
    ("columns", "terminal", "width"), [(80, True, 80), (200, True, 100), (20, True, 60), (80, False, 100)]
)
def test_a_page_is_as_wide_as_a_terminal_that_is_narrower(monkeypatch, columns, terminal, width):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
    assert page_of_terminal().width == width


def test_the_first_column_of_a_table_that_is_too_wide_is_cut_as_far_as_it_can_still_be_read():
    row = ["a-very-long-name-of-a-queue", *["1,000,000"] * 6]
    head, line = Page(width=60).table(["QUEUE", *"ABCDEF"], [row], right=range(1, 7)).splitlines()
    assert line.startswith("a-very-...  1,000,000")
    assert len(head) == len(line) == 10 + 6 * 11
