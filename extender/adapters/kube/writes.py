"""What `control` writes to pods: nominations, gates, wake-ups, evictions, and events that say why.

Each write names its pod by UID, so that a new pod of the same name is not touched. Of the five writes that a released
pod causes two are ours, and the API server's CPU is the limit. So they are small, of the cheapest patch types, and only
metadata comes back.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from extender.adapters.kube.api import JSON_PATCH, MERGE_PATCH, Api, Refused
from extender.cluster.model import HOLD_GATE, PROMISED_ANNOTATION, TURN_ANNOTATION, Pod

_NOT_NOW, _GONE = 429, 404


@dataclass(frozen=True, slots=True)
class PodWriter:
    """Writes to pods of one API server. Raises ClusterError where that fails or the pod is another by now."""

    api: Api

    def nominate(self, pod: Pod, node: str) -> None:
        """Set the nominated node, and note in the same write that it is ours; not if anything else has changed."""
        annotations = {PROMISED_ANNOTATION: node}
        meta = {"uid": pod.uid, "resourceVersion": str(pod.resource_version), "annotations": annotations}
        self._merge(pod, {"metadata": meta, "status": {"nominatedNodeName": node}}, "/status")

    def release(self, pod: Pod) -> None:
        """Remove our gate; refused where it is not the only one."""
        gates = "/spec/schedulingGates"
        body = [
            {"op": "test", "path": "/metadata/uid", "value": pod.uid},
            {"op": "test", "path": gates, "value": [{"name": HOLD_GATE}]},
            {"op": "remove", "path": gates},
        ]
        self.api.patch(_path(pod), body, JSON_PATCH)

    def clear(self, pod: Pod) -> None:
        """Remove our nomination, and the note that it is ours; one that is not ours stays."""
        status = {"nominatedNodeName": None} if pod.nominated == pod.promised else {}
        meta = {
            "uid": pod.uid,
            "resourceVersion": str(pod.resource_version),
            "annotations": {PROMISED_ANNOTATION: None},
        }
        self._merge(pod, {"metadata": meta, "status": status}, "/status")

    def evict(self, pod: Pod) -> bool:
        """Ask for a pod's eviction; False where its PodDisruptionBudget forbids that now. One that is gone is fine."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            self.api.post(f"{_path(pod)}/eviction", body)
        except Refused as refusal:
            if refusal.status == _NOT_NOW:
                return False
            if refusal.status != _GONE:
                raise
        return True

    def tell(self, pod: Pod, reason: str, message: str) -> None:
        """Write an event on a pod."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{pod.name[:220].rstrip('-.')}.", "namespace": pod.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.name,
                "namespace": pod.namespace,
                "uid": pod.uid,
            },
            "type": "Normal",
            "reason": reason,
            "message": message,
            "source": {"component": "dovetail"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        self.api.post(f"/api/v1/namespaces/{pod.namespace}/events", event)

    def wake(self, pod: Pod) -> None:
        """Change an annotation, so that kube-scheduler tries the pod again."""
        meta = {"uid": pod.uid, "annotations": {TURN_ANNOTATION: str(pod.resource_version)}}
        self._merge(pod, {"metadata": meta}, "")

    def _merge(self, pod: Pod, body: dict[str, Any], subresource: str) -> None:
        self.api.patch(_path(pod) + subresource, body, MERGE_PATCH)


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
