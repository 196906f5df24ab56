"""Runs of one seed side by side: figures by hand, and what is said where a run has not come to its end."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from lab.experiments.cluster import tables as told
from lab.experiments.cluster.figures import shares, watch_figures
from lab.experiments.cluster.history import History
from lab.experiments.cluster.pods import DOVETAIL, PLAIN, STOCK
from lab.experiments.cluster.rounds import SIM, SIM_KUBE, Round, largest
from lab.experiments.cluster.run import ClusterSetup, Observed, settings_of, simulate
from lab.experiments.cluster.simulated_control import SimulatedControl
from lab.experiments.cluster.workload import QUEUES, QUICK
from lab.experiments.seeds import Seeds
from lab.sim.engine.clock import SimulationSettings, run
from lab.sim.schedulers.kube import KubeDefault
from lab.sim.workloads.workload import Job, Workload
from tests.lab.experiments.small_cluster import MACHINES, stage
from tests.lab.sim.engine.test_clock import Greedy


@pytest.fixture(scope="module")
def setup():
    return ClusterSetup.of(QUICK, 1)


@pytest.fixture(scope="module")
def both(setup):
    return simulate(setup, SimulatedControl(settings_of(setup), setup.machines), SIM), simulate(
        setup, KubeDefault(1), SIM_KUBE
    )


def ended(pods, *, lost=0):
    history = History(pods)
    for times in (history.opened, history.created, history.turn, history.bound, history.running, history.done):
        times[:] = 0.0
    history.bound[:] = np.arange(pods)
    history.ended[lost:] = 1.0
    return history


def a_round(setup, dovetail, stock, simulated, *, lost=0):
    """Return a round whose clusters came to these outcomes."""
    tasks = setup.workload.tasks
    observed = {
        STOCK: Observed(ended(tasks), stock, "v1"),
        DOVETAIL: Observed(ended(tasks, lost=lost), dovetail, "v1"),
    }
    return Round(setup, observed, {SIM: [simulated]})


def rows(found):
    return {it.id: it.row().ours for it in (*found.figures, *found.more)}


def test_dovetail_is_compared_with_the_hinted_stock_scheduler_and_with_itself_simulated(setup, both):
    ours, theirs = both
    slower = replace(ours, makespan=1.1 * ours.makespan)
    found = rows(told.section([a_round(setup, slower, replace(ours, makespan=2 * ours.makespan), ours)]))
    assert found["cluster.makespan_vs_stock"] == 45.0  # (2 - 1.1) / 2
    assert found["cluster.mean_job_time_vs_stock"] == 0.0
    assert found["cluster.sim_gap.makespan"] == pytest.approx(10.0)
    assert found["cluster.sim_gap"] == pytest.approx(10.0)
    assert found["cluster.makespan.stock"] == pytest.approx(2 * ours.makespan, abs=1e-3)
    assert found["cluster.node_local.sim"] == pytest.approx(100 * ours.locality, abs=1e-2)
    assert theirs.makespan != ours.makespan


def test_the_gap_counts_whichever_way_it_goes(setup, both):
    ours, _ = both
    found = rows(told.section([a_round(setup, replace(ours, makespan=0.9 * ours.makespan), ours, ours)]))
    assert found["cluster.sim_gap.makespan"] == pytest.approx(-10.0)
    assert found["cluster.sim_gap"] == pytest.approx(10.0)


def test_a_run_that_has_not_ended_has_counts_and_no_times(setup, both):
    found = rows(told.section([a_round(setup, None, both[1], both[0], lost=3)]))
    assert found["cluster.lost"] == 3
    assert math.isnan(found["cluster.makespan_vs_stock"])
    assert math.isnan(found["cluster.sim_gap"])


def test_plain_stock_has_rows_only_where_it_ran(setup, both):
    without = a_round(setup, both[0], both[1], both[0])
    plain = Observed(ended(setup.workload.tasks), both[1], "v1")
    with_it = Round(setup, {**without.observed, PLAIN: plain}, without.simulated)
    assert "cluster.makespan_vs_plain_stock" not in rows(told.section([without]))
    assert "cluster.makespan_vs_plain_stock" in rows(told.section([with_it]))


def test_tables_fit_a_terminal_and_name_every_run(setup, both):
    found = told.section([a_round(setup, both[0], both[1], both[0])])
    for listing in found.listings:
        widths = [max(map(len, column)) for column in zip(listing.heads, *listing.lines, strict=True)]
        assert sum(widths) + 2 * len(widths) <= 120
    assert found.listings[0].heads == ("", DOVETAIL.name, STOCK.name, SIM)


def test_plots_show_the_cluster_beside_the_simulator(setup, both):
    found = told.section([a_round(setup, both[0], both[1], both[0])])
    assert [plot.draw().count("<svg") for plot in found.plots] == [1, 1, 1]


def test_delays_are_medians_and_p99_of_what_was_seen():
    history = ended(101)
    assert watch_figures(history).turn_to_bound == (50.0, 99.0)
    assert all(math.isnan(seconds) for seconds in watch_figures(History(3)).turn_to_bound)


def test_the_largest_gap_is_the_one_farthest_from_nothing_over_all_rounds():
    assert largest([Seeds((1.0, 2.0)), Seeds((-3.0, -2.0))]).values == (2.5,)
    assert largest([Seeds((1.0, 2.0)), Seeds((-3.0, 3.0))]).values == (3.0,)
    assert math.isnan(largest([Seeds((1.0,)), Seeds((math.nan,))]).values[0])


def test_several_simulated_runs_count_as_their_mean(setup, both):
    ours, _ = both
    twice = replace(ours, makespan=3 * ours.makespan)
    round_ = replace(a_round(setup, ours, ours, ours), simulated={SIM: [ours, twice]})
    assert round_.figures[SIM].makespan == pytest.approx(2 * ours.makespan)
    assert round_.figures[SIM].shares == round_.figures[STOCK.name].shares


def test_shares_count_only_while_tasks_of_every_queue_wait():
    """Each queue has a job of ten tasks of 8 s and a core; machines have 12 cores in all.

    First come, first served: for 8 s the queue of the first job holds ten cores and the next one two, then one queue
    has nothing that waits.
    """
    names = sorted(queue.name for queue in QUEUES)
    jobs = Workload("three", [Job(f"j{n}", 0.0, [stage("run", [8.0] * 10)], name) for n, name in enumerate(names)])
    outcome = run(jobs, MACHINES, Greedy(), seed=1, settings=SimulationSettings(heartbeat_seconds=0.0))
    assert outcome.makespan == 24.0
    found = shares(jobs, outcome)
    assert set(found) == set(names)
    assert all(math.isnan(it) for it in found.values())  # the first queue's tasks all start at once


def test_shares_are_parts_of_what_all_hold():
    """Three jobs of 8 tasks each; the greedy scheduler takes them in the order of their queues' names, 12 at a time."""
    names = sorted(queue.name for queue in QUEUES)
    jobs = Workload("staggered", [Job(f"j{n}", 0.0, [stage("run", [8.0] * 13)], name) for n, name in enumerate(names)])
    outcome = run(jobs, MACHINES, Greedy(), seed=1, settings=SimulationSettings(heartbeat_seconds=0.0))
    found = shares(jobs, outcome)
    assert found == {names[0]: 100.0, names[1]: 0.0, names[2]: 0.0}  # one of the first's 13 waits, while 12 run


def test_the_scene_of_a_seed_is_always_the_same():
    one, same = ClusterSetup.of(QUICK, 3), ClusterSetup.of(QUICK, 3)
    assert one.waits == same.waits
    stages = [[stage.durations for job in it.workload.jobs for stage in job.stages] for it in (one, same)]
    assert all(np.array_equal(a, b) for a, b in zip(*stages, strict=True))
    assert all(a.arrives_at <= b.arrives_at for a, b in pairwise(one.workload.jobs))
