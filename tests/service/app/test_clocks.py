"""The clock of a process: it follows the wall clock, and never jumps."""

import pytest

from extender.app.clocks import SteadyClock


class Machine:
    def __init__(self, wall, steady):
        self.wall, self.steady = wall, steady

    def clock(self):
        return SteadyClock(lambda: self.wall, lambda: self.steady)

    def go_on(self, seconds):
        self.wall += seconds
        self.steady += seconds


def test_it_starts_as_the_wall_clock_says():
    assert Machine(wall=1_000.0, steady=7.0).clock()() == 1_000.0


@pytest.mark.parametrize("jump", [7_200.0, -7_200.0])
def test_it_never_jumps_when_the_wall_clock_is_set(jump):
    machine = Machine(wall=100_000.0, steady=7.0)
    now = machine.clock()
    machine.wall += jump
    machine.go_on(10.0)
    assert now() == 100_000.0 + (20.0 if jump > 0 else 5.0)


@pytest.mark.parametrize(("jump", "seconds"), [(600.0, 600), (-600.0, 1_200), (0.25, 1)])
def test_it_agrees_with_the_wall_clock_again_after_a_while(jump, seconds):
    machine = Machine(wall=100_000.0, steady=7.0)
    now = machine.clock()
    machine.wall += jump
    for _ in range(seconds - 1):
        machine.go_on(1.0)
        assert now() != machine.wall
    machine.go_on(1.0)
    assert now() == machine.wall
    machine.go_on(5.0)
    assert now() == machine.wall
