"""The simple upper bound's one bin, and a planner that sees less."""

import numpy as np

from extender.cluster.waiting import Running, Shuffle
from extender.planner import Assignments, Plan, Planner
from lab.sim.schedulers.bound import CpuAndMemory, aggregate
from lab.sim.workloads.workload import Machines
from tests.lab.sim.small import MB, Class, Tenants, blocks, cluster, machine, row, started, waiting

TASK = row(cpu=1, memory=2, disk_write=50, network_out=5)
SEEN = row(cpu=1, memory=2)


class Looking:
    """A scheduler that starts nothing and remembers what it was shown."""

    def plan(self, snapshot, waiting, now):
        self.snapshot, self.waiting, self.now = snapshot, waiting, now
        none = np.empty(0, dtype=np.intp)
        return Plan(Assignments(none, none, none, none))


def test_the_bin_offers_what_all_machines_do_together():
    bin_ = aggregate(Machines("three", np.array([machine(1, 2, 3), machine(10, 20, 30), machine(0, 0, 0)]), copies=3))
    assert bin_.capacity.tolist() == [machine(11, 22, 33).tolist()]
    assert bin_.aggregate
    assert bin_.copies == 1
    assert bin_.name == "three, as one"


def test_disks_and_networks_are_hidden_from_what_it_wraps():
    spread = Shuffle(np.array([0]), np.array([9 * MB]))
    found = blocks(1, [0])
    running = Running(np.array([0]), np.array([5.0]), np.array([TASK]))
    waits = waiting(
        Class(1, TASK, reading=7, inputs=found),
        Class(1, TASK, reading=9, inputs=spread),
        tenants=Tenants(allocated={0: TASK}),
        running=running,
    )
    inner = Looking()
    CpuAndMemory(inner).plan(cluster(machine(4, 8), allocated=[TASK]), waits, 3.0)
    assert inner.now == 3.0
    assert inner.snapshot.allocated.tolist() == [SEEN.tolist()]
    assert inner.waiting.demand.tolist() == [SEEN.tolist()] * 2
    assert inner.waiting.reading.tolist() == [0, 0]
    assert inner.waiting.inputs == [found, None]
    assert inner.waiting.jobs.allocated.tolist() == [SEEN.tolist()]
    assert inner.waiting.running.demand.tolist() == [SEEN.tolist()]
    assert waits.running is running
    assert waits.reading.tolist() == [7 * MB, 9 * MB]


def test_it_over_allocates_a_disk_where_the_planner_that_sees_it_does_not():
    snapshot, waits = cluster(machine(4, 8, rates=100)), waiting(Class(4, row(cpu=1, memory=2, disk_write=50)))
    assert started(Planner().plan(snapshot, waits, 0.0), 1) == [2]
    assert started(CpuAndMemory(Planner()).plan(snapshot, waits, 0.0), 1) == [4]
