"""Which queue a pod counts in: the one that it names, where its namespace may use that, else its namespace's own.

A queue that nobody declared is used by the namespace of its name alone. So a made-up name buys nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from extender.cluster.model import NamespaceEvent, NamespaceGone, NamespaceSeen, NamespacesListed, Pod
from extender.cluster.queues import Queue


class Tenancy:
    """The declared queues, and the labels of namespaces as the watch brings them. Under the backlog's lock."""

    def __init__(self, queues: Sequence[Queue] = ()) -> None:
        self._declared = {queue.name: queue for queue in queues}
        self._labels: dict[str, Mapping[str, str]] = {}

    def apply(self, event: NamespaceEvent) -> set[str]:
        """Take one event in; return the namespaces whose labels are others now."""
        before = self._labels
        match event:
            case NamespaceSeen(name, labels):
                self._labels = {**before, name: labels}
            case NamespaceGone(name):
                self._labels = {known: labels for known, labels in before.items() if known != name}
            case NamespacesListed(namespaces):
                self._labels = dict(namespaces)
        return {name for name in before.keys() | self._labels.keys() if before.get(name) != self._labels.get(name)}

    def settle(self, pod: Pod) -> Pod:
        """Return the pod in the queue that it counts in; where that is not the one that it names, it says why."""
        identity = pod.identity
        own = pod.namespace if identity.named else identity.queue
        named = identity.named or own
        choices = (name for name in (named, own) if self._may_use(pod.namespace, name, own))
        queue = next(choices, f"{own} (namespace)")
        problem = None if queue == named or not identity.named else f"{self._why(identity.named)}; it counts in {queue}"
        if (queue, problem) == (identity.queue, pod.queue_problem):
            return pod
        return replace(pod, identity=replace(identity, queue=queue), queue_problem=problem)

    def _may_use(self, namespace: str, name: str, own: str) -> bool:
        queue = self._declared.get(name)
        if queue is None:
            return name == own
        return queue.admits(namespace, self._labels.get(namespace))

    def _why(self, name: str) -> str:
        if name in self._declared:
            return f"queue {name} is not for the pod's namespace"
        return f"there is no queue {name}"
