"""filter chooses: of the nodes that would take a pod it names the best one alone (docs/concepts/in-flight.md).

kube-scheduler then neither scores nor asks `prioritize`, and the pod is in flight to one node. Where preferences that
only kube-scheduler knows may count, it is left to choose among all.
"""

import random
import threading
import time
from collections.abc import Callable

import numpy as np

from extender.adapters.http import wire
from extender.adapters.kube.preferences import has_preference, is_replica
from extender.arrays import Rows
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.services import Services
from extender.cluster.stays_off import StaysOff
from extender.verdict import Ranker

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 600.0
"""For so long a node that would not have a pod is not chosen for others of its class, if there is another node."""

_MOST_CHOICES = 10_000


class Chooser:
    """Chooses nodes, and remembers what became of that. Any thread may call any method."""

    def __init__(
        self,
        ledger: Ledger,
        ranker: Ranker,
        services: Services,
        *,
        now: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        self._ledger, self._ranker, self._services, self._now = ledger, ranker, services, now
        self._chance = chance or random.Random()  # noqa: S311 - who wins a tie is no secret
        self._lock = threading.Lock()
        self._chosen: dict[str, str] = {}
        self._stays_off = StaysOff(FIRST_SECONDS, LONGEST_SECONDS)

    def left_to_scheduler(self, request: wire.Request, pod: Pod) -> str | None:
        """Return why kube-scheduler has to choose for this pod; None where we may. One of a few constant texts."""
        if has_preference(request.pod):
            return "preference"
        if is_replica(request.pod) or self._services.select(pod.namespace, request.pod.metadata.labels or {}):
            return "spread"
        return "drawn" if self._ledger.draws(pod.namespace) else None

    def choose(self, snapshot: Snapshot, pod: Pod, rows: Rows) -> int:
        """Return the best of these nodes [K], at least one, by its row; one that would not have its like comes last.

        Of several that nothing tells apart any may be it, each as likely.
        """
        refused = self.refused(snapshot, pod)
        others = rows[~np.isin(rows, refused)] if refused else rows
        best = self._ranker.best(snapshot, pod, others if len(others) else rows)
        return int(best[self._chance.randrange(len(best))])

    def refused(self, snapshot: Snapshot, pod: Pod) -> list[int]:
        """Return the rows of the nodes that would not have the pod, or others of its class, lately."""
        with self._lock:
            names = self._stays_off.nodes_of(_class(pod), self._now())
        return [snapshot.layout.rows[name] for name in names if name in snapshot.layout.rows]

    def chose(self, pod: Pod, node: str) -> None:
        """Remember what was chosen, until we are asked again or it shows what came of it."""
        with self._lock:
            self._chosen[pod.uid] = node
            if len(self._chosen) > _MOST_CHOICES:
                del self._chosen[next(iter(self._chosen))]

    def failed(self, pod: Pod) -> None:
        """Note that a pod is not where we chose: we are asked about it again, or its node would not have it."""
        with self._lock:
            node = self._chosen.pop(pod.uid, None)
            if node is not None:
                self._stays_off.note(_class(pod), node, self._now())


def _class(pod: Pod) -> str:
    """Return whose failures count for a pod: those of its owner's pods, else its own."""
    return pod.owner or pod.uid
