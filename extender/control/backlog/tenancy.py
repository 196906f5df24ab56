"""What follows from a pod's namespace: which queue it counts in, and whether it may be opportunistic.

The queue is the one that it names if its namespace may use that, else its namespace's own. A queue that is not declared
is for the namespace of the same name alone, so a made-up name gains nothing.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from extender.cluster.events import NamespaceEvent, NamespaceGone, NamespaceSeen, NamespacesListed
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import NEVER, OPPORTUNISTIC_ANNOTATION, TENANT_CHOICES
from extender.cluster.queues import Queue, chosen_by_queue

_OF_NAMESPACE = " (namespace)"
"""Follows the name of a namespace that is called like a queue which it may not use."""


def problem_of(labels: Mapping[str, str]) -> str | None:
    """Return what is wrong with the label of a namespace that is about opportunistic pods; None: nothing."""
    label = labels.get(OPPORTUNISTIC_ANNOTATION)
    if label is None or label in TENANT_CHOICES:
        return None
    accepted = f"accepted: {', '.join(TENANT_CHOICES)}; until then none of its pods is made opportunistic"
    return f"label {OPPORTUNISTIC_ANNOTATION}: {label!r}; {accepted}"


class Tenancy:
    """The declared queues, and the labels of namespaces as the watch reports them. Under the backlog's lock."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        self._declared = {queue.name: queue for queue in queues}
        self._chosen = chosen_by_queue(queues)
        self._labels: dict[str, Mapping[str, str]] = {}

    def apply(self, event: NamespaceEvent) -> Set[str]:
        """Take one event in; return the namespaces whose labels have changed."""
        match event:
            case NamespaceSeen(name, labels):
                news: dict[str, Mapping[str, str] | None] = {name: labels}
            case NamespaceGone(name):
                news = {name: None}
            case NamespacesListed(namespaces):
                news = {**dict.fromkeys(self._labels), **namespaces}
        changed = {name: labels for name, labels in news.items() if self._labels.get(name) != labels}
        for name, after in changed.items():
            if after is None:
                del self._labels[name]
            else:
                self._labels[name] = after
        return changed.keys()

    def settle(self, pod: Pod) -> Pod:
        """Return the pod in the queue that it counts in; `queue_problem` says why that is not the one that it names.

        `tenant_choice` is what its namespace says of opportunistic pods, or else that queue.
        """
        identity = pod.identity
        own = pod.namespace if identity.named else identity.queue.removesuffix(_OF_NAMESPACE)  # settled before, perhaps
        named = identity.named or own
        choices = (name for name in (named, own) if self._may_use(pod.namespace, name, own))
        queue = next(choices, own + _OF_NAMESPACE)
        refused = bool(identity.named) and queue != named
        problem = f"{self._refusal(identity.named)}; it counts in {queue}" if refused else None
        choice = self._choice(pod.namespace) or self._chosen.get(queue)
        if (queue, problem, choice) == (identity.queue, pod.queue_problem, pod.tenant_choice):
            return pod
        settled = identity if queue == identity.queue else replace(identity, queue=queue)
        return replace(pod, identity=settled, queue_problem=problem, tenant_choice=choice)

    def _choice(self, namespace: str) -> str | None:
        """Return what a namespace says of opportunistic pods: NEVER where that cannot be understood."""
        label = self._labels.get(namespace, {}).get(OPPORTUNISTIC_ANNOTATION)
        return NEVER if label is not None and label not in TENANT_CHOICES else label

    def _may_use(self, namespace: str, name: str, own: str) -> bool:
        queue = self._declared.get(name)
        if queue is None:
            return name == own
        return queue.admits(namespace, self._labels.get(namespace))

    def _refusal(self, name: str) -> str:
        if name in self._declared:
            return f"queue {name} is not for the pod's namespace"
        return f"there is no queue {name}"
