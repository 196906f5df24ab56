"""Whom kube-scheduler ends for a pod of higher priority: victims by hand, and a whole run."""

import json
from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.waiting import Running
from lab.sim.engine.clock import SimulationSettings
from lab.sim.preemption import Preemption, nominations
from lab.sim.report.tables import mean_use
from lab.sim.runs import Run, perform
from tests.lab.sim.small import Class, row, waiting
from tests.service.costs import calls_of

ONE_CORE = np.array([1.0])


def running(*pods):
    """Return running pods, each (node, priority, cores, began); all take 100 s."""
    node, priority, cores, began = (np.array(column) for column in zip(*pods, strict=True))
    held = cores.reshape(-1, 1).astype(float)
    return Running(node, began + 100.0, held, np.full(len(pods), 100.0), priority)


def preemption(pods, free):
    return Preemption(running(*pods), np.array(free, dtype=float).reshape(-1, 1), np.array([0]))


def test_the_node_whose_most_important_victim_is_least_important():
    made = preemption([(0, 5, 1, 0), (1, 3, 1, 0), (1, 3, 1, 0)], [0, 0])
    assert made.node_for(2 * ONE_CORE, 9, None) == 1
    assert sorted(made.victims) == [1, 2]


def test_then_the_one_with_the_fewest_victims():
    made = preemption([(0, 3, 1, 0), (0, 3, 1, 0), (1, 3, 2, 0)], [0, 0])
    assert made.node_for(2 * ONE_CORE, 9, None) == 1


def test_then_the_one_whose_victim_began_last():
    made = preemption([(0, 3, 1, 5), (1, 3, 1, 8)], [0, 0])
    assert made.node_for(ONE_CORE, 9, None) == 1


def test_of_a_node_the_less_important_go_and_nobody_who_could_stay():
    made = preemption([(0, 1, 1, 0), (0, 7, 1, 0), (0, 1, 1, 3)], [0])
    assert made.node_for(ONE_CORE, 9, None) == 0
    assert made.victims == [2]  # of the two of priority 1 the one that began last


def test_nobody_of_the_same_priority_goes_and_nobody_where_it_would_not_help():
    assert preemption([(0, 9, 1, 0)], [0]).node_for(ONE_CORE, 9, None) is None
    assert preemption([(0, 1, 1, 0)], [0]).node_for(2 * ONE_CORE, 9, None) is None
    assert preemption([(0, 1, 1, 0)], [0]).node_for(ONE_CORE, 9, np.array([False])) is None


def test_who_would_have_to_go_is_found_anew_only_on_nodes_where_others_run_now():
    def calls(pods):
        made = preemption([(node, 1, 1, 0) for node in range(50)], [0] * 50)
        return calls_of(lambda: [made.node_for(ONE_CORE, 9, None) for _ in range(pods)])

    assert calls(20) < 3 * calls(1)


def test_what_is_freed_is_given_once():
    made = preemption([(0, 1, 1, 0), (1, 1, 1, 0)], [0, 0])
    assert sorted([made.node_for(ONE_CORE, 9, None), made.node_for(ONE_CORE, 9, None)]) == [0, 1]
    assert made.node_for(ONE_CORE, 9, None) is None


class Watched(Preemption):
    """A preemption that notes for which demands room was looked for."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.looked = []

    def has_room(self, demand, allowed):
        self.looked.append(float(demand[0]))
        return super().has_room(demand, allowed)


def test_who_outranks_nobody_that_runs_costs_nothing():
    made = Watched(running((0, 5, 1, 0), (1, 7, 1, 0)), np.zeros((2, 1)), np.array([0]))
    names = "lower", "as low", "high", "started"
    who = replace(waiting(*(Class(1, row(), name=name) for name in names)), priority=np.array([3, 5, 6, 9]))
    demand = np.array([[0.25], [0.5], [1.0], [0.75]])
    assert nominations(made, who, demand, np.arange(4), np.array([9, 9, 2, 0])) == [("high", 0)]
    assert set(made.looked) == {1.0}


def test_without_priorities_there_is_none():
    with pytest.raises(ValueError, match="nobody says"):
        Preemption(Running(np.array([0]), np.array([1.0]), np.ones((1, 1))), np.zeros((1, 1)), np.array([0]))


@pytest.mark.parametrize("know_demands", [1.0, 0.99])
@pytest.mark.parametrize("policy", ["kube-default", "extender", "dovetail"])
def test_in_a_run_the_pod_starts_at_once_and_its_victims_begin_anew(tmp_path, policy, know_demands):
    machine = {"name": "m", "allocatable": {"cpu": 4, "memory": "8Gi"}}
    stage = {"name": "s", "demand": {"cpu": 1, "memory": "1Gi"}}
    low = {"job": "low", "stages": [stage | {"tasks": 4, "seconds": 20}]}
    high = {"job": "high", "arrives": 6, "priority": 5, "stages": [stage | {"tasks": 2, "seconds": 10}]}
    (tmp_path / "machines.jsonl").write_text(json.dumps(machine) + "\n")
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in (low, high)))
    files = str(tmp_path / "jobs.jsonl"), str(tmp_path / "machines.jsonl")
    outcome = perform(Run(*files, policy, 1, know_demands=know_demands), lambda *_: None)
    started = {run.name: run.started for run in outcome.jobs}
    ended = {run.name: run.ended for run in outcome.jobs}
    assert started["high"] == 6
    assert ended["high"] < 18
    assert ended["low"] > 34  # two begin anew once the high ones have ended, at a heartbeat


@pytest.mark.parametrize("policy", ["kube-default", "extender", "dovetail"])
def test_who_found_room_in_the_plan_that_preempts_starts_with_it(tmp_path, policy):
    """Victims wait again as a class of their own: the plan's rows must not be read as if they had waited before."""
    machine = {"name": "m", "allocatable": {"cpu": 8, "memory": "16Gi"}}
    stage = {"name": "s", "demand": {"cpu": 1, "memory": "1Gi"}}
    jobs = (
        {"job": "batch", "priority": -10, "stages": [stage | {"tasks": 6, "seconds": 100}]},
        {"job": "web", "arrives": 10, "priority": 100, "stages": [stage | {"seconds": 50, "demand": {"cpu": 4}}]},
        {"job": "zcron", "arrives": 10, "stages": [stage | {"tasks": 2, "seconds": 20, "demand": {"cpu": 0.5}}]},
    )
    (tmp_path / "machines.jsonl").write_text(json.dumps(machine) + "\n")
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    files = str(tmp_path / "jobs.jsonl"), str(tmp_path / "machines.jsonl")
    outcome = perform(Run(*files, policy, 1, settings=SimulationSettings(heartbeat_seconds=0.0)), lambda *_: None)
    started, ended = ({run.name: getattr(run, what) for run in outcome.jobs} for what in ("started", "ended"))
    assert started["web"] == started["zcron"] == 10
    assert ended["web"] == 60
    assert ended["zcron"] == 30
    assert outcome.jobs[0].name == "batch"
    assert ended["batch"] > 110


@pytest.mark.parametrize("policy", ["kube-default", "dovetail"])
def test_use_is_that_from_the_first_start_on_though_what_started_first_began_anew(tmp_path, policy):
    # One core of four from 0 s to 100 s, then all four; the last start is at 150 s. (100 x 1/4 + 50) / 150 = 50 %.
    machine = {"name": "m", "allocatable": {"cpu": 4, "memory": "16Gi"}}
    jobs = (
        {"job": "low", "stages": [{"name": "s", "seconds": 120, "demand": {"cpu": 1}}]},
        {"job": "high", "arrives": 100, "priority": 5, "stages": [{"name": "s", "seconds": 50, "demand": {"cpu": 4}}]},
    )
    (tmp_path / "machines.jsonl").write_text(json.dumps(machine) + "\n")
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    files = str(tmp_path / "jobs.jsonl"), str(tmp_path / "machines.jsonl")
    outcome = perform(Run(*files, policy, 1, settings=SimulationSettings(heartbeat_seconds=0.0)), lambda *_: None)
    assert outcome.makespan == 270
    assert mean_use(outcome)[0] == pytest.approx(0.5, abs=0.01)
    assert outcome.fullness.high[0, 0] == pytest.approx(50 / 150, abs=0.01)
    assert (outcome.speed.events, outcome.speed.decisions) == (5, 3)  # three starts, two ends


@pytest.mark.timeout(60)
@pytest.mark.parametrize("policy", ["kube-default", "dovetail"])
def test_a_run_ends_though_memory_kills_at_once_whoever_preempted_somebody(tmp_path, policy):
    """Two tasks of 2 GiB and one of 1 do not fit into 4 GiB; by what they declare they do."""
    machine = {"name": "m", "allocatable": {"cpu": 8, "memory": "4Gi"}}
    long, many = {"cpu": 0, "memory": "2Gi"}, {"cpu": 4, "memory": "2Gi"}
    jobs = (
        {"job": "j4", "stages": [{"name": "s", "seconds": 1, "demand": {"cpu": 4, "memory": "1Gi"}}]},
        {
            "job": "j5",
            "priority": -5,
            "stages": [{"name": "s", "tasks": 3, "seconds": 40, "demand": {"cpu": 2, "memory": "1Gi"}}],
        },
        {"job": "j7", "queue": "a", "stages": [{"name": "s", "seconds": 300, "demand": long}]},
        {
            "job": "j9",
            "queue": "c",
            "stages": [
                {"name": "s3", "seconds": 1, "demand": long, "parents": ["s0", "s1"]},
                {"name": "s1", "seconds": 1, "demand": {"cpu": 1, "memory": "1Mi"}},
                {"name": "s2", "tasks": 40, "seconds": 300, "demand": many, "oneToOne": ["s0"]},
                {"name": "s0", "tasks": 40, "seconds": 0.001, "demand": {"cpu": 0.5, "memory": "1Mi"}},
            ],
        },
    )
    outcome = _run(tmp_path, [machine], jobs, policy)
    assert all(run.ended > 0 for run in outcome.jobs)


@pytest.mark.timeout(60)
def test_a_run_ends_where_less_room_comes_free_than_victims_were_promised(tmp_path):
    """By what tasks use the machine has room for the victim again, and not for who preempted it."""
    machine = {"name": "m1", "allocatable": {"cpu": 8, "memory": "16Gi"}}
    stage = {"name": "s", "tasks": 5, "seconds": 25}
    jobs = (
        {
            "job": "low",
            "arrives": 10,
            "priority": -5,
            "stages": [stage | {"seconds": 40, "demand": {"cpu": 2, "memory": "1Gi"}}],
        },
        {"job": "high", "stages": [stage | {"tasks": 10, "demand": {"cpu": 2, "memory": "2Gi"}}]},
        {"job": "other", "stages": [stage | {"demand": {"cpu": 2, "memory": "1Mi"}}]},
    )
    outcome = _run(tmp_path, [machine], jobs, "kube-default", seed=5)
    assert all(run.ended > 0 for run in outcome.jobs)


def _run(tmp_path, machines, jobs, policy, seed=1):
    (tmp_path / "machines.jsonl").write_text("".join(json.dumps(machine) + "\n" for machine in machines))
    (tmp_path / "jobs.jsonl").write_text("".join(json.dumps(job) + "\n" for job in jobs))
    files = str(tmp_path / "jobs.jsonl"), str(tmp_path / "machines.jsonl")
    settings = SimulationSettings(estimate=True)
    return perform(Run(*files, policy, seed, know_demands=0.5, settings=settings), lambda *_: None)
