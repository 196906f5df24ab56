"""A cluster without an API server: events go in, what the release loop writes is applied at once and comes back."""

import dataclasses

import numpy as np

from extender.cluster.events import NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import HOLD_GATE, Node, Pod
from extender.cluster.pods.identity import Identity
from extender.control.backlog.backlog import Backlog
from extender.control.cluster_view import ClusterView
from extender.control.filter_order.waking import Waker
from extender.control.plan_input.builder import PlanInputBuilder
from extender.control.release.loop import Releaser
from extender.control.release.room_for_all import RoomForAll
from extender.control.release.sending import Sender
from extender.control.release.slots import Pace
from extender.errors import ClusterError
from extender.explain.planned_order import planned_order
from extender.planner import Planner, Policy

OURS = "dovetail"


def node(name, cpu=1000, memory=1000, **more):
    return Node(name, {"cpu": float(cpu), "memory": float(memory)}, **more)


def pod(name, cpu=100, *, queue="q", job=None, gates=(HOLD_GATE,), created=0.0, version=1, group="", least=0, **more):
    """Return a held pod of a job of its own, unless `job` names one."""
    return Pod(
        uid=f"uid-{name}",
        namespace="default",
        name=name,
        demand={"pods": 1.0, **({"cpu": float(cpu)} if not isinstance(cpu, dict) else cpu)},
        identity=Identity(job=job or name, queue=queue, group=group, least=least),
        gates=tuple(gates),
        scheduler=OURS,
        created=created,
        resource_version=version,
        **more,
    )


LONG_SECONDS = 100_000.0
"""Whatever waits beside: who has waited for so long is due."""


class Counted(dict):
    """Pods of which it counts how many are looked at: `seen`."""

    seen = 0

    def values(self):
        for value in super().values():
            self.seen += 1
            yield value


class Scene:
    """`written`: what was written, in order; `refuse`: (verb, name) that fail; nothing comes back while `deaf`.

    With `chooses` the nodes of pods that surely find room are left to `filter`.
    """

    assume_seconds = 15.0

    def __init__(self, *nodes, queues=(), pace=None, policy=None, by_filter=False, levels=(), chooses=False):
        self.attempts: list[tuple[str, str]] = []
        self.written, self.refuse, self.told, self.sent, self.levels = [], set(), [], {}, {}
        self.leading, self.deaf, self.now = True, False, 100.0
        self.ledger = Ledger(in_flight_seconds=15.0)
        self.by_filter, self.chooses = by_filter, chooses
        self.backlog = Backlog([OURS], by_filter=by_filter, queues=queues)
        self.pods = {}
        self.queues, self.pace, self.policy, self.level_labels = queues, pace or Pace(), policy or Policy(), levels
        self.apply(NodesListed(list(nodes)))
        self.start()

    def start(self):
        """Make a release loop, as a new process does: with nothing but what the watches say."""
        self.cluster = ClusterView(
            self.ledger,
            self.backlog,
            self.input_builder(),
            leads=lambda: self.leading,
            flight_time=lambda: self.flight_time(),
            run_soon=lambda write: self.run_soon(write),
            assume_seconds=self.assume_seconds,
        )
        self.sender = Sender(self.cluster, self, self, self)
        waker = Waker(self.backlog, self, lambda write: write(), lambda: self.leading) if self.by_filter else None
        room_for_all = RoomForAll(self.cluster) if self.chooses else None
        self.releaser = Releaser(
            self.cluster, Planner(self.policy), self.sender, self.pace, waker, room_for_all=room_for_all
        )

    def run_soon(self, write):
        write()

    def flight_time(self):
        return self.now

    def input_builder(self):
        return PlanInputBuilder(
            self.backlog,
            self.queues,
            starved_after=self.policy.starved_after,
            levels=self.level_labels,
            long_tasks=np.isfinite(self.policy.long_task),
        )

    def restart(self):
        """Lose all that a process keeps, and list everything again."""
        nodes = list(self.backlog.nodes.values())
        self.ledger = Ledger(in_flight_seconds=15.0)
        self.backlog = Backlog([OURS], by_filter=self.by_filter, queues=self.queues)
        self.apply(NodesListed(nodes))
        self.apply(PodsListed(list(self.pods.values())))
        self.start()

    def apply(self, event):
        self.backlog.apply(event, self.now)
        self.ledger.apply(event)

    def see(self, *pods):
        for it in pods:
            self.pods[it.name] = it
            self.apply(PodSeen(it))

    def change(self, name, **changes):
        before = self.pods[name]
        after = dataclasses.replace(before, resource_version=before.resource_version + 1, **changes)
        self.pods[name] = after
        if not self.deaf:
            self.apply(PodSeen(after))

    def hear(self):
        """Take in what was missed."""
        self.deaf = False
        for known in self.pods.values():
            self.apply(PodSeen(known))

    def bind(self, name, where=None):
        self.change(name, node=where or self.pods[name].nominated)

    def end(self, name):
        self.change(name, finished=True)

    def remove(self, name):
        self.apply(PodGone(self.pods.pop(name).uid))

    def step(self, seconds=0.0):
        self.now += seconds
        return self.releaser.step(self.now)

    def view(self, seconds=0.0, carried=None):
        """Return the order as it is, by a whole plan that goes on from what is `carried`."""
        self.now += seconds
        planner = Planner(self.policy, explain=True)
        planner.carried = carried or planner.carried
        return planned_order(
            self.backlog, self.input_builder(), planner, self.ledger.snapshot(self.flight_time()), self.now
        )

    def why(self):
        """Return the reason of each held pod, by name."""
        found = self.view().why
        return {it.name: found[it.uid] for it in self.pods.values() if it.uid in found}

    def released(self):
        """Return the names of the pods that were released, in order."""
        return [name for verb, name, *_ in self.written if verb == "release"]

    def told_to(self, verb):
        """Return the writes of one kind."""
        return [written for written in self.written if written[0] == verb]

    def nominated(self):
        return {name: where for verb, name, *rest in self.written if verb == "nominate" for where in rest}

    # what the loop writes to and tells

    def nominate(self, pod, where):
        self._write("nominate", pod, where)
        self.change(pod.name, nominated=where, promised=where)

    def release(self, pod):
        self._write("release", pod)
        self.change(pod.name, gates=())

    def clear(self, pod):
        self._write("clear", pod)
        self.change(pod.name, nominated=None if pod.nominated == pod.promised else pod.nominated, promised=None)

    def wake(self, pod):
        self._write("wake", pod)
        self.change(pod.name)

    def _write(self, verb, pod, *more):
        self.attempts.append((verb, pod.name))
        if (verb, pod.name) in self.refuse:
            raise ClusterError(f"{verb} {pod.name} is refused")
        self.written.append((verb, pod.name, *more))

    def note_release(self, release, node, waited):
        self.told.append((release.pod.name, release.how, waited))
        self.sent[release.pod.name] = node
        self.levels[release.pod.name] = (release.level, release.passed_over)
