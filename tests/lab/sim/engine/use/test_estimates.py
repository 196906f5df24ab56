"""What a stage's next tasks are promised, by what its finished ones used, with the arithmetic shown."""

from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.resources import DIMENSIONS
from extender.errors import DovetailError
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.running import Ends
from lab.sim.engine.use.estimates import StageEstimates
from lab.sim.schedulers.policies import policy
from lab.sim.workloads.stages import table_of
from lab.sim.workloads.workload import BLOCKS, LOCAL, SHUFFLE, Job, Machines, Stage, Use, Workload

CAPACITY = np.array([4000.0, 64e9, 1e9, 1e9, 1e9, 1e9])
CPU, MEMORY, READ, WRITE, IN, OUT = range(6)
EVENTS = SimulationSettings(heartbeat_seconds=0.0)
ESTIMATING = replace(EVENTS, estimate=True)


def machines(count=1):
    return Machines("some", np.tile(CAPACITY, (count, 1)))


def stage(name="s", *, cpu=1000.0, memory=1e9, write=0.0, reading=0.0, source=LOCAL, tasks=8, part=1.0, parents=()):
    """Tasks of 10 s that use this `part` of all that they declare."""
    demand = np.array([cpu, memory, 0, write, 0, 0])
    use = None if part == 1.0 else Use(np.ones(1), np.full((1, 6), part))
    return Stage(name, demand, reading, 10.0, np.full(tasks, 10.0), parents, source, use=use)


def workload(*stages, output_copies=1):
    return Workload("w", [Job("j", 0.0, stages)], output_copies=output_copies)


def estimates_of(*stages, count=1, output_copies=1):
    return StageEstimates(table_of(workload(*stages, output_copies=output_copies), machines(count)), machines(count))


def ends(peak, *, stage=0, tasks=1):
    """So many tasks of a stage that have ended with this peak."""
    rows = np.full(tasks, stage)
    return Ends(rows, rows, np.zeros(tasks), np.zeros((6, tasks)), None, np.tile(np.array(peak), (tasks, 1)).T)


def test_after_three_tasks_the_next_are_promised_the_largest_peak():
    estimates = estimates_of(stage())
    assert not len(estimates.end(ends([500.0, 2e8, 0, 0, 0, 0], tasks=2)))
    assert estimates.demand[0].tolist() == [1000, 1e9, 0, 0, 0, 0]
    assert estimates.end(ends([400.0, 3e8, 0, 0, 0, 0])).tolist() == [0]
    assert estimates.demand[0].tolist() == [500, 3e8, 0, 0, 0, 0]
    # The work of a task is 10 s x (500 / 4000) of the CPU, and 10 s x 3 / 640 of the memory.
    np.testing.assert_allclose(estimates.busy[0], [1.25, 0.046875, 0, 0, 0, 0])


def test_another_task_like_those_before_changes_nothing():
    estimates = estimates_of(stage())
    estimates.end(ends([500.0, 2e8, 0, 0, 0, 0], tasks=3))
    assert not len(estimates.end(ends([500.0, 2e8, 0, 0, 0, 0])))


def test_what_a_task_was_always_short_of_it_has_not_shown():
    estimates = estimates_of(stage())
    estimates.end(ends([0.0, 2e8, 0, 0, 0, 0], tasks=3))
    assert estimates.demand[0].tolist() == [1000, 2e8, 0, 0, 0, 0]


@pytest.mark.parametrize("source", [BLOCKS, SHUFFLE])
def test_what_is_read_is_estimated_and_the_network_follows_from_where(source):
    parent = stage("p", tasks=1)
    estimates = estimates_of(parent, stage(reading=1e6, source=source, parents=(0,)), count=2)
    estimates.end(ends([1000.0, 1e9, 4e5, 0, 3e5, 0], stage=1, tasks=3))
    assert estimates.reading[1] == 4e5
    assert estimates.demand[1].tolist() == [1000, 1e9, 0, 0, 0, 0]
    # One that declares to read a quarter on its own node reads 1e5 there and 3e5 from others.
    promised = estimates.promised(np.array([1]), np.array([2.5e5]))
    assert promised.demand[:, 0].tolist() == [1000, 1e9, 1e5, 0, 3e5, 0]
    assert promised.elsewhere.tolist() == [3e5]


def test_who_reads_at_home_is_promised_the_network_that_was_measured():
    estimates = estimates_of(stage(reading=1e6))
    estimates.end(ends([1000.0, 1e9, 4e5, 0, 2e5, 1e5], tasks=3))
    assert estimates.demand[0].tolist() == [1000, 1e9, 0, 0, 2e5, 1e5]
    assert estimates.reading[0] == 4e5


def test_an_estimate_that_no_machine_could_hold_is_cut_to_what_is_declared():
    estimates = estimates_of(stage())
    estimates.end(ends([5000.0, 5e8, 0, 0, 0, 0], tasks=3))
    assert estimates.demand[0].tolist() == [1000, 5e8, 0, 0, 0, 0]


def test_machines_with_other_resources_are_refused_by_their_names():
    gpus = Machines("gpus", np.ones((1, 7)), axis=(*DIMENSIONS, "nvidia.com/gpu"))
    with pytest.raises(DovetailError, match=r"not where these count too: nvidia\.com/gpu"):
        StageEstimates(table_of(Workload("w", []), gpus), gpus)


def test_tasks_that_declare_too_much_leave_room_for_more_once_three_have_ended():
    # 14 tasks declare a core of four and use half of one: 4, 4, 4 and 2 at a time without estimates.
    given = workload(stage(tasks=14, part=0.5))
    without = run(given, machines(), policy("tetris", 1), seed=1, settings=EVENTS)
    assert without.tasks.started.tolist() == [0.0] * 4 + [10.0] * 4 + [20.0] * 4 + [30.0] * 2
    # With them the first four have ended at 10 s; then 4000 / 500 = 8 start, and the last two at 20 s.
    outcome = run(given, machines(), policy("tetris", 1), seed=1, settings=ESTIMATING)
    assert outcome.tasks.started.tolist() == [0.0] * 4 + [10.0] * 8 + [20.0] * 2
    np.testing.assert_allclose(outcome.tasks.ended - outcome.tasks.started, 10.0)


def test_tasks_that_declare_too_little_memory_kill_no_more_once_three_have_ended():
    # Each declares 10 GB of 64 and uses 20, the later ones a little more: six start, and the last three are killed,
    # again and again. Three have ended at 10 s: from then on three of 20 GB run at a time.
    one = stage(tasks=12, memory=10e9, cpu=100.0)
    given = workload(replace(one, use=Use(np.ones(1), np.full((1, 6), 2.0), 1 + np.arange(12) / 1000)))
    outcomes = [run(given, machines(), policy("tetris", 1), seed=1, settings=which) for which in (EVENTS, ESTIMATING)]
    killed = [outcome.opportunistic.killed_regular for outcome in outcomes]
    assert 0 < killed[1] < killed[0]
    assert outcomes[1].tasks.started.tolist() == [0.0] * 3 + [10.0] * 3 + [20.0] * 3 + [30.0] * 3


@pytest.mark.parametrize("settings", [EVENTS, ESTIMATING])
def test_equal_tasks_that_declare_too_little_memory_end_as_the_newest_are_killed(settings):
    # 20 tasks declare 10 GB of 64 and use 20. Six start and the last three are killed, again and again, until the first
    # three have ended: three at a time, 7 x 10 s. (Killing the oldest, none would ever end.)
    given = workload(replace(stage(tasks=20, memory=10e9, cpu=100.0), use=Use(np.ones(1), np.full((1, 6), 2.0))))
    outcome = run(given, machines(), policy("tetris", 1), seed=1, settings=settings)
    assert outcome.opportunistic.killed_regular > 0
    assert outcome.makespan == pytest.approx(70.0)


@pytest.mark.parametrize("source", [LOCAL, BLOCKS, SHUFFLE])
@pytest.mark.parametrize("name", ["tetris", "drf", "kube-default"])
def test_where_tasks_use_what_they_declare_estimates_change_nothing(name, source):
    parent = stage("p", cpu=500.0, write=3e8)
    child = stage(cpu=700.0, write=1e8, reading=2e8, source=source, parents=(0,))
    given = workload(parent, child, output_copies=2)
    outcomes = [run(given, machines(3), policy(name, 1), seed=1, settings=one) for one in (EVENTS, ESTIMATING)]
    np.testing.assert_allclose(outcomes[1].tasks.ended, outcomes[0].tasks.ended)
    assert outcomes[1].tasks.node.tolist() == outcomes[0].tasks.node.tolist()


@pytest.mark.parametrize("part", [0.5, 0.9])
@pytest.mark.parametrize("source", [LOCAL, BLOCKS, SHUFFLE])
def test_with_estimates_no_machine_uses_more_than_it_has_where_too_much_is_declared(source, part):
    given = workload(
        stage("p", cpu=900.0, write=3e8, part=part),
        stage(cpu=700.0, write=3e8, reading=4e8, source=source, part=part, parents=(0,), tasks=20),
    )
    outcome = run(given, machines(3), policy("tetris", 1), seed=1, settings=ESTIMATING)
    np.testing.assert_allclose(outcome.tasks.ended - outcome.tasks.started, 10.0, rtol=1e-3)


def test_room_that_running_tasks_do_not_use_is_given_back_after_thirty_seconds():
    # Two are promised all four cores and use half of one each. One of three cores comes at 40 s: then three are idle.
    long = replace(stage("l", cpu=2000.0, tasks=2, part=0.25), durations=np.full(2, 100.0))
    jobs = [Job("a", 0.0, [long]), Job("b", 40.0, [stage(cpu=3000.0, tasks=1)])]
    starts = [
        run(Workload("w", jobs), machines(), policy("tetris", 1), seed=1, settings=settings).tasks.started.tolist()
        for settings in (EVENTS, ESTIMATING)
    ]
    assert starts == [[0, 0, 100], [0, 0, 40]]


def runs(*stages, recurring="nightly", count=3):
    """So many runs of a recurring job, 30 s apart."""
    return Workload("w", [Job(f"j{number}", 30.0 * number, stages, recurring=recurring) for number in range(count)])


def estimates_of_runs(*stages):
    return StageEstimates(table_of(runs(*stages), machines()), machines())


def test_a_later_run_begins_with_what_the_one_before_ended_with_by_the_name_of_the_stage():
    estimates = estimates_of_runs(stage("s", tasks=3), stage("t", tasks=3))
    assert not len(estimates.end(ends([500.0, 2e8, 0, 0, 0, 0], tasks=2)))
    # Rows 0, 2 and 4 are stage s of the three runs. When the first is over all know; the second does not change it.
    assert estimates.end(ends([400.0, 3e8, 0, 0, 0, 0])).tolist() == [0, 2, 4]
    assert estimates.demand[:, CPU].tolist() == [500, 1000] * 3
    assert estimates.end(ends([600.0, 1e8, 0, 0, 0, 0], stage=2, tasks=3)).tolist() == [2, 4]
    assert estimates.demand[:, CPU].tolist() == [500, 1000, 600, 1000, 600, 1000]
    assert estimates.demand[:, MEMORY].tolist() == [3e8, 1e9, 1e8, 1e9, 1e8, 1e9]


def test_a_run_passes_nothing_on_before_all_tasks_of_the_stage_have_ended():
    estimates = estimates_of_runs(stage(tasks=8))
    assert estimates.end(ends([500.0, 2e8, 0, 0, 0, 0], tasks=7)).tolist() == [0]
    assert estimates.end(ends([500.0, 2e8, 0, 0, 0, 0])).tolist() == [1, 2]


def test_a_stage_of_a_single_task_tells_later_runs_but_not_what_it_was_always_short_of():
    estimates = estimates_of_runs(stage(tasks=1))
    estimates.end(ends([0.0, 2e8, 0, 0, 0, 0]))
    assert estimates.demand[1].tolist() == [1000, 2e8, 0, 0, 0, 0]
    # The second run shows the CPU alone: what is known of memory stays.
    estimates.end(ends([700.0, 0, 0, 0, 0, 0], stage=1))
    assert estimates.demand[2].tolist() == [700, 2e8, 0, 0, 0, 0]


def test_jobs_that_run_once_tell_each_other_nothing():
    table = table_of(runs(stage(tasks=3), recurring=""), machines())
    assert StageEstimates(table, machines()).end(ends([500.0, 2e8, 0, 0, 0, 0], tasks=3)).tolist() == [0]


class Watching:
    """A planner that writes down when it planned, the seconds of work left, and the work left of each job."""

    def __init__(self):
        self.seen = {}
        self._planner = policy("tetris", 1)

    def plan(self, snapshot, waiting, now):
        self.seen.setdefault(now, (waiting.left_seconds, waiting.jobs.work.tolist()))
        return self._planner.plan(snapshot, waiting, now)


@pytest.mark.parametrize(
    ("recurring", "at_30", "left"), [("", [30.0] * 4 + [40.0] * 4, 20.0), ("nightly", [30.0] * 8, 10.0)]
)
def test_a_later_run_starts_as_many_as_fit_by_what_the_first_used(recurring, at_30, left):
    # 8 tasks declare a core of four and use half of one. The first run starts 4 at 0 s, and 4 at 10 s.
    watching = Watching()
    given = runs(stage(part=0.5, memory=0.0), recurring=recurring, count=2)
    outcome = run(given, machines(), watching, seed=1, settings=ESTIMATING)
    assert outcome.tasks.started.tolist() == [0.0] * 4 + [10.0] * 4 + at_30
    # The work that comes at 30 s: 8 x 10 s x (1000 / 4000), or x (500 / 4000).
    assert watching.seen[30.0] == (pytest.approx(left), pytest.approx([left]))
