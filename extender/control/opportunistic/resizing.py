"""Making a waiting pod opportunistic, and bringing its requests back: the writes, each of which can be made again.

1. Read the pod as it is now, and see whether it may be (`eligibility`).
2. Write down what it requests (an annotation), then resize its requests to 0.
3. On the way back: resize to what is written down, then remove that.

A process that ends between any two of these leaves a pod that is as it was, or that the next leader goes on with.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import REGULAR_REQUESTS_ANNOTATION, RegularRequests, regular_requests
from extender.control.opportunistic.demotion import (
    Document,
    Patch,
    annotation,
    no_annotation,
    part,
    requests_of,
    resize_back,
    resize_to_zero,
)
from extender.control.opportunistic.eligibility import Ineligible, Surroundings, why_not
from extender.errors import ClusterError


class Pods(Protocol):
    """The pods of an API server, as they are. Each call raises ClusterError where that fails."""

    def read(self, pod: Pod) -> Document:
        """Return the pod's object; one of the same name that is another pod is refused."""

    def annotate(self, pod: Pod, patch: Patch) -> None:
        """Make a merge patch of the pod."""

    def resize(self, pod: Pod, patch: Patch) -> None:
        """Make a strategic merge patch of the pod's resources."""


class NotEligible(ClusterError):
    """The pod may not be opportunistic."""

    def __init__(self, reason: Ineligible) -> None:
        super().__init__(f"it stays regular: {reason.value}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Resizer:
    """Changes what pods request. `surroundings` says of a pod what its own spec does not.

    `note_refused` is told which pods could not be made opportunistic, and why.
    """

    pods: Pods
    surroundings: Callable[[Pod, Document], Surroundings]
    note_refused: Callable[[Pod, str], None]

    def demote(self, pod: Pod, memory_bytes: int) -> int:
        """Make a waiting pod opportunistic; return its resource version then.

        `memory_bytes` is the limit for a pod that has none: all that its node offers, as it had none before.

        Raises NotEligible, and ClusterError where a write is refused: then what was written down is removed.
        """
        try:
            return self._demote(pod, memory_bytes)
        except ClusterError as error:
            self.note_refused(pod, str(error))
            raise

    def _demote(self, pod: Pod, memory_bytes: int) -> int:
        found = self.pods.read(pod)
        requests = _written_down(found)
        if requests is None:
            reason = why_not(found, self.surroundings(pod, found))
            if reason is not None:
                raise NotEligible(reason)
            requests = requests_of(found)
            if (patch := annotation(found)) is not None:
                self.pods.annotate(pod, patch)
        if (patch := resize_to_zero(found, requests, memory_bytes)) is not None:
            try:
                self.pods.resize(pod, patch)
            except ClusterError:
                self._forget(pod)
                raise
        return int(part(self.pods.read(pod), "metadata").get("resourceVersion", 0))

    def restore(self, pod: Pod) -> int:
        """Bring the requests of a pod back, waiting or running; return its resource version then."""
        found = self.pods.read(pod)
        requests = _written_down(found)
        if requests is not None and (patch := resize_back(found, requests, 0)) is not None:
            self.pods.resize(pod, patch)
            found = self.pods.read(pod)
        return int(part(found, "metadata").get("resourceVersion", 0))

    def _forget(self, pod: Pod) -> None:
        patch = no_annotation(self.pods.read(pod))
        if patch is not None:
            self.pods.annotate(pod, patch)


def _written_down(pod: Document) -> RegularRequests | None:
    return regular_requests(part(part(pod, "metadata"), "annotations").get(REGULAR_REQUESTS_ANNOTATION))
