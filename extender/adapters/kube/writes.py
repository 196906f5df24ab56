"""What `control` writes to pods beside gates and nominations (`gates`): wake-ups, evictions, and events that say why.

Each write names the pod's UID, so that a new pod of the same name is left alone.
"""

from dataclasses import dataclass

from extender.adapters.kube.api import MERGE_PATCH, Api, Refused
from extender.adapters.kube.gates import pod_path
from extender.adapters.kube.recorder import About, event_of
from extender.cluster.model import TURN_ANNOTATION, Pod

_NOT_NOW = 429


@dataclass(frozen=True, slots=True)
class PodWriter:
    """Writes to pods of one API server. Raises ClusterError where that fails or the pod is another by now."""

    api: Api

    def evict(self, pod: Pod) -> bool:
        """Ask for a pod's eviction; False where its PodDisruptionBudget forbids that now. One that is gone is fine."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            self.api.post(f"{pod_path(pod.namespace, pod.name)}/eviction", body)
        except Refused as refusal:
            if refusal.status == _NOT_NOW:
                return False
            if not refusal.is_not_found:
                raise
        return True

    def tell(self, pod: Pod, reason: str, message: str) -> None:
        """Write an event on a pod."""
        event = event_of(About("Pod", pod.namespace, pod.name, pod.uid), "Normal", reason, message)
        self.api.post(f"/api/v1/namespaces/{pod.namespace}/events", event)

    def wake(self, pod: Pod) -> None:
        """Change an annotation, so that kube-scheduler tries the pod again."""
        meta = {"uid": pod.uid, "annotations": {TURN_ANNOTATION: str(pod.resource_version)}}
        self.api.patch(pod_path(pod.namespace, pod.name), {"metadata": meta}, MERGE_PATCH)
