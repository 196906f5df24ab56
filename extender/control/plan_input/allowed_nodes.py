"""Which nodes a pod may run on: by their labels and taints, which are prepared once and kept until a node changes."""

import numpy as np

from extender.arrays import Mask, fits
from extender.cluster.eligibility import Constraints
from extender.cluster.labels import NodeLabels
from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog

_MOST_KEPT = 4_096


class AllowedNodes:
    """Answers for the nodes of a backlog, by the rows of a layout. One thread."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._version: tuple[Layout, int] | None = None
        self._labels = NodeLabels([])
        self._allowed: dict[Constraints, Mask] = {}

    def labels(self, layout: Layout) -> NodeLabels:
        """Return the labels and taints of the nodes; the same object until a node changes."""
        version, cached = self._backlog.nodes_version, self._version
        if cached is None or cached[0] is not layout or cached[1] != version:
            self._version = (layout, version)
            self._labels = NodeLabels([self._backlog.nodes.get(name) for name in layout.names])
            self._allowed = {}
        return self._labels

    def allowed(self, pod: Pod, layout: Layout) -> Mask:
        """Return on which nodes a pod may run [N]. Only pods from the backlog say where their volumes are."""
        return self.allowed_by(pod.constraints, layout)

    def allowed_by(self, constraints: Constraints, layout: Layout) -> Mask:
        """Return which nodes a pod's constraints allow [N]."""
        labels = self.labels(layout)
        allowed = self._allowed.get(constraints)
        if allowed is None:
            if len(self._allowed) >= _MOST_KEPT:
                self._allowed.clear()
            allowed = self._allowed[constraints] = labels.allow(constraints)
        return allowed

    def usable(self, pod: Pod, layout: Layout) -> Mask:
        """Return on which nodes a pod may run that are large enough for it when they are empty [N]."""
        demand = layout.vector(pod.demand)
        return np.asarray(self.allowed(pod, layout) & fits(layout.capacity, demand))
