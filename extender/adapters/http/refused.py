"""Which pods were refused, and how long filter may wait for news that would have let them pass."""

from threading import Lock

from extender.cluster.model import Pod

_REMEMBERED = 10_000
_BUDGET_SECONDS = 0.2
_REFILL = 0.2


class RefusedPods:
    """Remembers refusals, as many as fit, and keeps the budget of waiting: a fifth of the time, in the long run.

    kube-scheduler asks about a refused pod again when the pod itself changes (its version is another one then) or when
    something in the cluster does. The latter may be news that is still under way to us.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._versions: dict[str, int] = {}
        self._budget = _BUDGET_SECONDS
        self._counted_at = 0.0

    def remember(self, pod: Pod) -> None:
        """Note that the pod was refused everywhere."""
        with self._lock:
            self._versions.pop(pod.uid, None)
            self._versions[pod.uid] = pod.resource_version
            if len(self._versions) > _REMEMBERED:
                del self._versions[next(iter(self._versions))]

    def know(self, pod: Pod) -> bool:
        """Say whether the pod was refused before, changed since or not."""
        with self._lock:
            return pod.uid in self._versions

    def woken_by_cluster(self, pod: Pod) -> bool:
        """Say whether the pod was refused before and has not changed since."""
        with self._lock:
            return self._versions.get(pod.uid) == pod.resource_version

    def may_wait(self, now: float) -> bool:
        """Say whether there is budget left for a wait."""
        with self._lock:
            self._budget = min(_BUDGET_SECONDS, self._budget + _REFILL * max(0.0, now - self._counted_at))
            self._counted_at = now
            return self._budget > 0

    def waited(self, seconds: float) -> None:
        """Take a wait off the budget."""
        with self._lock:
            self._budget -= seconds
