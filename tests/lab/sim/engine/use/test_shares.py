"""Who gets what where a machine is short, and whom memory kills."""

import numpy as np
import pytest

from lab.sim.engine.use.shares import killed, parts

CAPACITY = np.array([[1000.0, 64, 100, 100, 100, 100]])
CPU, MEMORY, READ = range(3)


def wants(cpu=0.0, memory=0.0, read=0.0):
    return np.array([[cpu, memory, read, 0, 0, 0]])


def test_regular_tasks_get_all_and_opportunistic_ones_what_is_left():
    # 600 of 1000 go to regular tasks; opportunistic ones want 1000 and get 400.
    regular, given = parts(wants(cpu=600), wants(cpu=1000), CAPACITY, loss=0.0, io_first=True)
    assert (regular[0, CPU], given[0, CPU]) == (1.0, 0.4)


def test_regular_tasks_among_themselves_share_in_proportion():
    regular, given = parts(wants(cpu=2000), wants(cpu=1000), CAPACITY, loss=0.0, io_first=True)
    assert (regular[0, CPU], given[0, CPU]) == (0.5, 0.0)


def test_disks_that_know_no_order_are_shared_by_all():
    regular, given = parts(wants(read=100), wants(read=100), CAPACITY, loss=0.0, io_first=False)
    assert (regular[0, READ], given[0, READ]) == (0.5, 0.5)


def test_memory_is_never_shared():
    regular, given = parts(wants(memory=60), wants(memory=60), CAPACITY, loss=0.0, io_first=True)
    assert (regular[0, MEMORY], given[0, MEMORY]) == (1.0, 1.0)


def test_contention_wastes_by_all_that_is_wanted():
    # Twice as much wanted as there is: seeks leave 100 / (1 + 0.127 x 2) = 79.7, all of it to the regular ones.
    regular, given = parts(wants(read=100), wants(read=100), CAPACITY, loss=1.0, io_first=True)
    assert (regular[0, READ], given[0, READ]) == (pytest.approx(0.797, abs=1e-3), 0.0)


def test_memory_kills_opportunistic_tasks_first_the_largest_of_them_first():
    memory, request = np.array([30.0, 10, 20]), np.array([8.0, 0, 0])
    first = np.array([False, True, True])
    assert killed(5, memory, request, first, np.zeros(3)).tolist() == [2]
    assert killed(25, memory, request, first, np.zeros(3)).tolist() == [2, 1]
    assert killed(31, memory, request, first, np.zeros(3)).tolist() == [2, 1, 0]


def test_of_regular_tasks_the_one_most_over_its_request_is_killed_first():
    # 30 of 28 requested is 2 over, 20 of 8 is 12 over.
    regular = np.array([False, False])
    assert killed(1, np.array([30.0, 20]), np.array([28.0, 8]), regular, np.zeros(2)).tolist() == [1]


def test_of_equals_the_newest_is_killed_first_and_of_those_that_began_together_the_last():
    memory, request, regular = np.full(4, 20.0), np.full(4, 10.0), np.zeros(4, dtype=np.bool_)
    assert killed(50, memory, request, regular, np.array([0.0, 7, 3, 7])).tolist() == [3, 1, 2]


def test_what_is_kept_for_opportunistic_tasks_they_get_as_far_as_they_want_it():
    # Of 1000, 100 are kept: regular tasks want all and get 900, or 970 where only 30 are wanted.
    kept = np.array([[100.0, 0, 0, 0, 0, 0]])
    for given, parts_of_both in ((1000, (0.9, 0.1)), (30, (0.97, 1.0))):
        regular, opportunistic = parts(wants(cpu=1000), wants(cpu=given), CAPACITY, loss=0.0, io_first=True, kept=kept)
        assert (regular[0, CPU], opportunistic[0, CPU]) == parts_of_both
    regular, opportunistic = parts(wants(cpu=400), wants(cpu=500), CAPACITY, loss=0.0, io_first=True, kept=kept)
    assert (regular[0, CPU], opportunistic[0, CPU]) == (1.0, 1.0)
