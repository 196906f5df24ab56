"""The register of schedulers."""

import numpy as np
import pytest

from extender.errors import DovetailError
from extender.planner import Policy
from extender.policy.alignment import TASK_RULES
from lab.sim.engine.clock import run
from lab.sim.schedulers.policies import POLICIES, choice, policy
from lab.sim.schedulers.preempting import Preempting
from lab.sim.workloads.workload import BLOCKS, SHUFFLE, Job, Machines, Stage, Workload
from tests.lab.sim.small import Class, cluster, machine, row, started, waiting

REQUIRED = [
    "tetris",
    "paper",
    "srtf",
    "packing",
    "cpu-memory",
    "slot-fair",
    "capacity",
    "drf",
    "drf-yarn",
    "kube-default",
    "extender",
    "first-fit",
    "upper-bound",
]


@pytest.mark.parametrize("name", REQUIRED)
def test_every_scheduler_that_the_paper_or_the_issue_names_is_there_and_says_what_it_is(name):
    assert POLICIES[name].about


def test_an_unknown_name_is_refused_with_those_that_are_accepted():
    with pytest.raises(
        DovetailError, match=r"'tertis' is not a policy; accepted: tetris, dovetail, paper, srtf, .*extender"
    ):
        policy("tertis", 1)


def test_the_rules_of_table_8_are_all_there():
    schedulers = [policy(name, 0) for name in POLICIES]
    assert {it.inner.policy.rule for it in schedulers if isinstance(it, Preempting)} == set(TASK_RULES)


def test_packing_only_and_srtf_only_are_the_planner_with_the_other_half_off():
    assert policy("tetris", 1).inner.policy == Policy()
    assert policy("paper", 1).inner.policy == Policy(tail=np.inf)
    assert policy("packing", 1).inner.policy == Policy(srtf=0.0, tail=np.inf)
    assert policy("srtf", 1).inner.policy == Policy(packing=False, tail=np.inf)


def test_only_the_upper_bound_gets_other_machines():
    machines = Machines("two", np.array([machine(1, 2), machine(3, 4)]))
    assert [name for name in POLICIES if choice(name).machines(machines) is not machines] == ["upper-bound"]
    assert choice("upper-bound").machines(machines).capacity.shape == (1, 6)


def test_each_run_gets_a_scheduler_of_its_own():
    assert policy("capacity", 1) is not policy("capacity", 1)


@pytest.mark.parametrize("name", POLICIES)
def test_a_seed_makes_the_same_scheduler_again(name):
    snapshot, waits = cluster(*[machine(4, 8)] * 9), waiting(Class(5, row(cpu=1, memory=1, disk_write=1)))
    first, second = (policy(name, 3).plan(snapshot, waits, 1.0) for _ in range(2))
    assert started(first, 1) == [5]
    assert first.assignments.node.tolist() == second.assignments.node.tolist()


def two_jobs():
    """Return two jobs of 12 maps and 4 reduces on four machines, whose disks a few maps fill."""
    maps = Stage("map", row(cpu=1, memory=1.5, disk_write=10), 40e6, 10.0, np.full(12, 10.0), source=BLOCKS)
    reduces = Stage("reduce", row(cpu=1, memory=3), 20e6, 5.0, np.full(4, 5.0), parents=(0,), source=SHUFFLE)
    return Workload("two jobs", [Job("a", 0.0, [maps, reduces]), Job("b", 3.0, [maps, reduces])])


@pytest.mark.parametrize("name", POLICIES)
def test_every_scheduler_brings_a_small_workload_to_its_end(name):
    machines = Machines("four", np.tile(machine(4, 8, rates=100), (4, 1)), copies=2)
    outcome = run(two_jobs(), choice(name).machines(machines), policy(name, 1), seed=1)
    # 24 maps read 40 MB/s for 10 s: 9,600 MB from four disks of 100 MB/s take 24 s at least.
    assert outcome.makespan >= 24.0
    assert [job.name for job in outcome.jobs] == ["a", "b"]
