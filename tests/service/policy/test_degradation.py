"""What disks and links lose when more is wanted of them than they give."""

import numpy as np
import pytest

from extender.policy.degradation import goodput, slowdown

DISKS, LINKS = np.array([False, True, False]), np.array([False, False, True])


def slower(load):
    return slowdown(np.full(3, load), disks=DISKS, links=LINKS).tolist()


def test_a_disk_seeks_the_more_the_fuller_it_is_and_a_link_loses_nothing_up_to_its_knee():
    # At a load of 1 a disk seeks for 12.7 ms in every 100 ms: 1 / 1.127. At 1.7 a link is .5 beyond its knee: 1 / 1.25.
    left = goodput(np.array([1.7, 1.0, 1.7]), disks=DISKS, links=LINKS)
    assert left.tolist() == pytest.approx([1, 1 / 1.127, 0.8])


def test_tasks_take_longer_by_what_is_wanted_over_what_is_left():
    # A disk at 1.2 keeps 1 / (1 + .127 x 1.2) = .868: 1.2 / .868 = 1.383 times as long. A link at 1.2: 1.2 times.
    assert slower(1.2) == pytest.approx([1, 1.2 * (1 + 0.127 * 1.2), 1.2])


def test_nothing_is_slower_where_there_is_room():
    assert slower(0.8) == [1, 1, 1]


def test_the_delay_on_a_link_grows_in_proportion_up_to_the_knee_and_never_shrinks():
    loads = np.linspace(1.0, 1.2, 9)
    delays = np.array([slower(load)[2] for load in loads]) - 1
    assert delays == pytest.approx(loads - 1)
    assert (np.diff([slower(load) for load in np.linspace(0, 40, 200)], axis=0) >= 0).all()


def test_there_is_a_least_that_a_disk_and_a_link_keep_however_much_is_wanted_of_them():
    # A disk seeks for 12.7 ms after every 16 ms, a link keeps half.
    left = goodput(np.full(3, 1000.0), disks=DISKS, links=LINKS)
    assert left.tolist() == pytest.approx([1, 16 / 28.7, 0.5])


def test_without_loss_all_is_left():
    assert goodput(np.full(3, 9.0), disks=DISKS, links=LINKS, loss=0.0).tolist() == [1, 1, 1]
