"""Lower bounds: by hand, against every order on one machine, and against runs of many policies."""

from itertools import permutations

import numpy as np
import pytest

from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.schedulers.policies import choice
from lab.sim.workloads.bounds import bounds_of, shortest_first
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import BLOCKS, LOCAL, SHUFFLE, Job, Machines, Stage, Workload
from tests.lab.sim.small import GIB

CAPACITY = np.array([4000.0, 64 * GIB, 100, 100, 100, 100])
TWO = Machines("two", np.tile(CAPACITY, (2, 1)))
ROUNDING = 1e-3
POLICIES = ("tetris", "paper", "srtf", "packing", "slot-fair", "capacity", "drf", "drf-yarn")


def stage(durations, *, cpu=1000.0, memory=8.0, write=0.0, reading=0.0, source=LOCAL, parents=()):
    demand = np.array([cpu, memory * GIB, 0, write, 0, 0])
    durations = np.array(durations, dtype=np.float64)
    return Stage(f"s{len(parents)}-{source}", demand, reading, float(durations.mean()), durations, parents, source)


def bounds(*jobs):
    return bounds_of(table_of(Workload("test", jobs), TWO), CAPACITY * 2)


def test_a_chain_takes_as_long_as_the_longest_task_of_each_stage():
    chain = Job("a", 5.0, [stage([3, 1]), stage([4], parents=(0,))])
    found = bounds(chain)
    assert (found.makespan, found.mean_job_seconds, found.job_seconds.tolist()) == (7, 7, [7])


def test_jobs_of_which_no_stage_waits_for_another_have_no_chain():
    chain = Job("chain", 0.0, [stage([3]), stage([4], parents=(0,))])
    flat, one = Job("flat", 0.0, [stage([9, 9])]), Job("one", 0.0, [stage([9])])
    assert table_of(Workload("test", (chain, flat, one)), TWO).path.tolist() == [7, 4, 0, 0]


def test_a_stage_that_fills_the_cluster_takes_as_long_as_its_work_and_what_follows_comes_after():
    # 16 tasks of a core for 3 s on 8 cores: 6 s; then a task of 4 s.
    assert bounds(Job("a", 0.0, [stage([3] * 16), stage([4], parents=(0,))])).makespan == 10


def test_work_that_comes_late_is_done_after_it_has_come():
    # 8 cores; 80 core-seconds from 100 s on.
    found = bounds(Job("a", 0.0, [stage([1])]), Job("b", 100.0, [stage([1] * 80)]))
    assert found.makespan == 110
    assert found.job_seconds.tolist() == [1, 10]


def test_job_times_are_in_the_order_of_the_workload():
    assert bounds(Job("z", 0.0, [stage([9])]), Job("a", 1.0, [stage([2])])).job_seconds.tolist() == [9, 2]


def test_jobs_that_share_the_cluster_have_a_larger_mean_than_each_alone():
    # Each of two jobs fills the cluster for 10 s: 10 and 20 s at best.
    found = bounds(Job("a", 0.0, [stage([10] * 8)]), Job("b", 0.0, [stage([10] * 8)]))
    assert (found.job_seconds.tolist(), found.mean_job_seconds, found.makespan) == ([10, 10], 15, 20)


def test_a_job_with_a_long_chain_counts_by_it_while_others_share_the_cluster():
    # A thin job of 1000 s beside three that fill the cluster for 10 s each: 1000 + 10 + 20 + 30.
    wide = [Job(f"w{n}", 0.0, [stage([10] * 8)]) for n in range(3)]
    assert bounds(Job("thin", 0.0, [stage([1000], cpu=1.0, memory=0.0)]), *wide).mean_job_seconds == 265


def test_without_jobs_there_is_nothing_to_bound():
    found = bounds_of(table_of(Workload("none", ()), TWO), CAPACITY)
    assert (found.makespan, found.mean_job_seconds, found.job_seconds.tolist()) == (0, 0, [])


@pytest.mark.parametrize("seed", range(40))
def test_the_least_work_first_is_the_best_of_all_orders_on_one_machine(seed):
    random = np.random.default_rng(seed)
    arrives_at = random.integers(0, 6, 4).astype(float)
    seconds = random.integers(1, 6, 4).astype(float)
    least = shortest_first(arrives_at, seconds)
    assert least == best_of_all_slices(tuple(arrives_at), tuple(seconds))
    assert least <= min(in_order(order, arrives_at, seconds) for order in permutations(range(4)))


def best_of_all_slices(arrives_at, left, now=0.0, known=None):
    """Return the least sum of job times over every way to give each second to a job."""
    known = {} if known is None else known
    if (now, left) not in known:
        here = [job for job, amount in enumerate(left) if amount and arrives_at[job] <= now]
        best = 0.0 if not any(left) else np.inf
        for job in here:
            rest = tuple(amount - (other == job) for other, amount in enumerate(left))
            ended = now + 1 - arrives_at[job] if not rest[job] else 0.0
            best = min(best, ended + best_of_all_slices(arrives_at, rest, now + 1, known))
        if any(left) and not here:
            best = best_of_all_slices(arrives_at, left, now + 1, known)
        known[now, left] = best
    return known[now, left]


def in_order(order, arrives_at, seconds):
    now = total = 0.0
    for job in order:
        now = max(now, arrives_at[job]) + seconds[job]
        total += now - arrives_at[job]
    return total


def drawn(random):
    jobs = []
    for number in range(int(random.integers(1, 7))):
        maps = stage(
            random.uniform(1, 20, random.integers(1, 12)),
            cpu=random.integers(1, 3001),
            memory=random.integers(1, 30),
            write=random.integers(0, 60),
            reading=float(random.integers(0, 60)),
            source=BLOCKS,
        )
        reduces = stage(
            random.uniform(1, 40, random.integers(1, 4)),
            write=random.integers(0, 60),
            reading=float(random.integers(1, 60)),
            source=SHUFFLE,
            parents=(0,),
        )
        arrival = float(random.uniform(0, 30)) if random.random() < 0.7 else 0.0
        jobs.append(Job(f"j{number}", arrival, [maps, reduces][: int(random.integers(1, 3))]))
    jobs.sort(key=lambda job: job.arrives_at)
    return Workload("drawn", jobs, output_copies=int(random.integers(1, 3)))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_no_policy_does_better_than_the_bounds(seed, loss):
    random = np.random.default_rng(seed)
    given = drawn(random)
    machines = Machines("some", np.tile(CAPACITY, (int(random.integers(1, 4)), 1)), copies=2)
    settings = SimulationSettings(heartbeat_seconds=0.0, loss=loss)
    for policy in POLICIES:
        outcome = run(given, machines, choice(policy).make(seed), seed=seed, settings=settings)
        assert outcome.bounds.makespan <= outcome.makespan + ROUNDING, policy
        assert outcome.bounds.mean_job_seconds <= outcome.job_seconds.mean() + ROUNDING, policy
        assert (outcome.bounds.job_seconds <= outcome.job_seconds + ROUNDING).all(), policy
