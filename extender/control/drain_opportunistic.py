"""The way out for opportunistic pods: those that run are promoted or evicted, those that wait get their requests back.

Without Dovetail a pod that requests nothing would fit anywhere, and nobody would evict it where others need its room.
Pods that never are regular (`dovetail.dev/opportunistic: only`) are left as their users wrote them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import REGULAR_REQUESTS_ANNOTATION
from extender.control.opportunistic.demotion import requests_of
from extender.errors import BadAnnotation, ClusterError

Way = Literal["promote", "evict"]


class Restores(Protocol):
    """What brings requests back. Raises ClusterError, or BadAnnotation where nobody knows what they were."""

    def restore(self, pod: Pod) -> object:
        """Bring a pod's requests back."""


class Evicts(Protocol):
    """What evicts. Raises ClusterError."""

    def evict(self, pod: Pod) -> bool:
        """Ask for a pod's eviction; False where a PodDisruptionBudget forbids it now."""


class WayOut:
    """Takes opportunistic pods back, those that run in the chosen way. Any thread."""

    def __init__(self, restores: Restores, evicts: Evicts, way: Way) -> None:
        self.way = way
        self._restores, self._evicts = restores, evicts

    def give_back(self, pod: Pod) -> None:
        """Bring the requests of a waiting pod back. Raises ClusterError where that is refused."""
        _refused_as_cluster_error(lambda: self._restores.restore(pod))

    def end(self, pod: Pod) -> None:
        """Promote or evict a pod that runs. Raises ClusterError where that is refused, or forbidden now."""
        if self.way == "promote":
            self.give_back(pod)
        elif not self._evicts.evict(pod):
            raise ClusterError("a PodDisruptionBudget forbids its eviction now")


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


def _refused_as_cluster_error(write: Callable[[], object]) -> None:
    try:
        write()
    except BadAnnotation as error:
        raise ClusterError(str(error)) from None
