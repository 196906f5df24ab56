"""What the plan promises, kube-scheduler accepts: what nodes do not have is promised to nobody."""

from dataclasses import replace

from extender.cluster.model import Node
from extender.explain.wait_reasons import Reason
from tests.service.control.scene import Scene, node, pod

GPU = "nvidia.com/gpu"


def with_more(name, cpu=1000, **more):
    plain = node(name, cpu)
    return replace(plain, allocatable={**plain.allocatable, **{key: float(value) for key, value in more.items()}})


def test_a_node_that_does_not_advertise_a_resource_gets_nobody_who_asks_for_it():
    scene = Scene(node("cpu"), with_more("gpu", **{GPU: 2}))
    scene.see(*(pod(f"p{n}", {"cpu": 100.0, GPU: 1.0}) for n in range(5)))
    scene.step()
    assert scene.nominated() == {"p0": "gpu", "p1": "gpu"}
    assert scene.why()["p2"] == Reason("no-room", f"no node has enough free: mostly {GPU} is short")


def test_who_asks_for_what_no_node_advertises_waits_and_is_told_what_that_is():
    scene = Scene(node("cpu"))
    scene.see(pod("p", {"cpu": 100.0, GPU: 1.0}), pod("claims", {"cpu": 100.0, GPU: 1.0, "device-claims": 1.0}))
    assert scene.why()["p"] == Reason("too-large", f"no node advertises {GPU}")
    scene.step()
    assert scene.released() == ["claims"]


def test_a_node_without_allocatable_gets_nobody():
    scene = Scene(Node("new", {}), node("old"))
    scene.see(pod("p"), pod("asks-for-nothing", {}))
    scene.step()
    assert scene.nominated()["p"] == "old"


def test_no_node_gets_more_pods_than_it_has_places_whatever_they_ask_for():
    # Of three places on each of two nodes, pods of others hold one: five are left.
    scene = Scene(*(with_more(name, pods=3) for name in ("n1", "n2")))
    others = replace(pod("others", 0, gates=(), node="n1"), scheduler="default-scheduler")
    scene.see(others, *(pod(f"p{n}", {}) for n in range(8)))
    scene.step()
    assert sorted(scene.nominated().values()) == ["n1", "n1", "n2", "n2", "n2"]
    scene.remove("others")
    scene.step(1)
    assert len(scene.released()) == 6


def test_scratch_space_and_huge_pages_count():
    scene = Scene(with_more("n1", **{"ephemeral-storage": 10, "hugepages-2Mi": 4}), node("bare"))
    scene.see(*(pod(f"s{n}", {"ephemeral-storage": 6.0}) for n in range(2)))
    scene.see(*(pod(f"h{n}", {"hugepages-2Mi": 2.0}) for n in range(3)))
    scene.step()
    assert sorted(scene.nominated()) == ["h0", "h1", "s0"]  # 6 of 10, and 2 + 2 of 4
    assert set(scene.nominated().values()) == {"n1"}


def test_places_change_neither_shares_nor_order_nor_where_pods_go():
    def sent(**more):
        scene = Scene(with_more("n1", **more), with_more("n2", 800, **more))
        scene.see(*(pod(f"a{n}", 100, queue="a", job=f"a{n % 2}") for n in range(6)))
        scene.see(*(pod(f"b{n}", 300, queue="b", created=float(n)) for n in range(6)))
        scene.step()
        return scene.written

    assert sent(pods=110) == sent()
    assert len(sent()) > 8


def test_a_pod_whose_input_is_on_a_node_reads_it_there_or_does_not_go_there():
    # n2 holds both inputs and has no disk to spare; n1 holds that of x as well, and has no CPU to spare.
    limits = {"disk-read": 1000.0}
    scene = Scene(Node("n1", {"cpu": 1000.0} | limits), Node("n2", {"cpu": 1000.0} | limits))
    scene.see(pod("cpu", 1000, gates=(), node="n1"), pod("disk", {"disk-read": 1000.0}, gates=(), node="n2"))
    scene.see(pod("x", {"cpu": 100.0, "disk-read": 100.0}, inputs=(("n1", 1.0), ("n2", 1.0)), job="j"))
    scene.step()
    assert scene.written == []
    scene.see(pod("y", {"cpu": 100.0, "disk-read": 100.0}, inputs=(("n1", 1.0),), job="j"))
    scene.step(1)
    assert scene.nominated() == {"y": "n2"}  # it reads from n1, whose disk is free
