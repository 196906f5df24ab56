"""Which task goes to a machine, where it reads, and what that takes."""

import numpy as np

from extender.cluster.waiting import Shuffle
from lab.sim.schedulers.promises import Promises
from tests.lab.sim.small import MB, Class, blocks, cluster, machine, row, waiting

TASK = row(cpu=1, memory=1)


def three_machines(*allocated):
    return cluster(*[machine(8, 8, rates=100)] * 3, allocated=allocated or None)


def test_a_task_whose_block_is_there_goes_first_and_reads_it_from_there():
    promises = Promises(three_machines(), waiting(Class(2, TASK, reading=10, inputs=blocks(3, [0], [2, 1]))))
    assert promises.take(0, 1) == (1, 1)
    taken = promises.allocated - three_machines().allocated
    assert taken[1].tolist() == row(cpu=1, memory=1, disk_read=10).tolist()
    assert not taken[[0, 2]].any()


def test_where_no_block_is_the_first_task_reads_from_the_copy_with_the_most_room():
    # Machine 1 has 100 - 50 of network out left, machine 2 has 100 - 40 of disk read: 50 against 60.
    snapshot = three_machines(row(), row(network_out=50), row(disk_read=40))
    promises = Promises(snapshot, waiting(Class(2, TASK, reading=10, inputs=blocks(3, [1, 2], [2, 1]))))
    assert promises.take(0, 0) == (0, 2)
    taken = promises.allocated - snapshot.allocated
    assert taken[0].tolist() == row(cpu=1, memory=1, network_in=10).tolist()
    assert taken[2].tolist() == row(disk_read=10, network_out=10).tolist()
    assert promises.take(0, 0) == (1, 1)  # 50 against 50: the first by name


def test_no_task_goes_twice_and_a_machine_is_near_only_while_a_block_that_waits_is_there():
    promises = Promises(three_machines(), waiting(Class(2, TASK, inputs=blocks(3, [0], [0, 1]))))
    nodes = np.array([2, 1, 0])
    assert promises.nearest(0, nodes) == 1
    assert promises.take(0, 1) == (1, 1)
    assert promises.nearest(0, nodes) == 2
    assert promises.take(0, 0) == (0, 0)
    assert promises.nearest(0, nodes) == -1


def test_a_class_without_blocks_reads_where_it_runs_and_is_near_nowhere():
    promises = Promises(three_machines(), waiting(Class(1, TASK, reading=10)))
    assert promises.nearest(0, np.arange(3)) == -1
    assert promises.take(0, 2) == (-1, -1)
    assert promises.allocated[2].tolist() == row(cpu=1, memory=1, disk_read=10).tolist()


def test_a_shuffle_takes_its_rates_at_every_source_and_network_for_what_comes_from_elsewhere():
    spread = Shuffle(np.array([0, 2]), np.array([30, 10]) * MB)
    promises = Promises(three_machines(), waiting(Class(1, TASK, reading=40, inputs=spread)))
    assert promises.take(0, 2) == (-1, -1)
    assert promises.allocated[0].tolist() == row(disk_read=30, network_out=30).tolist()
    assert promises.allocated[1].tolist() == row().tolist()
    assert promises.allocated[2].tolist() == row(cpu=1, memory=1, disk_read=10, network_in=30).tolist()


def test_nothing_that_it_was_given_changes():
    snapshot, inputs = three_machines(), blocks(3, [0], [1])
    before = snapshot.allocated.copy()
    Promises(snapshot, waiting(Class(2, TASK, reading=10, inputs=inputs))).take(0, 0)
    assert (snapshot.allocated == before).all()
    assert inputs.waiting.all()
    assert inputs.local.tolist() == [1, 1, 0]
