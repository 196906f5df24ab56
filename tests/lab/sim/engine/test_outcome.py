"""What a run came to, as figures and as JSON."""

import json

import numpy as np
import pytest

from extender.cluster.resources import DIMENSIONS
from lab.sim.engine.measures import Fullness, Series
from lab.sim.engine.outcome import JobRun, Outcome, Speed, TaskRuns, job_time


def outcome(*, locality=0.5, wall_seconds=2.0):
    rows = np.array([0, 1])
    return Outcome(
        workload="w",
        policy="p",
        machines="m",
        seed=7,
        makespan=12.0,
        jobs=[JobRun("a", "q", 1.0, 2.0, 5.0, 1, -0.25), JobRun("b", "q", 3.0, 3.0, 13.0, 1, 0.0)],
        tasks=TaskRuns(rows, np.array([2.0, 5.0]), np.array([2.0, 3.0]), np.array([5.0, 13.0]), rows, rows),
        locality=locality,
        fullness=Fullness(
            np.full((4, 6), 0.5),
            np.full(6, 0.25),
            np.full(6, 0.75),
            0.1,
            0.05,
            np.full((4, 6), 0.6),
            np.full((4, 6), 0.4),
        ),
        series=Series(
            at=np.array([0.0, 1.0]),
            running=rows,
            waiting=rows,
            used=np.zeros((2, 6)),
            allocated=np.ones((2, 6)),
            demanded=np.ones((2, 6)),
            queues=np.array([[0.25], [0.5]]),
        ),
        queue_names=["q"],
        speed=Speed(events=4, decisions=2, plans=2, wall_seconds=wall_seconds, plan_seconds=0.5),
    )


def test_a_job_takes_from_its_arrival_to_its_last_end():
    assert outcome().job_seconds.tolist() == [4.0, 10.0]


def test_tasks_are_compared_with_what_they_take_at_their_peaks():
    assert (outcome().task_seconds, outcome().ideal_task_seconds) == (6.5, 3.5)


def test_speed_is_events_over_all_time_and_decisions_over_that_in_plan():
    assert (outcome().speed.events_per_second, outcome().speed.decisions_per_second) == (2.0, 4.0)
    assert outcome(wall_seconds=0.0).speed.events_per_second == 0.0


def test_job_times_are_summed_up():
    times = job_time(np.arange(1.0, 102.0))
    assert (times["mean"], times["median"], times["p10"], times["p95"], times["max"]) == (51, 51, 11, 96, 101)


def test_json_has_every_dimension_by_name_and_each_job():
    told = json.loads(json.dumps(outcome().to_dict(), allow_nan=False))
    assert tuple(told["fullness"]["high"]["0.75"]) == DIMENSIONS
    assert [told["fullness"][load]["1"]["cpu"] for load in ("high", "promised", "carried")] == [0.5, 0.6, 0.4]
    assert (told["fullness"]["fragmentation"], told["fullness"]["stranded"]) == (0.1, 0.05)
    assert told["jobs"][0] == {
        "name": "a", "queue": "q", "arrived": 1, "started": 2, "ended": 5, "tasks": 1, "unfairness": -0.25, "seconds": 4
    }  # fmt: skip
    assert told["series"]["queues"] == {"q": [0.25, 0.5]}
    assert told["series"]["allocated"]["cpu"] == [1, 1]
    assert told["job_time"]["mean"] == 7
    assert told["speed"]["events_per_second"] == pytest.approx(2)


def test_json_says_nothing_of_locality_where_no_task_had_a_block():
    assert outcome(locality=float("nan")).to_dict()["locality"] is None


def test_without_its_speed_json_does_not_depend_on_how_fast_it_was():
    slow, fast = outcome(wall_seconds=3.0).to_dict(), outcome(wall_seconds=2.0).to_dict()
    assert slow | {"speed": None} == fast | {"speed": None}
