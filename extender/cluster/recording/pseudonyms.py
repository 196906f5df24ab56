"""Names taken out of a recording: each becomes a pseudonym, the same one wherever it stands in the file.

Pseudonyms are keyed hashes. Who has the file but not the key cannot try names. What stays: times, amounts, names of
resources, numbers, the names of schedulers, and names of labels and taints that Kubernetes, or we, have chosen.
"""

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b

import msgspec

from extender.cluster.eligibility import Constraints, Requirement, Taint, Terms, Toleration
from extender.cluster.model import EVERY_NAMESPACE
from extender.cluster.peers import Peers, PodTerm
from extender.cluster.pods.identity import JOB_LABEL, QUEUE_LABEL, STAGE_LABEL
from extender.cluster.recording.lines import Checkpoint, Line, NodeGoneLine, NodeLine, PodLine

_BYTES = 8
_WELL_KNOWN = {
    "": ("metadata.name",),
    "kubernetes.io/": ("arch", "hostname", "metadata.name", "os"),
    "beta.kubernetes.io/": ("arch", "instance-type", "os"),
    "topology.kubernetes.io/": ("region", "zone"),
    "failure-domain.beta.kubernetes.io/": ("region", "zone"),
    "node-role.kubernetes.io/": ("control-plane", "master"),
    "node.kubernetes.io/": (
        "disk-pressure",
        "instance-type",
        "memory-pressure",
        "network-unavailable",
        "not-ready",
        "out-of-service",
        "pid-pressure",
        "unreachable",
        "unschedulable",
    ),
    "node.cloudprovider.kubernetes.io/": ("shutdown", "uninitialized"),
    "app.kubernetes.io/": ("component", "created-by", "instance", "managed-by", "name", "part-of", "version"),
    "apps.kubernetes.io/": ("pod-index",),
    "batch.kubernetes.io/": ("controller-uid", "job-completion-index", "job-name"),
    "statefulset.kubernetes.io/": ("pod-name",),
}
_PLAIN_KEYS = frozenset({JOB_LABEL, STAGE_LABEL, QUEUE_LABEL}) | {
    domain + name for domain, names in _WELL_KNOWN.items() for name in names
}
"""Users may choose a name in any domain: so whole keys stay, or nothing of them."""


class Pseudonyms:
    """Gives lines other names, by a key of 16 bytes or more."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __call__(self, line: Line) -> Line:
        """Return the line without a name that a user chose."""
        match line:
            case PodLine():
                return self._pod(line)
            case NodeLine():
                return self._node(line)
            case NodeGoneLine(at, name):
                return NodeGoneLine(at, self._name(name))
            case Checkpoint(at, nodes, pods):
                return Checkpoint(at, [self._node(node) for node in nodes], [self._pod(pod) for pod in pods])
        return line

    def _name(self, name: str) -> str:
        """Return a pseudonym; a name of several parts keeps its parts, "" stays, and so do numbers."""
        if "/" in name:
            return "/".join(map(self._name, name.split("/")))
        if not name or name.isdigit():
            return name
        return blake2b(name.encode(), digest_size=_BYTES, key=self._key[:64]).hexdigest()

    def _key_of(self, key: str) -> str:
        return key if key in _PLAIN_KEYS else self._name(key)

    def _pod(self, pod: PodLine) -> PodLine:
        names = ("uid", "namespace", "name", "job", "queue", "stage", "group", "owner")
        return msgspec.structs.replace(
            pod,
            **{field: self._name(getattr(pod, field)) for field in names},
            node=None if pod.node is None else self._name(pod.node),
            constraints=self._constraints(pod.constraints),
            inputs=tuple((self._name(node), amount) for node, amount in pod.inputs),
            labels=self._labels(pod.labels),
            peers=self._peers(pod.peers),
        )

    def _node(self, node: NodeLine) -> NodeLine:
        return msgspec.structs.replace(
            node,
            name=self._name(node.name),
            labels=self._labels(node.labels),
            taints=tuple(
                Taint(self._key_of(taint.key), self._name(taint.value), taint.effect) for taint in node.taints
            ),
        )

    def _labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {self._key_of(key): self._name(value) for key, value in labels.items()}

    def _constraints(self, constraints: Constraints) -> Constraints:
        return Constraints(
            selector=tuple(self._labels(dict(constraints.selector)).items()),
            terms=None if constraints.terms is None else self._terms(constraints.terms),
            tolerations=tuple(map(self._toleration, constraints.tolerations)),
            volumes=tuple(map(self._terms, constraints.volumes)),
        )

    def _peers(self, peers: Peers) -> Peers:
        return Peers(
            away=tuple(map(self._pod_term, peers.away)),
            near=tuple(map(self._pod_term, peers.near)),
            spread=tuple(
                msgspec.structs.replace(constraint, term=self._pod_term(constraint.term)) for constraint in peers.spread
            ),
            ports=tuple(msgspec.structs.replace(port, address=self._name(port.address)) for port in peers.ports),
        )

    def _pod_term(self, term: PodTerm) -> PodTerm:
        names = tuple(name if name == EVERY_NAMESPACE else self._name(name) for name in term.namespaces)
        selector = None if term.selector is None else tuple(map(self._requirement, term.selector))
        return PodTerm(self._key_of(term.key), names, selector)

    def _terms(self, terms: Terms) -> Terms:
        return tuple(tuple(map(self._requirement, term)) for term in terms)

    def _requirement(self, requirement: Requirement) -> Requirement:
        values = tuple(map(self._name, requirement.values))
        return replace(requirement, key=self._key_of(requirement.key), values=values)

    def _toleration(self, toleration: Toleration) -> Toleration:
        return replace(toleration, key=self._key_of(toleration.key), value=self._name(toleration.value))
