"""The way out for opportunistic pods: those that run are promoted or evicted, those that wait get their requests back.

Without Dovetail a pod that requests nothing would fit anywhere, and nobody would evict it where others need its room.
Pods that never are regular (`dovetail.dev/opportunistic: only`) are left as their users wrote them. So are those whose
annotation says what cannot be brought back: anyone may write it, and one such pod must not keep the others held.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import REGULAR_REQUESTS_ANNOTATION
from extender.control.opportunistic.demotion import requests_of
from extender.errors import BadAnnotation, ClusterError

Way = Literal["promote", "evict"]


_INVALID = frozenset({400, 422})
"""Statuses by which an API server refuses requests that a pod cannot have."""


class Restores(Protocol):
    """What brings requests back. Raises ClusterError, or BadAnnotation where nobody knows what they were."""

    def restore(self, pod: Pod) -> object:
        """Bring a pod's requests back."""

    def forget(self, pod: Pod) -> None:
        """Remove what was written down of a pod."""


class Evicts(Protocol):
    """What evicts. Raises ClusterError."""

    def evict(self, pod: Pod) -> bool:
        """Ask for a pod's eviction; False where a PodDisruptionBudget forbids it now."""


class WayOut:
    """Takes opportunistic pods back, those that run in the chosen way. Any thread."""

    def __init__(self, restores: Restores, evicts: Evicts, way: Way) -> None:
        self.way = way
        self._restores, self._evicts = restores, evicts

    def give_back(self, pod: Pod) -> bool:
        """Bring the requests of a waiting pod back, then forget them; return False where the pod cannot have them.

        Raises ClusterError where that is refused for another reason.
        """
        possible = self._may_have(pod)
        self._restores.forget(pod)
        return possible

    def end(self, pod: Pod) -> bool:
        """Promote or evict a pod that runs; return False where it cannot have its requests.

        Raises ClusterError where that is refused for another reason, or forbidden now.
        """
        if self.way == "promote":
            return self.give_back(pod)
        if not self._evicts.evict(pod):
            raise ClusterError("a PodDisruptionBudget forbids its eviction now")
        return True

    def _may_have(self, pod: Pod) -> bool:
        """Bring a pod's requests back; return False where they make no sense."""
        try:
            self._restores.restore(pod)
        except BadAnnotation:
            return False
        except ClusterError as error:
            if error.status not in _INVALID:
                raise
            return False
        return True


def demoted(document: Mapping[str, Any]) -> Pod | None:
    """Return a pod that gave its requests up and can get them back, by its object; None for any other."""
    metadata, status = document["metadata"], document.get("status") or {}
    if REGULAR_REQUESTS_ANNOTATION not in (metadata.get("annotations") or {}) or any(requests_of(document).parts):
        return None
    if "deletionTimestamp" in metadata or status.get("phase") in ("Succeeded", "Failed"):
        return None
    return Pod(uid=metadata["uid"], namespace=metadata["namespace"], name=metadata["name"], demand={})


def is_gone(error: ClusterError) -> bool:
    """Say whether a write was refused as its pod is gone."""
    return error.is_not_found
