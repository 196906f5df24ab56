"""Making a waiting pod opportunistic, and bringing its requests back: the writes, each of which can be made again.

1. Read the pod as it is now, and see whether it may be (`eligibility`).
2. Write down what it requests (an annotation), then resize its requests to 0.
3. On the way back: resize to what is written down. That stays written for the next time: a pod with requests is
   regular.

A process that ends between any two of these leaves a pod that is as it was, or that the next leader goes on with. What
is written down is removed only from a pod that still has its requests: without both nobody knows what it needs.
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
from extender.errors import ClusterError, DovetailError

_FINAL = frozenset({400, 403, 405, 422})
"""Statuses by which an API server refuses what a write says."""


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

    `note_refused` is told which pods cannot be made opportunistic, and why; not what may go well the next time.
    """

    pods: Pods
    surroundings: Callable[[Pod, Document], Surroundings]
    note_refused: Callable[[Pod, str], None]

    def demote(self, pod: Pod, memory_bytes: int) -> int:
        """Make a waiting pod opportunistic; return its resource version then.

        `memory_bytes` is the limit for a pod that has none: all that its node offers, as it had none before.

        Raises NotEligible, BadAnnotation where what is written down is broken, and ClusterError where a write is
        refused: then what was written down is removed.
        """
        try:
            return self._demote(pod, memory_bytes)
        except DovetailError as error:
            if is_lasting(error):
                self.note_refused(pod, error.reason.value if isinstance(error, NotEligible) else str(error))
            raise

    def _demote(self, pod: Pod, memory_bytes: int) -> int:
        document = self.pods.read(pod)
        requests = _written_down(document)
        if requests is None or any(requests_of(document).parts):
            reason = why_not(_not_annotated(document), self.surroundings(pod, document))
            if reason is not None:
                raise NotEligible(reason)
            if requests is None or requests.parts != requests_of(document).parts:
                requests = requests_of(document)
                if (patch := annotation(document)) is not None:
                    self.pods.annotate(pod, patch)
        if (patch := resize_to_zero(document, requests, memory_bytes)) is not None:
            try:
                self.pods.resize(pod, patch)
            except ClusterError:
                self._forget_if_whole(pod)
                raise
        return _version_of(self.pods.read(pod))

    def restore(self, pod: Pod) -> int:
        """Bring the requests of a pod back, waiting or running; return its resource version then."""
        return self._resize(pod, resize_back)

    def take_back(self, pod: Pod) -> int:
        """Make the requests of a running pod 0 again that its node does not grant; return its resource version then.

        Nothing is done with a pod of which nobody wrote down what it requests.
        """
        return self._resize(pod, resize_to_zero)

    def forget(self, pod: Pod) -> None:
        """Remove what is written down of a pod, whatever it requests."""
        if (patch := no_annotation(self.pods.read(pod))) is not None:
            self.pods.annotate(pod, patch)

    def _resize(self, pod: Pod, patch_of: Callable[[Document, RegularRequests, int], Patch | None]) -> int:
        document = self.pods.read(pod)
        requests = _written_down(document)
        if requests is not None and (patch := patch_of(document, requests, 0)) is not None:
            self.pods.resize(pod, patch)
            document = self.pods.read(pod)
        return _version_of(document)

    def _forget_if_whole(self, pod: Pod) -> None:
        """Remove what was written down of a pod, if it has its requests: a resize that failed may have been made."""
        document = self.pods.read(pod)
        patch = no_annotation(document)
        if patch is not None and any(requests_of(document).parts):
            patch["metadata"]["resourceVersion"] = part(document, "metadata").get("resourceVersion")
            self.pods.annotate(pod, patch)


def is_final(error: Exception) -> bool:
    """Say whether the API server refused what a write says (a LimitRange, a ResourceQuota): it would do so again."""
    return isinstance(error, ClusterError) and error.status in _FINAL


def is_lasting(error: Exception) -> bool:
    """Say whether the same pod would be refused again: not where the API server was away, or the pod has changed."""
    if isinstance(error, ClusterError):
        return isinstance(error, NotEligible) or is_final(error)
    return isinstance(error, DovetailError)


def _written_down(pod: Document) -> RegularRequests | None:
    return regular_requests(part(part(pod, "metadata"), "annotations").get(REGULAR_REQUESTS_ANNOTATION))


def _not_annotated(pod: Document) -> Document:
    """Return a pod as if nothing were written down of it: one that was made regular again may be asked anew."""
    meta = part(pod, "metadata")
    annotations = part(meta, "annotations")
    others = {name: text for name, text in annotations.items() if name != REGULAR_REQUESTS_ANNOTATION}
    return {**pod, "metadata": {**meta, "annotations": others}}


def _version_of(pod: Document) -> int:
    return int(part(pod, "metadata").get("resourceVersion", 0))
