"""UBIS in the simulator: the paper's example, promotion, eviction, and what memory does.

Machines have 1000 millicores and 64 bytes of memory; disks and links are unlimited.
"""

from dataclasses import replace

import numpy as np
import pytest

from extender.cluster.eligibility import Constraints
from extender.cluster.model import Node
from extender.cluster.resources import DISK_READ_INDEX
from extender.control.preemption.overload import Limits, Pressure
from extender.errors import DovetailError
from extender.planner import Planner
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.engine.running import RunningTasks
from lab.sim.engine.use.sampling import Sampling
from lab.sim.engine.world import World
from lab.sim.opportunistic.ubis import STARVED, Ubis, UbisSettings
from lab.sim.workloads.workload import SHUFFLE, Job, Machines, Stage, Use, Workload

T = 200.0
CPU, MEMORY = 0, 1
EVENTS = SimulationSettings(heartbeat_seconds=0.0, sampling=Sampling(scrape=1.0, window=1.0, delay=0.0))
SOON = 40.0
"""A ramp-up, and a few samples."""


def machines(count, cpu=1000.0):
    return Machines("some", np.tile([cpu, 64.0, *[np.inf] * 4], (count, 1)))


def use(*phases):
    """Return a use by phases of (until, part of CPU, part of memory)."""
    until, cpu, memory = np.array(phases, dtype=float).T
    parts = np.zeros((len(phases), 6))
    parts[:, CPU], parts[:, MEMORY] = cpu, memory
    return Use(until, parts)


def job(name, seconds, tasks=1, *, at=0.0, cpu=1000.0, memory=8.0, of=None, queue="default"):
    demand = np.array([cpu, memory, 0, 0, 0, 0])
    stage = Stage("only", demand, 0.0, seconds, np.full(tasks, seconds), use=of)
    return Job(name, at, [stage], queue)


def replay(count, *jobs, settings=None, sampling=EVENTS, cpu=1000.0):
    opportunism = settings if isinstance(settings, Ubis) else None if settings is None else Ubis(settings)
    workload = Workload("test", jobs)
    return run(workload, machines(count, cpu), Planner(), seed=0, settings=sampling, opportunism=opportunism)


def seconds(outcome):
    return {one.name: one.seconds for one in outcome.jobs}


def figure_3():
    """Three tasks of 2t; every t a machine has regular room. What holds the third uses nothing from 1.5t on."""
    first = job("first", T, of=use((1.0, 1.0, 1.0)))
    second = job("second", 2 * T, of=use((0.75, 1.0, 1.0), (1.0, 0.0, 0.0)))
    return first, second, job("job", 2 * T, 3, at=1.0, of=use((1.0, 0.8, 0.8)))


def test_opportunistic_tasks_go_only_where_their_node_selector_lets_them():
    # Each zone has a machine, which a task that uses a tenth fills for others. `wants` may go to zone b alone.
    zones = tuple(Node(f"m{zone}", {}, labels={"zone": zone}) for zone in "ab")

    def only(zone, made):
        return replace(made, stages=[replace(made.stages[0], constraints=Constraints(selector=(("zone", zone),)))])

    tenth = use((1.0, 0.1, 1.0))
    jobs = [only(zone, job(f"fills {zone}", T, of=tenth)) for zone in "ab"]
    jobs.append(only("b", job("wants", T, 2, at=1.0, cpu=400.0, of=tenth)))
    outcome = run(
        Workload("test", jobs),
        replace(machines(2), nodes=zones),
        Planner(),
        seed=0,
        settings=EVENTS,
        opportunism=Ubis(UbisSettings(1.0)),
    )
    assert outcome.opportunistic.opportunistic == 2
    assert outcome.tasks.node.tolist() == [0, 1, 1, 1]


def test_figure_3_takes_4t_without_opportunistic_tasks():
    assert seconds(replay(3, *figure_3()))["job"] / T == pytest.approx(4, abs=0.02)


def test_figure_3_takes_three_and_a_half_t_with_them():
    # At 1.5t the third task starts on what `second` does not use; at 2t, when that ends, it becomes regular.
    outcome = replay(3, *figure_3(), settings=UbisSettings(1.0))
    assert seconds(outcome)["job"] / T == pytest.approx(3.5, abs=0.02)
    counts = outcome.opportunistic
    assert (counts.opportunistic, counts.promoted, counts.evicted) == (1, 1, 0)


def test_a_task_that_is_regular_only_starts_no_later_and_ends_no_later():
    # `late` waits for the machine that `idle` was promised; `other` is there before it, regular or opportunistic,
    # and has less work, so that it is regular first either way; `late` has two tasks, so it is no chain.
    idle = job("idle", T, of=use((1.0, 0.1, 0.1)))
    other = job("other", 2 * T, at=1.0, cpu=900.0, of=use((1.0, 0.5, 0.5)), queue="other")
    jobs = (idle, other, job("late", 3 * T, 2, at=100.0, queue="third"))
    off, on = replay(1, *jobs), replay(1, *jobs, settings=UbisSettings(1.0, never=frozenset({"late"})))
    assert on.opportunistic.opportunistic == 1
    assert seconds(on)["late"] <= seconds(off)["late"]
    assert seconds(on)["idle"] == pytest.approx(T)


def test_a_task_that_is_not_allowed_waits_for_regular_room():
    idle, other = job("idle", T, of=use((1.0, 0.1, 0.1))), job("other", T, at=1.0)
    settings = UbisSettings(1.0, never=frozenset({"other"}))
    outcome = replay(1, idle, other, settings=settings)
    assert outcome.opportunistic.opportunistic == 0
    assert seconds(outcome)["other"] == pytest.approx(2 * T - 1)


def test_no_more_is_started_than_t_alloc_allows():
    # 100 of 1000 are used: at 0.5 there is room for 400, not for 500.
    idle = job("idle", T, of=use((1.0, 0.1, 0.1)))
    for cpu, started in ((400.0, 1), (500.0, 0)):
        outcome = replay(1, idle, job("other", T, at=1.0, cpu=cpu), settings=UbisSettings(0.5))
        assert outcome.opportunistic.opportunistic == started


def test_memory_past_its_threshold_evicts_after_one_sample_and_the_class_stays_off():
    # `grows` uses 64 of 64 bytes from its half on; 8 more would kill. The other's work until then is lost.
    grows = job("grows", T, memory=64.0, cpu=500.0, of=use((0.5, 0.1, 0.1), (1.0, 0.1, 0.92)))
    other = job("other", T, at=1.0, cpu=500.0, of=use((1.0, 0.1, 1.0)))
    outcome = replay(1, grows, other, settings=UbisSettings(0.9))
    counts = outcome.opportunistic
    assert (counts.evicted, counts.killed_opportunistic, counts.killed_regular) == (0, 1, 0)
    assert seconds(outcome)["grows"] == pytest.approx(T)
    assert seconds(outcome)["other"] == pytest.approx(2 * T - 1, abs=SOON)
    roomy = replay(1, grows, replace(other, stages=[_small(other)]), settings=UbisSettings(0.9))
    assert (roomy.opportunistic.evicted, roomy.opportunistic.killed_opportunistic) == (1, 0)
    assert roomy.opportunistic.lost_seconds == pytest.approx(T / 2 - SOON, abs=SOON)
    assert seconds(roomy)["grows"] == pytest.approx(T)


def _small(other):
    """Return its stage with 4 bytes: 58.88 + 4 of 64 are past the threshold of 0.95, and fit."""
    return replace(other.stages[0], demand=np.array([500.0, 4, 0, 0, 0, 0]))


def test_a_full_cpu_evicts_only_after_three_samples_and_only_as_few_as_needed():
    # `jumps` wants all of the CPU for 2 s at its half: two samples are not enough. From 0.8 on it uses 950, and the
    # others 30 each, which is past 990; with one of them it is not.
    jumps = job("jumps", T, cpu=1000.0, of=use((0.5, 0.1, 0.1), (0.51, 1.0, 0.1), (0.8, 0.1, 0.1), (1.0, 0.95, 0.1)))
    others = job("others", 5 * T, 2, at=1.0, cpu=300.0, of=use((1.0, 0.1, 0.1)))
    outcome = replay(1, jumps, others, settings=UbisSettings(1.0, Limits.of(cpu=0.99)))
    counts = outcome.opportunistic
    assert counts.evicted == 1
    assert counts.lost_seconds == pytest.approx(0.8 * T - SOON, abs=SOON)


def test_the_killed_wait_again_with_their_work_lost():
    # Two regular tasks use one and a half times what they were promised: 2 x 48 of 64 bytes. One goes, and runs alone.
    outcome = replay(1, job("greedy", T, 2, cpu=400.0, memory=32.0, of=use((0.5, 1.0, 0.5), (1.0, 1.0, 1.5))))
    assert outcome.opportunistic.killed_regular == 1
    assert seconds(outcome)["greedy"] == pytest.approx(1.5 * T + 1, abs=0.1 * T)


def test_without_use_and_opportunistic_tasks_the_engine_is_the_plain_one():
    world = World(
        Workload("test", [job("plain", T)]), machines(1), seed=0, begin=0.0, loss=0.0, sample_seconds=1.0, points=10
    )
    assert isinstance(world.tasks, RunningTasks)
    outcome = replay(1, job("plain", T), sampling=SimulationSettings(heartbeat_seconds=0.0))
    assert outcome.opportunistic is None
    with pytest.raises(DovetailError, match="promise"):
        world.promote(np.array([0]))


def test_the_same_seed_gives_the_same_run():
    jobs = [
        job(f"j{n}", 100.0 + n, 4, at=float(n), cpu=300.0, of=use((0.5, 0.2, 0.3), (1.0, 0.6, 0.8))) for n in range(3)
    ]
    first, again = (replay(2, *jobs, settings=UbisSettings(0.9, learns=True)) for _ in range(2))
    assert first.tasks.ended.tolist() == again.tasks.ended.tolist()
    assert first.opportunistic.opportunistic > 0


@pytest.mark.parametrize("t_alloc", [-0.1, 1.1])
def test_a_threshold_beyond_what_there_is_is_refused(t_alloc):
    with pytest.raises(DovetailError, match="t_alloc"):
        UbisSettings(t_alloc)


def full_from_its_half_on():
    """Return a job that uses nearly all of the CPU from its half on, and two more that use 300 each of what it left."""
    jumps = job("jumps", T, cpu=1000.0, of=use((0.5, 0.1, 0.1), (1.0, 0.9, 0.1)))
    return jumps, job("others", T, 2, at=1.0, cpu=300.0)


def test_by_pressure_a_full_cpu_evicts_nobody_while_regular_tasks_come_first():
    by_use, by_pressure = Ubis(UbisSettings(1.0)), Ubis(UbisSettings(1.0, Limits.of(pressure=Pressure(0.1, 0.8))))
    used, pressed = (replay(1, *full_from_its_half_on(), settings=each) for each in (by_use, by_pressure))
    assert used.opportunistic.evicted == by_use.evicted_for["cpu"] > 0
    assert pressed.opportunistic.evicted == by_pressure.evicted_for.total() == 0
    assert seconds(pressed)["jumps"] == pytest.approx(T)


def test_by_pressure_they_are_evicted_where_regular_tasks_wait_for_them():
    # All share alike: of 1000, 900 + 600 are wanted, so the regular task waits.
    alike = replace(EVENTS, cpu_weight=1.0)
    ubis = Ubis(UbisSettings(1.0, Limits.of(pressure=Pressure(0.1, 0.8))))
    outcome = replay(1, *full_from_its_half_on(), settings=ubis, sampling=alike)
    assert outcome.opportunistic.evicted == ubis.evicted_for["cpu"] > 0
    alone = replay(1, full_from_its_half_on()[0], sampling=alike)
    assert T <= seconds(alone)["jumps"] < seconds(outcome)["jumps"] < T + 10


def one_fills_up_and_one_empties(part=0.5):
    """Return three jobs that hold a machine each, and six tasks of 300 that use this part of it.

    The tasks start on the first two machines, three on each. After 100 s the first is full, and the third is idle.
    """
    fills = job("fills", 600.0, of=use((1 / 6, 0.1, 0.1), (1.0, 0.99, 0.1)))
    empties = job("empties", 1000.0, of=use((0.1, 0.99, 0.1), (1.0, 0.1, 0.1)))
    idle = job("idle", 1000.0, of=use((1.0, 0.1, 0.1)))
    others = job("others", 2 * T, 6, at=1.0, cpu=300.0, memory=4.0, of=use((1.0, part, 0.1)))
    return fills, idle, empties, others


def replay_of(jobs, **settings):
    ubis = Ubis(UbisSettings(1.0, Limits.of(pressure=Pressure(0.1, 0.8)), **settings))
    return replay(3, *jobs, settings=ubis), ubis


def test_tasks_that_get_next_to_nothing_are_moved_to_where_there_is_room():
    # Three on the full machine share 10, where the class uses 77 in the mean. By pressure nobody is evicted for that.
    jobs = one_fills_up_and_one_empties()
    (stays, _), (outcome, ubis) = replay_of(jobs, moves=False), replay_of(jobs)
    assert stays.opportunistic.evicted == 0
    assert outcome.opportunistic.evicted == ubis.evicted_for[STARVED] == 3
    assert seconds(outcome)["others"] < seconds(stays)["others"] - 300
    assert seconds(outcome)["fills"] == pytest.approx(600)


def test_nobody_is_moved_whose_class_uses_next_to_nothing_everywhere():
    outcome, ubis = replay_of(one_fills_up_and_one_empties(part=0.01))
    assert outcome.opportunistic.opportunistic == 6
    assert ubis.evicted_for[STARVED] == 0


def test_what_a_young_task_reads_on_other_nodes_is_counted_once_there():
    # A task on one machine reads 100 of the other's disk, of 1,000. As long as it is young its declared 100 count
    # there instead of what was measured: at 0.8 that leaves 700, not 600.
    capacity = np.tile([4000.0, 64.0, 1000.0, 1000.0, 1000.0, 1000.0], (2, 1))
    demand = np.array([4000.0, 8, 0, 0, 0, 0])
    maker = Stage("make", demand, 0.0, T, np.full(1, T))
    reader = Stage("read", demand, 100.0, 20.0, np.full(2, 20.0), parents=(0,), source=SHUFFLE)
    rooms = []

    class Watched(Ubis):
        def fill(self):
            super().fill()
            seen = self._usage.seen(self._world.now)
            if self._world.now > T + 10 and seen is not None and self._world.running == 2:
                rooms.append(self.idle_room(seen)[:, DISK_READ_INDEX])

    workload = Workload("test", [Job("job", 0.0, [maker, reader])])
    run(
        workload, Machines("some", capacity), Planner(), seed=0, settings=EVENTS, opportunism=Watched(UbisSettings(0.8))
    )
    assert rooms
    # One reader is beside what it reads, the other is not: together 200 on the maker's machine.
    assert min(room.min() for room in rooms) == pytest.approx(800 - 200, abs=1)


def test_by_predicted_peaks_a_task_counts_as_its_demand_until_its_class_is_known():
    # Each machine is full by what is promised, and a tenth is used. A threshold sees that, two hours of it nobody has.
    idle, other = job("idle", T, 5, of=use((1.0, 0.1, 0.1))), job("other", T, at=40.0, cpu=500.0)
    fixed, auto = (replay(5, idle, other, settings=by) for by in (UbisSettings(0.8), UbisSettings(auto=True)))
    assert (fixed.opportunistic.opportunistic, auto.opportunistic.opportunistic) == (1, 0)
    assert seconds(auto)["other"] == pytest.approx(2 * T - 40.0, abs=1.0)


def test_by_predicted_peaks_a_task_counts_as_its_class_once_five_have_ended():
    idle, other = job("idle", 60.0, 10, of=use((1.0, 0.1, 0.1))), job("other", T, at=70.0, cpu=500.0, queue="other")
    outcome = replay(5, idle, other, settings=UbisSettings(auto=True))
    assert outcome.opportunistic.opportunistic == 1
    assert seconds(outcome)["other"] == pytest.approx(T, abs=1.0)


def test_by_predicted_peaks_no_more_is_started_than_peaks_leave():
    # The class uses 600 for a while, and 100 was measured of the node of tasks that ended between two scrapes: of 990
    # these leave 290.
    idle = job("idle", 60.0, 10, of=use((0.5, 0.1, 0.1), (0.9, 0.6, 0.1), (1.0, 0.1, 0.1)))
    for cpu, started in ((280.0, 1), (300.0, 0)):
        outcome = replay(5, idle, job("other", 10.0, at=95.0, cpu=cpu), settings=UbisSettings(auto=True))
        assert outcome.opportunistic.opportunistic == started


def test_a_run_by_predicted_peaks_is_the_same_each_time():
    jobs = (job("idle", 60.0, 10, of=use((1.0, 0.1, 0.1))), job("other", T, at=70.0, cpu=500.0, queue="other"))
    first, again = (replay(5, *jobs, settings=UbisSettings(auto=True)) for _ in range(2))
    assert seconds(first) == seconds(again)
