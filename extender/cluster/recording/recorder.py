"""Which lines a recording gets: pods that live are kept, and each is written and forgotten when it ends.

Events may come twice, late, or in another order: a pod's resource version tells. A list that comes after another says
that something was missed: then a gap is written, and what is not in the list has gone unseen.

A label of a pod is written only if a selector of some pod seen so far looks at it. That is enough: a pod is written
when it ends, and by then all that lived at the same time have been seen.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from extender.cluster.events import Event, NodeGone, NodeSeen, NodesListed, PodGone
from extender.cluster.model import Node, Pod
from extender.cluster.peers import ALONE, looked_at
from extender.cluster.recording.lines import (
    Checkpoint,
    Gap,
    Line,
    NodeGoneLine,
    NodeLine,
    Outcome,
    PodLine,
    Resource,
)
from extender.cluster.recording.observed import Moments, PodObserved, PodsObserved
from extender.cluster.recording.past import NOTHING, Past

Names = Callable[[Line], Line]
"""Gives a line other names."""


def as_they_are(line: Line) -> Line:
    """Return the line itself."""
    return line


class ClusterRecorder:
    """Turns events into lines. Holds the nodes, the pods that live, and the UIDs of ended ones that are still there.

    Called by one thread. `begun` is when it began: pods that ended before are not its own. `past` is what the file said
    before.
    """

    def __init__(self, begun: float, past: Past = NOTHING, names: Names = as_they_are) -> None:
        self._names = names
        self._nodes: dict[str, NodeLine] = {node.name: node for node in past.nodes}
        self._live: dict[str, PodLine] = {pod.uid: pod for pod in past.pods}
        self._ended: set[str] = set(past.recent)
        self._looked_at: set[str] = set()
        for pod in past.pods:
            self._looked_at |= looked_at(pod.peers)
        self._begun = begun
        self._newest = 0
        self._heard: dict[Resource, float] = {} if past.until is None else {"nodes": past.until, "pods": past.until}
        self._listed: set[Resource] = set()

    @property
    def synced(self) -> bool:
        """Whether all nodes and all pods have been listed since it began."""
        return len(self._listed) == 2

    @property
    def heard(self) -> float:
        """Until when all was seen; when it began, where that is not yet so."""
        return min(self._heard.get("nodes", self._begun), self._heard.get("pods", self._begun))

    def hear(self, kind: Resource, at: float) -> None:
        """Note that nothing of this kind was missed until then."""
        self._heard[kind] = max(at, self._heard.get(kind, at))

    def take(self, event: Event, at: float) -> Iterator[Line]:
        """Yield the lines that an event calls for; `at` is when it came."""
        match event:
            case NodeSeen(node):
                yield from self._see_node(node, at)
                self.hear("nodes", at)
            case NodeGone(name):
                yield from self._lose_node(name, at)
                self.hear("nodes", at)
            case NodesListed(nodes):
                yield from self._list_nodes(nodes, at)
            case PodObserved(pod, moments):
                yield from self._see_pod(pod, moments, at)
                self.hear("pods", at)
            case PodGone(uid):
                self._ended.discard(uid)
                yield from self._write(uid, "deleted", ended=at)
                self.hear("pods", at)
            case PodsObserved(pods, moments_of_all):
                yield from self._list_pods(pods, moments_of_all, at)

    def checkpoint(self, at: float) -> Line:
        """Return all nodes and pods as they are, sorted by name and by UID."""
        nodes = [self._nodes[name] for name in sorted(self._nodes)]
        pods = [self._written(self._live[uid]) for uid in sorted(self._live)]
        return self._names(Checkpoint(at, nodes, pods))

    # Nodes

    def _see_node(self, node: Node, at: float) -> Iterator[Line]:
        line = NodeLine(at, node.name, node.allocatable, node.labels, node.taints, unschedulable=node.unschedulable)
        known = self._nodes.get(node.name)
        if known is None or msgspec.structs.replace(line, at=known.at) != known:
            self._nodes[node.name] = line
            if "nodes" in self._listed:  # before, the checkpoint says it
                yield self._names(line)

    def _lose_node(self, name: str, at: float) -> Iterator[Line]:
        if self._nodes.pop(name, None) is not None:
            yield self._names(NodeGoneLine(at, name))

    def _list_nodes(self, nodes: Sequence[Node], at: float) -> Iterator[Line]:
        yield from self._gap("nodes", at)
        for gone in sorted(self._nodes.keys() - {node.name for node in nodes}):
            yield from self._lose_node(gone, at)
        for node in nodes:
            yield from self._see_node(node, at)
        self._listed.add("nodes")

    # Pods

    def _see_pod(self, pod: Pod, moments: Moments, at: float) -> Iterator[Line]:
        """Take a change of a pod: it came just now, so its times can be told more finely than in seconds."""
        if 0 < pod.resource_version <= self._newest or pod.uid in self._ended:
            return  # it came twice, or late
        self._newest = max(self._newest, pod.resource_version)
        yield from self._take(pod, moments, at, at)

    def _list_pods(self, pods: Sequence[Pod], moments: Sequence[Moments], at: float) -> Iterator[Line]:
        # 1. Say what was missed. Pods that have ended since then are in the list only where they have not been removed.
        missed_since = self._heard.get("pods", self._begun)
        yield from self._gap("pods", at)
        # 2. Pods that are not there any more have gone unseen.
        there = {pod.uid for pod in pods}
        self._ended &= there
        for uid in sorted(self._live.keys() - there):
            yield from self._write(uid, "unseen", between=(missed_since, at))
        # 3. Those that are there; of those that have ended only whoever ended since. After a restored backup versions
        #    are lower than before: what comes next is newer than the list, not than all that came.
        self._newest = max((pod.resource_version for pod in pods), default=0)
        for pod, moment in zip(pods, moments, strict=True):
            if pod.uid in self._ended:
                continue
            if pod.finished and pod.uid not in self._live and (moment.ended or at) < missed_since:
                self._ended.add(pod.uid)
                continue
            yield from self._take(pod, moment, at, None)
        self._listed.add("pods")

    def _take(self, pod: Pod, moments: Moments, at: float, seen: float | None) -> Iterator[Line]:
        self._live[pod.uid] = line = _line(pod, moments, at, seen, self._live.get(pod.uid))
        if line.peers is not ALONE:
            self._looked_at |= looked_at(line.peers)
        if pod.finished:
            self._ended.add(pod.uid)
            ended = _within(moments.ended, at, seen)
            yield from self._write(pod.uid, "failed" if pod.failed else "succeeded", ended=max(ended, line.created))

    def _write(
        self, uid: str, outcome: Outcome, *, ended: float | None = None, between: tuple[float, float] | None = None
    ) -> Iterator[Line]:
        line = self._live.pop(uid, None)
        if line is not None:
            ended_line = msgspec.structs.replace(line, outcome=outcome, ended=ended, between=between)
            yield self._names(self._written(ended_line))

    def _written(self, line: PodLine) -> PodLine:
        """Return the line with only those of its labels that anybody looks at."""
        if self._looked_at.issuperset(line.labels):
            return line
        labels = {key: value for key, value in line.labels.items() if key in self._looked_at}
        return msgspec.structs.replace(line, labels=labels)

    def _gap(self, kind: Resource, at: float) -> Iterator[Line]:
        """Yield the gap before a list, if something was heard before it."""
        if kind in self._heard:
            yield Gap(kind, self._heard[kind], at)
        self.hear(kind, at)


def _line(pod: Pod, moments: Moments, at: float, seen: float | None, known: PodLine | None) -> PodLine:
    """Return a pod as it is now; a time that was known before stays."""
    identity = pod.identity
    bound = known.bound if known else None
    if bound is None and pod.node is not None:
        bound = _within(moments.bound, at, seen)
    started = known.started if known else None
    if started is None and pod.started is not None:
        started = _within(pod.started, at, seen)
    disrupted = known.disrupted if known else None
    if disrupted is None and moments.disrupted is not None:
        disrupted = _within(moments.disrupted, at, seen)
    return PodLine(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        job=identity.job,
        queue=identity.queue,
        demand=pod.demand,
        created=known.created if known else _within(pod.created or None, at, seen),
        bound=bound,
        started=started,
        node=pod.node,
        disrupted=disrupted,
        stage=identity.stage,
        group=identity.group,
        least=identity.least,
        owner=pod.owner_name,
        owner_kind=pod.owner_kind,
        priority=pod.priority,
        scheduler=pod.scheduler,
        constraints=pod.constraints,
        inputs=pod.inputs,
        declared=pod.duration,
        tasks=pod.tasks,
        opportunistic=pod.opportunistic,
        may_run=pod.choice,
        gated=bool(pod.gates),
        unwritten=moments.unwritten,
        labels=moments.labels,
        peers=moments.peers,
    )


def _within(stamp: float | None, at: float, seen: float | None) -> float:
    """Return a moment that the API server states in whole seconds, more finely where the change was `seen` as it came.

    It is never outside the second that is stated, whatever our own clock says. Without a statement it is `at`.
    """
    if stamp is None:
        return at
    return stamp if seen is None else min(max(seen, stamp), stamp + 1.0)
