"""The verdict: which nodes may take a pod, why not the others, and how they rank."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.cluster.events import NodesListed, PodSeen
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Node, Pod
from extender.policy.alignment import RULES
from extender.verdict import Placement, Ranker, judge, once_gone

GPU = "a.b/gpu"


def node(name, cpu=1000.0, memory=1000.0, **more):
    return Node(name, {"cpu": cpu, "memory": memory, **{key.replace("_", "-"): value for key, value in more.items()}})


def asking(uid="new", priority=0, **demand):
    return Pod(uid, "default", uid, {k.replace("_", "-"): float(v) for k, v in demand.items()}, priority=priority)


def held(uid, where, **demand):
    return replace(asking(uid, **demand), node=where)


def ledger(nodes, pods=()):
    filled = Ledger(in_flight_seconds=15)
    filled.apply(NodesListed(nodes))
    for pod in pods:
        filled.apply(PodSeen(pod))
    return filled


def view(nodes, pods=()):
    return ledger(nodes, pods).snapshot(0)


def verdicts(snapshot, pod):
    """Return what is said of each node: None where the pod fits, else the reason."""
    found = judge(snapshot, pod)
    reasons = found.reasons()
    return {name: None if d < 0 else reasons[d] for name, d in zip(snapshot.layout.names, found.short, strict=True)}


def ranked(snapshot, pod, *names, rule="cosine", step=0.01):
    rows = np.array([snapshot.layout.rows[name] for name in names or snapshot.layout.names], dtype=np.intp)
    return Ranker(Placement(rule, step)).rank(snapshot, pod, rows).tolist()


# -- judge


def test_a_pod_fits_where_it_takes_the_last_of_everything_and_not_one_more():
    snapshot = view([node("a")], [held("p", "a", cpu=600)])
    assert verdicts(snapshot, asking(cpu=400)) == {"a": None}  # 600 + 400 = 1000
    assert verdicts(snapshot, asking(cpu=401)) == {"a": "insufficient cpu"}


def test_a_full_network_refuses_though_cpu_and_memory_would_fit():
    snapshot = view([node("a", network_in=100.0), node("b", network_in=200.0)], [held("p", "a", network_in=80)])
    pod = asking(cpu=1, memory=1, network_in=50)
    assert verdicts(snapshot, pod) == {"a": "insufficient network-in", "b": None}


def test_a_dimension_that_the_pod_does_not_demand_refuses_nobody_however_full_it_is():
    snapshot = view([node("a", network_in=100.0)], [held("p", "a", cpu=9_000, network_in=900)])
    assert verdicts(snapshot, asking(memory=10)) == {"a": None}
    assert verdicts(snapshot, asking()) == {"a": None}
    assert verdicts(snapshot, asking(memory=10, cpu=0)) == {"a": None}


def test_an_undeclared_rate_is_not_limited():
    assert verdicts(view([node("a")]), asking(disk_read=1e15)) == {"a": None}


def test_a_rate_declared_as_zero_takes_nothing():
    assert verdicts(view([node("a", disk_read=0.0)]), asking(disk_read=1)) == {"a": "insufficient disk-read"}


def test_a_node_has_nothing_of_an_extended_resource_that_it_does_not_advertise():
    snapshot = view([node("a"), node("b", **{GPU: 1.0})])
    assert verdicts(snapshot, asking(**{GPU: 1})) == {"a": f"insufficient {GPU}", "b": None}
    assert verdicts(snapshot, asking(**{"x.y/z": 1})) == {"a": "insufficient x.y/z", "b": "insufficient x.y/z"}


def test_what_no_node_advertises_may_come_from_a_device_claim():
    snapshot = view([node("a"), node("b", **{GPU: 1.0})])
    assert verdicts(snapshot, asking(**{"x.y/z": 1, "device-claims": 1})) == {"a": None, "b": None}


def test_made_up_resources_are_counted_under_one_name():
    found = judge(view([node("a")]), asking(**{"x.y/z": 1}))
    assert found.refusals(np.array([0])) == {"unadvertised resources": 1}


def test_a_pod_takes_a_place_on_its_node_and_a_full_node_takes_no_more():
    there = [Pod(f"p{n}", "default", f"p{n}", {"pods": 1.0}, node="a") for n in range(2)]
    snapshot = view([node("a", pods=2.0), node("b", pods=1.0), node("c")], there)
    assert verdicts(snapshot, asking(pods=1)) == {"a": "insufficient pods", "b": None, "c": "insufficient pods"}


def test_places_scratch_space_and_huge_pages_change_no_ranking():
    pods = [Pod("p", "default", "p", {"cpu": 300.0, "memory": 100.0}, node="a")]
    more = {"ephemeral_storage": 10.0, "hugepages_2Mi": 4.0, "pods": 3.0}
    plain = view([node("a", 800, 400), node("b", 1000, 1000)], pods)
    rich = view([node("a", 800, 400, **more), node("b", 1000, 1000, pods=9.0)], pods)
    assert ranked(rich, asking(cpu=10, memory=20, pods=1)) == ranked(plain, asking(cpu=10, memory=20))


def test_of_several_short_dimensions_the_first_along_the_axis_is_named():
    assert verdicts(view([node("a")]), asking(cpu=1, memory=2000, **{"x.y/z": 0})) == {"a": "insufficient memory"}
    assert verdicts(view([node("a")]), asking(cpu=2000, memory=2000)) == {"a": "insufficient cpu"}


def test_refusals_are_counted_by_dimension_over_the_nodes_asked_about():
    snapshot = view([node("a", 1), node("b", 1), node("c", 1000, 1), node("d")])
    found = judge(snapshot, asking(cpu=10, memory=10))
    assert found.refusals(np.array([0, 1, 2, 3])) == {"cpu": 2, "memory": 1}
    assert found.refusals(np.array([3])) == {}
    assert found.refusals(np.array([1, 3])) == {"cpu": 1}


@settings(max_examples=50)
@given(st.lists(st.integers(0, 39), max_size=8, unique=True), st.integers(0, 3), st.booleans())
def test_of_few_nodes_that_are_asked_about_it_says_what_it_says_of_all(asked, kind, reads):
    # Nodes n0 .. n39 with 100 to 400 of CPU; every third reads at most 50; one pod is nominated, one is in flight.
    nodes = [node(f"n{k}", cpu=100.0 * (1 + k % 4), **({} if k % 3 else {"disk_read": 50.0})) for k in range(40)]
    filled = ledger(nodes, [held("p", "n5", cpu=150), replace(asking("q", cpu=90), nominated="n6")])
    base = filled.snapshot(0)
    assert filled.assume(asking("r", cpu=50), np.arange(40) < 2, base, 0)
    snapshot, inputs = filled.snapshot(0), (("n1", 100.0),) if reads else ()
    pod = replace(asking(cpu=60.0 * (1 + kind), disk_read=60.0 * (kind % 2)), inputs=inputs)
    rows = np.array([*asked, -1], dtype=np.intp)  # -1: a node that is not known
    few, every = judge(snapshot, pod, rows), judge(snapshot, pod)
    assert few.short[asked].tolist() == every.short[asked].tolist()
    assert few.refusals(rows[:-1]) == every.refusals(rows[:-1])


def test_a_cluster_without_nodes_passes_nobody_and_fails_nobody():
    assert judge(view([]), asking(cpu=1)).passed.shape == (0,)
    assert ranked(view([]), asking(cpu=1)) == []


def test_what_is_in_flight_to_several_nodes_counts_for_judge_unless_told_otherwise_and_never_for_rank():
    filled = ledger([node("a"), node("b"), node("c", 10)])
    calm = filled.snapshot(0)
    assert filled.assume(asking("flying", cpu=900), np.array([True, True, False]), calm, 0)
    busy, pod = filled.snapshot(0), asking(cpu=200)
    assert judge(busy, pod).passed.tolist() == [False, False, False]  # 900 + 200 > 1000 on a, and on b
    assert judge(busy, pod, in_flight=False).passed.tolist() == [True, True, False]
    assert ranked(busy, pod) == ranked(calm, pod)


def test_what_is_in_flight_to_one_node_counts_there_for_judge_and_for_rank():
    filled = ledger([node("a"), node("b")])
    calm = filled.snapshot(0)
    assert filled.assume(asking("flying", cpu=900), np.array([True, False]), calm, 0)
    busy, pod = filled.snapshot(0), asking(cpu=200)
    assert judge(busy, pod).passed.tolist() == [False, True]  # 900 + 200 > 1000 on a
    assert judge(busy, pod, in_flight=False).passed.tolist() == [True, True]
    assert ranked(calm, asking(cpu=50)) == [10, 10]
    assert ranked(busy, asking(cpu=50)) != [10, 10]


def test_a_nominated_pod_keeps_its_room_from_equal_and_lower_priorities_but_not_from_itself():
    waiting = replace(asking("waiting", cpu=900, priority=5), nominated="a")
    snapshot = view([node("a")], [waiting])
    assert verdicts(snapshot, asking(cpu=200, priority=5)) == {"a": "insufficient cpu"}
    assert verdicts(snapshot, asking(cpu=200, priority=6)) == {"a": None}
    assert verdicts(snapshot, waiting) == {"a": None}


def test_judging_changes_nothing():
    filled = ledger([node("a")], [replace(asking("w", cpu=5), nominated="a")])
    assert filled.assume(asking("f", cpu=7), np.array([True]), filled.snapshot(0), 0)
    snapshot = filled.snapshot(0)
    before = (snapshot.allocated.tolist(), snapshot.in_flight.tolist(), snapshot.layout.capacity.tolist())
    judge(snapshot, asking(cpu=1))
    ranked(snapshot, asking(cpu=1))
    assert (snapshot.allocated.tolist(), snapshot.in_flight.tolist(), snapshot.layout.capacity.tolist()) == before


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_node_that_holds_the_pods_input_ranks_before_one_that_is_like_it(rule):
    snapshot = view([node(name, cpu=1000, memory=1000) for name in ("a", "b", "c")])
    reads = replace(asking(cpu=300, memory=100), inputs=(("b", 100.0), ("c", 10.0), ("gone", 100.0)))
    scores = Ranker(Placement(rule)).suitability(snapshot, reads, np.arange(3)).score
    assert scores[1] > scores[0] == scores[2]  # c holds less than half of what b does
    alike = Ranker(Placement(rule, remote_penalty=0.0)).suitability(snapshot, reads, np.arange(3)).score
    assert alike[0] == alike[1] == alike[2]


# -- judge, once pods are gone


def fits_once_gone(snapshot, pod, **victims):
    passed = judge(once_gone(snapshot, victims), pod).passed
    return {name for name, fits in zip(snapshot.layout.names, passed, strict=True) if fits}


def test_a_node_fits_to_the_last_bit_once_its_victims_are_gone():
    pods = [held("p", "a", cpu=600), held("q", "a", cpu=300), held("r", "a", cpu=100)]
    snapshot = view([node("a")], pods)
    assert fits_once_gone(snapshot, asking(cpu=600), a=pods[:1]) == {"a"}  # 1000 - 600 + 600
    assert fits_once_gone(snapshot, asking(cpu=601), a=pods[:1]) == set()
    assert fits_once_gone(snapshot, asking(cpu=900), a=pods[:2]) == {"a"}  # 1000 - 900 + 900
    assert fits_once_gone(snapshot, asking(cpu=901), a=pods[:2]) == set()


@pytest.mark.parametrize("dimension", ["disk_read", "disk_write", "network_in", "network_out"])
def test_victims_that_free_cpu_alone_do_not_help_a_pod_that_needs_a_rate(dimension):
    pods = [held("cpu", "a", cpu=900), held("rate", "b", cpu=900, **{dimension: 80})]
    pods += [held("keeps", "a", **{dimension: 80})]
    snapshot = view([node("a", **{dimension: 100.0}), node("b", **{dimension: 100.0})], pods)
    assert fits_once_gone(snapshot, asking(cpu=500, **{dimension: 50}), a=pods[:1], b=pods[1:2]) == {"b"}


def test_a_victim_frees_its_own_node_only_and_that_once():
    pod = held("p", "a", cpu=400)
    snapshot = view([node("a"), node("b")], [pod, held("q", "a", cpu=600), held("r", "b", cpu=1000)])
    assert fits_once_gone(snapshot, asking(cpu=100), b=[pod]) == set()
    assert fits_once_gone(snapshot, asking(cpu=100), a=[pod]) == {"a"}
    assert fits_once_gone(snapshot, asking(cpu=401), a=[pod, pod]) == set()


def test_a_pod_that_holds_nothing_and_an_unknown_node_free_nothing():
    snapshot = view([node("a")], [held("p", "a", cpu=1000)])
    ended, waiting = replace(held("e", "a", cpu=500), finished=True), asking("w", cpu=500)
    assert fits_once_gone(snapshot, asking(cpu=1), a=[ended, waiting], gone=[held("p", "gone", cpu=1000)]) == set()


def test_what_is_in_flight_or_nominated_counts_also_once_victims_are_gone():
    victim = held("p", "a", cpu=600)
    filled = ledger([node("a")], [victim, replace(asking("w", cpu=300, priority=5), nominated="a")])
    assert fits_once_gone(filled.snapshot(0), asking(cpu=700, priority=5), a=[victim]) == {"a"}  # 300 + 700
    assert fits_once_gone(filled.snapshot(0), asking(cpu=701, priority=5), a=[victim]) == set()
    assert fits_once_gone(filled.snapshot(0), asking(cpu=1000, priority=6), a=[victim]) == {"a"}
    assert filled.assume(asking("flying", cpu=100), np.array([True]), filled.snapshot(0), 0)
    assert fits_once_gone(filled.snapshot(0), asking(cpu=700, priority=5), a=[victim]) == set()


def test_imagining_pods_gone_changes_nothing():
    snapshot = view([node("a")], [held("p", "a", cpu=600)])
    once_gone(snapshot, {"a": [held("p", "a", cpu=600)]})
    assert snapshot.allocated[0, 0] == 600


# -- rank


@pytest.mark.parametrize("rule", sorted(RULES))
def test_the_best_node_gets_10_and_nobody_more(rule):
    snapshot = view([node(n) for n in "abcdef"], [held(n, n, cpu=100 * i) for i, n in enumerate("abcdef")])
    got = ranked(snapshot, asking(cpu=100, memory=200), rule=rule)
    assert max(got) == 10
    assert min(got) >= 0


def test_shape_decides_and_not_emptiness():
    """A CPU-heavy pod goes to the fuller node that has CPU left, not to the empty-ish one that has memory."""
    pods = [held("p", "a", cpu=100, memory=700), held("q", "b", cpu=500, memory=0)]
    # free: a (900, 300), b (500, 1000); b has more in all, a has the pod's proportions (3 : 1)
    assert ranked(view([node("a"), node("b")], pods), asking(cpu=300, memory=100)) == [10, 9]


def test_of_nodes_of_one_shape_the_fuller_one_wins():
    # free: a (1000, 1000), b (400, 400)
    snapshot = view([node("a"), node("b")], [held("p", "b", cpu=600, memory=600)])
    assert ranked(snapshot, asking(cpu=100, memory=100)) == [9, 10]


def test_scores_closer_than_the_step_are_equal_and_then_the_fuller_node_wins():
    # free: a (1000, 1000), b (390, 400): cosines with (1, 1) are 1 and 0.9999
    snapshot = view([node("a"), node("b")], [held("p", "b", cpu=610, memory=600)])
    pod = asking(cpu=100, memory=100)
    assert ranked(snapshot, pod, step=0.01) == [9, 10]
    assert ranked(snapshot, pod, step=0.0) == [10, 9]


def test_levels_come_in_the_order_of_the_rows_asked_for():
    snapshot = view([node("a"), node("b"), node("c")], [held("p", "c", cpu=600, memory=600)])
    assert ranked(snapshot, asking(cpu=1, memory=1), "c", "a") == [10, 9]
    assert ranked(snapshot, asking(cpu=1, memory=1), "a", "c") == [9, 10]


def test_a_pod_that_asks_for_nothing_is_ranked_all_the_same():
    assert max(ranked(view([node("a"), node("b")]), asking())) == 10


# -- properties


sizes = st.integers(0, 6).map(float)
io = st.sampled_from([None, 0.0, 2.0, 5.0])
clusters = st.lists(st.tuples(sizes, sizes, io, st.sampled_from([None, 1.0, 3.0])), min_size=1, max_size=6)
demands = st.fixed_dictionaries({"cpu": sizes, "memory": sizes, "disk-read": sizes, GPU: sizes})
placed = st.lists(st.tuples(st.integers(0, 5), demands), max_size=6)


def build(cluster, pods, names):
    nodes = []
    for name, (cpu, memory, disk, gpu) in zip(names, cluster, strict=True):
        offered = {"cpu": cpu, "memory": memory, "disk-read": disk, GPU: gpu}
        nodes.append(Node(name, {k: v for k, v in offered.items() if v is not None}))
    there = [
        Pod(f"p{i}", "default", f"p{i}", demand, node=names[where % len(names)])
        for i, (where, demand) in enumerate(pods)
    ]
    return nodes, list(ledger(nodes, there).snapshot_with([pod.uid for pod in there], 0)[1].values())


@settings(max_examples=300, deadline=None)
@given(clusters, placed, demands)
def test_a_node_passes_exactly_where_nothing_that_is_demanded_would_be_over_allocated(cluster, pods, demand):
    names = [f"n{i}" for i in range(len(cluster))]
    nodes, there = build(cluster, pods, names)
    passed = judge(view(nodes, there), Pod("new", "default", "new", demand)).passed
    for row, found in enumerate(nodes):
        fits = True
        for dimension, asked in demand.items():
            offered = found.allocatable.get(dimension, float("inf") if dimension == "disk-read" else 0.0)
            used = sum(p.demand.get(dimension, 0.0) for p in there if p.node == found.name)
            fits = fits and (asked == 0 or used + asked <= offered)
        assert passed[row] == fits


@settings(max_examples=200, deadline=None)
@given(clusters, placed, demands, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=6))
def test_a_pod_fits_once_victims_are_gone_exactly_where_it_fits_after_they_went(cluster, pods, demand, chosen):
    names = [f"n{i}" for i in range(len(cluster))]
    nodes, there = build(cluster, pods, names)
    new, filled = Pod("new", "default", "new", demand), ledger(nodes, there)
    victims = {name: [] for name in names}
    for where, which in chosen if there else ():  # also pods of other nodes, and pods more than once
        victims[names[where % len(names)]].append(there[which % len(there)])
    kept = judge(once_gone(filled.snapshot(0), victims), new).passed
    for row, name in enumerate(names):
        gone = {pod.uid for pod in victims[name] if pod.node == name}
        after = view(nodes, [pod for pod in there if pod.uid not in gone])
        assert kept[row] == judge(after, new).passed[row]


@settings(max_examples=100, deadline=None)
@given(clusters, placed, demands, st.data(), st.sampled_from(sorted(RULES)))
def test_permuting_the_nodes_permutes_the_levels(cluster, pods, demand, data, rule):
    names = [f"n{i}" for i in range(len(cluster))]
    renamed = data.draw(st.permutations(names))
    pod = Pod("new", "default", "new", demand)
    straight = dict(zip(names, ranked(view(*build(cluster, pods, names)), pod, *names, rule=rule), strict=True))
    shuffled = dict(zip(renamed, ranked(view(*build(cluster, pods, renamed)), pod, *renamed, rule=rule), strict=True))
    assert [straight[name] for name in names] == [shuffled[name] for name in renamed]
    assert max(straight.values()) == 10


def test_scores_do_not_depend_on_which_other_nodes_are_asked_about():
    snapshot = view(
        [node("a", cpu=4000, memory=100), node("b", cpu=1000, memory=400), node("big", cpu=64000, memory=9000)]
    )
    asked = asking(cpu=500, memory=50)
    ranker = Ranker(Placement("cosine", 0.01))
    few = ranker.suitability(snapshot, asked, np.array([1, 0])).score
    every = ranker.suitability(snapshot, asked, np.arange(3)).score
    assert few.tolist() == every[[1, 0]].tolist()


@pytest.mark.parametrize("rule", sorted(RULES))
def test_a_few_of_many_nodes_score_as_they_do_among_all(rule):
    # 3 of 40 nodes are scored by themselves, 20 of 40 among all; one pod is in flight and one holds its input there.
    nodes = [node(f"n{n:02d}", cpu=1000.0 + 50 * (n % 7), memory=900.0 + 10 * (n % 11), **{GPU: 4}) for n in range(40)]
    others = [held(f"on-{n}", f"n{n:02d}", cpu=20.0 * n, memory=15.0 * n, **{GPU: n % 4}) for n in range(40)]
    filled = ledger(nodes, others)
    filled.promise(asking("coming", cpu=100.0), "n21", 0.0)
    reads = replace(asking(cpu=100.0, memory=50.0, **{GPU: 1}), inputs=(("n01", 100.0),))
    ranker, snapshot, few, many = Ranker(Placement(rule)), filled.snapshot(0.0), [21, 1, 33], np.arange(39, 0, -2)
    some, among = (ranker.suitability(snapshot, reads, rows) for rows in (np.array(few), many))
    places = [many.tolist().index(row) for row in few]
    assert some.score == pytest.approx(among.score[places])
    assert some.full == pytest.approx(among.full[places])
    assert some.strands.tolist() == among.strands[places].tolist()
    assert len(set(among.strands.tolist())) > 1


GPU_NODE = {"cpu": 64, "memory": 64, GPU: 8}


def on_gpus(uid, where, gpus, cpu):
    return Pod(uid, "default", uid, {"cpu": float(cpu), "memory": float(cpu), GPU: float(gpus)}, node=where)


def of_gpus(gpus, cpu):
    return replace(on_gpus("new", "", gpus, cpu), node=None)


def test_a_small_pod_leaves_the_whole_node_to_those_who_ask_for_all_of_it():
    # Shape alone would send it to b, which is empty; one of three pods here asks for eight GPUs.
    nodes = [Node(name, GPU_NODE) for name in ("a", "b", "c")]
    pods = [on_gpus("large", "c", 8, 32), on_gpus("small", "a", 1, 4), on_gpus("another", "a", 4, 4)]
    small = of_gpus(1, 8)
    assert ranked(view(nodes, pods), small, "a", "b")[0] == 10
    assert Ranker(Placement()).best(view(nodes, pods), small, np.array([0, 1])).tolist() == [0]
    suits = Ranker(Placement()).suitability(view(nodes, pods), small, np.array([0, 1]))
    # a: two of three pods could use none of its three GPUs, nor can they of two. b: one of three could use all eight.
    assert suits.strands.tolist() == [round((2 - 3) * 2 / 3 / 0.1), round(7 / 3 / 0.1)]


def test_a_pod_without_devices_keeps_away_from_the_cores_that_devices_need():
    # On a and b eight GPUs are free; on b 40 cores are as well, and those who ask for eight GPUs need 32.
    nodes = [Node(name, GPU_NODE) for name in ("a", "b", "c")]
    others = [held("full", "a", cpu=40, memory=1), held("light", "b", cpu=24, memory=1)]
    pods = [on_gpus("large", "c", 8, 32), *others]
    snapshot = view(nodes, pods)
    assert Ranker(Placement()).best(snapshot, asking(cpu=16, memory=1), np.array([0, 1])).tolist() == [0]


def test_nodes_are_ranked_by_what_they_offer_now_and_what_runs_now():
    # First b has fewer GPUs than a, then as many; then somebody asks for eight of them at once.
    fewer = [Node("a", GPU_NODE), Node("b", {**GPU_NODE, GPU: 4}), Node("c", GPU_NODE)]
    pods = [on_gpus("half", "a", 4, 8)]
    filled = ledger([Node(name, GPU_NODE) for name in "abc"], pods)
    snapshots = [view(fewer, pods), filled.snapshot(0)]
    filled.apply(PodSeen(on_gpus("large", "c", 8, 32)))
    ranker, small, rows = Ranker(Placement()), of_gpus(1, 8), np.arange(2)
    for snapshot in (*snapshots, filled.snapshot(0)):
        suits, anew = (one.suitability(snapshot, small, rows) for one in (ranker, Ranker(Placement())))
        assert [part.tolist() for part in suits] == [part.tolist() for part in anew]


def test_who_ranks_first_is_as_it_was_where_no_pod_asks_for_devices():
    nodes = [Node(name, GPU_NODE) for name in ("a", "b")]
    snapshot = view(nodes, [held("p", "a", cpu=8, memory=8)])
    assert not Ranker(Placement()).suitability(snapshot, of_gpus(1, 8), np.array([0, 1])).strands.any()


def test_a_pod_needs_the_disk_where_its_input_is_and_the_network_elsewhere():
    nodes = [
        node(name, disk_read=disk, network_in=link) for name, disk, link in (("a", 50, 0), ("b", 0, 50), ("c", 0, 49))
    ]
    reader = replace(asking(disk_read=50), inputs=(("a", 1.0),))
    found = judge(view(nodes), reader)
    assert found.passed.tolist() == [True, True, False]
    assert found.reasons()[found.short[2]] == "insufficient network-in"
    assert judge(view(nodes), asking(disk_read=50)).passed.tolist() == [True, False, False]


def test_a_victim_that_reads_from_another_node_frees_the_network_here_and_the_disk_there():
    rates = {"disk_read": 100.0, "network_in": 100.0, "network_out": 100.0}
    reader = replace(held("r", "b", cpu=100, disk_read=80), inputs=(("a", 1.0),), priority=-1)
    filled = ledger([node("a", **rates), node("b", **rates)], [reader])
    snapshot = filled.snapshot(0)
    assert fits_once_gone(snapshot, asking(network_in=50), b=[]) == {"a"}  # b receives 80 of 100
    assert fits_once_gone(snapshot, asking(network_in=50), b=[reader]) == {"a", "b"}
    assert fits_once_gone(snapshot, asking(disk_read=50), b=[]) == {"b"}  # a is read at 80 of 100
    assert fits_once_gone(snapshot, asking(disk_read=50), b=[reader]) == {"a", "b"}
    assert filled.below(0).tolist() == snapshot.allocated.tolist()


# -- opportunistic pods


def test_an_opportunistic_pod_fits_by_what_it_counts():
    """A node that is full for regular pods has place for it, but no second GPU."""
    snapshot = view([node("a", **{GPU: 1.0})], [held("p", "a", cpu=1000)])
    pod = replace(asking(cpu=500), opportunistic=True)
    assert verdicts(snapshot, asking(cpu=500)) == {"a": "insufficient cpu"}
    assert verdicts(snapshot, pod) == {"a": None}
    assert verdicts(snapshot, replace(pod, demand={GPU: 2.0})) == {"a": f"insufficient {GPU}"}


def test_what_an_opportunistic_pod_reads_of_its_holders_refuses_it_nowhere():
    nodes = [node("a", disk_read=10.0, network_out=10.0), node("b", network_in=10.0)]
    pod = replace(asking(disk_read=50), inputs=(("a", 1.0),))
    assert verdicts(view(nodes), pod)["b"] is not None
    assert verdicts(view(nodes), replace(pod, opportunistic=True)) == {"a": None, "b": None}


def test_a_regular_pod_fits_beside_opportunistic_ones_as_if_they_were_not_there():
    snapshot = view([node("a")], [replace(held("p", "a", cpu=900), opportunistic=True)])
    assert verdicts(snapshot, asking(cpu=1000)) == {"a": None}
