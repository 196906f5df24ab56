"""Which pods were refused by what we knew when: to tell a pod that is asked about again because of news we lack."""

from threading import Lock

from extender.cluster.model import Pod

_REMEMBERED = 10_000
_REST_SECONDS = 1.0


class RefusedPods:
    """Remembers refusals, as many as fit; forgotten ones only cost the pod a wait for the next event.

    kube-scheduler asks about a refused pod again when the pod itself changes (its version is another one then) or
    when something in the cluster does. If neither the pod nor anything that we have heard is new, the news is still
    under way to us.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._refusals: dict[str, tuple[int, int]] = {}
        self._rest_until = 0.0

    def remember(self, pod: Pod, heard: int) -> None:
        """Note that the pod was refused everywhere when we had heard so many events."""
        with self._lock:
            self._refusals.pop(pod.uid, None)
            self._refusals[pod.uid] = (pod.resource_version, heard)
            if len(self._refusals) > _REMEMBERED:
                del self._refusals[next(iter(self._refusals))]

    def woken_by_news_to_come(self, pod: Pod, heard: int, now: float) -> bool:
        """Say whether news must be under way: the pod and all that we have heard are as at its last refusal."""
        with self._lock:
            return now >= self._rest_until and self._refusals.get(pod.uid) == (pod.resource_version, heard)

    def waited_in_vain(self, now: float) -> None:
        """Note that no news came: what woke the pod does not concern us. For a while, do not wait again."""
        with self._lock:
            self._rest_until = now + _REST_SECONDS
