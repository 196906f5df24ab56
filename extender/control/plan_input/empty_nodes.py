"""How many pods all nodes would hold if they were empty but for the pods of DaemonSets and static ones."""

from extender.arrays import Floats, times_fits
from extender.cluster.labels import NodeLabels
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.reading import besides_reading
from extender.control.plan_input.allowed_nodes import AllowedNodes

_MOST_KEPT = 4_096

RoomShape = tuple[object, ...]
"""What a pod takes of its node besides what it reads of its input, and where it may run."""


def room_shape(pod: Pod) -> RoomShape:
    """Return the same for all pods for which there are as many places."""
    return (tuple(sorted(besides_reading(pod).items())), pod.constraints)


class EmptyNodes:
    """Answers for the nodes of a backlog. Each shape is looked at once, until a node changes. One thread."""

    def __init__(self, allowed_nodes: AllowedNodes) -> None:
        self._allowed_nodes = allowed_nodes
        self._labels: NodeLabels | None = None
        self._empty: Floats | None = None
        self._places: dict[RoomShape, float] = {}

    def places(self, pod: Pod, snapshot: Snapshot) -> float:
        """Return how many such pods they would hold, had these all nodes to themselves."""
        labels = self._allowed_nodes.labels(snapshot.layout)  # another object once a node has changed
        if self._labels is not labels or self._empty is not snapshot.empty:
            self._labels, self._empty, self._places = labels, snapshot.empty, {}
        shape = room_shape(pod)
        if shape not in self._places:
            if len(self._places) >= _MOST_KEPT:
                self._places.clear()
            room = snapshot.empty[self._allowed_nodes.allowed(pod, snapshot.layout)]
            self._places[shape] = float(times_fits(room, snapshot.layout.vector(besides_reading(pod))).sum())
        return self._places[shape]
