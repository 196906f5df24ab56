"""The way out for opportunistic pods: those that run are promoted or evicted, those that wait get their requests back.

Without Dovetail a pod that requests nothing would fit anywhere, and nobody would evict it where others need its room.
Pods that never are regular (`dovetail.dev/opportunistic: only`) are left as their users wrote them. Those that cannot
have their requests go on as they are: a broken annotation, a ResourceQuota or a LimitRange is the doing of their users,
and one such pod must not keep the others held.
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

_FORBIDDEN, _NO_RIGHT = 403, "cannot patch resource"
"""The status of a quota's refusal is also that of a missing right; this is in the words of the latter alone."""


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

    def give_back(self, pod: Pod) -> str:
        """Bring the requests of a waiting pod back, then forget them; return why the pod cannot have them, or "".

        Raises ClusterError where that is refused for another reason.
        """
        reason = self._why_not(pod)
        self._restores.forget(pod)
        return reason

    def end(self, pod: Pod) -> str:
        """Promote or evict a pod that runs; return why it cannot have its requests, or "".

        Raises ClusterError where that is refused for another reason, or forbidden now.
        """
        if self.way == "promote":
            return self.give_back(pod)
        if not self._evicts.evict(pod):
            raise ClusterError("a PodDisruptionBudget forbids its eviction now")
        return ""

    def _why_not(self, pod: Pod) -> str:
        """Bring a pod's requests back; return why it cannot have them, or ""."""
        try:
            self._restores.restore(pod)
        except BadAnnotation as error:
            return str(error)
        except ClusterError as error:
            if not _forbids_requests(error):
                raise
            return str(error)
        return ""


def _forbids_requests(error: ClusterError) -> bool:
    """Say whether an API server refused requests that the pod cannot have: not where we have no right to change it."""
    return error.status in _INVALID or (error.status == _FORBIDDEN and _NO_RIGHT not in str(error))


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
