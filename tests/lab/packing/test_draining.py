"""Which nodes could be drained now, with nodes and pods by hand."""

import pytest

from extender.cluster.eligibility import Constraints, Requirement, Taint
from extender.cluster.peers import Peers, PodTerm, TopologySpread
from extender.cluster.recording.lines import Checkpoint, NodeLine, PodLine
from lab.packing.budgets import _Expression, _Selector, written
from lab.packing.draining import BARE, GUARDED, NO_ROOM, UNKNOWN, Obstacle, drainable
from lab.packing.moment import moment_of

GIB = 2.0**30


def node_line(name, cpu=4000.0, **others):
    return NodeLine(1.0, name, {"cpu": cpu, "memory": 8 * GIB, "pods": 110.0}, **others)


def pod_line(name, node, cpu=1000.0, owner="web", owner_kind="ReplicaSet", **others):
    demand = {"cpu": cpu, "memory": GIB, "pods": 1.0}
    more = {"node": node, "owner": owner, "owner_kind": owner_kind, **others}
    return PodLine(name, "shop", name, "shop/web", "shop", demand, 1.0, **more)


def drained(nodes, pods, guards=None):
    moment = moment_of(Checkpoint(1.0, nodes, pods), "here")
    return drainable(moment.problem, moment.machines, moment.residents, guards or {}, moment.staying)


def test_a_node_can_be_drained_whose_pods_find_room_on_the_others():
    # n0 holds 3 of 4 cores, n1 and n2 have two left: one pod of 2 cores fits on each, three do not.
    nodes = [node_line("n0"), node_line("n1"), node_line("n2")]
    pods = [pod_line("a", "n0"), pod_line("b", "n0", 2000.0), pod_line("c", "n1", 2000.0), pod_line("d", "n2", 2000.0)]
    found = drained(nodes, pods)
    assert (found.nodes, found.idle) == (["n0", "n1", "n2"], 0)
    # With one core of n1 taken as well, the two of n2 fit nowhere.
    full = drained(nodes, [*pods, pod_line("e", "n1", 1000.0)])
    assert full.nodes == ["n0", "n1"]
    assert full.obstacles == [Obstacle(NO_ROOM, 1, "n2: shop/d")]


def test_a_node_without_pods_but_those_that_leave_with_it_can_always_be():
    pods = [pod_line("d", "n0", owner_kind="DaemonSet"), pod_line("s", "n0", owner_kind="Node"), pod_line("a", "n1")]
    found = drained([node_line("n0", cpu=2500.0), node_line("n1")], pods)
    assert (found.nodes, found.idle) == (["n0"], 1)
    assert found.obstacles == [Obstacle(NO_ROOM, 1, "n1: shop/a")]  # half a core is left on n0


def test_what_keeps_pods_from_other_nodes_counts():
    nodes = [node_line("n0"), node_line("n1", taints=(Taint("gpu", "", "NoSchedule"),)), node_line("n2")]
    to_ssd = Constraints(selector=(("disk", "ssd"),))
    found = drained(nodes, [pod_line("a", "n0", constraints=to_ssd), pod_line("b", "n2")])
    assert found.nodes == ["n1", "n2"]
    assert found.obstacles == [Obstacle(NO_ROOM, 1, "n0: shop/a")]


@pytest.mark.parametrize(
    ("pod", "obstacle"),
    [
        ({"owner": ""}, Obstacle(BARE, 1, "n0: shop/a")),
        ({"unwritten": ("preferred-affinity", "volumes")}, Obstacle(UNKNOWN, 1, "n0: shop/a: volumes")),
    ],
)
def test_who_cannot_be_moved_or_of_whom_that_is_not_known_is_an_obstacle(pod, obstacle):
    found = drained([node_line("n0"), node_line("n1")], [pod_line("a", "n0", **pod)])
    assert (found.nodes, found.obstacles) == (["n1"], [obstacle])


def test_a_budget_that_allows_no_eviction_is_one():
    found = drained([node_line("n0"), node_line("n1")], [pod_line("a", "n0")], {"shop/a": "shop/web"})
    assert found.obstacles == [Obstacle(GUARDED, 1, "n0: shop/a, shop/web")]


def test_each_node_is_looked_at_as_if_it_alone_were_drained():
    # Each of two has room for the other's pods: either may go, not both.
    found = drained([node_line("n0"), node_line("n1")], [pod_line("a", "n0"), pod_line("b", "n1")])
    assert found.nodes == ["n0", "n1"]


WEB = (Requirement("app", "In", ("web",)),)


def zoned(name, zone):
    return node_line(name, labels={"kubernetes.io/hostname": name, "zone": zone})


def web(name, node, owner_kind="ReplicaSet", **peers):
    return pod_line(name, node, labels={"app": "web"}, owner_kind=owner_kind, peers=Peers(**peers))


def test_pods_that_keep_apart_need_a_node_without_the_others():
    apart = {"away": (PodTerm("kubernetes.io/hostname", ("shop",), WEB),)}
    nodes = [zoned("n0", "a"), zoned("n1", "a")]
    pods = [web("a", "n0", **apart), web("b", "n1", **apart)]
    assert drained(nodes, pods).obstacles == [Obstacle(NO_ROOM, 2, "n0: shop/a")]
    free = drained([*nodes, zoned("n2", "a")], pods)
    assert (free.nodes, free.idle) == (["n0", "n1", "n2"], 1)
    held = drained([*nodes, zoned("n2", "a")], [*pods, web("d", "n2", **apart, owner_kind="DaemonSet")])
    assert held.nodes == ["n2"]  # who stays on it keeps the others away


def test_pods_that_are_spread_go_where_no_zone_gets_more_than_it_may():
    # One in each zone: the pod of zone b could go to zone a, where two would be, and none in b.
    even = {"spread": (TopologySpread(PodTerm("zone", ("shop",), WEB)),)}
    nodes = [zoned("n0", "a"), zoned("n1", "a"), zoned("n2", "b")]
    pods = [web("a", "n0", **even), web("b", "n2", **even)]
    found = drained(nodes, pods)
    assert (found.nodes, found.obstacles) == (["n0", "n1"], [Obstacle(NO_ROOM, 1, "n2: shop/b")])
    assert drained([*nodes, zoned("n3", "b")], pods).nodes == ["n0", "n1", "n2", "n3"]


def test_a_selector_is_written_as_the_api_server_takes_it():
    selector = _Selector(
        {"app": "web"},
        [
            _Expression("tier", "In", ["a", "b"]),
            _Expression("env", "NotIn", ["test"]),
            _Expression("x", "Exists"),
            _Expression("y", "DoesNotExist"),
        ],
    )
    assert written(selector) == "app=web,tier in (a,b),env notin (test),x,!y"
    assert not written(_Selector())
