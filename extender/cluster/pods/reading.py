"""What a pod takes of which node: it reads its input there, or over the network from the nodes that hold it.

A pod that says where its input is (`dovetail.dev/input`) reads it at the disk-read that it declares. On a node that
holds the input that is the node's disk. On any other it is the node's network-in, and disk-read and network-out where
it is read; of which holder nobody tells us, so it counts evenly on all that there are. Where none is there, and for
pods without an input, everything that is declared counts on the pod's node.
"""

from collections.abc import Collection, Mapping, Sequence

from extender.cluster.model import Pod
from extender.cluster.pods.preference import holders
from extender.cluster.resources import DIMENSIONS, DISK_READ, NETWORK_IN, NETWORK_OUT, Amounts


def reading(pod: Pod) -> float:
    """Return the bytes per second at which the pod reads its input; 0 for one that does not say where that is."""
    return pod.demand.get(DISK_READ, 0.0) if pod.inputs else 0.0


def sources(pod: Pod, nodes: Collection[str]) -> list[str]:
    """Return those of these nodes that hold the pod's input; none for a pod that reads none."""
    return [name for name in holders(pod.inputs) if name in nodes] if reading(pod) else []


def taken(pod: Pod, node: str, nodes: Collection[str]) -> Mapping[str, Amounts]:
    """Return what the pod takes, as it counts, of which of these nodes when it runs on `node`; its own comes first.

    An opportunistic pod reads its input with what others leave: that counts in the second book (`given`).
    """
    return {node: pod.counted} if pod.opportunistic else _needed(pod, node, nodes)


def given(pod: Pod, node: str, nodes: Collection[str]) -> Mapping[str, Amounts]:
    """Return what the pod needs beyond what it counts, of which of these nodes when it runs on `node`.

    That is nothing for a regular pod, and CPU, memory and rates for an opportunistic one.
    """
    return {name: _shared(needed) for name, needed in _needed(pod, node, nodes).items()} if pod.opportunistic else {}


def lent(pod: Pod, there: Sequence[str]) -> Mapping[str, Amounts]:
    """Return what the pod takes of each of its `sources` when it runs elsewhere: evenly, in whole bytes.

    So sums stay exact.
    """
    least, more = divmod(int(reading(pod)), max(len(there), 1))
    parts = (float(least + (place < more)) for place in range(len(there)))
    return {name: {DISK_READ: part, NETWORK_OUT: part} for name, part in zip(there, parts, strict=True)}


def besides_reading(pod: Pod) -> Amounts:
    """Return what the pod takes of its node besides what it reads of its input."""
    return {name: amount for name, amount in pod.demand.items() if not (name == DISK_READ and pod.inputs)}


def away(pod: Pod) -> Amounts:
    """Return what the pod takes of its node when it reads its input from another."""
    rest = besides_reading(pod)
    return {**rest, NETWORK_IN: rest.get(NETWORK_IN, 0.0) + reading(pod)}


def _needed(pod: Pod, node: str, nodes: Collection[str]) -> Mapping[str, Amounts]:
    there = sources(pod, nodes)
    if not there or node in there:
        return {node: pod.demand}
    return {node: away(pod), **lent(pod, there)}


def _shared(amounts: Amounts) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name in DIMENSIONS}
