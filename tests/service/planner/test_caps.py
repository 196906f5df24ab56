"""Caps: how much opportunistic tasks of a queue, and of a job, may need in all."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.waiting import Jobs, Waiting
from extender.planner.caps import CapRoom, Caps, below
from extender.planner.plan import Assignments

TOTAL = np.array([10.0, 20.0])


def waiting(demand, job, queue, given=None):
    """Return classes that need so much [C, 2], of jobs of queues [J] that have so much [J, 2]."""
    jobs, classes = len(queue), len(demand)
    return Waiting(
        names=[f"c{row}" for row in range(classes)],
        job=np.array(job, dtype=np.intp),
        count=np.full(classes, 9),
        demand=np.array(demand, dtype=float).reshape(classes, 2),
        reading=np.zeros(classes),
        inputs=[None] * classes,
        duration=np.full(classes, 60.0),
        since=np.zeros(classes),
        finished=np.zeros(classes),
        jobs=Jobs(
            names=[f"j{row}" for row in range(jobs)],
            queue=np.array(queue, dtype=np.intp),
            weight=np.ones(jobs),
            allocated=np.zeros((jobs, 2)),
            work=np.zeros(jobs),
            queue_names=["a", "b"],
            queue_weight=np.ones(2),
            opportunistic=None if given is None else np.array(given, dtype=float).reshape(jobs, 2),
        ),
    )


def in_order(rows):
    place = np.array(rows, dtype=np.intp)
    return Assignments(place, np.zeros_like(place), place - place - 1, place - place - 1)


def test_a_class_may_have_as_many_as_its_queue_and_its_job_leave_room_for():
    # The queue may have 5 and 10, and has 2 and 0: 3 of 1. The job may have 4 and 8, and has 2: 2 of 1.
    there = waiting([[1, 1]], [0], [0], [[2, 0]])
    assert CapRoom(Caps(queue=0.5), there, TOTAL).most(there.count).tolist() == [3]
    assert CapRoom(Caps(queue=0.5, job=0.4), there, TOTAL).most(there.count).tolist() == [2]


def test_what_somebody_else_of_the_queue_takes_counts_and_other_queues_do_not():
    there = waiting([[1, 1], [1, 1], [1, 1]], [0, 1, 2], [0, 0, 1])
    places = below(CapRoom(Caps(queue=0.2), there, TOTAL), in_order([0, 1, 0, 2, 2, 2]))
    assert places.tolist() == [0, 1, 3, 4]


def test_who_is_above_a_cap_already_gets_nothing_and_one_is_no_cap():
    there = waiting([[1, 1]], [0], [0], [[9, 0]])
    assert CapRoom(Caps(queue=0.5), there, TOTAL).most(there.count).tolist() == [0]
    assert CapRoom(Caps(), there, TOTAL).most(there.count).tolist() == there.count.tolist()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=5),
    st.lists(st.integers(0, 4), max_size=30),
    st.floats(0.05, 1),
    st.floats(0.05, 1),
)
def test_no_cap_is_ever_passed(classes, starts, of_queue, of_job):
    there = waiting([demand for *demand, _ in classes], [job for *_, job in classes], [0, 0, 1])
    rows = [row for row in starts if row < len(classes)]
    kept = below(CapRoom(Caps(of_queue, of_job), there, TOTAL), in_order(rows))
    job, queue = np.zeros((3, 2)), np.zeros((2, 2))
    for place in kept.tolist():
        job[there.job[rows[place]]] += there.demand[rows[place]] / TOTAL
        queue[there.jobs.queue[there.job[rows[place]]]] += there.demand[rows[place]] / TOTAL
    assert job.max() <= of_job + 1e-6
    assert queue.max() <= of_queue + 1e-6
