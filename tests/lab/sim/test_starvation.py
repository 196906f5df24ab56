import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner import Planner, Policy
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.workloads.workload import Job, Machines, Stage, Workload

AFTER = 30.0
CAPACITY = np.array([4000.0, 2.0**30, 0.0, 0.0, 0.0, 0.0])


def stage(cpu, *seconds):
    return Stage("only", np.array([cpu, 0.0, 0.0, 0.0, 0.0, 0.0]), 0.0, float(np.mean(seconds)), np.array(seconds))


def start_of_the_large_one(seconds_of_small, gap, starved_after):
    """Return when a task that wants a whole machine starts beside a stream of small ones, on two machines."""
    small = [Job(f"small{i:03}", i * gap, [stage(1000.0, seconds)]) for i, seconds in enumerate(seconds_of_small)]
    jobs = sorted([*small, Job("large", 5.0, [stage(4000.0, 10.0)])], key=lambda job: job.arrives_at)
    outcome = run(
        Workload("stream", jobs),
        Machines("two", np.tile(CAPACITY, (2, 1)), copies=1),
        Planner(Policy(starved_after=starved_after)),
        seed=0,
        settings=SimulationSettings(heartbeat_seconds=1.0),
    )
    return next(job.started - job.arrived for job in outcome.jobs if job.name == "large")


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([4.0, 10.0, 20.0]), min_size=150, max_size=150), st.sampled_from([1.5, 2.0, 3.0]))
def test_a_task_as_large_as_a_machine_starts_within_the_bound_beside_any_stream_that_leaves_capacity(seconds, gap):
    # The bound of docs/concepts/turns.md: starved_after, twice the work of its queue (its own 10 s on half the cluster,
    # and 20 s on all of it for what runs and waits beside), and the longest task. And two heartbeats, as what ended and
    # who is due are seen at a heartbeat, and at the next event after the bound.
    waited = start_of_the_large_one(seconds, gap, AFTER)
    assert waited <= AFTER + 2 * (5.0 + 20.0) + 20.0 + gap + 2.0


def test_without_reservations_the_same_task_waits_for_the_end_of_the_stream():
    seconds = [10.0] * 150  # 1.5 s apart: 6.7 of 8 cores are busy, and never four idle ones on one machine
    assert start_of_the_large_one(seconds, 1.5, 1e9) > 100
    assert start_of_the_large_one(seconds, 1.5, AFTER) <= AFTER + 2 * (5 + 10) + 10 + 1.5 + 2


def test_equal_jobs_start_in_the_order_in_which_they_came_whatever_their_names():
    jobs = [Job(name, at, [stage(4000.0, 10.0, 10.0)]) for at, name in enumerate(("d", "a", "c", "b"))]
    one = Machines("one", CAPACITY[np.newaxis], copies=1)
    outcome = run(Workload("equal", jobs), one, Planner(Policy()), seed=0)
    assert [job.name for job in sorted(outcome.jobs, key=lambda job: job.started)] == ["d", "a", "c", "b"]
