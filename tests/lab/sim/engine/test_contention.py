"""How fast tasks are on machines that they share: the arithmetic, by hand.

A machine has 4000 millicores, 64 bytes of memory, and 100 in each disk and network dimension.
"""

import numpy as np
import pytest

from lab.sim.engine.contention import carried, efficiency, factors, spread_part, term_rates

CAPACITY = np.array([4000.0, 64, 100, 100, 100, 100])
CPU, MEMORY, READ, WRITE, IN, OUT = range(6)


def parts(*demands):
    """Return the parts on machines with these demands, and the row of ones for `nowhere`."""
    return np.vstack((factors(np.array(demands), np.tile(CAPACITY, (len(demands), 1))), np.ones(6)))


def demand(**amounts):
    row = np.zeros(6)
    for name, amount in amounts.items():
        row[["cpu", "memory", "read", "write", "inward", "out"].index(name)] = amount
    return row


def test_what_fits_goes_at_its_peak():
    assert factors(CAPACITY, CAPACITY).tolist() == [1] * 6


def test_over_allocated_dimensions_are_shared_in_proportion_but_memory_never():
    # 5000 of 4000, 80 of 64, 160, 200, 400 and 100 of 100
    part = factors(np.array([5000.0, 80, 160, 200, 400, 100]), CAPACITY)
    assert part.tolist() == [0.8, 1, 0.625, 0.5, 0.25, 1]


def test_no_capacity_gives_nothing_to_whoever_wants_some_and_disturbs_no_other():
    wanted = np.array([1.0, 0, 1, 0, 1, 0])
    assert factors(wanted, np.zeros(6)).tolist() == [0, 1, 0, 1, 0, 1]
    assert factors(wanted, np.zeros(6), loss=0.5).tolist() == [0, 1, 0, 1, 0, 1]


def test_contention_wastes_disk_and_network_but_not_cpu_where_it_is_set_to():
    part = factors(np.array([8000.0, 64, 200, 50, 220, 120]), CAPACITY, loss=1.0)
    # read: a seek of 12.7 ms in every 50 ms leaves 100 / 1.254 = 79.7 for 200. Half a disk is enough for writing.
    # In: 220 is 1 beyond the knee of 1.2, so 100 / 1.5 = 66.7 for 220. Out: 100 for 120.
    assert part.tolist() == pytest.approx([0.5, 1, 0.797 / 2, 1, 0.667 / 2.2, 1 / 1.2], abs=1e-3)


def test_a_link_wastes_nothing_of_what_its_machine_sends_as_only_receivers_have_incast():
    part = factors(demand(inward=220, out=220), CAPACITY, loss=1.0)
    assert part[[IN, OUT]].tolist() == pytest.approx([0.667 / 2.2, 1 / 2.2], abs=1e-3)


def test_a_machine_carries_what_is_wanted_of_it_up_to_what_contention_leaves_and_holds_all_its_memory():
    wanted = np.array([8000.0, 80, 200, 50, 220, 220])
    # as above: 79.7 of a disk, 66.7 of a link inwards; 100 outwards, 4000 millicores
    assert carried(wanted, CAPACITY, loss=1.0).tolist() == pytest.approx([4000, 80, 79.7, 50, 66.7, 100], abs=0.1)


def test_streams_that_share_a_disk_below_its_capacity_slow_each_other_down_and_on_a_link_they_do_not():
    # A disk of a load of 0.95 gives 1 / (1 + 0.127 x 0.95) = 0.892 of its capacity, 0.94 of what is wanted.
    part = factors(np.array([0.0, 0, 95, 80, 95, 95]), CAPACITY, loss=1.0)
    assert part.tolist() == pytest.approx([1, 1, 0.892 / 0.95, 1, 1, 1], abs=1e-3)


def test_the_more_is_wanted_the_less_gets_through_down_to_a_floor():
    loads = np.linspace(0, 50, 200)[:, np.newaxis] * np.ones(6)
    left = efficiency(loads)
    assert (np.diff(left, axis=0) <= 0).all()
    assert left[-1].tolist() == pytest.approx([1, 1, 16 / 28.7, 16 / 28.7, 0.5, 1])


def test_without_loss_disks_and_links_only_share():
    assert (efficiency(np.full(6, 9.0), 0.0) == 1.0).all()


def test_what_is_beyond_the_six_dimensions_wastes_nothing():
    capacity = np.append(CAPACITY, 8.0)
    part = factors(np.array([0.0, 0, 200, 0, 0, 0, 16]), capacity, loss=1.0)
    assert part[-1] == 1.0
    assert part[READ] < 0.5


def test_a_disk_without_limit_wastes_nothing():
    capacity = np.where(np.arange(6) == READ, np.inf, CAPACITY)
    assert factors(np.full(6, 1.0), capacity, loss=1.0).tolist() == [1] * 6


def test_a_local_read_needs_its_own_disk_only():
    part = parts(demand(read=200, inward=400, out=400), demand())
    rates = term_rates(part, np.array([0]), np.array([0]), demand(cpu=1, read=50)[:, None])
    assert rates[2].tolist() == [0.5]


def test_a_remote_read_is_as_fast_as_the_worst_of_its_path():
    task = demand(inward=50)[:, None]
    rate = {}
    for name, there, here in (
        ("the source's disk", demand(read=200), demand()),
        ("the source's network", demand(out=250), demand()),
        ("the reader's network", demand(out=250), demand(inward=500)),
        ("other traffic at either end", demand(inward=500, write=500), demand(out=500, read=500)),
    ):
        rate[name] = term_rates(parts(there, here), np.array([1]), np.array([0]), task)[2, 0]
    assert rate == {
        "the source's disk": 0.5,
        "the source's network": 0.4,
        "the reader's network": 0.2,
        "other traffic at either end": 1.0,
    }


def test_each_term_has_its_own_rate():
    part = parts(demand(cpu=8000, read=125, write=400))
    rates = term_rates(part, np.array([0]), np.array([0]), demand(cpu=1, read=1, write=1)[:, None])
    assert rates[:, 0].tolist() == [0.5, 0.25, 0.8]


def test_in_one_bin_a_shuffle_takes_disk_and_both_directions_of_the_network():
    part = parts(demand(read=125, inward=200, out=400))
    task = demand(read=1, inward=1, out=1)[:, None]
    assert term_rates(part, np.array([0]), np.array([0]), task)[2].tolist() == [0.25]


def test_a_shuffle_waits_for_its_slowest_source():
    part = parts(demand(read=125), demand(out=200), demand(), demand())[:-1]
    rates = np.array([[10.0, 0, 10, 0], [10, 10, 0, 0], [0, 0, 10, 0]])
    # reads at 0 and 2: 0.8 from the disk of 0; at 0 and 1: 0.5 by the network of 1; at 2 only: all of it
    got = spread_part(rates, np.array([0, 1, 2]), np.array([3, 3, 3]), part)
    assert got.tolist() == [0.8, 0.5, 1.0]


def test_what_a_shuffle_reads_on_its_own_machine_does_not_pass_the_network():
    part = parts(demand(out=400), demand(out=200), demand())[:-1]
    rates = np.array([[10.0, 10, 0]])
    # on 0 only the network of 1 matters (1/2), on 1 only that of 0 (1/4), elsewhere the worse of both
    got = spread_part(rates, np.array([0, 0, 0]), np.array([0, 1, 2]), part)
    assert got.tolist() == [0.5, 0.25, 0.25]


def test_a_shuffle_from_few_of_many_scarce_machines_is_found_all_the_same():
    count = 100
    part = np.ones((count, 6))
    part[:, OUT] = np.linspace(0.1, 0.9, count)
    rates = np.zeros((1, count))
    rates[0, [97, 99]] = 5.0
    got = spread_part(rates, np.array([0, 0]), np.array([3, 97]), part)
    assert got.tolist() == [part[97, OUT], part[99, OUT]]
