"""The pods that have a place in the order, by task class, job and queue: what waits, what runs, what is still to come.

Filled by the watches; `rounds` makes the planner's arrays of it. It is a cache: all of it comes back from the API
server after a restart, but for learned durations and how far stages without an owner have got.
"""

import itertools
import math
import threading
from collections import Counter
from collections.abc import Collection, KeysView, Sequence
from dataclasses import replace

from extender.cluster.model import (
    Event,
    NamespaceEvent,
    Node,
    NodeGone,
    NodeSeen,
    NodesListed,
    Owner,
    OwnerSeen,
    OwnersListed,
    Pod,
    PodGone,
    PodSeen,
    PodsListed,
    VolumeEvent,
)
from extender.cluster.queues import Queue
from extender.control.backlog.owners import Owners
from extender.control.backlog.pending_writes import PendingWrites
from extender.control.backlog.task_classes import (
    MOST_ENDED,
    Job,
    Key,
    PodPhase,
    TaskClass,
    key_of,
    name_of,
    phase_by_filter,
    phase_of,
)
from extender.control.backlog.tenancy import Tenancy
from extender.control.backlog.volumes import Volumes

__all__ = ["Backlog", "Job", "Key", "PodPhase", "TaskClass", "key_of", "name_of", "phase_of"]

DEFAULT_SECONDS = 60.0
"""How long a task is taken to run while nothing is known of it or its like."""

_BEFORE_RELEASE = (PodPhase.READY, PodPhase.UNGATED)

_HOLDING = (PodPhase.RUNNING, PodPhase.NOMINATED, PodPhase.PENDING)

_NEWS_SECONDS = 600.0
"""What a watch brings for the first time was not created longer ago than this: else somebody's clock was set."""

_ON_ITS_OWN = ("DaemonSet", "Node")
"""Owners whose pods take no turn: their nodes are settled."""


class Backlog:
    """Takes events in any thread; `lock` is held by whoever reads more than one thing.

    The declared `queues` say whose pods they are for. With `by_filter`, pods without a gate wait too (UNGATED).
    `changes` grows with what may change a plan; `left` counts pods that were seen on a node and ended or were deleted.
    """

    def __init__(self, schedulers: Collection[str], *, by_filter: bool = False, queues: Sequence[Queue] = ()) -> None:
        self.lock = threading.RLock()
        self.jobs: dict[tuple[str, str], Job] = {}
        self.workloads = Owners()
        self._owned: dict[str, Counter[Job]] = {}
        self._tenancy = Tenancy(queues)
        self.nodes: dict[str, Node] = {}
        self.nodes_version = 0
        self._volumes = Volumes()
        self.writes = PendingWrites(self.lock)
        self.changes = 0
        self.left = 0
        self._schedulers = frozenset(schedulers)
        self._by_filter = by_filter
        self._phase_of = phase_by_filter if by_filter else phase_of
        self._where: dict[str, tuple[TaskClass, PodPhase]] = {}
        self._known: dict[str, Pod] = {}
        self._at: dict[PodPhase, dict[str, Pod]] = {stage: {} for stage in PodPhase}
        self._ran_seconds, self._timed = 0.0, 0

    def apply(self, event: Event, now: float) -> None:
        """Take one event in, at `now` seconds since the epoch. Duplicates change nothing; older news is ignored."""
        with self.lock:
            match event:
                case PodSeen(pod):
                    self._see(pod, now)
                case PodGone(uid):
                    self._lose(uid)
                    self.workloads.lose(uid)
                case PodsListed(pods):
                    self._list(pods, now)
                case NodeSeen(node):
                    self._see_node(node)
                case NodeGone(name):
                    self.nodes.pop(name, None)
                    self.nodes_version += 1
                case NodesListed(nodes):
                    self.nodes = {node.name: node for node in nodes}
                    self.nodes_version += 1
                case event if isinstance(event, VolumeEvent):
                    self._place_again(self._volumes.apply(event), now)
                case event if isinstance(event, NamespaceEvent):
                    changed = self._tenancy.apply(event)
                    self._place_again([uid for uid, pod in self._known.items() if pod.namespace in changed], now)
                case _:
                    self.workloads.apply(event)
                    self._note_arrivals(event)
                    self.changes += 1

    def classes(self) -> list[TaskClass]:
        """Return all task classes that have pods."""
        with self.lock:
            return [it for job in self.jobs.values() for it in job.classes.values() if it.unfinished]

    def at(self, stage: PodPhase) -> list[Pod]:
        """Return the pods that are so far on their way."""
        with self.lock:
            return list(self._at[stage].values())

    def uids_at(self, stage: PodPhase) -> KeysView[str]:
        """Return the UIDs of the pods that are so far on their way, as they change; for who holds the lock."""
        return self._at[stage].keys()

    def pod(self, uid: str) -> Pod | None:
        """Return a pod that has a place in the order."""
        with self.lock:
            return self._known.get(uid)

    def take(self, of: TaskClass, now: float, until: float, uid: str | None = None) -> Pod | None:
        """Take the oldest ready pod of a class for release, or the one of this UID, if it is ready.

        It is not ready again until then, or until news of it.
        """
        with self.lock:
            ready = of.pods[PodPhase.READY]
            among = ready if uid is None else [uid] if uid in ready else []
            pod = next((ready[uid] for uid in among if not self.writes.busy(uid)), None)
            if pod is not None:
                self.writes.claimed[pod.uid] = until
                of.released_at = max(of.released_at, now)
            return pod

    def claim(self, uid: str, until: float) -> None:
        """Note that a pod is being written to, or was in vain; it is left alone until then, or until news of it."""
        with self.lock:
            if uid in self._known:
                self.writes.claimed[uid] = until

    def rest(self, uid: str, now: float) -> None:
        """Leave a pod alone for a while that could not be written to, if it is still there (`PendingWrites.rest`)."""
        with self.lock:
            if uid in self._known:
                self.writes.rest(uid, now)

    def is_idle(self, uid: str) -> bool:
        """Say whether a pod waits for its turn and nothing is being done about it."""
        where = self._where.get(uid)
        return where is not None and where[1] is PodPhase.READY and not self.writes.busy(uid)

    def ready(self, of: TaskClass) -> int:
        """Return how many pods of a class wait for their turn alone."""
        with self.lock:
            found, busy = 0, self.writes.claimed or self.writes.resting
            for stage in _BEFORE_RELEASE:
                if pods := of.pods[stage]:
                    found += self.waiting(of, stage) if busy else len(pods)
            return found

    def waiting(self, of: TaskClass, stage: PodPhase) -> int:
        """Return how many pods of a class are so far on their way, without those being released or at rest."""
        with self.lock:
            waiting = of.pods[stage]
            if not waiting:
                return 0
            return len(waiting) - self.writes.count(waiting.keys())

    def waiting_pods(self, of: TaskClass) -> list[Pod]:
        """Return the pods of a class that wait for their turn alone, those without a gate first."""
        with self.lock:
            there = (*of.pods[PodPhase.UNGATED].values(), *of.pods[PodPhase.READY].values())
            return [pod for pod in there if not self.writes.busy(pod.uid)]

    def committed(self, of: TaskClass) -> int:
        """Return how many pods of a class hold room: those on a node, and those on their way to one (`usage`)."""
        with self.lock:
            pods, claimed = of.pods, self.writes.claimed
            found = len(pods[PodPhase.RUNNING]) + len(pods[PodPhase.NOMINATED])
            for pod in pods[PodPhase.PENDING].values():
                found += not pod.unschedulable or pod.nominated is not None
            for stage in _BEFORE_RELEASE:
                if claimed and pods[stage]:
                    found += len(pods[stage].keys() & claimed.keys())
            return found

    def maybe_committed(self) -> set[TaskClass]:
        """Return the classes that may hold room: most that wait have no pod that is on its way anywhere."""
        with self.lock:
            stages = (self._at[stage] for stage in _HOLDING)
            uids = (*itertools.chain.from_iterable(stages), *self.writes.claimed)
            return {self._where[uid][0] for uid in uids if uid in self._where}

    def since(self, of: TaskClass) -> float:
        """Return since when a class that has pods ready has waited for one of them to go."""
        with self.lock:
            since = math.inf
            for stage in _BEFORE_RELEASE:
                if pods := of.pods[stage]:
                    since = min(since, next(iter(pods.values())).created)
            return max(since, of.released_at)

    def find(self, uid: str) -> tuple[TaskClass, PodPhase] | None:
        """Return the class of a pod, and where it is on its way."""
        with self.lock:
            return self._where.get(uid)

    def set_out(self, uids: Collection[str]) -> None:
        """Note that exactly these pods are on their way to a node (for who asks before each plan)."""
        with self.lock:
            self.writes.claimed = dict.fromkeys(uids, float("inf"))

    def schedulable_nodes(self) -> int:
        """Return how many nodes are not cordoned."""
        with self.lock:
            return sum(not node.unschedulable for node in self.nodes.values())

    def usual_seconds(self) -> float:
        """Return how long tasks have run on average, of which nobody said so."""
        return self._ran_seconds / self._timed if self._timed else DEFAULT_SECONDS

    def has_place(self, pod: Pod) -> bool:
        """Say whether the pod takes part: it is held by us, or of one of our schedulers and not bound to a node.

        So does one of another scheduler that carried our gate: we have seen that, or it bears our nomination.
        """
        if pod.held:
            return True
        ours = pod.scheduler in self._schedulers or pod.promised is not None or pod.uid in self._known
        return ours and pod.owner_kind not in _ON_ITS_OWN

    def is_ours(self, pod: Pod) -> bool:
        """Say whether the pod is for one of our schedulers."""
        return pod.scheduler in self._schedulers

    # -- pods

    def _list(self, pods: Sequence[Pod], now: float) -> None:
        self.workloads.forget_ends()
        for uid in self._known.keys() - {pod.uid for pod in pods}:
            self._lose(uid)
        for pod in sorted(pods, key=lambda pod: (pod.created, pod.namespace, pod.name)):
            self._place(pod, now, learn=False)

    def _see(self, pod: Pod, now: float) -> None:
        known = self._known.get(pod.uid)
        if known is None or known.resource_version <= pod.resource_version:
            self._place(pod, now, learn=True)

    def _place(self, pod: Pod, now: float, *, learn: bool) -> None:
        """Put a pod where it belongs now; one that finished counts as such, once."""
        known = self._known.get(pod.uid)
        if not self.has_place(pod):
            self._lose(pod.uid)
            return
        pod = _dated(self._tenancy.settle(pod), known, now, news=learn)
        if pod.claims:
            pod = self._with_volumes(pod, known)
        if known is not None and (known.gates, known.node) != (pod.gates, pod.node):
            self.writes.forget(pod.uid)
        elif known is not None and known.promised is not None and pod.promised is None:
            self.writes.claimed.pop(pod.uid, None)
        self.workloads.note_end(pod)
        before = self._where.get(pod.uid)
        if pod.finished or (pod.leaving and pod.node is None):
            if before is not None and pod.finished:
                self._finish(before[0], pod, now, learn=learn)
            self._lose(pod.uid)
            return
        of, stage = self._class_of(pod), self._stage(pod)
        of.pods[stage][pod.uid] = self._at[stage][pod.uid] = pod
        self._where[pod.uid], self._known[pod.uid] = (of, stage), pod
        if pod.claims:
            self._volumes.use(pod)
        if before == (of, stage) and known is not None and known.owner != pod.owner:
            self._own(pod.owner, of.job)
            self._disown(known.owner, of.job)
        if before != (of, stage):
            self.changes += 1
            self._count_in(pod, of)
            if before is not None and known is not None:
                if self._by_filter and stage is PodPhase.RUNNING:
                    of.released_at = max(of.released_at, now)
                self._remove(known, *before)

    def _stage(self, pod: Pod) -> PodPhase:
        """Return where a pod is on its way; filter keeps no order of pods that other schedulers try."""
        stage = self._phase_of(pod)
        return PodPhase.PENDING if stage is PodPhase.UNGATED and pod.scheduler not in self._schedulers else stage

    def _with_volumes(self, pod: Pod, known: Pod | None) -> Pod:
        """Return a pod that says where its volumes are; from when it has a node, as they were before it had.

        So it ends in the class in which it waited, which learns by it how long its like run.
        """
        if pod.node is None:
            volumes = self._volumes.affinities(pod)
        else:
            volumes = known.constraints.volumes if known is not None else ()
        if volumes == pod.constraints.volumes:
            return pod
        return replace(pod, constraints=replace(pod.constraints, volumes=volumes))

    def _place_again(self, uids: Collection[str], now: float) -> None:
        """Put pods where they belong now that their volumes are elsewhere."""
        found = (self._known[uid] for uid in uids)
        for pod in sorted(found, key=lambda pod: (pod.created, pod.namespace, pod.name)):
            self._place(pod, now, learn=False)

    def _class_of(self, pod: Pod) -> TaskClass:
        identity = pod.identity
        job = self.jobs.get((identity.queue, identity.job))
        if job is None:
            job = self.jobs[identity.queue, identity.job] = Job(identity.job, identity.queue, pod.created)
        job.arrived = min(job.arrived, pod.created)
        key = key_of(pod)
        if key not in job.classes:
            job.classes[key] = TaskClass(job, key, pod, name_of(pod))
        job.ended.pop(key, None)
        return job.classes[key]

    def _finish(self, of: TaskClass, pod: Pod, now: float, *, learn: bool) -> None:
        """Count an end, and learn how long such a pod runs, if it ended well."""
        if pod.failed:
            return
        of.finished += 1
        if learn and pod.started is not None:
            seconds = max(now - pod.started, 0.0)
            of.learn(seconds)
            if pod.duration is None:
                self._ran_seconds, self._timed = self._ran_seconds + seconds, self._timed + 1

    def _note_arrivals(self, event: Event) -> None:
        """Have jobs count as arrived no later than their owners were created: their first pods may be gone."""
        match event:
            case OwnerSeen(owner):
                self._note_arrival(owner)
            case OwnersListed(owners):
                for owner in owners:
                    self._note_arrival(owner)

    def _note_arrival(self, owner: Owner) -> None:
        if owner.created > 0:
            for job in self._owned.get(owner.uid, ()):
                job.arrived = min(job.arrived, owner.created)

    def _lose(self, uid: str) -> None:
        known = self._known.pop(uid, None)
        if known is not None and known.claims:
            self._volumes.leave(known)
        self.writes.forget(uid)
        where = self._where.pop(uid, None)
        if where is not None:
            self.changes += 1
            self.left += where[1] is PodPhase.RUNNING
            if known is not None:
                self._remove(known, *where)

    def _count_in(self, pod: Pod, of: TaskClass) -> None:
        """Count a pod in its class and job, and among those of its owner."""
        of.unfinished += 1
        of.job.unfinished += 1
        self._own(pod.owner, of.job)

    def _remove(self, pod: Pod, of: TaskClass, stage: PodPhase) -> None:
        """Take a pod, as it was, out of its class; a job without pods is forgotten, and a class that ended long ago."""
        of.pods[stage].pop(pod.uid, None)
        if self._where.get(pod.uid, (None, None))[1] is not stage:
            self._at[stage].pop(pod.uid, None)
        job = of.job
        of.unfinished -= 1
        job.unfinished -= 1
        self._disown(pod.owner, job)
        if not job.unfinished:
            self.jobs.pop((job.queue, job.name), None)
        elif not of.unfinished:
            job.ended[of.key] = None
            if len(job.ended) > MOST_ENDED:
                oldest = next(iter(job.ended))
                del job.ended[oldest], job.classes[oldest]

    def _own(self, owner: str, job: Job) -> None:
        """Count a pod of an owner, if any, in a job."""
        if not owner:
            return
        self._owned.setdefault(owner, Counter())[job] += 1
        known = self.workloads.owners.get(owner)
        if known is not None:
            self._note_arrival(known)

    def _disown(self, owner: str, job: Job) -> None:
        """Count one less; a job without pods of an owner, and an owner without pods, are forgotten."""
        if not owner:
            return
        jobs = self._owned[owner]
        jobs[job] -= 1
        if not jobs[job]:
            del jobs[job]
            if not jobs:
                del self._owned[owner]

    # -- the rest

    def _see_node(self, node: Node) -> None:
        if self.nodes.get(node.name) != node:
            self.nodes[node.name] = node
            self.nodes_version += 1


def _dated(pod: Pod, known: Pod | None, now: float, *, news: bool) -> Pod:
    """Return a pod whose dates agree with our clock, whatever is set meanwhile: they stay as they first came.

    Nothing is from the future, and a pod that is `news`, and not read from a list, is not from long ago.
    """
    created, started = pod.created, pod.started
    if known is not None:
        created = known.created
    elif news and now - created > _NEWS_SECONDS:
        created = now
    if started is not None:
        started = known.started if known is not None and known.started is not None else min(started, now)
    created = min(created, now)
    return pod if (created, started) == (pod.created, pod.started) else replace(pod, created=created, started=started)
