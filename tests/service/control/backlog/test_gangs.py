"""How far gangs have got, while a watch changes the pods in another thread."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from extender.cluster.events import PodsListed
from extender.control.backlog.gangs import partial_gangs
from tests.service.control.scene import Scene, node, pod


def left_behind():
    """Return a scene with two pods of a gang of three that a predecessor nominated, and these pods."""
    scene = Scene(node("n1"))
    gang = {"job": "g", "group": "default/g", "least": 3, "nominated": "n1", "promised": "n1"}
    pods = [pod(f"g{number}", **gang) for number in range(2)]
    scene.see(*pods)
    return scene, pods


def test_a_gang_of_which_too_few_are_nominated_is_one_in_part():
    scene, pods = left_behind()
    assert partial_gangs(scene.backlog, pods) == {"default/g"}


def test_a_gang_of_which_one_was_released_already_is_completed_though_it_is_in_part():
    scene, pods = left_behind()
    scene.see(pod("first", job="g", group="default/g", least=3, gates=(), node="n1"))
    assert partial_gangs(scene.backlog, pods) == set()


@pytest.mark.parametrize("order", [(2, 3), (3, 2)])
def test_where_pods_of_a_gang_differ_in_how_many_it_is_the_most_counts(order):
    scene = Scene(node("n1", cpu=200))
    scene.see(*(pod(f"g{least}", cpu=100, group="default/g", least=least) for least in order))
    scene.step()
    assert scene.released() == []


def test_a_gang_whose_pods_went_meanwhile_is_none():
    scene, pods = left_behind()
    for it in pods:
        scene.remove(it.name)
    assert partial_gangs(scene.backlog, pods) == set()


def test_no_pod_comes_or_goes_while_the_started_ones_are_counted(monkeypatch):
    scene, pods = left_behind()
    ended, free = scene.backlog.groups.ended, []

    def watched(name):
        with ThreadPoolExecutor(1) as watch:
            free.append(watch.submit(scene.backlog.lock.acquire, blocking=False).result())
        return ended(name)

    monkeypatch.setattr(scene.backlog.groups, "ended", watched)
    partial_gangs(scene.backlog, pods)
    assert free == [False]


def two_queues():
    """Return a scene of two queues: q has six places of ten with a gang of three, r three, and both want the tenth."""
    scene = Scene(node("n1"))
    scene.see(*(pod(f"g{number}", job="g", group="default/g", least=3) for number in range(3)))
    scene.step()
    for number in range(3):
        scene.bind(f"g{number}")
    scene.see(*(pod(f"q{number}", gates=(), node="n1") for number in range(3)))
    scene.see(*(pod(f"r{number}", gates=(), node="n1", queue="r") for number in range(3)))
    scene.see(pod("waits", queue="r", created=50.0))
    return scene


def test_what_a_gang_lacks_of_its_turn_goes_before_other_queues():
    scene = two_queues()
    scene.see(pod("last", gates=(), node="n1", queue="r"))
    scene.remove("g2")
    scene.see(pod("again", job="g", group="default/g", least=3, created=60.0))
    scene.step(1)
    assert scene.nominated()["again"] == "n1"
    assert "waits" not in scene.nominated()


@pytest.mark.parametrize(
    "forge",
    [
        lambda scene: scene.see(pod("more", job="g", group="default/g", least=4, created=60.0)),
        lambda scene: [
            scene.change("q0", identity=pod("", group="default/h", least=2).identity),
            scene.see(pod("more", group="default/h", least=2)),
        ],
        lambda scene: [
            scene.see(pod("first", group="default/h", least=2, promised="n1"), pod("more", group="default/h", least=2)),
            setattr(scene, "deaf", True),  # that it is cleared shows later
        ],
        lambda scene: [
            scene.remove("g2"),
            scene.see(pod("more", 110, group="default/g", least=3)),  # 200 are free: for it or for what waits
        ],
    ],
    ids=["a higher minimum", "a pod that runs joins a group", "a forged nomination", "larger pods than before"],
)
def test_what_a_gang_has_had_no_turn_for_waits_for_its_queues_turn(forge):
    scene = two_queues()
    forge(scene)
    scene.step(1)
    assert list(scene.nominated())[3:] == ["waits"]


def test_a_list_in_between_makes_no_difference():
    scene = two_queues()
    scene.see(pod("last", gates=(), node="n1", queue="r"))
    scene.remove("g2")
    scene.apply(PodsListed([*scene.pods.values()]))
    scene.see(pod("again", job="g", group="default/g", least=3, created=60.0))
    scene.step(1)
    assert list(scene.nominated())[3:] == ["again"]


def test_after_a_restart_what_a_gang_lacks_then_goes_before_other_queues_and_no_more_later():
    scene = two_queues()
    scene.remove("g2")
    scene.see(pod("last", gates=(), node="n1", queue="r"))
    scene.see(pod("again", job="g", group="default/g", least=3, created=60.0))
    scene.restart()
    scene.step(1)
    assert list(scene.nominated())[3:] == ["again"]
    scene.bind("again")
    scene.remove("last")
    scene.see(pod("more", job="g", group="default/g", least=4, created=60.0))
    scene.step(1)
    assert list(scene.nominated())[3:] == ["again", "waits"]
