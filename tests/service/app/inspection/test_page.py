"""How text is laid out for a terminal."""

import pytest

from extender.app.inspection.page import NARROW


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
