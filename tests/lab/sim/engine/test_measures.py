"""What is measured while a run goes on, on states small enough to check by hand."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from lab.sim.engine.measures import SeriesRecorder, waste, while_starting

CAPACITY = np.array([[100.0] * 6, [100.0] * 6])
TOTAL = CAPACITY.sum(axis=0)


def row(cpu, memory=0.0):
    return np.array([cpu, memory, 0, 0, 0, 0], dtype=np.float64)


@dataclass
class State:
    """A moment that a test sets up: by default two machines, of which nothing is promised, and two active jobs."""

    running: int = 0
    demand: np.ndarray = field(default_factory=lambda: np.zeros((2, 6)))
    allocated: np.ndarray = field(default_factory=lambda: np.zeros((2, 6)))
    job_allocated: np.ndarray = field(default_factory=lambda: np.zeros((2, 6)))
    active_jobs: np.ndarray = field(default_factory=lambda: np.array([0, 1]))
    waiting: np.ndarray = field(default_factory=lambda: np.array([0]))
    task_demand: np.ndarray = field(default_factory=lambda: row(60)[None])
    use: np.ndarray = field(default_factory=lambda: np.zeros(6))

    def used(self):
        return self.use


def recorder(every=1.0, points=100):
    return SeriesRecorder(CAPACITY, queue=np.array([0, 1]), queues=2, every=every, points=points)


def test_what_is_free_in_pieces_is_wasted_on_tasks_that_are_larger_than_a_piece():
    free = np.array([row(50, 100), row(50, 100)])
    task_demand = np.array([row(60), row(25)])
    # one 60 would fit into 100 at once, none into 50 + 50
    assert waste(free, task_demand, np.array([5, 0]), TOTAL).fragmentation == 1.0
    assert waste(free, task_demand, np.array([5, 0]), TOTAL).stranded == pytest.approx(60 / 200)
    # four of 25 fit either way
    assert waste(free, task_demand, np.array([0, 9]), TOTAL).fragmentation == 0.0
    # both: 1 x 60 and 4 x 25 at once, 0 x 60 and 4 x 25 in pieces: 60 of 160 is lost
    assert waste(free, task_demand, np.array([5, 9]), TOTAL).fragmentation == pytest.approx(60 / 160)


def test_no_more_tasks_count_than_wait():
    free = np.array([row(90), row(90)])
    # three of 60 would fit at once, one each in pieces; two wait
    assert waste(free, row(60)[None], np.array([2]), TOTAL).fragmentation == 0.0
    assert waste(free, row(60)[None], np.array([3]), TOTAL).fragmentation == pytest.approx(1 / 3)


def test_nothing_is_wasted_where_nothing_waits_or_fits_and_over_allocated_machines_have_nothing_free():
    assert waste(CAPACITY, row(60)[None], np.array([0]), TOTAL).fragmentation == 0
    assert waste(np.zeros((2, 6)), row(60)[None], np.array([3]), TOTAL).fragmentation == 0
    assert waste(np.array([row(-50), row(60)]), row(60)[None], np.array([3]), TOTAL).fragmentation == 0


def test_points_are_evenly_apart_and_tell_the_state_at_that_time():
    look = recorder()
    look.between(0.0, 2.5, State(running=1))  # at 0, 1, 2
    look.between(2.5, 2.9, State(running=2))
    look.between(2.9, 4.0, State(running=3))  # at 3
    series = look.series()
    assert series.at.tolist() == [0, 1, 2, 3]
    assert series.running.tolist() == [1, 1, 1, 3]


def test_every_other_point_is_forgotten_when_there_are_too_many():
    look = recorder(points=4)
    for second in range(9):
        look.between(float(second), second + 1.0, State(running=second))
    assert look.series().at.tolist() == [0, 4, 8]
    assert look.series().running.tolist() == [0, 4, 8]
    look.between(9.0, 1e6, State(running=9))
    assert len(look.series().at) <= 4


def test_use_promises_and_demand_are_parts_of_the_cluster():
    look = recorder()
    look.between(
        0.0, 1.0, State(allocated=np.array([row(50), row(100)]), demand=np.array([row(300), row(100)]), use=row(150))
    )
    series = look.series()
    assert (series.used[0, 0], series.allocated[0, 0], series.demanded[0, 0]) == (0.75, 0.75, 2.0)


def test_the_time_that_machines_are_highly_loaded():
    look = recorder()
    look.between(0.0, 3.0, State(demand=np.array([row(80), row(95)])))
    look.between(3.0, 4.0, State(demand=np.array([row(100), row(250)])))
    look.between(4.0, 9.0, State())  # after the last start
    fullness = look.fullness(0.0, 3.0)
    # of 2 machines x 4 s: above 75 % all; above 90 % one for 3 s and two for 1 s; above 95 % two for 1 s;
    # above 100 % one for 1 s, by 150 %
    assert fullness.high[:, 0].tolist() == [1.0, 5 / 8, 2 / 8, 1 / 8]
    assert fullness.over_allocated[0] == 1 / 8
    assert fullness.excess[0] == 1.5
    assert fullness.high[:, 1:].sum() == 0


def test_what_is_promised_counts_until_a_task_ends_also_what_it_is_done_with():
    look = recorder()
    # the tasks are promised 80 and 120; the second does not compute any more
    look.between(0.0, 1.0, State(demand=np.array([row(80), row(0)]), allocated=np.array([row(80), row(120)])))
    fullness = look.fullness(0.0, 0.0)
    assert fullness.high[:, 0].tolist() == [1 / 2, 0, 0, 0]
    assert fullness.promised[:, 0].tolist() == [1.0, 1 / 2, 1 / 2, 1 / 2]


def test_what_is_carried_is_no_more_than_contention_leaves():
    demand = np.zeros((2, 6))
    demand[:, 2] = 90.0, 200.0
    look = SeriesRecorder(CAPACITY, queue=np.array([0, 1]), queues=2, every=1.0, points=100, loss=1.0)
    look.between(0.0, 1.0, State(demand=demand))
    fullness = look.fullness(0.0, 0.0)
    # reading: a disk with a load of .9 carries 100 / (1 + .127 x .9) = 89.7, one with a load of 2 carries 79.7
    assert fullness.high[:, 2].tolist() == [1.0, 1 / 2, 1 / 2, 1 / 2]
    assert fullness.carried[:, 2].tolist() == [1.0, 0, 0, 0]


def test_loads_are_of_all_that_a_machine_has_and_the_system_holds_the_rest_of_its_memory():
    whole = CAPACITY.copy()
    whole[:, [1, 4]] = 125.0
    look = SeriesRecorder(CAPACITY, queue=np.array([0, 1]), queues=2, every=1.0, points=100, whole=whole)
    demand = np.zeros((2, 6))
    demand[:, [1, 4]] = [[70.0, 94.0], [100.0, 110.0]]
    look.between(0.0, 1.0, State(demand=demand))
    fullness = look.fullness(0.0, 0.0)
    # memory: 70 + 25 and 100 + 25 of 125 are 76 and 100 %; more than the 100 that it offers is never promised
    assert fullness.high[:, 1].tolist() == [1.0, 1 / 2, 1 / 2, 0]
    # network in: 94 and 110 of 125 are 75.2 and 88 %; 110 is more than the 100 that it offers
    assert fullness.high[:, 4].tolist() == [1.0, 0, 0, 1 / 2]
    assert fullness.over_allocated[4] == 1 / 2


def test_shares_of_queues_are_dominant_shares():
    look = recorder()
    look.between(0.0, 1.0, State(job_allocated=np.array([row(50, 20), row(10, 40)])))
    assert look.series().queues.tolist() == [[0.25, 0.2]]


def test_unfairness_is_what_a_job_has_beyond_its_part_over_its_life():
    look = recorder()
    allocated = np.array([row(50), row(100)])
    look.between(0.0, 4.0, State(job_allocated=allocated))  # f = 1/2: a = 1/4 is half too little, a = 1/2 just right
    look.between(4.0, 6.0, State(job_allocated=allocated, active_jobs=np.array([0])))  # alone: f = 1, a = 1/4
    assert look.unfairness().tolist() == [pytest.approx((4 * -0.5 + 2 * -0.75) / 6), 0.0]


def test_where_all_starts_lie_between_two_points_the_next_point_counts():
    look = recorder()
    look.between(0.0, 0.4, State())
    look.between(0.4, 3.0, State(demand=np.array([row(80), row(80)])))  # at points 1 and 2
    assert look.fullness(0.3, 0.4).high[0, 0] == 1.0
    assert while_starting(look.series().at, 0.3, 0.4).tolist() == [False, True, False]
    assert while_starting(look.series().at, 2.3, 2.4).tolist() == [False, False, False]


def test_without_points_nothing_was_full():
    assert recorder().fullness(0.0, 0.0).high.tolist() == [[0] * 6] * 4
