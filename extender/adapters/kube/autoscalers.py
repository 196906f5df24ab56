"""Whose pods an autoscaler sizes or counts by what they request: HorizontalPodAutoscalers, VerticalPodAutoscalers.

Both are listed when somebody asks, and the list is good for half a minute. One from before the pod was created says
nothing of it: who makes an autoscaler beside a Deployment makes it at the same time. What cannot be read raises: then
nobody knows, and the pod that was asked about stays regular.
"""

import threading
import time
from collections.abc import Callable, Collection

import msgspec

from extender.adapters.kube.api import Api, Refused
from extender.adapters.kube.watching import listed
from extender.errors import ClusterError

HORIZONTAL = "/apis/autoscaling/v2/horizontalpodautoscalers"
VERTICAL = "/apis/autoscaling.k8s.io/v1/verticalpodautoscalers"

_KNOWN_SECONDS = 30.0
"""A list is good for so long."""

_GRANULARITY_SECONDS = 1.0
"""When something was created is said in whole seconds: it may have been as much later."""

Target = tuple[str, str, str]
"""The namespace, kind and name of what an autoscaler is for."""


class TargetRef(msgspec.Struct):
    """CrossVersionObjectReference."""

    kind: str = ""
    name: str = ""


class UpdatePolicy(msgspec.Struct, rename="camel"):
    """PodUpdatePolicy of a VerticalPodAutoscaler; in mode Off it only recommends."""

    update_mode: str | None = None


class AutoscalerSpec(msgspec.Struct, rename="camel"):
    """The spec of either kind."""

    scale_target_ref: TargetRef | None = None
    target_ref: TargetRef | None = None
    update_policy: UpdatePolicy | None = None


class AutoscalerMeta(msgspec.Struct):
    """An autoscaler's metadata."""

    namespace: str = ""


class Autoscaler(msgspec.Struct):
    """HorizontalPodAutoscaler or VerticalPodAutoscaler."""

    metadata: AutoscalerMeta = msgspec.field(default_factory=AutoscalerMeta)
    spec: AutoscalerSpec = msgspec.field(default_factory=AutoscalerSpec)


_decode = msgspec.json.Decoder(Autoscaler).decode


class Autoscalers:
    """The autoscalers of one API server. Any thread."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.time) -> None:
        self._api, self._clock = api, clock
        self._lock = threading.Lock()
        self._targets: Collection[Target] = frozenset()
        self._read_at: float | None = None
        self._begun = 0

    def any_of(self, namespace: str, owners: Collection[tuple[str, str]], since: float = 0.0) -> bool:
        """Say whether there is one for any of these owners, each a kind and a name, by a list of after `since`.

        A list that was begun since we asked is such a one. Times are in seconds since the epoch. Raises ClusterError.
        """
        begun = self._begun
        with self._lock:
            if self._begun == begun and not self._is_good(self._clock(), since):
                self._begun += 1
                self._read_at = None
                read_at = self._clock()
                self._targets = self._read(HORIZONTAL) | self._read(VERTICAL)
                self._read_at = read_at
            if self._read_at is None:  # another thread tried to since we asked
                raise ClusterError("the autoscalers could not be listed")
            return any((namespace, kind, name) in self._targets for kind, name in owners)

    def _is_good(self, now: float, since: float) -> bool:
        if self._read_at is None:
            return False
        return 0 <= now - self._read_at < _KNOWN_SECONDS and self._read_at >= since + _GRANULARITY_SECONDS

    def _read(self, path: str) -> set[Target]:
        """Return what the autoscalers at a path are for; nothing where the cluster has no such kind."""
        try:
            autoscalers = [_decode(raw) for raw in listed(self._api, path)[0]]
        except Refused as refusal:
            if refusal.is_not_found:
                return set()
            raise
        return {
            (one.metadata.namespace, target.kind, target.name)
            for one in autoscalers
            if (target := one.spec.scale_target_ref or one.spec.target_ref) is not None and not _only_recommends(one)
        }


def _only_recommends(autoscaler: Autoscaler) -> bool:
    policy = autoscaler.spec.update_policy
    return policy is not None and policy.update_mode == "Off"
