"""What nodes say of themselves, for many pods at once: kept until a node changes."""

import numpy as np

from extender.arrays import Mask, fits
from extender.cluster.eligibility import Constraints
from extender.cluster.labels import NodeLabels
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.model import Pod
from extender.control.backlog.backlog import Backlog

_MOST_KEPT = 4_096


class AllowedNodes:
    """The nodes of a backlog, by the rows of a layout. One thread."""

    def __init__(self, backlog: Backlog) -> None:
        self._backlog = backlog
        self._for: tuple[Layout, int] | None = None
        self._labels = NodeLabels([])
        self._allowed: dict[Constraints, Mask] = {}

    def labels(self, layout: Layout) -> NodeLabels:
        """Return what the nodes' labels and taints say; the same object until a node changes."""
        version = self._backlog.nodes_version
        if self._for is None or self._for[0] is not layout or self._for[1] != version:
            self._for = (layout, version)
            self._labels = NodeLabels([self._backlog.nodes.get(name) for name in layout.names])
            self._allowed = {}
        return self._labels

    def allowed(self, pod: Pod, layout: Layout) -> Mask:
        """Return on which nodes a pod may run [N], as far as it knows where its volumes are: `Backlog.pod` does."""
        return self.allowed_by(pod.constraints, layout)

    def allowed_by(self, constraints: Constraints, layout: Layout) -> Mask:
        """Return which nodes a pod's constraints allow [N]."""
        labels = self.labels(layout)
        known = self._allowed.get(constraints)
        if known is None:
            if len(self._allowed) >= _MOST_KEPT:
                self._allowed.clear()
            known = self._allowed[constraints] = labels.allow(constraints)
        return known

    def usable(self, pod: Pod, layout: Layout) -> Mask:
        """Return on which nodes a pod may run that would hold it if they were empty [N]."""
        demand = layout.vector(pod.demand)
        return np.asarray(self.allowed(pod, layout) & fits(layout.capacity, demand))
