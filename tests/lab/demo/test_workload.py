"""The demo's workload: drawn by a seed, of the kinds it names, and read by the service as it was meant."""

import msgspec
import numpy as np
import pytest

from extender.adapters.kube.decoding import pod_from
from extender.adapters.kube.nodes import NodeObject, node_from
from extender.adapters.kube.objects import PodObject
from lab.demo.workload import FULL, KINDS, QUICK, SHAPES, STANDARD, DemoSize, generate


def test_the_same_seed_gives_the_same_workload_and_another_seed_another():
    first, again, other = (generate(QUICK, seed=seed) for seed in (7, 7, 8))
    assert first.pod_manifests() == again.pod_manifests()
    assert first.pod_manifests() != other.pod_manifests()


def test_there_are_as_many_nodes_and_pods_as_asked_for():
    found = generate(DemoSize(nodes=3, pods=50, work_seconds=(1, 2)), seed=1)
    assert (len(found.machines), len(found.tasks)) == (3, 50)
    assert len({task.name for task in found.tasks}) == 50


def test_the_standard_machine_is_that_of_the_tetris_simulation():
    # 12 cores, 32 GB, 4 disks x 50 MB/s = 200 MB/s, 1 Gbps = 125 MB/s
    assert list(STANDARD.amounts.values()) == [12_000, 32e9, 200e6, 200e6, 125e6, 125e6]


def test_the_service_reads_the_manifests_as_the_amounts_that_were_drawn():
    found = generate(QUICK, seed=1)
    for task, manifest in zip(found.tasks, found.pod_manifests(), strict=True):
        assert pod_from(msgspec.convert(manifest, PodObject)).demand == {**task.demand, "pods": 1}
    for machine, manifest in zip(found.machines, found.node_manifests(), strict=True):
        offered = node_from(msgspec.convert(manifest, NodeObject), ()).allocatable
        assert offered == {**machine.shape.amounts, "pods": 110, "ephemeral-storage": 100 * 2**30}


def test_every_kind_and_every_shape_occurs_and_every_pod_fits_every_machine_when_alone():
    found = generate(FULL, seed=1)
    assert {task.kind for task in found.tasks} == {kind.name for kind in KINDS}
    assert {machine.shape for machine in found.machines} == set(SHAPES)
    assert (found.demand.max(axis=0) <= found.capacity.min(axis=0)).all()


@pytest.mark.parametrize("seed", [1, 2, 3, 17])
def test_demand_is_four_to_seven_times_what_fits_at_once_whatever_the_seed(seed):
    found = generate(FULL, seed=seed)
    times = (found.demand.sum(axis=0) / found.capacity.sum(axis=0)).max()
    assert 4 <= times <= 7


def test_the_pods_of_a_job_are_alike_in_demand():
    found = generate(QUICK, seed=1)
    for job in range(found.jobs.max() + 1):
        assert len(np.unique(found.demand[found.jobs == job], axis=0)) == 1
