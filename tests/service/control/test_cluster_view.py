"""When claims may end: only while the watches have shown what was written, for as long as that takes."""

import pytest

from extender.control.cluster_view import Sight


def looks(sight, *moments):
    """Look at each (now, flight time); return the last answer for 15 s."""
    for now, flight_time in moments:
        sight.look(now, flight_time)
    return sight.lasts(15.0, now)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
def test_it_lasts_however_fast_the_clock_goes_and_however_often_somebody_looks(speed):
    # Looks come in pairs, a millisecond apart; of that the flight time shows as little as a tenth.
    pairs = [((n, n), (n + 0.001, n + 0.0001)) for n in (tenth / 10 for tenth in range(50))]
    assert looks(Sight(), *((now * speed, flight_time) for pair in pairs for now, flight_time in pair))


def test_a_watch_that_is_down_breaks_it_until_so_many_seconds_after_it_is_back():
    sight = Sight()
    assert looks(sight, *((n, n) for n in range(10)))
    assert not looks(sight, *((10 + n, 9.5) for n in range(5)))
    assert not looks(sight, *((15 + n, 9.5 + n) for n in range(13)))
    assert looks(sight, *((28 + n, 22.5 + n) for n in range(3)))
