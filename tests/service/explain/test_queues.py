"""Where each queue stands."""

from dataclasses import replace

import pytest

from extender.cluster.queues import Queue
from extender.explain.queues import queue_states
from tests.service.control.scene import Scene, node, pod
from tests.service.costs import lines_of


def standing(scene):
    return {it.name: it for it in queue_states(scene.view())}


def test_a_queue_s_pods_are_counted_by_where_they_are():
    scene = Scene(node("n1"))
    scene.see(
        pod("runs", 300, gates=(), node="n1"),
        pod("released", gates=(), promised="n1", nominated="n1"),
        pod("nominated", promised="n1", nominated="n1"),
        pod("waits", created=40.0),
        pod("others", gates=("dovetail.dev/hold", "kueue.x-k8s.io/admission"), created=60.0),
    )
    found = standing(scene)["q"]
    assert (found.running, found.released, found.held) == (1, 1, 3)
    assert found.share == pytest.approx(0.5)  # 300 + 100 + 100 of 1,000
    assert (found.fair, found.weight, found.declared, found.policy) == (1.0, 1.0, False, "fair")
    assert found.oldest_seconds == 100.0  # `nominated` was created at 0, and now is 100


def test_pods_without_a_gate_that_wait_are_counted_and_the_refused_ones_wait_for_as_long_as_they_are_there():
    scene = Scene(node("n1"), by_filter=True)
    scene.see(pod("held", created=60.0), pod("new", gates=(), created=10.0), pod("passed", gates=(), nominated="n1"))
    assert (standing(scene)["q"].ungated, standing(scene)["q"].held, standing(scene)["q"].released) == (1, 1, 1)
    assert standing(scene)["q"].oldest_seconds == 40.0
    scene.change("new", unschedulable=True)
    assert standing(scene)["q"].oldest_seconds == 90.0


def test_a_parent_is_all_that_is_below_it_and_comes_first():
    queues = (Queue("lab", 1), Queue("x", 3, parent="lab"), Queue("a", 1, parent="lab", fifo=True), Queue("b", 1, 0.2))
    scene = Scene(node("n1"), queues=queues)
    scene.see(*(pod(f"{q}0", 200, queue=q, gates=(), node="n1") for q in "xab"), pod("x1", queue="x", created=30.0))
    found = queue_states(scene.view())
    assert [(it.name, it.depth) for it in found] == [("b", 0), ("lab", 0), ("a", 1), ("x", 1)]
    rows = {it.name: it for it in found}
    assert (rows["lab"].running, rows["lab"].held, rows["lab"].oldest_seconds) == (2, 1, 70.0)
    assert rows["lab"].share == pytest.approx(0.4)
    assert [rows[name].fair for name in ("lab", "x", "a", "b")] == pytest.approx([0.5, 0.375, 0.125, 0.5])
    assert (rows["a"].policy, rows["b"].minimum) == ("fifo", 0.2)


def test_a_declared_queue_without_pods_has_no_fair_share_and_no_wait():
    found = standing(Scene(node("n1"), queues=(Queue("idle"),)))["idle"]
    assert (found.share, found.fair, found.held, found.oldest_seconds) == (0.0, None, 0, None)


def test_opportunistic_pods_have_a_share_of_their_own():
    """Of 1,000 of CPU: 300 as regular, 200 as opportunistic."""
    scene = Scene(node("n1"))
    scene.see(
        pod("regular", 300, gates=(), node="n1"),
        pod("idle", 200, gates=(), node="n1", opportunistic=True),
        pod("o", 100, queue="other", gates=(), node="n1"),
    )
    found = standing(scene)
    assert (found["q"].share, found["q"].opportunistic_share) == pytest.approx((0.3, 0.2))
    assert found["other"].opportunistic_share == 0.0


def test_pods_that_take_no_part_are_in_no_queue():
    scene = Scene(node("n1"))
    scene.see(pod("ds", gates=(), node="n1", owner_kind="DaemonSet"))
    assert queue_states(scene.view()) == []


@pytest.mark.parametrize("declared", [False, True])
def test_the_cost_of_showing_queues_grows_with_the_queues_not_with_their_square(declared):
    def lines(count):
        queues = tuple(Queue(f"q{n}", parent="lab") for n in range(count)) if declared else ()
        scene = Scene(node("n1", 1e6), queues=(*queues, Queue("lab")) if declared else ())
        scene.see(*(replace(pod(f"p{n}", queue=f"q{n}"), namespace=f"q{n}") for n in range(count)))
        order = scene.view()
        assert len(queue_states(order)) == count + declared
        return lines_of(lambda: queue_states(order))

    assert lines(200) < 5 * lines(50)
