"""Reads single pods and their Jobs, and writes annotations and resizes: what making a pod opportunistic takes."""

from dataclasses import dataclass
from typing import Any

from extender.adapters.kube.api import MERGE_PATCH, STRATEGIC_PATCH, Api, Refused
from extender.adapters.kube.gates import pod_path
from extender.cluster.model import Pod
from extender.errors import ClusterError


class AnotherPod(ClusterError):
    """A pod has the name of another that is gone: as the API server says of a write that names the UID of that."""

    status = 409


@dataclass(frozen=True, slots=True)
class PodResizer:
    """The pods of one API server. Raises ClusterError where a call fails or the pod is another by now."""

    api: Api

    def read(self, pod: Pod) -> dict[str, Any]:
        """Return a pod's object."""
        document: dict[str, Any] = self.api.read(pod_path(pod.namespace, pod.name))
        if (document.get("metadata") or {}).get("uid") != pod.uid:
            raise AnotherPod(f"pod {pod.full_name} is another by now")
        return document

    def annotate(self, pod: Pod, patch: dict[str, Any]) -> None:
        """Make a merge patch of a pod."""
        self.api.patch(pod_path(pod.namespace, pod.name), patch, MERGE_PATCH)

    def resize(self, pod: Pod, patch: dict[str, Any]) -> None:
        """Change what a pod requests."""
        self.api.patch(f"{pod_path(pod.namespace, pod.name)}/resize", patch, STRATEGIC_PATCH)

    def job(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Return a Job's object; None where it is gone."""
        return self._find(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")

    def replica_set(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Return a ReplicaSet's object; None where it is gone."""
        return self._find(f"/apis/apps/v1/namespaces/{namespace}/replicasets/{name}")

    def _find(self, path: str) -> dict[str, Any] | None:
        try:
            document: dict[str, Any] = self.api.read(path)
        except Refused as refusal:
            if refusal.is_not_found:
                return None
            raise
        return document
