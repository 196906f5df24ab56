"""Rows of the contest of auto and gates: differences in points, and what each phase took."""

from lab.bench.cluster.contest import Contest, Phase
from lab.bench.cluster.contest_rows import report

PHASES = [Phase("room", 10, 0, 1, {"POST pods": 10, "PATCH pods": 5}), Phase("room again", 4, 2, 0, {})]


def rows(**auto):
    gates = Contest("gates", PHASES, held=75.0, started=74.0)
    return {row.id: row for row in report(gates, Contest("auto", PHASES, **auto)).rows}


def test_the_error_of_the_order_is_the_larger_of_both_differences():
    assert rows(held=74.0, started=74.5)["order_error.auto"].ours == 1.0
    assert rows(held=75.0, started=76.5)["order_error.auto"].ours == 2.5


def test_each_phase_says_how_many_were_held_and_refused_and_the_writes_a_pod():
    found = rows(held=75.0, started=74.0)
    assert (found["phase.room.gated"].ours, found["phase.room.refusals"].ours) == (0, 1)
    assert found["phase.room.writes_per_pod"].ours == 1.5
    assert found["phase.room.writes_per_pod"].note.endswith("POST pods 1.00, PATCH pods 0.50")
    assert found["phase.room_again.gated"].ours == 2
