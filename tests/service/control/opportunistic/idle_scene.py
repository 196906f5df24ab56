"""A cluster whose use is measured: what waits may start on idle room, and become regular where regular room appears."""

from collections import Counter
from dataclasses import replace

from extender.cluster.pods.opportunistic import RegularRequests
from extender.cluster.stays_off import StaysOff
from extender.cluster.usage import Sample, Usage
from extender.control.opportunistic.promotion import Promoter
from extender.control.opportunistic.second_pass import OpportunisticLimits, SecondPass
from extender.control.preemption.eviction_history import EvictionHistory
from extender.control.release.loop import Releaser
from extender.control.release.sending import Sender
from extender.errors import ClusterError
from extender.planner import Planner
from tests.service.control.scene import Scene, pod

REQUESTS = RegularRequests(containers={"main": {"cpu": "1"}})


class IdleScene(Scene):
    """`use` is what was measured of each node's CPU; nodes that are not there were not measured.

    Samples are of the last second, unless they are `frozen_at` a time. Writes are made at once, unless they are `late`:
    then they wait in `queue`. Writes that are refused are so `refused_with` a status. A new process goes by whether all
    that is `enabled`.
    """

    def __init__(self, *nodes, use=None, **more):
        self.use, self.frozen_at, self.problems = use or {}, None, {}
        self.late, self.queue, self.promoted, self.going = False, [], [], set()
        self.by_idle_room, self.enabled = [], True
        self.asked, self.refusals, self.refused_with = Counter(), [], None
        super().__init__(*nodes, **more)

    def start(self):
        super().start()
        self.queue.clear()
        self.stays_off, self.history = StaysOff(), EvictionHistory()
        self.second_pass = SecondPass(
            self.cluster, self.policy, self.usage, self.idle_terms(), self.stays_off, self.history
        )
        self.promoter = Promoter(
            self.cluster,
            self,
            lambda it: self.promoted.append(it.name),
            lambda: self.going,
            note_refused=lambda it, reason: self.refusals.append((it.name, reason)),
        )
        self.sender = Sender(self.cluster, self, self, self)
        self.releaser = Releaser(
            self.cluster,
            Planner(self.policy),
            self.sender,
            self.pace,
            idle=self if self.enabled else None,
            promoter=self.promoter if self.enabled else None,
        )

    def idle_terms(self):
        """Return by what room is found."""
        return OpportunisticLimits()

    def take(self, planned, slots, now):
        releases = self.second_pass.take(planned, slots, now)
        self.by_idle_room += [(release.pod.name, release.node) for release in releases]
        return releases

    def promises(self, pods, snapshot, now):
        return self.second_pass.promises(pods, snapshot, now)

    def usage(self):
        at = self.now if self.frozen_at is None else self.frozen_at
        nodes = {
            name: Sample({"cpu": float(cpu), "memory": 0.0}, at - 1, at)
            for name, cpu in self.use.items()
            if cpu is not None
        }
        return Usage({}, nodes, {}, self.problems)

    def run_soon(self, write):
        if self.late:
            self.queue.append(write)
        else:
            write()

    def write_all(self):
        """Make the writes that wait, and those that follow from them."""
        while self.queue:
            self.queue.pop(0)()

    def _write(self, verb, pod, *more):
        self.asked[verb, pod.name] += 1
        try:
            super()._write(verb, pod, *more)
        except ClusterError as error:
            error.status = self.refused_with
            raise

    def on_idle_room(self):
        """Return where pods were started on idle room, by name."""
        return dict(self.by_idle_room)

    def count(self, verb):
        return Counter(name for written, name, *_ in self.written if written == verb)

    # what resizes pods

    def demote(self, pod, memory_bytes):
        try:
            self._write("demote", pod)
        except Exception:
            self.second_pass.note_refused(pod)
            raise
        self.change(pod.name, opportunistic=True, regular_requests=REQUESTS)
        return self.pods[pod.name].resource_version

    def restore(self, pod):
        return self._resize("restore", pod, opportunistic=False)

    def take_back(self, pod):
        return self._resize("take back", pod, opportunistic=True)

    def _resize(self, verb, pod, *, opportunistic):
        self._write(verb, pod)
        if self.pods[pod.name].opportunistic != opportunistic and verb not in self.refuse:
            self.change(pod.name, opportunistic=opportunistic)
        return self.pods[pod.name].resource_version


def needs(name, cpu, **more):
    """Return a held pod that needs CPU and a little memory."""
    return pod(name, {"cpu": float(cpu), "memory": 10.0}, **more)


def runs(name, cpu, *, on="n1", started=0.0, **more):
    """Return a regular pod on a node."""
    return needs(name, cpu, gates=(), node=on, started=started, **more)


def opportunistic(it):
    """Return a pod that has given its requests up."""
    return replace(it, opportunistic=True, regular_requests=REQUESTS)
