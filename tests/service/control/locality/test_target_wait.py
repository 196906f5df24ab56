"""The waits for locality in force: when and to what a target changes the first."""

import pytest
from structlog.testing import capture_logs

from extender.control.locality.measured_load import MeasuredLoad, Typical
from extender.control.locality.target_wait import Target, TargetWait, first_wait
from extender.planner import WaitReason

FULL = [WaitReason("no-room", "no room")]
TYPICAL = Typical(tasks=20, replicas=3)
TARGET = Target(0.95, 30.0)


def load_of(freed, seconds=10.0, typical=TYPICAL):
    """Return a load under which so many pods have left their nodes in these seconds."""
    load = MeasuredLoad(typical=typical)
    load.look(FULL, 0, 0.0)
    load.look(FULL, freed, seconds)
    return load


def waits(*stated, target=TARGET):
    return TargetWait(stated, target)


def test_the_first_wait_is_that_of_equation_2():
    # D = -1000 / 3 x ln(0.05 x 20 / (1 + 0.05 x 20)) = 333.3 x ln 2 = 231.05 chances, at 400 per second.
    assert first_wait(TARGET, TYPICAL, 1000, 400.0) == pytest.approx(231.05 / 400, abs=1e-4)


def test_half_a_task_or_copy_makes_no_job():
    # As `dovetail locality --from-cluster` rounds them: 19.6 -> 20, 3.4 -> 3.
    assert first_wait(TARGET, Typical(19.6, 3.4), 1000, 400.0) == first_wait(TARGET, TYPICAL, 1000, 400.0)


def test_no_computed_wait_is_longer_than_the_longest():
    # 231.05 chances at 5 per second were 46 s.
    assert first_wait(TARGET, TYPICAL, 1000, 5.0) == 30.0


def test_only_the_first_wait_follows_from_the_target():
    found = waits(5.0, 7.0)
    assert found.look(load_of(4000), 1000, 10.0)
    assert found.in_force == (pytest.approx(231.05 / 400, abs=1e-4), 7.0)


@pytest.mark.parametrize(
    ("load", "nodes"),
    [
        (MeasuredLoad(typical=TYPICAL), 1000),
        (load_of(19), 1000),
        (load_of(4000, typical=None), 1000),
        (load_of(4000), 0),
    ],
    ids=["no load yet", "too few ends", "no jobs with inputs", "no nodes"],
)
def test_what_settings_state_holds_until_all_is_known(load, nodes):
    found = waits(5.0)
    assert not found.look(load, nodes, 10.0)
    assert found.in_force == (5.0,)
    assert found.look(load_of(4000), 1000, 11.0), "not known yet does not count as computed: it need not wait a minute"


def test_without_a_target_the_waits_stay():
    found = waits(5.0, target=None)
    assert not found.look(load_of(4000), 1000, 10.0)
    assert found.in_force == (5.0,)


def test_it_is_computed_at_most_once_a_minute():
    found = waits(5.0)
    assert found.look(load_of(4000), 1000, 10.0)
    assert not found.look(load_of(2000), 1000, 69.9)
    assert found.look(load_of(2000), 1000, 70.0)
    assert found.in_force == (pytest.approx(231.05 / 200, abs=1e-4),)


def test_a_wait_that_would_change_by_a_tenth_or_less_stays():
    found = waits(5.0)
    found.look(load_of(4000), 1000, 10.0)
    # The wait goes with one over the rate: 0.5776 x 400 / 440 is 9.1 % less, 0.5776 x 400 / 450 is 11.1 % less.
    assert not found.look(load_of(4400), 1000, 70.0)
    assert found.look(load_of(4500), 1000, 130.0)


def test_a_change_is_logged_once_and_none_is_not():
    found = waits(5.0)
    with capture_logs() as lines:
        for minute, freed in enumerate((4000, 4400, 4400)):
            found.look(load_of(freed), 1000, 60.0 * minute)
    (line,) = lines
    assert (line["event"], line["before"], line["seconds"]) == ("locality wait computed", 5.0, 0.578)
    assert (line["target"], line["rate"], line["nodes"], line["tasks"], line["replicas"]) == (0.95, 400.0, 1000, 20, 3)


def test_the_last_wait_computed_stays_while_nothing_is_known():
    found = waits(5.0)
    found.look(load_of(4000), 1000, 10.0)
    before = found.in_force
    assert not found.look(MeasuredLoad(typical=TYPICAL), 1000, 5000.0)
    assert found.in_force == before
