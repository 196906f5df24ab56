"""kube-scheduler, stock and with the extender."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from extender.cluster.waiting import Shuffle
from extender.verdict import Placement, Ranker
from lab.sim.schedulers.kube import SHIPPED, KubeDefault, Weights, WithExtender, demanded, pod_of
from tests.lab.sim.small import GIB, MB, Class, blocks, cluster, machine, row, started, waiting, where

CHART = Path(__file__).parents[4] / "charts" / "dovetail" / "values.yaml"


def test_the_stock_profile_prefers_the_emptier_node():
    snapshot = cluster(machine(4, 8), machine(4, 8), allocated=[row(cpu=1, memory=2), row()])
    assert where(KubeDefault().plan(snapshot, waiting(Class(1, row(cpu=1, memory=2))), 0.0), 0) == [1]


def test_the_stock_profile_spreads_pods_one_by_one_as_their_scores_fall():
    # Least allocated, pod of 1 core and 2 GiB: empty 75, with one 50, with two 25. Balance is 75 for all.
    plan = KubeDefault().plan(cluster(*[machine(4, 8)] * 3), waiting(Class(7, row(cpu=1, memory=2))), 0.0)
    nodes = where(plan, 0)
    assert sorted(nodes[:3]) == sorted(nodes[3:6]) == [0, 1, 2]


def test_balance_decides_where_both_are_equally_free():
    # A pod of 1 core on nodes of 4 cores and 8 GiB. m0, 2 cores taken: 25 and 100 % stay free, so 62; the parts 2/4, 0
    # become 3/4, 0: evenness 75 becomes 62, so 68. m1, 4 GiB taken: 75 and 50 % stay free, 62; the parts 0, 2/4 become
    # 1/4, 2/4: 75 becomes 87, so 81.
    snapshot = cluster(machine(4, 8), machine(4, 8), allocated=[row(cpu=2), row(memory=4)])
    waits = waiting(Class(1, row(cpu=1)))
    for seed in range(5):
        assert where(KubeDefault(seed).plan(snapshot, waits, 0.0), 0) == [1]
        assert where(KubeDefault(seed, Weights(fit=0, balanced=1)).plan(snapshot, waits, 0.0), 0) == [1]


def test_an_unschedulable_pod_holds_up_nobody():
    waits = waiting(Class(2, row(cpu=5, memory=1)), Class(3, row(cpu=2, memory=1)))
    assert started(KubeDefault().plan(cluster(machine(4, 8)), waits, 0.0), 2) == [0, 2]


def test_pods_go_in_the_order_in_which_they_were_created():
    both = waiting(Class(1, row(cpu=1, memory=1), name="b"), Class(2, row(cpu=1, memory=1), name="a"))
    assert started(KubeDefault().plan(cluster(machine(2, 8)), both, 1.0), 2) == [1, 1]


# The order in which refused pods are tried again: Kubernetes 1.36, pkg/scheduler/backend/queue/backoff_queue.go.


def full_or_free(scheduler, now, *names, free=0, pods=1):
    """Return the classes that start at `now`, where so many of four cores are free; the first has so many `pods`.

    The others have one each; a pod takes one core.
    """
    snapshot = cluster(machine(4, 8), allocated=[row(cpu=4 - free)])
    counts = [pods, *[1] * (len(names) - 1)]
    waits = waiting(*(Class(count, row(cpu=1, memory=1), name=name) for name, count in zip(names, counts, strict=True)))
    counts = started(scheduler.plan(snapshot, waits, now), len(names))
    return [name for name, count in zip(names, counts, strict=True) if count]


def test_a_pod_that_was_never_tried_goes_before_one_that_backs_off():
    scheduler = KubeDefault()
    full_or_free(scheduler, 0.2, "old")  # backs off for 1 s, to the end of that second
    assert full_or_free(scheduler, 1.9, "old", "new", free=1) == ["new"]


def test_one_that_has_backed_off_goes_before_one_that_came_later():
    scheduler = KubeDefault()
    full_or_free(scheduler, 0.2, "old")
    assert full_or_free(scheduler, 2.0, "old", "new", free=1) == ["old"]


def test_one_that_was_refused_often_goes_after_one_that_was_refused_once():
    # "old" is refused when pods end at 1, 2 and 3 s: it backs off for 8 s then; "young" for 1 s.
    scheduler = KubeDefault()
    full_or_free(scheduler, 0.0, "old")
    for now in (1.0, 2.0):
        full_or_free(scheduler, now - 0.5, "old", free=-1)  # somebody starts
        full_or_free(scheduler, now, "old")  # and ends
    full_or_free(scheduler, 2.5, "old", free=-1)
    assert full_or_free(scheduler, 3.0, "old", "young") == []
    assert full_or_free(scheduler, 3.1, "old", "young", free=1) == ["young"]


@pytest.mark.parametrize(("ends_at", "first"), [(0.2001, "late"), (0.5, "many")])
def test_where_a_pod_ends_before_all_were_tried_those_go_first_that_were_not(ends_at, first):
    # A try takes 0.2 ms: the thousand are refused by 0.2 s, the last pod a moment later.
    scheduler = KubeDefault()
    full_or_free(scheduler, 0.0, "many", "late", pods=1000)
    assert full_or_free(scheduler, ends_at, "many", "late", pods=1000, free=1) == [first]


def test_of_a_class_of_which_only_some_were_tried_no_pod_is_lost_and_none_made():
    scheduler = KubeDefault()
    full_or_free(scheduler, 0.0, "many", "late", pods=10)
    for now, pods in ((0.001, 10), (0.0015, 9), (11.0, 8), (30.0, 7)):
        assert full_or_free(scheduler, now, "many", "late", pods=pods, free=1) == ["many"]
        full_or_free(scheduler, now + 0.0001, "many", "late", pods=pods - 1)
    snapshot, waits = (
        cluster(machine(20, 40)),
        waiting(*(Class(n, row(cpu=1, memory=1), name=name) for n, name in ((6, "many"), (1, "late")))),
    )
    assert started(scheduler.plan(snapshot, waits, 40.0), 2) == [6, 1]


def test_a_refused_pod_is_not_tried_again_before_a_pod_ends():
    # New pods come all the time: "old" was refused once all the same, and its second of backoff is over.
    scheduler = KubeDefault()
    for place in range(8):
        full_or_free(scheduler, place / 4, "old", *(f"n{other}" for other in range(place)))
    assert full_or_free(scheduler, 2.5, "old", "n7", free=1) == ["old"]


def test_of_those_that_backed_off_for_as_long_the_one_of_higher_priority_goes_first():
    scheduler, full = KubeDefault(), cluster(machine(4, 8), allocated=[row(cpu=4)])
    waits = waiting(*(Class(1, row(cpu=1, memory=1), name=name) for name in "ab"))
    waits = replace(waits, priority=np.array([0.0, 7.0]))
    scheduler.plan(full, waits, 0.0)
    for now in (1.5, 9.0):
        assert started(scheduler.plan(cluster(machine(1, 8)), waits, now), 2) == [0, 1]


def test_ties_are_broken_by_the_seed_and_the_time_and_by_nothing_else():
    snapshot, waits = cluster(*[machine(4, 8)] * 50), waiting(Class(1, row(cpu=1, memory=2)))

    def chosen(seed, now):
        return where(KubeDefault(seed).plan(snapshot, waits, now), 0)[0]

    assert chosen(1, 2.5) == chosen(1, 2.5)
    assert len({chosen(1, now) for now in range(20)}) > 5
    assert len({chosen(seed, 0.0) for seed in range(20)}) > 5


def test_scores_are_the_same_whether_pods_of_a_class_come_at_once_or_one_by_one():
    snapshot = cluster(machine(9, 8), machine(5, 30), machine(7, 16))
    at_once = KubeDefault().plan(snapshot, waiting(Class(6, row(cpu=1, memory=1.5))), 0.0)
    allocated, nodes = np.zeros((3, 6)), []
    for _ in range(6):
        now = cluster(machine(9, 8), machine(5, 30), machine(7, 16), allocated=allocated)
        nodes += where(KubeDefault().plan(now, waiting(Class(1, row(cpu=1, memory=1.5))), 0.0), 0)
        allocated[nodes[-1]] += row(cpu=1, memory=1.5)
    assert where(at_once, 0) == nodes


# -- with the extender


def test_the_extender_refuses_where_a_disk_is_full_though_cpu_and_memory_fit():
    snapshot = cluster(machine(4, 8, rates=100), machine(4, 8, rates=100), allocated=[row(disk_write=60), row()])
    waits = waiting(Class(5, row(cpu=1, memory=1, disk_write=50)))
    assert where(WithExtender().plan(snapshot, waits, 0.0), 0) == [1, 1]
    assert started(KubeDefault().plan(snapshot, waits, 0.0), 1) == [5]


def test_a_full_network_refuses_nobody_who_does_not_ask_for_it():
    snapshot = cluster(machine(4, 8, rates=100), allocated=[row(network_out=500)])
    assert started(WithExtender().plan(snapshot, waiting(Class(1, row(cpu=1, memory=1))), 0.0), 1) == [1]


def test_the_extender_puts_a_pod_on_the_node_that_the_ranker_puts_first():
    # The ranker: of two nodes of one shape the fuller. The stock profile: the emptier.
    snapshot = cluster(machine(4, 8), machine(4, 8), allocated=[row(), row(2, 4, 500, 500, 500, 500)])
    waits = waiting(Class(1, row(cpu=1, memory=2)))
    pod = pod_of("class0", waits.demand[0])
    assert Ranker(Placement()).rank(snapshot, pod, np.arange(2)).tolist() == [9, 10]
    assert where(WithExtender().plan(snapshot, waits, 0.0), 0) == [1]
    assert where(KubeDefault().plan(snapshot, waits, 0.0), 0) == [0]


def test_other_weights_count_the_stock_scores_as_well():
    # Levels 9 and 10 are 90 and 100 points. Least allocated is 75 on the empty node, 25 on the half-full: 165 and 125.
    snapshot = cluster(machine(4, 8), machine(4, 8), allocated=[row(), row(2, 4, 500, 500, 500, 500)])
    waits = waiting(Class(1, row(cpu=1, memory=2)))
    both = WithExtender(weights=Weights(fit=1, balanced=0, extender=1))
    assert where(both.plan(snapshot, waits, 0.0), 0) == [0]
    heavier = WithExtender(weights=Weights(fit=1, balanced=0, extender=6))  # 540 + 75 and 600 + 25
    assert where(heavier.plan(snapshot, waits, 0.0), 0) == [1]


def test_each_pod_sees_what_was_placed_before_it():
    # Two fit on each disk of 100, whatever the class.
    snapshot = cluster(machine(9, 9, rates=100), machine(9, 9, rates=100))
    task = row(cpu=1, memory=1, disk_write=50)
    assert started(WithExtender().plan(snapshot, waiting(Class(3, task), Class(3, task)), 0.0), 2) == [3, 1]


def test_what_a_pod_declares_includes_what_it_reads_from_the_disk_or_for_a_shuffle_the_network():
    shuffle = Shuffle(np.array([0]), np.array([30 * MB]))
    waits = waiting(
        Class(1, row(cpu=1), reading=20, inputs=blocks(1, [0])), Class(1, row(cpu=1), reading=30, inputs=shuffle)
    )
    assert demanded(waits).tolist() == [
        row(cpu=1, disk_read=20).tolist(),
        row(cpu=1, network_in=30).tolist(),
    ]


def test_a_pod_demands_only_what_is_more_than_nothing():
    assert pod_of("p", row(cpu=2, memory=1, disk_read=5)).demand == {"cpu": 2000, "memory": GIB, "disk-read": 5 * MB}


def test_what_is_off_and_what_counts_is_as_the_chart_ships_it():
    shipped = yaml.safe_load(CHART.read_text())
    scheduler = shipped["kubeScheduler"]
    off = scheduler["disabledScorePlugins"]
    assert (
        Weights(
            fit=int("NodeResourcesFit" not in off),
            balanced=int("NodeResourcesBalancedAllocation" not in off),
            extender=scheduler["extender"]["weight"],
        )
        == SHIPPED
    )
    assert scheduler["scorePlugins"] == []
    placement = shipped["config"]["placement"]
    assert WithExtender().placement == Placement(placement["rule"], placement["shapeStep"])
