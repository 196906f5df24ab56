"""Pods drive the simulator's machines, and the machines say when pods end: by a clock that the tests hold."""

import numpy as np
import pytest

from extender.cluster.events import PodGone, PodSeen, PodsListed
from extender.errors import DovetailError
from lab.sim.workloads.workload import Job, Workload
from tests.lab.experiments.small_cluster import ZERO, begun_run, pod, stage


def run(pod_run, name, node, at):
    pod_run.take(PodSeen(pod(name, node=node, runs=True)), ZERO + at)


def end(pod_run, name, node, at):
    pod_run.take(PodSeen(pod(name, node=node, ended=True)), ZERO + at)


def test_a_jobs_first_stage_is_made_when_it_arrives_and_nothing_before():
    pod_run, batches = begun_run()
    assert pod_run.done(ZERO - 1) == []
    assert batches == []
    pod_run.done(ZERO)
    assert batches == [["j-map-000", "j-map-001"]]


def test_a_map_beside_its_block_takes_as_long_as_it_does_at_its_peaks():
    pod_run, _ = begun_run()
    pod_run.done(ZERO)
    run(pod_run, "j-map-000", 0, 1.0)
    assert pod_run.next_at == ZERO + 1 + 10
    assert pod_run.done(ZERO + 10.9) == []
    assert pod_run.done(ZERO + 11) == ["j-map-000"]
    assert pod_run.done(ZERO + 12) == []


def test_a_map_far_from_its_block_takes_the_network_and_the_disk_where_it_reads():
    pod_run, _ = begun_run()
    pod_run.done(ZERO)
    run(pod_run, "j-map-001", 2, 0.0)
    assert pod_run.world.allocated[2].tolist() == [1000, 8, 0, 0, 40, 0]
    assert pod_run.world.allocated[1].tolist() == [0, 0, 40, 0, 0, 40]


def test_pods_that_over_allocate_a_disk_run_that_much_longer():
    two = Workload("two", [Job("w", 0.0, [stage("write", [10, 10], write=100.0)])])
    pod_run, _ = begun_run(two)
    pod_run.done(ZERO)
    run(pod_run, "w-write-000", 0, 0.0)
    run(pod_run, "w-write-001", 0, 5.0)  # the first has written for 5 s, half of it; then each gets half of the disk
    assert pod_run.done(ZERO + 10) == []  # the first has computed, but not written: 5 s of work at half the speed
    assert pod_run.next_at == ZERO + 15
    assert pod_run.done(ZERO + 15) == ["w-write-000"]
    assert pod_run.next_at == ZERO + 20  # the second has done 5 s of its 10 by then


def test_a_stage_opens_only_when_the_api_server_shows_all_pods_before_it_as_ended():
    pod_run, batches = begun_run()
    pod_run.done(ZERO)
    run(pod_run, "j-map-000", 0, 0.0)
    run(pod_run, "j-map-001", 1, 0.0)
    assert sorted(pod_run.done(ZERO + 20)) == ["j-map-000", "j-map-001"]
    assert len(batches) == 1
    end(pod_run, "j-map-000", 0, 20.1)
    assert len(batches) == 1
    end(pod_run, "j-map-001", 1, 20.2)
    assert batches[1:] == [["j-reduce1-000"]]
    assert pod_run.history.opened[2] == pytest.approx(20.2)


def test_a_whole_job_runs_through_and_its_outcome_has_the_times_of_its_work():
    pod_run, _ = begun_run()
    pod_run.done(ZERO)
    run(pod_run, "j-map-000", 0, 0.0)
    run(pod_run, "j-map-001", 1, 0.0)
    pod_run.done(ZERO + 20)
    end(pod_run, "j-map-000", 0, 20.1)
    end(pod_run, "j-map-001", 1, 20.2)
    run(pod_run, "j-reduce1-000", 2, 21.0)
    assert not pod_run.over
    assert pod_run.done(ZERO + 26.5) == ["j-reduce1-000"]
    end(pod_run, "j-reduce1-000", 2, 26.6)
    assert pod_run.over
    outcome = pod_run.world.outcome("test", None)
    assert outcome.tasks.ended.tolist() == [10, 20, 26]
    assert outcome.makespan == 26
    assert outcome.locality == 1.0


def test_tasks_without_a_block_take_the_durations_of_their_stage_in_the_order_in_which_their_pods_start():
    two = Workload("two", [Job("w", 0.0, [stage("write", [3, 7])])])
    pod_run, _ = begun_run(two)
    pod_run.done(ZERO)
    run(pod_run, "w-write-001", 0, 0.0)
    assert pod_run.done(ZERO + 3) == ["w-write-001"]  # the first to start takes 3 s, whatever its name


def test_an_event_of_an_earlier_moment_counts_from_now():
    pod_run, _ = begun_run()
    pod_run.done(ZERO + 4)
    run(pod_run, "j-map-000", 0, 3.9)
    assert pod_run.next_at == ZERO + 4 + 10


def test_a_pod_that_is_bound_but_does_not_run_takes_nothing():
    pod_run, _ = begun_run()
    pod_run.done(ZERO)
    pod_run.take(PodSeen(pod("j-map-000", node=0)), ZERO)
    assert not pod_run.world.allocated.any()
    assert np.isfinite(pod_run.history.bound[0])
    assert np.isnan(pod_run.history.running[0])


def test_a_list_states_what_events_would_have_and_nothing_twice():
    pod_run, _ = begun_run()
    pod_run.done(ZERO)
    seen = [pod("j-map-000", node=0, runs=True), pod("somebody-elses", node=1, runs=True)]
    pod_run.take(PodsListed(seen), ZERO)
    pod_run.take(PodsListed(seen), ZERO + 1)
    assert pod_run.world.running == 1
    assert pod_run.next_at == ZERO + 10


def test_an_end_that_was_shown_already_changes_nothing():
    pod_run, _ = begun_run()
    pod_run.done(ZERO)
    run(pod_run, "j-map-000", 0, 0.0)
    pod_run.done(ZERO + 10)
    end(pod_run, "j-map-000", 0, 10.1)
    end(pod_run, "j-map-000", 0, 10.2)
    assert pod_run.history.finished == 1


def test_a_pod_that_ends_before_its_work_is_done_is_an_error():
    pod_run, _ = begun_run()
    pod_run.done(ZERO)
    run(pod_run, "j-map-000", 0, 0.0)
    with pytest.raises(DovetailError, match="j-map-000 has ended before its work was done"):
        end(pod_run, "j-map-000", 0, 5.0)


def test_a_pod_that_vanishes_is_lost():
    pod_run, _ = begun_run()
    pod_run.done(ZERO)
    run(pod_run, "j-map-000", 0, 0.0)
    pod_run.done(ZERO + 10)
    end(pod_run, "j-map-000", 0, 10.1)
    assert pod_run.history.lost == 1  # the other has not ended
    pod_run.take(PodGone("uid-j-map-000"), ZERO + 11)
    assert pod_run.history.lost == 2
