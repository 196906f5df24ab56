"""How far gangs have got, while a watch changes the pods in another thread."""

from concurrent.futures import ThreadPoolExecutor

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
