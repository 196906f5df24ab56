"""What every baseline holds to, whatever the cluster and the work."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.waiting import Shuffle
from lab.sim.schedulers.baselines import ArrivalOrder, candidates, drawing
from lab.sim.schedulers.drf import COLUMNS, Drf, YarnDrf, cpu_and_memory
from lab.sim.schedulers.first_fit import FirstFit
from lab.sim.schedulers.kube import KubeDefault, WithExtender, demanded
from lab.sim.schedulers.slots import CapacityScheduler, SlotFair
from tests.lab.sim.small import GIB, MB, Class, Tenants, blocks, cluster, machine, row, started, waiting, where

BASELINES = {
    "slot-fair": SlotFair,
    "capacity": CapacityScheduler,
    "drf": Drf,
    "drf-yarn": YarnDrf,
    "first-fit": FirstFit,
    "kube-default": KubeDefault,
    "extender": WithExtender,
}
ONE = row(cpu=1, memory=2)


# -- properties

amounts = st.integers(0, 6).map(float)
machines = st.lists(st.builds(machine, amounts, amounts, st.integers(0, 9).map(float)), min_size=1, max_size=5)


@st.composite
def inputs(draw, nodes, count):
    kind = draw(st.sampled_from(["none", "blocks", "spread"]))
    if kind == "blocks" and count:
        some = st.lists(st.integers(0, nodes - 1), min_size=1, max_size=3, unique=True)
        return blocks(nodes, *[draw(some) for _ in range(count)])
    if kind == "spread":
        return Shuffle(np.arange(nodes), np.full(nodes, MB))
    return None


@st.composite
def scenes(draw):
    """Draw machines, what is allocated on them at most up to what they offer, and what waits."""
    capacity = draw(machines)
    taken = [draw(st.sampled_from([0.0, 0.5, 1.0])) for _ in capacity]
    allocated = [np.floor(c * part) for c, part in zip(capacity, taken, strict=True)]
    classes = []
    for job in range(draw(st.integers(0, 4))):
        for _ in range(draw(st.integers(1, 2))):
            count = draw(st.integers(0, 6))
            demand = row(draw(amounts), draw(amounts), 0, draw(amounts))
            found = draw(inputs(len(capacity), count))
            reading = float(len(capacity)) if isinstance(found, Shuffle) else draw(amounts)
            classes.append(Class(count, demand, job=job, reading=reading, inputs=found))
    return cluster(*capacity, allocated=allocated), waiting(*classes)


def fits_in(snapshot, plan, waits, columns):
    """Say whether nothing is promised twice in these columns, not counting where nothing was asked for."""
    total, asked = snapshot.allocated.copy(), np.zeros(snapshot.allocated.shape, dtype=bool)
    chosen = plan.assignments
    np.add.at(total, chosen.node, waits.demand[chosen.task_class])
    np.logical_or.at(asked, chosen.node, waits.demand[chosen.task_class] > 0)
    return (total <= snapshot.layout.capacity)[:, columns][asked[:, columns]].all()


@settings(max_examples=150, deadline=None)
@given(scenes(), st.sampled_from(sorted(BASELINES)), st.integers(0, 3))
def test_no_baseline_promises_twice_what_it_counts_starts_what_does_not_wait_or_reads_where_nothing_is(
    scene, name, now
):
    snapshot, waits = scene
    plan = BASELINES[name]().plan(snapshot, waits, float(now))
    counted = {"slot-fair": [1], "capacity": [1]}.get(name, COLUMNS)
    assert fits_in(snapshot, plan, waits, counted)
    assert (np.bincount(plan.assignments.task_class, minlength=len(waits.count)) <= waits.count).all()
    seen = set()
    for task_class, node, task, source in zip(*_columns(plan), strict=True):
        read = waits.inputs[task_class]
        if not hasattr(read, "copies"):
            assert (task, source) == (-1, -1)
            continue
        assert (task_class, task) not in seen
        seen.add((task_class, task))
        holders = read.copies[task].tolist()
        assert source == node if node in holders else source in holders


@settings(max_examples=100, deadline=None)
@given(scenes(), st.sampled_from(sorted(BASELINES.keys() - {"extender"})))
def test_no_baseline_leaves_a_task_waiting_that_fits_by_its_own_count(scene, name):
    snapshot, waits = scene
    plan = BASELINES[name]().plan(snapshot, waits, 0.0)
    chosen = plan.assignments
    free = snapshot.layout.capacity - snapshot.allocated
    np.subtract.at(free, chosen.node, waits.demand[chosen.task_class])
    left = waits.count - np.bincount(chosen.task_class, minlength=len(waits.count))
    need = waits.demand
    if name in ("slot-fair", "capacity"):
        slots = np.floor(snapshot.layout.capacity[:, 1] / (2 * GIB)) - np.ceil(snapshot.allocated[:, 1] / (2 * GIB))
        need = np.maximum(1, np.ceil(need[:, [1]] / (2 * GIB)))
        np.subtract.at(slots, chosen.node, need[chosen.task_class, 0])
        free = slots[:, np.newaxis]
    else:
        need, free = need[:, COLUMNS], free[:, COLUMNS]
    for task_class in np.flatnonzero(left).tolist():
        enough = (free >= need[task_class]) | (need[task_class] == 0)
        assert not enough.all(axis=1).any()


@settings(max_examples=100, deadline=None)
@given(scenes())
def test_the_extender_over_allocates_nothing_that_a_pod_declares_where_all_read_where_they_run(scene):
    snapshot, waits = scene[0], replace(scene[1], inputs=[None] * len(scene[1].inputs))
    chosen, declared = WithExtender().plan(snapshot, waits, 0.0).assignments, demanded(waits)
    total, asked = snapshot.allocated.copy(), np.zeros(snapshot.allocated.shape, dtype=bool)
    np.add.at(total, chosen.node, declared[chosen.task_class])
    np.logical_or.at(asked, chosen.node, declared[chosen.task_class] > 0)
    assert (total <= snapshot.layout.capacity)[asked].all()
    left = np.flatnonzero(waits.count > np.bincount(chosen.task_class, minlength=len(waits.count)))
    free = snapshot.layout.capacity - total
    for task_class in left.tolist():
        assert not ((free >= declared[task_class]) | (declared[task_class] == 0)).all(axis=1).any()


@settings(max_examples=60, deadline=None)
@given(scenes(), st.sampled_from(sorted(BASELINES)))
def test_the_same_seed_and_moment_give_the_same_plan_and_nothing_given_changes(scene, name):
    snapshot, waits = scene
    before = copy.deepcopy((snapshot.allocated, waits.count, [vars(i) for i in waits.inputs if hasattr(i, "copies")]))
    first, second = (BASELINES[name]().plan(snapshot, waits, 7.25).assignments for _ in range(2))
    for ours, theirs in zip(_columns_of(first), _columns_of(second), strict=True):
        assert ours == theirs
    assert (snapshot.allocated == before[0]).all()
    assert (waits.count == before[1]).all()
    for now, then in zip([i for i in waits.inputs if hasattr(i, "copies")], before[2], strict=True):
        assert (now.waiting == then["waiting"]).all()


def _columns(plan):
    return _columns_of(plan.assignments)


def _columns_of(chosen):
    return chosen.task_class.tolist(), chosen.node.tolist(), chosen.task.tolist(), chosen.source.tolist()


# -- by hand


@pytest.mark.parametrize("name", ["slot-fair", "capacity", "drf"])
def test_tasks_go_where_their_blocks_are_while_there_is_room(name):
    # Six machines with room for two each; six blocks on machines 3, 4 and 5, two on each.
    found = blocks(6, [3], [3], [4], [4], [5], [5])
    plan = BASELINES[name]().plan(cluster(*[machine(2, 4)] * 6), waiting(Class(6, ONE, inputs=found)), 0.0)
    assert sorted(where(plan, 0)) == [3, 3, 4, 4, 5, 5]
    assert (plan.assignments.source == plan.assignments.node).all()


@pytest.mark.parametrize("name", ["slot-fair", "capacity", "drf"])
def test_a_task_whose_machines_are_full_reads_from_afar(name):
    snapshot = cluster(machine(2, 4), machine(2, 4), allocated=[row(), row(cpu=2, memory=4)])
    plan = BASELINES[name]().plan(snapshot, waiting(Class(1, ONE, reading=5, inputs=blocks(2, [1]))), 0.0)
    assert (plan.assignments.node.tolist(), plan.assignments.source.tolist()) == ([0], [1])


@pytest.mark.parametrize("name", ["slot-fair", "capacity", "drf"])
def test_looking_for_data_costs_a_job_no_turn(name):
    # One machine with room, for two tasks: job 0, whose block is elsewhere, gets its share all the same.
    snapshot = cluster(machine(2, 4), machine(2, 4), allocated=[row(), row(cpu=2, memory=4)])
    waits = waiting(Class(1, ONE, inputs=blocks(2, [1])), Class(1, ONE, job=1, inputs=blocks(2, [0])))
    assert started(BASELINES[name]().plan(snapshot, waits, 0.0), 2) == [1, 1]


@pytest.mark.parametrize("name", ["slot-fair", "drf"])
def test_earlier_stages_of_a_job_go_first(name):
    plan = BASELINES[name]().plan(cluster(machine(3, 6)), waiting(Class(2, ONE), Class(2, ONE)), 0.0)
    assert started(plan, 2) == [2, 1]


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_without_work_or_without_room_nothing_starts(name):
    full = cluster(machine(2, 4), allocated=[machine(2, 4)])
    assert len(BASELINES[name]().plan(full, waiting(), 0.0).assignments) == 0
    assert len(BASELINES[name]().plan(full, waiting(Class(0, ONE)), 0.0).assignments) == 0
    assert len(BASELINES[name]().plan(full, waiting(Class(3, ONE)), 0.0).assignments) == 0


def test_a_dimension_that_the_cluster_has_none_of_takes_no_part_in_shares():
    waits = waiting(Class(4, row(memory=1)), Class(4, row(memory=1), job=1))
    assert started(Drf().plan(cluster(machine(0, 4)), waits, 0.0), 2) == [2, 2]


def test_candidates_are_the_classes_and_nodes_that_may_still_meet():
    waits = waiting(
        Class(1, row(cpu=3, memory=1)), Class(1, row(cpu=1, memory=3)), Class(0, row()), Class(1, row(cpu=3, memory=3))
    )
    snapshot = cluster(machine(3, 1), machine(0, 9), machine(1, 3))
    classes, nodes = candidates(cpu_and_memory(snapshot, waits), waits.count)
    assert (classes.tolist(), nodes.tolist()) == ([0, 1], [0, 2])


def test_arrivals_keep_the_order_in_which_names_came_and_forget_those_that_went():
    arrivals = ArrivalOrder()
    assert arrivals.ranks(["b", "c"]).tolist() == [0, 1]
    assert arrivals.ranks(["a", "b", "c"]).tolist() == [2, 0, 1]
    assert arrivals.ranks(["c"]).tolist() == [1]
    assert arrivals.ranks(["b", "c"]).tolist() == [3, 1]


def test_the_order_in_which_machines_report_is_drawn_anew_each_time():
    snapshot, waits = cluster(*[machine(2, 4)] * 30), waiting(Class(1, ONE))
    assert len({where(Drf().plan(snapshot, waits, float(now)), 0)[0] for now in range(20)}) > 5
    assert drawing(1, 2.0).random() == drawing(1, 2.0).random() != drawing(2, 2.0).random()


def test_tenants_of_one_queue_do_not_take_from_another_by_their_number():
    # Two queues, one of three jobs: 4 slots each of 8.
    waits = waiting(*(Class(8, ONE, job=j) for j in range(4)), tenants=Tenants(queue=[0, 0, 0, 1]))
    assert started(SlotFair().plan(cluster(machine(64, 16)), waits, 0.0), 4)[3] == 4
