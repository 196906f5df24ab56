"""Which pods hold which node: bound to it, and not finished."""

from collections import Counter, defaultdict
from collections.abc import Collection

from extender.cluster.model import EVERY_NAMESPACE, Pod
from extender.cluster.pods.reading import reading


class NodeHolders:
    """By UID. `readers` are those that read an input, perhaps from other nodes; `opportunistic` those that are."""

    def __init__(self) -> None:
        self.readers: set[str] = set()
        self.opportunistic: set[str] = set()
        self._on: defaultdict[str, set[str]] = defaultdict(set)
        self._priorities: Counter[int] = Counter()
        self._near: Counter[str] = Counter()

    def __len__(self) -> int:
        return sum(map(len, self._on.values()))

    def add(self, pod: Pod, node: str) -> None:
        """Note that a pod holds a node."""
        self._on[node].add(pod.uid)
        self._priorities[pod.priority] += 1
        self._near.update(pod.near)
        if reading(pod):
            self.readers.add(pod.uid)
        if pod.opportunistic:
            self.opportunistic.add(pod.uid)

    def remove(self, pod: Pod, node: str) -> None:
        """Note that it does no more."""
        self._on[node].discard(pod.uid)
        self.readers.discard(pod.uid)
        self.opportunistic.discard(pod.uid)
        self._priorities[pod.priority] -= 1
        if not self._priorities[pod.priority]:
            del self._priorities[pod.priority]
        if not self._on[node]:
            del self._on[node]
        self._near.subtract(pod.near)
        for namespace in pod.near:
            if not self._near[namespace]:
                del self._near[namespace]

    def on(self, node: str) -> Collection[str]:
        """Return the pods that hold a node."""
        return self._on.get(node, frozenset())

    def draw(self, namespace: str) -> bool:
        """Say whether any of them draws pods of a namespace near, or would rather have them elsewhere."""
        return namespace in self._near or EVERY_NAMESPACE in self._near

    def priorities(self) -> Collection[int]:
        """Return the priorities that these pods have."""
        return self._priorities.keys()
