"""Parts of a process share the watches of what both follow; nothing is listed before both have said what that is."""

import threading

import pytest

from extender.adapters.kube.watching import jobs, pods
from extender.app import watches as module
from extender.app.liveness import Liveness
from extender.app.watches import Watches


class FakeWatch:
    """Stands for a watch: `run` brings one event and what ended it."""

    made = ()

    def __init__(self, _api, resource, sink, *, restarted, moved):
        self.resource, self.sink, self.restarted, self.moved, self.ran = resource, sink, restarted, moved, 0
        FakeWatch.made += (self,)

    def run(self):
        self.ran += 1
        self.moved()
        self.sink("an event")
        self.restarted("pods", "ended")


@pytest.fixture(autouse=True)
def made(monkeypatch):
    FakeWatch.made = ()
    monkeypatch.setattr(module, "Watch", FakeWatch)


class Part:
    def __init__(self, watches, *resources):
        self.watches, self.heard, self.restarts, self.started = watches, [], [], threading.Event()
        self.follows = [
            watches.follow(it, self.heard.append, lambda *told: self.restarts.append(told)) for it in resources
        ]

    def start(self):
        self.watches.start()
        self.started.set()


def wait(condition):
    for _ in range(500):
        if condition():
            return True
        threading.Event().wait(0.01)
    return False


def test_who_follows_the_same_kind_shares_one_watch_and_gets_each_event():
    watches = Watches(None, Liveness(), parts=2)
    serve, control = Part(watches, pods(), jobs()), Part(watches, pods())
    assert serve.follows[0] is control.follows[0]
    assert [it.resource.name for it in FakeWatch.made] == ["pods", "jobs"]
    threads = [threading.Thread(target=part.start) for part in (serve, control)]
    for thread in threads:
        thread.start()
    assert wait(lambda: len(serve.heard) == 2 and len(control.heard) == 1)
    assert wait(lambda: control.restarts == [("pods", "ended")] and len(serve.restarts) == 2)
    assert [it.ran for it in FakeWatch.made] == [1, 1]
    for thread in threads:
        thread.join(5)


def test_nothing_is_listed_until_all_parts_have_said_what_they_follow():
    watches = Watches(None, Liveness(), parts=2)
    serve = Part(watches, pods())
    thread = threading.Thread(target=serve.start)
    thread.start()
    assert not serve.started.wait(0.1)
    assert FakeWatch.made[0].ran == 0
    control = Part(watches, pods())
    control.start()
    assert serve.started.wait(5)
    assert wait(lambda: control.heard == serve.heard == ["an event"])
    thread.join(5)


def test_a_part_alone_starts_at_once():
    part = Part(Watches(None, Liveness()), pods())
    part.start()
    assert wait(lambda: part.heard == ["an event"])
