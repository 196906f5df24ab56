"""How text is laid out for a terminal."""

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
