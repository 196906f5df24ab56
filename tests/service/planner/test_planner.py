import gc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from extender.cluster.resources import DIMENSIONS
from extender.cluster.waiting import Blocks, Running, Shuffle
from extender.errors import SettingsError
from extender.planner import Carried, Planner, Policy
from extender.planner.plan import Reservation
from tests.service.planner.scenes import cluster, load_of, once, pairs, reserved_nodes, scenes, tasks


@pytest.mark.parametrize("matching", ["machine", "pair"])
def test_the_class_that_aligns_best_goes_first(matching):
    # Free (10, 4) of (10, 10): a wants (4, 1): .4 * 1 + .1 * .4 = .44; b (2, 3): .2 + .12 = .32. Two a leave (2, 2).
    snapshot = cluster((10, 10), allocated=[[0, 6, 0, 0, 0, 0]])
    plan = once(snapshot, tasks((0, 2, (4, 1)), (1, 2, (2, 3))), Policy(matching=matching, srtf=0))
    assert pairs(plan) == [(0, 0), (0, 0)]
    assert plan.terms[0].alignment == pytest.approx(0.44)


def test_of_nodes_with_devices_those_are_filled_first_of_which_most_devices_are_taken():
    # Eight devices each: the second node has five free and the emptier CPU, the third three. Three tasks of one device
    # go where three are free, so that the first keeps all of its.
    snapshot, waiting = cluster((32,), (32,), (32,)), tasks((0, 3, (1,)))
    layout, wider = snapshot.layout, ((0, 0), (0, 1))
    devices = replace(layout, axis=(*DIMENSIONS, "gpu.com/a"), capacity=np.pad(layout.capacity, wider))
    devices.capacity[:, -1] = 8
    allocated, others = np.pad(snapshot.allocated, wider), np.pad(snapshot.in_flight, wider)
    allocated[:, -1], allocated[:, 0] = (0, 3, 5), (0, 1, 20)
    demand = np.pad(waiting.demand, wider)
    demand[:, -1] = 1
    jobs = replace(waiting.jobs, allocated=np.pad(waiting.jobs.allocated, wider))
    plan = once(
        replace(snapshot, layout=devices, empty=devices.capacity, allocated=allocated, in_flight=others),
        replace(waiting, demand=demand, jobs=jobs),
    )
    assert pairs(plan) == [(0, 2)] * 3


def test_nodes_with_devices_are_filled_last_and_are_filled():
    # The node with devices is empty, the other half full: it takes the three that have no room elsewhere.
    snapshot, waiting = cluster((10,), (10,), allocated=[[0] * 6, [5, *[0] * 5]]), tasks((0, 5, (2,)))
    layout = snapshot.layout
    devices = replace(layout, axis=(*DIMENSIONS, "gpu.com/a"), capacity=np.pad(layout.capacity, ((0, 0), (0, 1))))
    devices.capacity[0, -1] = 8
    load = {name: np.pad(getattr(snapshot, name), ((0, 0), (0, 1))) for name in ("allocated", "in_flight")}
    load["empty"] = devices.capacity
    jobs = replace(waiting.jobs, allocated=np.pad(waiting.jobs.allocated, ((0, 0), (0, 1))))
    waiting = replace(waiting, jobs=jobs, demand=np.pad(waiting.demand, ((0, 0), (0, 1))))
    plan = once(replace(snapshot, layout=devices, **load), waiting)
    assert [node for _, node in pairs(plan)] == [1, 1, 0, 0, 0]


def test_remaining_work_pulls_against_alignment():
    # a .8, b .4; work 3 and 1: eps = mean(a)/mean(p) = .6/2 = .3: .8 - .9 = -.1 against .4 - .3 = .1.
    waiting = tasks((0, 1, (8,)), (1, 1, (4,)), work=[3, 1])
    assert pairs(once(cluster((10,)), waiting)) == [(1, 0)]
    assert pairs(once(cluster((10,)), waiting, Policy(srtf=0))) == [(0, 0)]


def test_remaining_work_is_compared_inside_a_queue_however_much_is_left_in_another():
    # Queue 0 has the turn. Its jobs have work 1 and 3; the second aligns better. Beside 1,000 of queue 1 they would be
    # alike, and alignment would decide.
    waiting = tasks((0, 1, (3,)), (1, 1, (4,)), (2, 1, (4,)), work=[1, 3, 1000])
    queue, held = np.array([0, 0, 1]), np.zeros((3, 6))
    held[2, 0] = 4.0
    jobs = replace(waiting.jobs, queue=queue, queue_names=["a", "b"], queue_weight=np.ones(2), allocated=held)
    snapshot = cluster((8,), allocated=[[4, 0, 0, 0, 0, 0]])
    assert pairs(once(snapshot, replace(waiting, jobs=jobs))) == [(0, 0)]


def test_the_last_tasks_before_a_barrier_go_first():
    waiting = tasks((0, 1, (8,)), (1, 1, (4,), 0, None, 0.95))
    assert pairs(once(cluster((10,)), waiting, Policy(srtf=0))) == [(1, 0)]
    assert pairs(once(cluster((10,)), waiting, Policy(srtf=0, barrier=1))) == [(0, 0)]


def test_of_a_stage_whose_last_tasks_are_more_than_the_cluster_holds_nobody_goes_before_others():
    # 5 of 2 fill the cluster of 10 once, and go before the task of 8; 6 do not.
    few, many = (tasks((0, 1, (8,)), (1, count, (2,), 0, None, 0.95)) for count in (5, 6))
    assert pairs(once(cluster((10,)), few, Policy(srtf=0)))[0] == (1, 0)
    assert pairs(once(cluster((10,)), many, Policy(srtf=0)))[0] == (0, 0)


def ending(waiting, *, path, left_seconds):
    """Let it be known how long the jobs' chains of stages are, and for how long all work keeps the cluster busy."""
    return replace(waiting, jobs=replace(waiting.jobs, path=np.array(path, float)), left_seconds=left_seconds)


def test_jobs_that_decide_when_everything_is_done_go_before_others_but_not_before_small_ones():
    # Work 6, 3 and 1 of 10: the last is small at 15 %. By remaining work alone the order would be 2, 1, 0.
    waiting = tasks((0, 1, (2,)), (1, 1, (2,)), (2, 1, (2,)), work=[6, 3, 1])
    policy = Policy(packing=False, fairness=0)
    assert [row for row, _ in pairs(once(cluster((10,)), waiting, policy))] == [2, 1, 0]
    late = ending(waiting, path=[50, 10, 10], left_seconds=100.0)
    assert [row for row, _ in pairs(once(cluster((10,)), late, policy))] == [2, 0, 1]
    early = ending(waiting, path=[50, 10, 10], left_seconds=1000.0)
    assert [row for row, _ in pairs(once(cluster((10,)), early, policy))] == [2, 1, 0]
    never = Policy(packing=False, fairness=0, tail=np.inf)
    assert [row for row, _ in pairs(once(cluster((10,)), late, never))] == [2, 1, 0]


def test_of_those_the_longest_chain_goes_first():
    waiting = ending(tasks((0, 1, (2,)), (1, 1, (2,)), work=[5, 5]), path=[40, 60], left_seconds=100.0)
    assert [row for row, _ in pairs(once(cluster((10,)), waiting))] == [1, 0]


def test_a_planner_that_gets_the_same_arrays_again_plans_as_one_that_is_new():
    blocks = Blocks(np.array([[1], [0], [0]]), np.ones(3, bool), 2)
    waiting = tasks(
        (0, 3, (3, 1), 5, blocks), (1, 4, (1, 1)), (1, 2, (2, 2), 4, Shuffle(np.array([0]), np.array([4.0])))
    )
    snapshot = cluster((8, 8, 10, 10, 10, 10), (8, 8, 10, 10, 10, 10))
    planner = Planner()
    first = planner.plan(snapshot, waiting, 0.0)
    fuller = replace(snapshot, allocated=snapshot.allocated + np.array([2.0, 2.0, 1.0, 0, 0, 0]))
    fewer = replace(waiting, count=np.array([2, 0, 1]))
    again = planner.plan(fuller, fewer, 1.0)
    assert pairs(first) == pairs(once(snapshot, waiting))
    assert pairs(again) == pairs(once(fuller, fewer, now=1.0))
    assert again.assignments.source.tolist() == once(fuller, fewer, now=1.0).assignments.source.tolist()


def test_a_bundle_is_chosen_as_a_whole_and_says_what_each_scored_when_it_was():
    # One node of 10: alignments 6/10 and 5/10 of it. One at a time, the task of 6 leaves 4 free; two of 5 fill it.
    waiting = tasks((0, 9, (6,)), (0, 9, (5,)))
    assert pairs(once(cluster((10,)), waiting)) == [(0, 0)]
    plan = once(cluster((10,)), waiting, Policy(matching="bundle"))
    assert pairs(plan) == [(1, 0), (1, 0)]
    assert [terms.alignment for terms in plan.terms] == pytest.approx([0.5, 0.5])


def test_near_one_the_fairness_knob_serves_the_job_furthest_below_its_share():
    waiting = tasks((0, 5, (4,)), (1, 5, (2,)), held=[[6, 0, 0, 0, 0, 0], [0] * 6])
    assert pairs(once(cluster((4,)), waiting, Policy(fairness=0.99, srtf=0)))[0] == (1, 0)
    assert pairs(once(cluster((4,)), waiting, Policy(fairness=0.0, srtf=0)))[0] == (0, 0)


def test_the_fairness_knob_serves_jobs_that_had_nothing_in_turn_within_one_plan():
    # Starts of 2 and 1 of 12 cores: job 0 scores higher, and is left out while it has more than job 1.
    waiting = tasks((0, 9, (2,)), (1, 9, (1,)))
    order = [task_class for task_class, _ in pairs(once(cluster((12,)), waiting, Policy(fairness=0.5, srtf=0)))]
    assert order == [0, 1, 1, 0, 1, 1, 0, 1, 1]


def test_a_block_is_read_where_it_is_if_there_is_room_and_the_placement_names_its_task():
    blocks = Blocks(np.array([[1], [0]]), np.ones(2, bool), 2)
    snapshot = cluster((4, 4, 10, 10, 10, 10), (4, 4, 10, 10, 10, 10))
    plan = once(snapshot, tasks((0, 2, (3, 1), 5, blocks)))
    assert sorted(pairs(plan)) == [(0, 0), (0, 1)]
    assert (plan.assignments.source == plan.assignments.node).all()
    assert sorted(plan.assignments.task.tolist()) == [0, 1]


def test_a_remote_read_needs_room_at_the_source_and_on_both_links():
    blocks = Blocks(np.array([[1]]), np.ones(1, bool), 2)
    here, full = (4, 4, 10, 10, 10, 10), (1, 1, 10, 10, 10, 10)  # node 1 holds the block and has no CPU for the task
    waiting = tasks((0, 1, (3, 1), 5, blocks))
    plan = once(cluster(here, full), waiting)
    assert pairs(plan) == [(0, 0)]
    assert plan.assignments.source.tolist() == [1]
    assert [terms.remote for terms in plan.terms] == [0.9]
    for dimension, node in ((2, 1), (5, 1), (4, 0)):
        load = np.zeros((2, 6))
        load[node, dimension] = 6
        assert not pairs(once(cluster(here, full, allocated=load), waiting)), DIMENSIONS[dimension]


def test_who_has_its_block_on_the_node_reads_it_there_or_not_at_all():
    # n0's disk is full, and n1 has no CPU. The first block is on both nodes, the second on n1 alone.
    copies = np.array([[0, 1], [1, -1]])
    snapshot = cluster((4, 4, 10, 10, 10, 10), (1, 1, 10, 10, 10, 10), allocated=[[0, 0, 10, 0, 0, 0], [0] * 6])
    plan = once(snapshot, tasks((0, 2, (2,), 5, Blocks(copies, np.ones(2, bool), 2))))
    assert (pairs(plan), plan.assignments.task.tolist(), plan.assignments.source.tolist()) == ([(0, 0)], [1], [1])
    # n2, which is looked at after n0, has room for the first.
    sizes = [(4, 4, 10, 10, 10, 10), (1, 1, 10, 10, 10, 10), (8, 8, 10, 10, 10, 10)]
    snapshot = cluster(*sizes, allocated=[[0, 0, 10, 0, 0, 0], [0] * 6, [6, 6, 0, 0, 0, 0]])
    plan = once(snapshot, tasks((0, 2, (2,), 5, Blocks(copies, np.ones(2, bool), 3))))
    assert (pairs(plan), plan.assignments.task.tolist()) == ([(0, 0), (0, 2)], [1, 0])


def test_a_shuffle_needs_room_at_every_source():
    spread = Shuffle(np.array([0, 1]), np.array([2.0, 2.0]))
    waiting = tasks((0, 1, (1, 1), 4, spread))
    ten = (10,) * 6
    assert len(once(cluster(ten, ten), waiting).assignments) == 1
    load = np.zeros((2, 6))
    load[0, 2] = 9
    plan = once(cluster(ten, ten, allocated=load), waiting, explain=True)
    assert not pairs(plan)
    assert plan.held[0].text == "the nodes that hold its input have no disk read or network out to spare"


def test_a_shuffle_that_is_due_reads_from_sources_that_are_full_but_not_from_a_disk_that_is_too_slow():
    # Readers of a whole link and disk keep n0 full for ever; no reservation could be made on all sources of a shuffle.
    ten, full = (10,) * 6, np.array([[0, 0, 10, 0, 0, 10], [0] * 6], float)
    for rate, starts in ((2.0, [(0, 1)]), (11.0, [])):
        waiting = tasks((0, 1, (1, 1), 2 * rate, Shuffle(np.array([0, 1]), np.array([rate, rate]))))
        snapshot = cluster(ten, (10, 10, 99, 10, 99, 99), allocated=full)
        assert not pairs(once(snapshot, waiting, now=100.0)), "not due yet"
        assert pairs(once(snapshot, waiting, now=1000.0)) == starts


@pytest.mark.parametrize(("promised", "excess", "starts"), [(106, 0.2, 2), (112, 0.2, 1), (116, 0.2, 0), (106, 0.0, 0)])
def test_a_shuffle_starts_while_no_link_that_it_reads_from_has_a_fifth_more_promised_than_it_has(
    promised, excess, starts
):
    # n0 sends 100 at most, and up to 120 is promised for shuffles; each of these takes 5 of both nodes.
    # 106 + 5 + 5 = 116; 112 + 5 = 117, and 122 is too much; 116 + 5 = 121 is too much already.
    spread = Shuffle(np.array([0, 1]), np.array([5.0, 5.0]))
    waiting = tasks((0, 3, (1, 1), 10, spread))
    load = np.zeros((3, 6))
    load[0, 5] = promised
    ends = (0, 0, 100, 0, 0, 100)  # they only serve; n2 has room for tasks
    snapshot = cluster(ends, ends, (9, 9, 100, 100, 100, 100), allocated=load)
    assert pairs(once(snapshot, waiting, Policy(source_excess=excess))) == [(0, 2)] * starts


@pytest.mark.parametrize(("rate", "starts"), [(1.0, 2), (1.1, 0)])
def test_who_takes_a_hundredth_of_a_link_reads_from_it_however_full_it_is(rate, starts):
    # Copies of outputs, which nobody places, promise three times what n0 sends. All shuffles would wait for it.
    waiting = tasks((0, 2, (1, 1), 2 * rate, Shuffle(np.array([0, 1]), np.array([rate, rate]))))
    load = np.zeros((3, 6))
    load[0, 5] = 300
    serves = (0, 0, 100, 0, 0, 100)
    snapshot = cluster(serves, serves, (9, 9, 100, 100, 100, 100), allocated=load)
    assert pairs(once(snapshot, waiting)) == [(0, 2)] * starts


def test_a_shuffle_does_not_over_allocate_the_disk_of_a_source():
    # 98 of 100 are promised: the first 5 are too much, although a link may have up to 120.
    load = np.zeros((2, 6))
    load[0, 2] = 98
    waiting = tasks((0, 1, (1, 1), 5, Shuffle(np.array([0]), np.array([5.0]))))
    assert not pairs(once(cluster((0, 0, 100, 0, 0, 100), (9, 9, 100, 100, 100, 100), allocated=load), waiting))


@pytest.mark.parametrize(("disk", "starts"), [(60, 2), (50, 1)])
def test_nor_do_two_that_start_in_one_plan(disk, starts):
    waiting = tasks((0, 2, (1, 1), 30, Shuffle(np.array([0]), np.array([30.0]))))
    snapshot = cluster((0, 0, disk, 0, 0, 999), (9, 9, 999, 999, 999, 999))
    assert pairs(once(snapshot, waiting)) == [(0, 1)] * starts


@pytest.mark.parametrize(("disk", "starts"), [(50, 2), (45, 1)])
def test_a_shuffle_needs_what_it_demands_of_a_disk_beside_its_own_part(disk, starts):
    # Each reads 10 from the node that it runs on, and demands 15 of its disk besides.
    waiting = tasks((0, 2, (1, 1, 15), 10, Shuffle(np.array([0]), np.array([10.0]))))
    assert pairs(once(cluster((9, 9, disk, 99, 99, 99)), waiting)) == [(0, 0)] * starts


def test_who_sends_by_itself_leaves_a_tenth_of_the_link_to_shuffles_that_wait():
    # Each sender wants 45 of 100. With a shuffle that waits, 90 are for them: two go. A third wants 135 in any case.
    # The shuffle itself has no room now (9 CPUs); with 15 to read from n0, all of the tenth is kept.
    sender = (1, 3, (1, 0, 0, 0, 0, 45))
    shuffle = Shuffle(np.array([0]), np.array([15.0]))
    snapshot = cluster((9, 4, 100, 100, 100, 100), allocated=[[5, *[0] * 5]])
    assert pairs(once(snapshot, tasks((0, 1, (9,), 15, shuffle), sender))) == [(1, 0)] * 2
    wider = (1, 2, (1, 0, 0, 0, 0, 48))  # 96: beside a shuffle that waits, one; without, two
    assert pairs(once(snapshot, tasks((0, 1, (9,), 15, shuffle), wider))) == [(1, 0)]
    assert pairs(once(snapshot, tasks((0, 0, (9,), 15, shuffle), wider))) == [(1, 0)] * 2


def test_what_is_kept_for_a_shuffle_is_kept_no_more_once_that_has_started():
    # It reads 10 of the 100 that n0 sends, and goes first; the two senders of 45 have the rest.
    shuffle, sender = Shuffle(np.array([0]), np.array([10.0])), (1, 2, (1, 0, 0, 0, 0, 45))
    snapshot = cluster((4, 4, 100, 100, 100, 100), (9, 9, 10, 10, 10, 10), allocated=[[2, 2, *[0] * 4], [0] * 6])
    waiting = tasks((0, 1, (3,), 10, shuffle), sender, work=[1, 100])
    assert sorted(pairs(once(snapshot, waiting, Policy(fairness=0, srtf=1000)))) == [(0, 1), (1, 0), (1, 0)]


@pytest.mark.parametrize(
    ("rate", "shuffles", "now", "starts"),
    [(90, 1, 0.0, True), (91, 1, 0.0, False), (91, 0, 0.0, True), (91, 1, 1000.0, True)],
    ids=["leaves it", "takes some of it", "no shuffle waits", "due"],
)
@pytest.mark.parametrize("source", [(100, 999), (999, 100)], ids=["disk", "link"])
def test_who_reads_from_elsewhere_leaves_a_tenth_of_its_source_to_shuffles_that_wait(
    source, rate, shuffles, now, starts
):
    # n0 has the block, and no CPU for it. The shuffle wants 9 CPUs, which are not free, and all of the tenth.
    disk, link = source
    snapshot = cluster((9, 9, disk, 999, 999, link), (1, 9, 999, 999, 999, 999), allocated=[[9, *[0] * 5], [0] * 6])
    block, shuffle = Blocks(np.array([[0]]), np.ones(1, bool), 2), Shuffle(np.array([0]), np.array([100.0]))
    waiting = tasks((0, 1, (1,), rate, block), (1, shuffles, (9,), 100, shuffle))
    plan = once(snapshot, replace(waiting, since=np.array([0.0, now])), now=now)
    assert pairs(plan) == [(0, 1)] * starts


def test_held_classes_say_in_words_what_is_short():
    plan = once(cluster((4, 4), allocated=[[3, 0, 0, 0, 0, 0]]), tasks((0, 1, (2, 1)), (0, 1, (9, 1))), explain=True)
    assert plan.held[0].text == "no node has enough free: mostly cpu is short"
    assert plan.held[1].text == "no node is large enough: too little cpu on every node"


def test_a_starved_class_gets_the_node_that_is_free_for_it_soonest_reserved_and_keeps_it():
    # Both nodes run one task of 3 of 4 CPUs; that on n1 ends first. The large class wants 4, the small one 1.
    running = Running(np.array([0, 1]), np.array([50.0, 20.0]), np.array([[3.0, 0, 0, 0, 0, 0]] * 2))
    waiting = tasks((0, 1, (4,)), (1, 9, (1,)), running=running)
    snapshot = cluster((4,), (4,), allocated=[[3, 0, 0, 0, 0, 0]] * 2)
    plan = once(snapshot, waiting, Policy(reservable=0.5), now=1000.0)
    assert reserved_nodes(plan) == {"class0": ["n1"]}
    assert all(node == 0 for _, node in pairs(plan))  # nothing else goes to n1
    free = cluster((4,), (4,), allocated=[[4, 0, 0, 0, 0, 0], [0] * 6])
    then = once(free, waiting, now=1010.0, carried=plan.carried)
    assert (0, 1) in pairs(then)
    assert then.terms[0].starved


def test_wrong_tuning_is_named_with_what_is_accepted():
    with pytest.raises(SettingsError, match="matching: 'best'; accepted: machine, pair"):
        Policy(matching="best")
    with pytest.raises(SettingsError, match=r"fairness: 1\.0; accepted: at least 0, below 1"):
        Policy(fairness=1.0)


def test_a_shuffle_and_a_starved_reader_of_a_whole_disk_do_not_wait_for_each_other():
    # A tenth of the disk is kept for the shuffle, and the reader wants all of it.
    spread = Shuffle(np.array([0]), np.array([8.0]))
    waiting = tasks((0, 1, (1,), 100), (1, 3, (1,), 8, spread))
    waiting = replace(waiting, since=np.array([0.0, 100.0]))
    planner = Planner()
    assert (0, 0) in pairs(planner.plan(cluster((4, 4, 100, 10, 100, 100)), waiting, 1000.0))


@pytest.mark.parametrize(
    ("demand", "reading", "inputs", "running"),
    [
        ((1,), 5, Blocks(np.array([[-1]]), np.ones(1, bool), 1), None),  # its block is lost
        ((1,), 100, Shuffle(np.array([0]), np.array([100.0])), None),  # its source's disk does not read so fast
        ((4, 0, 20), 40, Shuffle(np.array([0]), np.array([40.0])), None),  # nor reads that beside what it demands
        ((4,), None, None, Running(np.empty(0, np.intp), np.empty(0), np.empty((0, 6)))),  # nothing that runs will end
    ],
)
def test_no_node_is_reserved_for_who_cannot_start_there(demand, reading, inputs, running):
    snapshot = cluster((4, 4, 50, 10, 50, 50), allocated=[[1, 0, 0, 0, 0, 0]])
    waiting = tasks((0, 1, demand, reading, inputs), (1, 3, (1,)), running=running)
    plan = once(snapshot, waiting, now=1000.0)
    assert not plan.carried.reserved
    assert len(plan.assignments) == 3


def test_a_reservation_moves_on_from_a_node_that_has_become_too_small():
    waiting = tasks(
        (0, 1, (4,)), (1, 9, (1,)), running=Running(np.array([0]), np.array([50.0]), np.array([[2.0, *[0] * 5]]))
    )
    snapshot = cluster((4,), (2,), allocated=[[2, 0, 0, 0, 0, 0], [0] * 6])
    plan = once(snapshot, waiting, now=1000.0, carried=Carried({"class0": Reservation((("class0", "n1", 1),), 2000.0)}))
    assert reserved_nodes(plan) == {"class0": ["n0"]}


def test_a_cluster_without_nodes_has_an_empty_plan():
    waiting = tasks((0, 1, (1,), 5, Blocks(np.array([[-1]]), np.ones(1, bool), 0)), (1, 1, (1,)))
    plan = once(cluster(), waiting, now=1000.0, explain=True)
    assert not pairs(plan)
    assert plan.held[1].text == "there are no nodes"


@pytest.mark.parametrize("matching", ["machine", "pair"])
def test_a_shuffle_that_fits_only_on_its_full_source_goes_there(matching):
    # The first shuffle takes all that n0 sends; the second reads from n0 as well, and needs no link if it runs there.
    first, second = Shuffle(np.array([0]), np.array([10.0])), Shuffle(np.array([0]), np.array([5.0]))
    snapshot = cluster((1, 1, 100, 10, 10, 10), (2, 2, 100, 10, 10, 10))
    waiting = tasks((0, 1, (2,), 10, first), (1, 1, (1,), 5, second), work=[1, 100])
    assert sorted(pairs(once(snapshot, waiting, Policy(matching=matching, fairness=0)))) == [(0, 1), (1, 0)]
    # With room left on n1 it is tried there first.
    snapshot = cluster((2, 2, 100, 10, 10, 10), (3, 3, 100, 10, 99, 10), allocated=[[1, 1, *[0] * 4], [0] * 6])
    assert sorted(pairs(once(snapshot, waiting, Policy(matching=matching, fairness=0)))) == [(0, 1), (1, 0)]


@settings(max_examples=150, deadline=None)
@given(scenes())
def test_a_plan_over_allocates_nothing_but_what_shuffles_read_from_links_and_never_starts_a_task_twice(scene):
    capacities, classes, policy = scene
    snapshot, waiting = cluster(*capacities), tasks(*classes)
    plan = once(snapshot, waiting, policy, now=1.0)
    most = np.array([1, 1, 1, 1, 1, 1 + Policy().source_excess])
    assert (load_of(snapshot, waiting, plan) <= snapshot.layout.capacity * most).all()
    given_out = np.bincount(plan.assignments.task_class, minlength=len(classes))
    assert (given_out <= waiting.count).all()
    named = [(c, t) for c, t in zip(plan.assignments.task_class, plan.assignments.task, strict=True) if t >= 0]
    assert len(named) == len(set(named))


@settings(max_examples=50, deadline=None)
@given(scenes())
def test_nothing_that_fits_by_itself_is_left_on_an_idle_cluster(scene):
    capacities, classes, policy = scene
    snapshot, waiting = cluster(*capacities), tasks(*classes)
    plan = once(snapshot, waiting, policy, explain=True)
    free = snapshot.layout.capacity - load_of(snapshot, waiting, plan)
    left = waiting.count - np.bincount(plan.assignments.task_class, minlength=len(classes))
    if plan.carried.reserved:
        return
    for row in np.flatnonzero((left > 0) & [inputs is None for inputs in waiting.inputs]):
        demand = waiting.demand[row].copy()
        demand[2] += waiting.reading[row]
        capacity = snapshot.layout.capacity
        room = free.copy()
        room[:, [2, 5]] -= Policy().headroom * np.where(np.isfinite(capacity), capacity, 0)[:, [2, 5]]
        assert not (room >= demand).all(axis=1).any(), waiting.names[row]


def test_the_same_nodes_in_another_order_give_the_same_plan():
    rows = [(4, 8), (8, 4), (6, 6)]
    waiting = tasks((0, 3, (2, 1)), (1, 3, (1, 2)))
    plans = []
    for order in ([0, 1, 2], [2, 0, 1]):
        snapshot = cluster(*[rows[i] for i in order], names=[f"n{i}" for i in order])
        plans.append([(c, snapshot.layout.names[n]) for c, n in pairs(once(snapshot, waiting))])
    assert plans[0] == plans[1]


@pytest.mark.parametrize("taken", [0, 2])
def test_a_plan_leaves_nothing_that_only_a_look_for_cycles_frees(taken):
    # Processes look for them rarely, and a plan's arrays are as large as the cluster.
    snapshot, waiting = cluster((2,), allocated=[[taken, 0, 0, 0, 0, 0]]), tasks((0, 3, (1,)))
    once(snapshot, waiting, explain=True)
    gc.collect()
    gc.disable()
    try:
        once(snapshot, waiting, explain=True)
        assert gc.collect() == 0
    finally:
        gc.enable()
