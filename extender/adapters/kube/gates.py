"""Every write that changes our gate or our nomination on a pod, for the release loop and for `dovetail drain`.

The release loop knows which pod it means: its writes name the UID, and fail where the pod has changed. Drain takes off
what is ours from whatever pod it finds, beside gates and nominations of others, and may repeat each write.

Two writes for each release are ours, beside three by others, and the API server's CPU is the limit: so they are small,
of the patch types that cost the API server least, and only metadata comes back.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from extender.adapters.kube.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from extender.cluster.model import HOLD_GATE, PROMISED_ANNOTATION, Pod

_GATES = "/spec/schedulingGates"
_NOMINATION = "/status/nominatedNodeName"
_ANNOTATION = "/metadata/annotations/" + PROMISED_ANNOTATION.replace("/", "~1")
_NO_ANNOTATION = {PROMISED_ANNOTATION: None}


class Patcher(Protocol):
    """What changes objects of the API server (an Api). Raises ClusterError where that fails."""

    def patch(self, path: str, body: object, content: str) -> None:
        """Change an object; `content` is the patch type."""


@dataclass(frozen=True, slots=True)
class GateWriter:
    """Writes our gate and our nomination. Raises ClusterError where the API server refuses a write."""

    api: Patcher

    # -- the release loop: one known pod, refused where it has changed

    def nominate(self, pod: Pod, node: str) -> None:
        """Set the nominated node, and note in the same write that it is ours; not if anything else has changed."""
        meta = {
            "uid": pod.uid,
            "resourceVersion": str(pod.resource_version),
            "annotations": {PROMISED_ANNOTATION: node},
        }
        self._merge_status(pod, {"metadata": meta, "status": {"nominatedNodeName": node}})

    def release(self, pod: Pod) -> None:
        """Remove our gate; refused where it is not the only one."""
        body = [
            {"op": "test", "path": "/metadata/uid", "value": pod.uid},
            {"op": "test", "path": _GATES, "value": [{"name": HOLD_GATE}]},
            {"op": "remove", "path": _GATES},
        ]
        self.api.patch(pod_path(pod.namespace, pod.name), body, JSON_PATCH)

    def clear(self, pod: Pod) -> None:
        """Remove our nomination, and the note that it is ours; one that is not ours stays."""
        status = {"nominatedNodeName": None} if pod.nominated == pod.promised else {}
        meta = {"uid": pod.uid, "resourceVersion": str(pod.resource_version), "annotations": _NO_ANNOTATION}
        self._merge_status(pod, {"metadata": meta, "status": status})

    # -- drain: whatever pod has this name, and only what is ours on it

    def remove_gate(self, namespace: str, name: str) -> None:
        """Remove our gate, and leave the gates of others."""
        body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": HOLD_GATE}]}}
        self.api.patch(pod_path(namespace, name), body, STRATEGIC_PATCH)

    def remove_nomination(self, namespace: str, name: str, node: str) -> None:
        """Remove nomination and annotation; refused unless both still name this node."""
        body = [
            {"op": "test", "path": _NOMINATION, "value": node},
            {"op": "test", "path": _ANNOTATION, "value": node},
            {"op": "remove", "path": _NOMINATION},
            {"op": "remove", "path": _ANNOTATION},
        ]
        self.api.patch(f"{pod_path(namespace, name)}/status", body, JSON_PATCH)

    def remove_annotation(self, namespace: str, name: str) -> None:
        """Remove the annotation that names the node we nominated, and leave the nomination, which is not ours."""
        self.api.patch(pod_path(namespace, name), {"metadata": {"annotations": _NO_ANNOTATION}}, MERGE_PATCH)

    def _merge_status(self, pod: Pod, body: dict[str, Any]) -> None:
        self.api.patch(f"{pod_path(pod.namespace, pod.name)}/status", body, MERGE_PATCH)


def pod_path(namespace: str, name: str) -> str:
    """Return where the API server has a pod."""
    return f"/api/v1/namespaces/{namespace}/pods/{name}"
