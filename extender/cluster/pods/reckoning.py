"""What pods declare, as it counts: no more than nodes offer, and as it was when a pod got its node.

Users write what their pods declare, and may change it at any time. So:

1. A rate that is above what any node offers, or an input on more nodes than there are, is a broken annotation.
2. A pod reads its input no faster than the fastest disk that holds it: it takes longer then (Tetris, equation 5).
3. What a pod declares counts as it was when the pod was first seen on its node. (After a restart: as it is then.)
4. A pod on a node reads from others no faster than the node's link; what it takes adds up exactly, however huge.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from extender.cluster.events import Event, NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.node_holders import NodeHolders
from extender.cluster.model import Pod
from extender.cluster.pods.demand import DEMAND_ANNOTATION
from extender.cluster.pods.opportunistic import REGULAR_REQUESTS_ANNOTATION
from extender.cluster.pods.preference import INPUT_ANNOTATION, holders
from extender.cluster.resources import (
    CPU,
    DISK_READ,
    IO_DIMENSIONS,
    LARGEST,
    MEMORY,
    NETWORK_IN,
    NETWORK_OUT,
    Amounts,
)

CHANGED = (
    f"annotation {DEMAND_ANNOTATION} or {INPUT_ANNOTATION} has changed since the pod got its node: it counts as then"
)
CHANGED_REQUESTS = f"annotation {REGULAR_REQUESTS_ANNOTATION} has changed since the pod got its node: it stays as it is"

_UNLIMITED = float("inf")
_ADDS_UP = LARGEST / 1024
"""8 TiB; as many millicores are more than there are."""


class Reckoning:
    """Turns events into events of pods as they count. `pods` and `held` are a ledger's own, which takes these events.

    A change of the nodes brings news of pods that count as something else by it.
    """

    def __init__(self, pods: Mapping[str, Pod], held: NodeHolders) -> None:
        self._pods, self._held = pods, held
        self._nodes: dict[str, Amounts] = {}
        self._most: Amounts = {}
        self._link = _UNLIMITED
        self._as_seen: dict[str, Pod] = {}
        self._declaring: set[str] = set()
        self._inputs: dict[str, Sequence[str]] = {}  # on which nodes those of these that have an input have it
        self._readers: dict[str, set[str]] = {}  # those that have an input on a node, by its name

    def parts(self, event: Event) -> list[Event]:
        """Return what is to be taken in, in this order, for an event of a watch."""
        match event:
            case NodeSeen(node):
                if self._nodes.get(node.name) == node.allocatable:  # most news of nodes: a heartbeat, a label
                    return [event]
                return [event, *self._change_nodes({node.name: node.allocatable})]
            case NodeGone(gone):
                return [event, *self._change_nodes({gone: None})]
            case NodesListed(nodes):
                listed = {node.name: node.allocatable for node in nodes}
                return [event, *self._change_nodes({**dict.fromkeys(self._nodes), **listed})]
            case PodSeen(pod):
                known = self._pods.get(pod.uid)
                return [
                    event if known is not None and known.resource_version > pod.resource_version else self._see(pod)
                ]
            case PodGone(uid):
                self._as_seen.pop(uid, None)
                self._note(uid, None)
            case PodsListed(pods):
                uids = {pod.uid for pod in pods}
                self._as_seen = {uid: pod for uid, pod in self._as_seen.items() if uid in uids}
                for gone in self._declaring - uids:
                    self._note(gone, None)
                return [PodsListed([self._see(pod).pod for pod in pods])]
        return [event]

    def counted(self, pod: Pod) -> Pod:
        """Return a pod as it counts by the nodes that there are: itself, or another with a problem or less demand."""
        pod = _plausible(pod, self._most, self._nodes)
        if pod.node is not None and pod.node in self._nodes:
            link = min(self._link, self._nodes[pod.node].get(NETWORK_IN, _UNLIMITED))
            return _at_most(pod, self._nodes[pod.node], link)
        return pod

    def _see(self, pod: Pod) -> PodSeen:
        known = self._as_seen.get(pod.uid) or self._pods.get(pod.uid)
        if known is not None and known.node is not None and pod.node is not None:
            pod = _as_demoted(_as_bound(pod, known), known)
        self._note(pod.uid, pod)
        counted = self.counted(pod)
        if counted is pod:
            self._as_seen.pop(pod.uid, None)
        else:
            self._as_seen[pod.uid] = pod
        return PodSeen(counted)

    def _note(self, uid: str, pod: Pod | None) -> None:
        """Note what a pod declares; None: it is gone."""
        self._declaring.discard(uid)
        for name in self._inputs.pop(uid, ()):
            self._readers[name].discard(uid)
            if not self._readers[name]:
                del self._readers[name]
        if pod is not None and _declares(pod):
            self._declaring.add(uid)
            if pod.inputs:
                self._inputs[uid] = [name for name, _ in pod.inputs]
            for name in self._inputs.get(uid, ()):
                self._readers.setdefault(name, set()).add(uid)

    def _change_nodes(self, news: Mapping[str, Amounts | None]) -> Iterable[Event]:
        """Take what nodes offer now, None of one that is gone; return news of the pods that count as something else."""
        changed = {name: offered for name, offered in news.items() if self._nodes.get(name) != offered}
        if not changed:
            return []
        count, then = len(self._nodes), (self._most, self._link)
        same_rates = all(_same_rates(self._nodes.get(name), offered) for name, offered in changed.items())
        for name, offered in changed.items():
            if offered is None:
                del self._nodes[name]
            else:
                self._nodes[name] = offered
        uids = {uid for name in changed for uid in self._held.on(name)}
        if not same_rates:
            self._most, self._link = _most_offered(self._nodes.values()), _fastest_link(self._nodes.values())
            uids |= {uid for name in changed for uid in self._readers.get(name, ())}
        if then != (self._most, self._link):
            uids |= self._declaring
        elif count != len(self._nodes):
            fewer = min(count, len(self._nodes))
            uids |= {uid for uid, names in self._inputs.items() if len(names) > fewer}
        there = [(uid, self._pods[uid]) for uid in sorted(uids) if uid in self._pods]
        seen = [(pod, self._see(self._as_seen.get(uid, pod))) for uid, pod in there]
        return [news for pod, news in seen if news.pod != pod]


def _same_rates(before: Amounts | None, after: Amounts | None) -> bool:
    """Say whether a node is there as before and offers the same rates: then these are the same of all nodes, too."""
    return before is not None and after is not None and _rates(before) == _rates(after)


def _declares(pod: Pod) -> bool:
    return bool(pod.inputs) or any(name in pod.demand for name in IO_DIMENSIONS)


def _most_offered(nodes: Collection[Amounts]) -> Amounts:
    """Return the most that any node offers of each rate; what one does not limit is not there."""
    most = {name: max((node.get(name, _UNLIMITED) for node in nodes), default=_UNLIMITED) for name in IO_DIMENSIONS}
    return {name: amount for name, amount in most.items() if amount < _UNLIMITED}


def _fastest_link(nodes: Collection[Amounts]) -> float:
    """Return how fast a node may be read from at most, of those that say so; where none does, without limit."""
    declared = [[node[name] for node in nodes if name in node] for name in (DISK_READ, NETWORK_OUT)]
    return min((max(rates) for rates in declared if rates), default=_UNLIMITED)


def _plausible(pod: Pod, most: Amounts, nodes: Mapping[str, Amounts]) -> Pod:
    """Return a pod without those of its annotations that no node could meet, and with what is wrong with them.

    `most` is the most that any of the `nodes` offers of each rate.
    """
    if not _declares(pod):
        return pod
    problems = [pod.problem] if pod.problem else []
    demand, inputs = pod.demand, pod.inputs
    beyond = [name for name, amount in most.items() if demand.get(name, 0.0) > amount]
    if beyond:
        excess = ", ".join(f"{name} {demand[name]:g}, any node offers at most {most[name]:g}" for name in beyond)
        problems.append(f"annotation {DEMAND_ANNOTATION}: {excess}")
        demand = _requests(demand)
    if nodes and len(inputs) > len(nodes):
        problems.append(f"annotation {INPUT_ANNOTATION}: {len(inputs)} nodes, there are {len(nodes)}")
        inputs = ()
    served = max(
        (nodes[name].get(DISK_READ, _UNLIMITED) for name in holders(inputs) if name in nodes), default=_UNLIMITED
    )
    if demand.get(DISK_READ, 0.0) > served:
        excess = f"{DISK_READ} {demand[DISK_READ]:g}, the nodes with its input offer at most {served:g}"
        problems.append(f"annotation {DEMAND_ANNOTATION}: {excess}, which counts")
        demand = {**demand, DISK_READ: served}
    if demand is pod.demand and inputs is pod.inputs:
        return pod
    return replace(pod, demand=demand, inputs=inputs, problem="; ".join(problems))


def _as_bound(pod: Pod, known: Pod) -> Pod:
    """Return a pod with what it declared when it was first seen on its node."""
    same = pod.demand is known.demand or _rates(pod.demand) == _rates(known.demand)
    if same and pod.inputs == known.inputs:
        return pod
    problem = f"{pod.problem}; {CHANGED}" if pod.problem else CHANGED
    return replace(pod, demand={**_requests(pod.demand), **_rates(known.demand)}, inputs=known.inputs, problem=problem)


def _as_demoted(pod: Pod, known: Pod) -> Pod:
    """Return an opportunistic pod with what it needed when it got its node; one that says otherwise stays as it is."""
    if not (pod.opportunistic and known.opportunistic):
        return pod
    needs = _of_containers(known.demand)
    same = pod.regular_requests == known.regular_requests
    if same and _of_containers(pod.demand) == needs:
        return pod
    problem = f"{pod.problem}; {CHANGED_REQUESTS}" if pod.problem else CHANGED_REQUESTS
    rest = {name: amount for name, amount in pod.demand.items() if name not in (CPU, MEMORY)}
    requests = pod.regular_requests if same else None
    return replace(pod, demand={**rest, **needs}, regular_requests=requests, problem=problem)


def _at_most(pod: Pod, offered: Amounts, link: float) -> Pod:
    """Return a pod on a node that offers this: it reads no faster than by `link`, and a thousand add up exactly."""
    if not pod.inputs and all(amount <= _ADDS_UP for amount in pod.demand.values()):
        return pod
    limits = {name: max(offered.get(name, 0.0), _ADDS_UP) for name in pod.demand}
    if pod.inputs and pod.node not in holders(pod.inputs):
        limits[DISK_READ] = min(link, limits.get(DISK_READ, link))
    if all(amount <= limits[name] for name, amount in pod.demand.items()):
        return pod
    return replace(pod, demand={name: min(amount, limits[name]) for name, amount in pod.demand.items()})


def _rates(demand: Amounts) -> Amounts:
    return {name: amount for name, amount in demand.items() if name in IO_DIMENSIONS}


def _requests(demand: Amounts) -> Amounts:
    return {name: amount for name, amount in demand.items() if name not in IO_DIMENSIONS}


def _of_containers(demand: Amounts) -> Amounts:
    return {name: amount for name, amount in demand.items() if name in (CPU, MEMORY)}
