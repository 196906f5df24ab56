import time
from dataclasses import replace

import numpy as np
import pytest

from lab.sim.workloads.parameters import Parameters
from lab.sim.workloads.specs import machines
from lab.sim.workloads.suite import KINDS, suite
from lab.sim.workloads.workload import BLOCKS, SHUFFLE

GIB = 2.0**30
CPU, MEMORY, WRITE = 0, 1, 3
VALUES = Parameters().suite
RATIO = {kind.name: kind.ratio for kind in KINDS}


@pytest.fixture(scope="module")
def jobs():
    """Return the jobs of one suite, each with the bytes that a task writes per byte that it reads."""
    return [(job, RATIO[job.name.partition("-")[2]]) for job in suite(7).jobs]


def test_a_suite_has_over_a_hundred_jobs_and_about_the_tasks_of_the_paper():
    # 110 jobs of (2000 + 1000 + 1000 + 300) / 4 tasks in the mean: 118,250
    sizes = [suite(seed).tasks for seed in range(10)]
    assert all(len(suite(seed).jobs) == 110 for seed in range(3))
    assert np.mean(sizes) == pytest.approx(118_250, rel=0.05)


def test_jobs_arrive_in_order_within_the_first_hour(jobs):
    arrivals = [job.arrives_at for job, _ in jobs]
    assert arrivals == sorted(arrivals)
    assert 0 <= arrivals[0] < 300
    assert 3300 < arrivals[-1] <= 3600


def test_a_job_is_maps_that_read_blocks_and_then_reduces_that_read_a_shuffle(jobs):
    for job, _ in jobs:
        maps, reduces = job.stages
        assert (maps.source, maps.parents) == (BLOCKS, ())
        assert (reduces.source, reduces.parents) == (SHUFFLE, (0,))


def test_maps_and_reduces_together_are_the_size_of_the_kind(jobs):
    bounds = {"large": (1500, 2500), "medium": (750, 1250), "small": (100, 500)}
    for job, ratio in jobs:
        maps, reduces = (stage.tasks for stage in job.stages)
        least, most = bounds[job.name.split("-")[1]]
        assert least <= maps + reduces <= most
        # one reduce per map and ratio, but for rounding: 1000 tasks that double are 333 maps and 667 reduces
        assert abs(reduces - maps * ratio) <= 1 + ratio


def test_a_task_writes_what_it_reads_times_the_ratio_of_its_kind(jobs):
    for job, ratio in jobs:
        for stage in job.stages:
            assert stage.demand[WRITE] == pytest.approx(stage.reading * ratio, abs=2)


def test_reduces_read_what_the_maps_wrote_at_their_rate_for_their_duration(jobs):
    for job, _ in jobs:
        maps, reduces = job.stages
        written = maps.demand[WRITE] * maps.durations.sum()
        assert reduces.reading * reduces.durations.sum() == pytest.approx(written, rel=1e-5)


def test_a_map_reads_its_split_at_its_rate_for_its_duration(jobs):
    for job, _ in jobs:
        maps = job.stages[0]
        assert VALUES.split[0] - 1000 <= maps.reading * maps.duration <= VALUES.split[1] + 1000
        assert maps.durations.mean() == pytest.approx(maps.duration)


def is_high_cpu(stage):
    """Return whether a stage's CPU, as in a small container, lies nearer to what is high than to what is low."""
    cpu = stage.demand[CPU] / (VALUES.cpu_of_large if stage.demand[MEMORY] > 2 * GIB else 1.0)
    return cpu > (VALUES.low_cpu[1] + VALUES.high_cpu[0]) / 2


def test_stages_are_of_high_or_low_memory_and_of_high_or_low_cpu_drawn_apart(jobs):
    stages = [stage for job, _ in jobs for stage in job.stages]
    high_memory = np.array([stage.demand[MEMORY] > 2 * GIB for stage in stages])
    high_cpu = np.array([is_high_cpu(stage) for stage in stages])
    for stage, memory in zip(stages, high_memory, strict=True):
        least, most = VALUES.memory_used
        assert least <= stage.demand[MEMORY] / ((8 if memory else 2) * GIB) <= most
    # 220 stages: each class half of them, each pair of classes a quarter, give or take three standard deviations
    assert high_memory.mean() == pytest.approx(0.5, abs=0.1)
    assert high_cpu.mean() == pytest.approx(0.5, abs=0.1)
    assert (high_memory & high_cpu).mean() == pytest.approx(0.25, abs=0.09)


def test_high_cpu_goes_with_low_rates(jobs):
    for job, ratio in jobs:
        for stage in job.stages:
            rate = stage.reading * (1 + ratio)
            least, most = VALUES.high_cpu_io if is_high_cpu(stage) else VALUES.low_cpu_io
            assert least - 5 <= rate <= most + 5


def test_durations_vary_within_a_stage_as_much_as_the_table_says(jobs):
    spread = [stage.durations.std() / stage.durations.mean() for job, _ in jobs for stage in job.stages]
    assert np.median(spread) == pytest.approx(0.25, abs=0.01)


def test_no_task_takes_more_than_a_machine_even_if_all_that_it_reads_is_remote(jobs):
    capacity = machines("tetris").capacity[0]
    for job, _ in jobs:
        for stage in job.stages:
            taken = stage.demand.copy()
            taken[[2, 4, 5]] = stage.reading
            assert (taken <= capacity).all()


def test_demands_are_whole_numbers_that_seldom_recur(jobs):
    stages = [stage for job, _ in jobs for stage in job.stages]
    rows = np.array([[*stage.demand, stage.reading] for stage in stages])
    assert (rows == np.rint(rows)).all()
    # a rate in bytes per second is one of tens of millions: packing is not a matter of round numbers
    assert len(set(rows[:, WRITE])) == len(stages)


def test_the_same_seed_gives_the_same_suite_and_another_a_different_one():
    first, second, other = (suite(seed, jobs=5) for seed in (3, 3, 4))
    assert first.jobs[4].stages[1].durations.tobytes() == second.jobs[4].stages[1].durations.tobytes()
    assert first.jobs[0].arrives_at != other.jobs[0].arrives_at


def test_parameters_change_what_is_drawn():
    usual = Parameters()
    changed = replace(usual, suite=replace(usual.suite, jobs=3, duration_spread=0.0))
    workload = suite(1, parameters=changed)
    assert len(workload.jobs) == 3
    assert np.ptp(workload.jobs[0].stages[0].durations) == 0


def test_a_whole_suite_takes_no_more_than_two_seconds_to_draw():
    began = time.perf_counter()
    assert suite(1).tasks > 90_000
    assert time.perf_counter() - began < 2


def test_a_task_in_a_large_container_takes_so_many_times_the_cpu():
    usual = Parameters()
    one, two = (
        suite(1, jobs=20, parameters=replace(usual, suite=replace(usual.suite, cpu_of_large=factor)))
        for factor in (1, 2)
    )
    pairs = [
        pair
        for jobs in zip(one.jobs, two.jobs, strict=True)
        for pair in zip(*(job.stages for job in jobs), strict=True)
    ]
    factors = {stage.demand[MEMORY] > 2 * GIB: set() for stage, _ in pairs}
    for before, after in pairs:
        factors[before.demand[MEMORY] > 2 * GIB].add(round(after.demand[CPU] / before.demand[CPU], 2))
    assert factors == {True: {2.0}, False: {1.0}}


def test_the_networks_of_the_suite_are_a_value_of_the_table():
    usual = Parameters()
    slower = replace(usual, suite=replace(usual.suite, network=1e9))
    assert machines("tetris:2", slower).capacity[:, 4:].tolist() == [[1e9, 1e9]] * 2
