"""What tasks declare is wrong by a factor; what they use, and how long they take, is as before."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from extender.cluster.resources import DIMENSIONS
from extender.errors import DovetailError
from lab.sim.commands import simulate
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.runs import Run, inputs_of, perform
from lab.sim.schedulers.policies import policy
from lab.sim.workloads.parameters import Parameters
from lab.sim.workloads.truth import declared_wrongly
from lab.sim.workloads.workload import BLOCKS, LOCAL, SHUFFLE, Job, Machines, Stage, Use, Workload

CAPACITY = np.array([4000.0, 64e9, 1e9, 1e9, 1e9, 1e9])
CPU, MEMORY, READ, WRITE, IN, OUT = range(6)
EVENTS = SimulationSettings(heartbeat_seconds=0.0)


def machines(count=2):
    return Machines("some", np.tile(CAPACITY, (count, 1)))


def stage(*, cpu=1000.0, memory=8e9, write=1e6, reading=0.0, source=LOCAL, tasks=1, parents=(), use=None):
    demand = np.array([cpu, memory, 0, write, 0, 0])
    return Stage("s", demand, reading, 10.0, np.full(tasks, 10.0), parents, source, use=use)


def workload(*stages):
    return Workload("w", [Job(f"j{row:03d}", 0.0, [one]) for row, one in enumerate(stages)])


def stages(given):
    return [one for job in given.jobs for one in job.stages]


def test_stages_declare_by_factors_within_the_bounds_and_use_what_they_used():
    given = workload(*(stage(reading=1e6, source=source) for source in (LOCAL, BLOCKS) for _ in range(100)))
    wrong = declared_wrongly(given, machines(), 0.5, seed=1)
    factors = np.array([[one.demand[CPU] / 1000, one.demand[MEMORY] / 8e9, one.reading / 1e6] for one in stages(wrong)])
    assert (factors >= 0.5 * 0.999).all()
    assert (factors <= 2.0 * 1.001).all()
    assert (abs(np.median(np.log2(factors), axis=0)) < 0.3).all()  # as often too much as too little
    assert abs(np.corrcoef(factors[:, 0], factors[:, 1])[0, 1]) < 0.3
    for one in stages(wrong):
        [part] = one.use.parts
        np.testing.assert_allclose(one.demand * part, [1000, 8e9, 0, 1e6, 0, 0])
        np.testing.assert_allclose(one.reading * part[READ], 1e6)
        assert one.durations.tolist() == [10.0]


def test_the_same_seed_draws_the_same_and_another_draws_others():
    given = workload(*(stage() for _ in range(5)))
    declared = [
        [one.demand.tolist() for one in stages(declared_wrongly(given, machines(), 0.5, seed))] for seed in (1, 1, 2)
    ]
    assert declared[0] == declared[1] != declared[2]


def test_what_a_stage_says_of_its_use_over_time_still_holds():
    given = workload(stage(use=Use(np.array([0.5, 1.0]), np.array([[1.0] * 6, [0.5] * 6]))))
    [one] = stages(declared_wrongly(given, machines(), 0.5, seed=1))
    np.testing.assert_allclose(one.demand[CPU] * one.use.parts[:, CPU], [1000.0, 500.0])


@pytest.mark.parametrize("source", [LOCAL, SHUFFLE])
def test_nobody_declares_more_than_a_machine_has_so_all_runs(source):
    # Tasks that need a machine of their own, whatever is drawn: one after the other on one machine.
    whole = [stage(cpu=4000.0, memory=64e9, write=1e9, reading=1e9, source=LOCAL) for _ in range(8)]
    if source == SHUFFLE:
        parent = stage(cpu=4000.0)
        child = Stage("c", np.array([4000.0, 64e9, 0, 1e9, 0, 0]), 1e9, 10.0, np.full(1, 10.0), (0,), SHUFFLE)
        given = Workload("w", [Job(f"j{row}", 0.0, [parent, child]) for row in range(4)])
    else:
        given = workload(*whole)
    for seed in range(5):
        wrong = declared_wrongly(given, machines(1), 0.25, seed)
        outcome = run(wrong, machines(1), policy("kube-default", 1), seed=1, settings=EVENTS)
        assert np.isfinite(outcome.tasks.ended).all()


def test_tasks_that_declare_too_little_cpu_slow_each_other_down():
    # Eight tasks of one core on four: by what the workload says four run at a time, each for 10 s.
    given = workload(stage(memory=1e9, tasks=8))
    right = run(given, machines(1), policy("kube-default", 1), seed=1, settings=EVENTS)
    assert right.tasks.started.tolist() == [0.0] * 4 + [10.0] * 4
    # Where half a core or less is declared, all start at once, and each gets half of what it uses.
    low = (declared_wrongly(given, machines(1), 0.25, seed) for seed in range(100))
    wrong = next(one for one in low if stages(one)[0].demand[CPU] <= 500.0)
    outcome = run(wrong, machines(1), policy("kube-default", 1), seed=1, settings=EVENTS)
    assert outcome.tasks.started.tolist() == [0.0] * 8
    np.testing.assert_allclose(outcome.tasks.ended, 20.0)


def test_memory_that_is_not_there_kills_and_the_killed_run_again():
    # Each uses 40 GB of 64. Where two declare so little that both are started, one of them is killed.
    given = workload(*(stage(memory=40e9, cpu=500.0) for _ in range(6)))
    right = run(given, machines(1), policy("kube-default", 1), seed=1, settings=EVENTS)
    assert right.makespan == 60.0
    wrong = declared_wrongly(given, machines(1), 0.25, seed=1)
    outcome = run(wrong, machines(1), policy("kube-default", 1), seed=1, settings=EVENTS)
    assert outcome.opportunistic.killed_regular > 0
    assert np.isfinite(outcome.tasks.ended).all()
    assert outcome.makespan >= 60.0 - 1e-6


@pytest.mark.parametrize("part", [0.0, 5e-324, -0.1, 1.5, float("nan")])
def test_a_part_outside_its_bounds_is_refused(part):
    with pytest.raises(DovetailError, match="accepted: 1e-06 to 1"):
        declared_wrongly(workload(stage()), machines(), part, seed=1)


def test_machines_with_other_resources_are_refused_by_their_names():
    gpus = Machines("gpus", np.ones((1, 7)), axis=(*DIMENSIONS, "nvidia.com/gpu"))
    with pytest.raises(DovetailError, match=r"not where these count too: nvidia\.com/gpu"):
        declared_wrongly(workload(stage()), gpus, 0.5, seed=1)


def test_runs_with_the_same_knowledge_replay_the_same_for_every_policy():
    some, other = (
        inputs_of(Run("suite:jobs=3", "tetris:5", name, 1, know_demands=0.5), Parameters())[0]
        for name in ("drf", "tetris")
    )
    assert [one.demand.tolist() for one in stages(some)] == [one.demand.tolist() for one in stages(other)]
    outcome = perform(Run("suite:jobs=3", "tetris:5", "tetris", 1, know_demands=0.5), lambda *_: None)
    assert np.isfinite(outcome.tasks.ended).all()


def test_the_command_says_how_many_were_killed(tmp_path):
    jobs, nodes = tmp_path / "jobs.csv", tmp_path / "machines.jsonl"
    jobs.write_text("job,tasks,seconds,cpu,memory\na,4,10,1,8Gi\n")
    nodes.write_text('{"name": "m", "allocatable": {"cpu": 4, "memory": "64Gi"}}\n')
    options = [f"--workload={jobs}", f"--machines={nodes}", "--policy=tetris", "--processes=1"]
    shown = CliRunner().invoke(simulate, [*options, "--know-demands=0.5"])
    assert shown.exit_code == 0, shown.output
    assert "killed by memory" in shown.output
    assert "killed by memory" not in CliRunner().invoke(simulate, options).output
    assert CliRunner().invoke(simulate, [*options, "--know-demands=0"]).exit_code == 2


def test_the_command_estimates_what_is_declared_wrongly(tmp_path):
    # Of 4 cores, 12 tasks that use one declare 1.96 each by seed 1: two at a time, six times 10 s. With estimates the
    # last 8 start when four have ended, at 20 s, and go four at a time.
    jobs, nodes = tmp_path / "jobs.csv", tmp_path / "machines.jsonl"
    jobs.write_text("job,tasks,seconds,cpu,memory\na,12,10,1,1Gi\n")
    nodes.write_text('{"name": "m", "allocatable": {"cpu": 4, "memory": "64Gi"}}\n')
    options = [f"--workload={jobs}", f"--machines={nodes}", "--policy=tetris", "--processes=1", "--json"]
    options += ["--know-demands=0.5", "--heartbeat=0", "--seed=1"]
    assert [makespan(options), makespan([*options, "--estimate"])] == [60, 40]


def makespan(options):
    [only] = json.loads(CliRunner().invoke(simulate, options).stdout)["runs"]
    return only["makespan"]


def test_gangs_fit_whole_by_what_they_declare():
    # Six tasks of two cores on two machines of four each: whatever is declared, three fit on each.
    one = replace(stage(cpu=1300.0, memory=20e9, tasks=6), gang=True)
    wrong = declared_wrongly(workload(*[one] * 100), machines(), 0.5, seed=1)
    declared = np.array([one.demand for one in stages(wrong)])
    assert (np.floor(CAPACITY[:2] / declared[:, :2]).min(axis=1) >= 3).all()
    assert (declared[:, CPU] < 1300.0 * 0.9).any()
    assert (declared[:, CPU] > 1300.0).any()
