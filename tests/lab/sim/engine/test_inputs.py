"""Where tasks read from: copies of blocks, and what a shuffle reads from where."""

import numpy as np
import pytest

from extender.cluster.waiting import Blocks
from lab.sim.engine.inputs import LiveBlocks, Pool, place_blocks, shuffle
from lab.sim.workloads.workload import Machines


def machines(count, copies=3):
    return Machines("some", np.ones((count, 6)), copies=copies)


def test_copies_are_on_distinct_machines_and_any_machine_is_as_likely():
    copies = place_blocks(np.random.default_rng(7), 20_000, machines(5))
    assert copies.shape == (20_000, 3)
    assert (np.diff(np.sort(copies, axis=1), axis=1) > 0).all()
    for column in copies.T:
        assert np.bincount(column, minlength=5) / 20_000 == pytest.approx(0.2, abs=0.01)


def test_with_fewer_machines_than_copies_every_machine_has_one():
    copies = place_blocks(np.random.default_rng(7), 10, machines(2))
    assert np.sort(copies, axis=1).tolist() == [[0, 1]] * 10


def test_the_same_seed_places_the_same_blocks():
    first, again, other = (place_blocks(np.random.default_rng(seed), 50, machines(9)) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_a_shuffle_reads_in_proportion_to_where_the_parents_ran_in_whole_bytes_that_add_up():
    spread = shuffle(np.array([1, 0, 1, 1]), 100.0)
    assert spread.nodes.tolist() == [0, 2, 3]
    assert spread.rates.tolist() == [33, 33, 34]


def test_a_part_of_nothing_is_left_out():
    spread = shuffle(np.array([10, 1, 10]), 4.0)
    # cumulated 10, 11 and 21 of 21, of 4 bytes: 1, 2, 4
    assert (spread.nodes.tolist(), spread.rates.tolist()) == ([0, 1, 2], [1, 1, 2])
    assert shuffle(np.array([10, 1, 10]), 2.0).nodes.tolist() == [1, 2]


def test_a_shuffle_adds_up_at_any_rate():
    random = np.random.default_rng(3)
    for _ in range(200):
        reading = float(random.integers(1, 2**33))
        spread = shuffle(random.integers(0, 3000, 250), reading)
        assert spread.rates.sum() == reading
        assert (spread.rates == np.floor(spread.rates)).all()


def test_rows_are_zero_when_taken_and_used_again():
    pool = Pool(3, np.float64)
    rows = [pool.take() for _ in range(20)]
    assert len(set(rows)) == 20
    pool.values[rows[4]] = 7
    pool.give_back(rows[4])
    assert pool.take() == rows[4]
    assert pool.values.sum() == 0


def test_live_blocks_tell_what_plain_ones_would_count():
    copies = np.array([[0, 1], [1, 2]])
    counts = Pool(3, np.int64)
    row = counts.take()
    counts.values[row] = [1, 2, 1]
    live = LiveBlocks(copies, np.array([True, True]), 3, counts, row)
    assert live.local.tolist() == Blocks(copies, np.array([True, True]), 3).local.tolist()
    assert live.at(1).tolist() == [0, 1]
    assert live.without(np.array([0])).local.tolist() == [0, 1, 1]
