"""A cluster at work without an API server: what `control`'s loops write is done between their turns, and seen by them.

Nodes are full by what is requested. In each turn some pods end, others start in their place, and on idle room too; and
some nodes are overloaded.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extender.adapters.usage.looks import UsageLook
from extender.app.ordering import backlog_of
from extender.arrays import Floats
from extender.cluster.events import Event, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import HOLD_GATE, Node, Pod
from extender.cluster.pods.identity import Identity
from extender.cluster.pods.opportunistic import RegularRequests
from extender.cluster.resources import DIMENSIONS, MEMORY_INDEX, PODS, Amounts, row_of
from extender.cluster.usage import Sample, Usage
from extender.control.release.sending import Release
from extender.settings import Settings
from lab.bench.speed.planning import CAPACITY, demands

BEGUN, WINDOW_SECONDS = 1_000.0, 15.0
_REGULAR_PER_NODE = 8
_QUEUES, _STAGES_PER_JOB = 3, 2
_REGULAR_USE, _USE = (0.4, 0.75), 0.5
"""What regular pods use of a node, between these parts; what pods on idle room use of what they need."""
_OVERLOADED = 0.97
_SERVICE = Identity(job="service", queue="queue-0")
_REQUESTS = RegularRequests(containers={"main": {"cpu": "1"}})


@dataclass(frozen=True, slots=True)
class WorkScale:
    """How large the cluster is, and how much happens in a turn.

    So many `opportunistic` pods run and so many others wait, in `classes`; `ends` regular pods end a turn, and as many
    on idle room; so many nodes are `overloaded`.
    """

    nodes: int
    opportunistic: int
    waiting: int
    classes: int
    ends: int
    overloaded: int


class Cluster:
    """Nodes and pods, the ledger and the backlog that see them, and what the loops call to write, evict and measure."""

    def __init__(self, scale: WorkScale, draw: np.random.Generator, settings: Settings, *, idle: bool) -> None:
        self.now, self._turns = BEGUN, 0
        self.writes: list[Callable[[], None]] = []
        self.started, self.promoted, self.evicted = 0, 0, 0
        self.ledger = Ledger(in_flight_seconds=settings.control.assume_seconds)
        self.backlog = backlog_of(settings)
        self._scale, self._draw = scale, draw
        offered = {**_amounts(CAPACITY), PODS: 110.0}
        self.nodes = [Node(f"node-{row:05d}", offered) for row in range(scale.nodes)]
        self._rows = {node.name: row for row, node in enumerate(self.nodes)}
        self._regular_use = draw.uniform(*_REGULAR_USE, scale.nodes)
        self._pods = {pod.uid: pod for pod in self._at_first(demands(scale.classes, draw), idle=idle)}
        self._apply(NodesListed(self.nodes))
        self._apply(PodsListed(list(self._pods.values())))

    def pass_time(self, seconds: float) -> None:
        """Let some time pass, and some pods end."""
        self.now, self._turns = self.now + seconds, self._turns + 1
        for opportunistic in (False, True):
            running = [pod for pod in self._pods.values() if pod.node and pod.opportunistic == opportunistic]
            for place in self._draw.choice(len(running), min(self._scale.ends, len(running)), replace=False).tolist():
                self._remove(running[place])

    def settle(self) -> None:
        """Do what the loops wrote, and start the pods that they released."""
        while self.writes:
            self.writes.pop(0)()

    # -- what the loops write to

    def nominate(self, pod: Pod, node: str) -> None:
        """Set the nominated node."""
        self._change(pod, nominated=node, promised=node)

    def release(self, pod: Pod) -> None:
        """Remove our gate: kube-scheduler binds the pod where it is nominated, and it starts."""
        self.started += 1
        node = self._pods[pod.uid].nominated
        self._change(pod, gates=(), node=node, started=None if node is None else self.now)

    def clear(self, pod: Pod) -> None:
        """Remove a nomination."""
        self._change(pod, nominated=None, promised=None)

    def demote(self, pod: Pod, memory_bytes: int) -> int:  # noqa: ARG002 - the port
        """Make a waiting pod opportunistic."""
        return self._change(pod, opportunistic=True, regular_requests=_REQUESTS)

    def restore(self, pod: Pod) -> int:
        """Bring a pod's requests back."""
        self.promoted += 1
        return self._change(pod, opportunistic=False)

    def take_back(self, pod: Pod) -> int:
        """Make a pod's requests 0 again."""
        return self._change(pod, opportunistic=True)

    def evict(self, pod: Pod) -> bool:
        """End a pod."""
        self.evicted += 1
        self._remove(pod)
        return True

    # -- who is told

    def tell(self, pod: Pod, reason: str, message: str) -> None:
        """Drop an event."""

    def note_release(self, release: Release, node: str | None, waited_seconds: float) -> None:
        """Do nothing."""

    def note_preemption(self, victim: Pod, resource: str, *, dry_run: bool) -> None:
        """Do nothing."""

    def note_look(self, kind: str) -> None:
        """Do nothing."""

    def note_failure(self, problem: str) -> None:
        """Do nothing."""

    # -- what is measured

    def measured_alone(self) -> list[Pod]:
        """Return the pods that are measured one by one."""
        return [pod for pod in self._pods.values() if pod.opportunistic and pod.node]

    def look(self, nodes: Sequence[Node], pods: Sequence[Pod]) -> UsageLook:  # noqa: ARG002 - the port
        """Return the use of all nodes and of these pods in the last window."""
        use = self._regular_use[:, np.newaxis] * CAPACITY
        rows = np.array([self._rows[pod.node or ""] for pod in pods], dtype=np.intp)
        np.add.at(use, rows, _USE * np.array([row_of(pod.demand) for pod in pods]).reshape(len(pods), len(DIMENSIONS)))
        first = self._turns * self._scale.overloaded
        overloaded = np.arange(first, first + self._scale.overloaded) % len(self.nodes)
        use[overloaded, MEMORY_INDEX] = _OVERLOADED * CAPACITY[MEMORY_INDEX]
        on_nodes = {name: self._sample(row) for name, row in zip(self._rows, use.tolist(), strict=True)}
        alone = {pod.uid: self._sample([_USE * amount for amount in row_of(pod.demand)]) for pod in pods}
        return UsageLook(Usage(on_nodes, dict(on_nodes), alone), {pod.uid: pod.node or "" for pod in pods})

    def _sample(self, use: Sequence[float]) -> Sample:
        return Sample(dict(zip(DIMENSIONS, use, strict=True)), self.now - WINDOW_SECONDS, self.now)

    # -- nodes and pods

    def _at_first(self, demand: Floats, *, idle: bool) -> Iterator[Pod]:
        """Yield the pods of the first turn: regular ones that fill the nodes, those on idle room, and who waits."""
        part = {**_amounts(CAPACITY / _REGULAR_PER_NODE), PODS: 1.0}
        for name in self._rows:
            for place in range(_REGULAR_PER_NODE):
                uid = f"regular-{name}-{place}"
                yield Pod(uid, "default", uid, part, node=name, started=0.0, identity=_SERVICE, scheduler="dovetail")
        needs = [{**_amounts(row), PODS: 1.0} for row in demand]
        names = list(self._rows)
        for number in range(self._scale.opportunistic if idle else 0):
            pod = self._task(f"idle-{number:06d}", number % len(needs), needs)
            yield replace(
                pod,
                gates=(),
                opportunistic=True,
                regular_requests=_REQUESTS,
                node=names[number % len(names)],
                started=0.0,
            )
        for number in range(self._scale.waiting):
            yield self._task(f"waits-{number:06d}", number % len(needs), needs)

    def _task(self, uid: str, stage: int, needs: Sequence[Amounts]) -> Pod:
        job = stage // _STAGES_PER_JOB
        identity = Identity(f"job-{job}", f"stage-{stage}", f"queue-{job % _QUEUES}")
        return Pod(uid, "default", uid, needs[stage], identity=identity, gates=(HOLD_GATE,), scheduler="dovetail")

    def _change(self, pod: Pod, **changes: Any) -> int:  # noqa: ANN401 - a pod's own fields
        known = self._pods[pod.uid]
        changed = replace(known, resource_version=known.resource_version + 1, **changes)
        self._pods[pod.uid] = changed
        self._apply(PodSeen(changed))
        return changed.resource_version

    def _remove(self, pod: Pod) -> None:
        del self._pods[pod.uid]
        self._apply(PodGone(pod.uid))

    def _apply(self, event: Event) -> None:
        self.backlog.apply(event, self.now)
        self.ledger.apply(event)


def _amounts(row: Floats) -> dict[str, float]:
    """Return the amounts of a row in the order of the dimensions [R], without those that are nothing."""
    return {name: amount for name, amount in zip(DIMENSIONS, row.tolist(), strict=True) if amount}
