"""The clock of a process: as the wall clock was at its start, and from then on never set."""

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


def test_a_wall_clock_that_is_set_changes_nothing():
    machine = Machine(wall=1_000.0, steady=7.0)
    now = machine.clock()
    for jump in (7_200.0, -10_000.0):
        machine.wall += jump
        machine.go_on(10.0)
    assert now() == 1_020.0
