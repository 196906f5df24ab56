"""The pods that wait or run, filled by the watches: each event puts pods into their place.

`plan_input` makes the planner's arrays of it. It is a cache: a new process has all of it again from the API server, but
for the durations that were learned and how far stages without an owner have got.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from extender.cluster.events import (
    Event,
    NamespaceEvent,
    NodeGone,
    NodeSeen,
    NodesListed,
    PodGone,
    PodSeen,
    PodsListed,
    VolumeEvent,
)
from extender.cluster.model import Node, Pod
from extender.cluster.queues import Queue
from extender.cluster.resources import Amounts
from extender.control.backlog.job_table import JobTable
from extender.control.backlog.owners import Owners
from extender.control.backlog.pod_groups import PodGroups
from extender.control.backlog.pods import WAITING, PodIndex
from extender.control.backlog.task_classes import Job, PodPhase, TaskClass, phase_by_filter, phase_of, same_class
from extender.control.backlog.tenancy import Tenancy
from extender.control.backlog.volumes import Volumes

__all__ = ["Backlog", "Job", "PodPhase", "TaskClass", "phase_of"]

DEFAULT_SECONDS = 60.0
"""How long a task is taken to run while nothing is known of it or of any other."""

_LATEST_NEWS_SECONDS = 600.0
"""A pod that a watch brings for the first time was created at most so long ago; if it says more, a clock was set."""

_FIRST_REST_SECONDS, _LONGEST_REST_SECONDS = 5.0, 300.0
"""How long a pod rests that is refused on the node that a plan chose: at first, doubled each time, and at most."""


class Backlog(PodIndex):
    """Takes events in any thread.

    The declared `queues` say which namespaces may use them. With `by_filter`, all pods without a gate wait too
    (UNGATED); else those that kube-scheduler refused do.
    `changes` grows with each change that may change a plan, `nodes_version` with each change of `nodes`. `left` counts
    the pods that were on a node and have ended or were deleted.
    """

    def __init__(self, schedulers: Collection[str], *, by_filter: bool = False, queues: Sequence[Queue] = ()) -> None:
        super().__init__()
        self.owners = Owners()
        self.groups = PodGroups(self.owners)
        self.nodes: dict[str, Node] = {}
        self.nodes_version = 0
        self.changes = 0
        self.left = 0
        self._arrived: dict[str, float] = {}
        self._offered: set[str] = set()
        self._missed_turns: set[str] = set()
        self._job_table = JobTable(self.owners)
        self.jobs = self._job_table.jobs
        self._tenancy = Tenancy(queues)
        self._volumes = Volumes()
        self._schedulers = frozenset(schedulers)
        self.by_filter = by_filter
        self._declared_phase = phase_by_filter if by_filter else phase_of
        self._ran_seconds, self._timed = 0.0, 0

    def apply(self, event: Event, now: float) -> None:
        """Take one event in, at `now` seconds since the epoch. Duplicates change nothing; older news is ignored."""
        with self.lock:
            match event:
                case PodSeen(pod):
                    self._see(pod, now)
                case PodGone(uid):
                    self._remove(uid)
                    self.groups.lose(uid)
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
                    self._offered.update(*(node.allocatable for node in nodes))
                case event if isinstance(event, VolumeEvent):
                    self._put_again(self._volumes.apply(event), now)
                case event if isinstance(event, NamespaceEvent):
                    if namespaces := self._tenancy.apply(event):
                        self._put_again([uid for uid, pod in self._pods.items() if pod.namespace in namespaces], now)
                case _:
                    self.owners.apply(event)
                    self.groups.apply(event)
                    self._job_table.note_arrivals(event)
                    self.changes += 1

    def classes(self) -> list[TaskClass]:
        """Return all task classes that have pods."""
        with self.lock:
            jobs = self.jobs.values()
            return [task_class for job in jobs for task_class in job.classes.values() if task_class.unfinished]

    def schedulable_nodes(self) -> int:
        """Return how many nodes are not cordoned."""
        with self.lock:
            return sum(not node.unschedulable for node in self.nodes.values())

    def arrived(self) -> Amounts:
        """Return what all pods that ever began to wait for their turn ask for together, of what nodes offer.

        Other names are users' own, and have no end.
        """
        with self.lock:
            return dict(self._arrived)

    def usual_seconds(self) -> float:
        """Return how long tasks without a declared duration have run on average."""
        return self._ran_seconds / self._timed if self._timed else DEFAULT_SECONDS

    def takes_part(self, pod: Pod) -> bool:
        """Say whether a pod takes part: it has our gate, or it is ours and does not belong to a node.

        A pod of another scheduler is ours if it once had our gate: we have seen that, or it bears our nomination.
        """
        if pod.held:
            return True
        ours = pod.scheduler in self._schedulers or pod.promised is not None or pod.uid in self._pods
        return ours and not pod.is_of_node

    def is_ours(self, pod: Pod) -> bool:
        """Say whether the pod is for one of our schedulers."""
        return pod.scheduler in self._schedulers

    def missed_turn(self, uid: str) -> bool:
        """Say whether kube-scheduler refused a pod without a gate in its turn, as far as is known.

        Where filter does not keep the order that is so of all that are refused.
        """
        return not self.by_filter or uid in self._missed_turns

    def missed_turns(self) -> list[Pod]:
        """Return the pods without a gate that kube-scheduler refused in their turn, as far as is known."""
        with self.lock:
            ungated = self._by_phase[PodPhase.UNGATED]
            if not self.by_filter:
                return list(ungated.values())
            return [pod for uid in sorted(self._missed_turns) if (pod := ungated.get(uid)) is not None]

    def rest_seconds(self, now: float) -> dict[str, float]:
        """Return for how many seconds more pods that were refused in their turn have none, by UID; 0: they may.

        Where filter does not keep the order only those that rest: the pods themselves say that they were refused.
        """
        with self.lock:
            rests = self.rests()
            missed = self._missed_turns if self.by_filter else set[str]()
            return {uid: max(rests.get(uid, now) - now, 0.0) for uid in sorted(missed | rests.keys())}

    def note_rests(self, seconds: Mapping[str, float], now: float) -> None:
        """Note what another process says in `rest_seconds`."""
        with self.lock:
            self._missed_turns |= seconds.keys()
            self.writes.backoff |= {uid: now + rest for uid, rest in seconds.items() if rest > 0}

    # -- events about pods

    def _see(self, pod: Pod, now: float) -> None:
        old = self._pods.get(pod.uid)
        if old is None or old.resource_version <= pod.resource_version:
            self._put(pod, now, news=True)

    def _list(self, pods: Sequence[Pod], now: float) -> None:
        self.groups.forget_pods()
        for uid in self._pods.keys() - {pod.uid for pod in pods}:
            self._remove(uid)
        self._put_all(pods, now)
        self.groups.note_listed()

    def _put_again(self, uids: Iterable[str], now: float) -> None:
        """Put pods into their place anew: their volumes, or the labels of their namespaces, have changed."""
        self._put_all([self._pods[uid] for uid in uids], now)

    def _put_all(self, pods: Sequence[Pod], now: float) -> None:
        """Put pods into their place as they came: who waits as they were created, who is on a node as they began."""
        for pod in sorted(pods, key=lambda pod: (_came(pod), pod.namespace, pod.name)):
            self._put(pod, now, news=False)

    def _put(self, pod: Pod, now: float, *, news: bool) -> None:
        """Put a pod into its place; `news` are from a watch, not from a list, and say when something happened.

        `old` is the pod as the last event left it.
        """
        old, old_place = self._pods.get(pod.uid), self._where.get(pod.uid)
        # 1. A pod that takes no part (any more) has no place.
        if not self.takes_part(pod):
            self._remove(pod.uid)
            self.groups.lose(pod.uid)
            return
        # 2. Settle what the pod itself does not say, or not reliably: queue, dates, volumes.
        pod = _dated(self._tenancy.settle(pod), old, now, news=news)
        if pod.claims:
            pod = self._with_volumes(pod, old)
        # 3. See which writes have arrived.
        self._end_writes(pod, old, now)
        # 4. A pod that has ended, or is deleted before it had a node, leaves.
        self.groups.see(pod)
        if pod.finished or (pod.leaving and pod.node is None):
            if old_place is not None and pod.finished:
                self._learn(old_place[0], pod, now, news=news)
            self._remove(pod.uid)
            return
        # 5. Any other pod goes to its place, and then leaves the place that it had.
        if old is not None and old_place is not None and same_class(pod, old):
            task_class = old_place[0]
        else:
            task_class = self._job_table.class_of(pod)
        phase = self._phase_of(pod)
        place = (task_class, phase)
        task_class.pods[phase][pod.uid] = self._by_phase[phase][pod.uid] = pod
        if phase in WAITING and (old_place is None or old_place[1] not in WAITING):
            self._note_arrival(pod)
        task_class.changes_on_nodes += phase is PodPhase.RUNNING
        task_class.refused += _is_refused(pod, phase)
        self._move(pod, place)
        self.changes += old is not None and old.opportunistic != pod.opportunistic
        if pod.claims:
            self._volumes.use(pod)
        if old is not None and old_place == place:
            task_class.refused -= _is_refused(old, phase)
            self._job_table.change_owner(old.owner, pod.owner, task_class.job)
            return
        self._job_table.add(pod, task_class)
        self.changes += 1
        if old is not None and old_place is not None:
            if self.by_filter and phase is PodPhase.RUNNING:
                task_class.released_at = max(task_class.released_at, now)
            self._leave(old, *old_place)

    def _note_arrival(self, pod: Pod) -> None:
        """Add what a pod that begins to wait demands of what nodes offer."""
        for name, amount in pod.demand.items():
            if name in self._offered:
                self._arrived[name] = self._arrived.get(name, 0.0) + amount

    def _remove(self, uid: str) -> None:
        """Forget a pod: it has ended, is gone, or takes no part any more."""
        self._leave_book(uid)
        pod, place = self._pods.pop(uid, None), self._where.pop(uid, None)
        self.writes.forget(uid)
        self._missed_turns.discard(uid)
        if pod is None or place is None:
            return
        if pod.claims:
            self._volumes.leave(pod)
        self.changes += 1
        self.left += place[1] is PodPhase.RUNNING
        self._leave(pod, *place)

    def _leave(self, pod: Pod, task_class: TaskClass, phase: PodPhase) -> None:
        """Take a pod, as it was, out of the place that it had."""
        task_class.pods[phase].pop(pod.uid, None)
        task_class.changes_on_nodes += phase is PodPhase.RUNNING
        task_class.refused -= _is_refused(pod, phase)
        if self._where.get(pod.uid, (None, None))[1] is not phase:
            self._by_phase[phase].pop(pod.uid, None)
        self._job_table.remove(pod, task_class)

    def _end_writes(self, pod: Pod, old: Pod | None, now: float) -> None:
        """Take note of writes that have arrived: a gate that went, a node, or our nomination that was cleared.

        Where that shows that the room of its turn was of no use to a pod, it rests, longer each time.
        """
        if old is None:
            return
        if (old.gates, old.node) != (pod.gates, pod.node):
            self.writes.forget(pod.uid)
            self._missed_turns.discard(pod.uid)
        elif old.promised is not None and pod.promised is None:
            self.writes.in_progress.pop(pod.uid, None)
        if _is_in_vain(pod, old):
            self._missed_turns.add(pod.uid)
            self.writes.back_off(pod.uid, now, _FIRST_REST_SECONDS, _LONGEST_REST_SECONDS)

    def _phase_of(self, pod: Pod) -> PodPhase:
        """Return the phase of a pod; filter keeps no order of pods that other schedulers try."""
        phase = self._declared_phase(pod)
        return PodPhase.PENDING if phase is PodPhase.UNGATED and not self.is_ours(pod) else phase

    def _with_volumes(self, pod: Pod, old: Pod | None) -> Pod:
        """Return a pod that says where its volumes are; once it has a node, as they were before.

        So it ends in the class in which it waited, and that class learns how long its pods run.
        """
        if pod.node is None:
            volumes = self._volumes.affinities(pod)
        else:
            volumes = old.constraints.volumes if old is not None else ()
        if volumes == pod.constraints.volumes:
            return pod
        return replace(pod, constraints=replace(pod.constraints, volumes=volumes))

    def _learn(self, task_class: TaskClass, pod: Pod, now: float, *, news: bool) -> None:
        """Count a pod that ended well, and learn how long it ran; a list does not say when it ended."""
        if pod.failed:
            return
        task_class.finished += 1
        if news and pod.started is not None:
            seconds = max(now - pod.started, 0.0)
            task_class.learn(seconds)
            if pod.duration is None:
                self._ran_seconds, self._timed = self._ran_seconds + seconds, self._timed + 1

    def _see_node(self, node: Node) -> None:
        if self.nodes.get(node.name) != node:
            self.nodes[node.name] = node
            self.nodes_version += 1
            self._offered.update(node.allocatable)


def _is_refused(pod: Pod, phase: PodPhase) -> bool:
    return phase is PodPhase.UNGATED and pod.unschedulable


def _is_in_vain(pod: Pod, old: Pod) -> bool:
    """Say whether a released pod lost our nomination because kube-scheduler refuses it."""
    was_nominated = old.promised is not None and old.nominated == old.promised
    return was_nominated and phase_of(pod) is PodPhase.UNGATED


def _came(pod: Pod) -> float:
    """Return when a pod was created, or began on its node; one that has not begun there comes last."""
    if pod.node is None:
        return pod.created
    return math.inf if pod.started is None else pod.started


def _dated(pod: Pod, old: Pod | None, now: float, *, news: bool) -> Pod:
    """Return a pod whose dates agree with our clock. Dates stay as they first came, however clocks are set later.

    No date is in the future. A pod that is `news`, and not read from a list, was not created long ago. One that gates
    of others held counts as created once these are gone: it could not start before.
    """
    created, started = pod.created, pod.started
    if old is not None:
        freed = phase_of(old) is PodPhase.GATED and phase_of(pod) is not PodPhase.GATED
        created = now if freed else old.created
    elif news and now - created > _LATEST_NEWS_SECONDS:
        created = now
    if started is not None:
        started = old.started if old is not None and old.started is not None else min(started, now)
    created = min(created, now)
    return pod if (created, started) == (pod.created, pod.started) else replace(pod, created=created, started=started)
