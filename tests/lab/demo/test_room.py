"""The demo's machinery: what the API server shows goes onto the machines, and comes off when its work is done."""

from dataclasses import replace

import pytest

from extender.cluster.events import PodSeen, PodsListed
from extender.cluster.model import Pod
from lab.demo.room import Running
from lab.demo.workload import DemoSize, generate


@pytest.fixture
def workload():
    return generate(DemoSize(nodes=2, pods=3, work_seconds=(2.0, 4.0)), seed=1)


def shown(workload, row, *, node=0, runs=True, ended=False, failed=False):
    name = workload.tasks[row].name
    where = workload.machines[node].name
    return Pod(name, "default", name, {}, where, started=1.0 if runs else None, finished=ended or failed, failed=failed)


def test_a_pod_that_runs_is_done_after_its_work_and_told_once(workload):
    pods = Running(workload)
    pods.take(PodSeen(shown(workload, 0)), 10.0)
    end = 10.0 + workload.tasks[0].work_seconds
    assert pods.next_at == pytest.approx(end)
    assert pods.done(end - 0.1) == []
    assert pods.done(end) == [workload.tasks[0].name]
    assert pods.done(end + 1) == []
    assert (pods.running, pods.finished) == (0, 0)  # the API server does not show it yet


def test_a_pod_that_is_only_bound_does_not_run(workload):
    pods = Running(workload)
    pods.take(PodsListed([shown(workload, 0, runs=False)]), 10.0)
    assert pods.running == 0


def test_only_a_pod_that_is_shown_as_succeeded_has_finished(workload):
    pods = Running(workload)
    pods.take(PodSeen(shown(workload, 0)), 10.0)
    pods.done(100.0)
    pods.take(PodSeen(replace(shown(workload, 0), finished=True, failed=True)), 100.0)
    assert pods.finished == 0
    pods.take(PodSeen(shown(workload, 0, ended=True)), 100.1)
    assert pods.finished == 1


def test_times_count_from_the_first_start(workload):
    pods = Running(workload)
    for row in range(3):
        pods.take(PodSeen(shown(workload, row, node=row % 2)), 10.0 + row)
    pods.done(1000.0)
    times = pods.times()
    assert times.started.tolist() == [0.0, 1.0, 2.0]
    assert times.node.tolist() == [0, 1, 0]
