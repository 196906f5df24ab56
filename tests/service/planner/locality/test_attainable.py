"""How fast inputs could come at most, and that most classes cost hardly anything."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
from extender.cluster.waiting import Blocks, Shuffle
from extender.planner import attainable
from extender.planner.locality.attainable import _of_blocks, _part


def nodes(*rates):
    """Return what nodes have [N, R], given the rates of each: disk, link in, link out."""
    made = np.full((len(rates), len(DIMENSIONS)), 100.0)
    made[:, [DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX]] = rates
    return made


def test_only_what_may_come_too_slowly_is_told():
    capacity = nodes((50, 50, 50), (100, 100, 100))
    demand = np.zeros((3, len(DIMENSIONS)))
    near = Blocks(np.array([[0, 1], [1, 0]]), np.ones(1, bool), 2)
    far = Blocks(np.array([[0], [1]]), np.ones(1, bool), 2)
    found = dict(attainable(demand, np.array([80.0, 80.0, 40.0]), [near, far, far], None, capacity))
    assert {row: rates.tolist() for row, rates in found.items()} == {1: [50, 100]}


@pytest.mark.parametrize("barred", [False, True])
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_whoever_is_left_out_could_read_as_fast_as_it_declares(data, barred):
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    capacity = nodes(*random.choice([20.0, 50.0, 100.0], (int(random.integers(1, 25)), 3)))
    count, number = len(capacity), 6
    demand = np.zeros((number, len(DIMENSIONS)))
    demand[:, 0] = random.choice([0.0, 50.0, 100.0, 101.0], number)
    demand[:, NETWORK_IN_INDEX] = random.choice([0.0, 0.0, 40.0], number)
    reading = random.choice([0.0, 10.0, 45.0, 90.0], number)
    made = []
    for row in range(number):
        if row % 2:
            rates = random.dirichlet(np.ones(count)) * reading[row]
            made.append(Shuffle(np.arange(count), rates))
        else:
            copies = np.column_stack([random.integers(0, count, 3), random.integers(-1, count, 3)])
            made.append(Blocks(copies, np.ones(1, bool), count))
    closed = random.random((number, count)) < 0.3 if barred else None
    told = dict(attainable(demand, reading, made, closed, capacity))
    for row in np.flatnonzero(reading).tolist():
        read = made[row]
        usable = (demand[row] <= capacity).all(axis=1) & (True if closed is None else ~closed[row])
        link = max((capacity[:, NETWORK_IN_INDEX] - demand[row, NETWORK_IN_INDEX])[usable], default=0.0)
        if isinstance(read, Blocks):
            rates = _of_blocks(read, capacity, usable, link)
        else:
            rates = np.array([min(reading[row] * _part(read, capacity, usable), link)])
        if row in told:
            assert told[row].tolist() == rates.tolist()
        else:
            assert (rates >= reading[row] * (1 - 1e-9)).all() or not usable.any()
