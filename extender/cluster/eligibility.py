"""Which nodes a pod may go to at all: node selector, required node affinity, taints, cordons, where its volumes are.

What depends on other pods, or on volumes that are still to be found, is left to kube-scheduler, which decides in any
case. Source: Kubernetes' NodeAffinity, TaintToleration, NodeUnschedulable and VolumeBinding plugins.
"""

from collections.abc import Mapping
from dataclasses import dataclass

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_HARD = ("NoSchedule", "NoExecute")
_MOST_DIGITS = 63
"""As many characters as the value of a label has at most."""


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint."""

    key: str
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; without a key, or without an effect, it is for all of them.

    With Lt and Gt the taint's value is the smaller, or the larger, of two whole numbers (Kubernetes 1.35, alpha).
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Say whether the pod puts up with the taint."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        match self.operator:
            case "Exists":
                return True
            case "Equal":
                return self.key != "" and self.value == taint.value
            case "Gt" | "Lt":
                return _compares(self.operator, taint.value, self.value)
        return False


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression about a node's label; `field` for metadata.name."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False

    def met(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether a node of this name with these labels meets it; an operator that is unknown is never met."""
        return self.accepts((name if self.key == "metadata.name" else None) if self.field else labels.get(self.key))

    def accepts(self, value: str | None) -> bool:
        """Say whether a node with this value of its key meets it; None for one that has none."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _compares(self.operator, value or "", self.values[0] if self.values else "")
        return False


Term = tuple[Requirement, ...]

Terms = tuple[Term, ...]
"""Of which one must be met, all of it; one without requirements is never met."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Where a pod may go. `terms` are its required node affinity (None: it has none).

    `volumes` are the node affinities of its volumes, each of which must be met; a pod itself does not say them.
    """

    selector: tuple[tuple[str, str], ...] = ()
    terms: Terms | None = None
    tolerations: tuple[Toleration, ...] = ()
    volumes: tuple[Terms, ...] = ()

    def allow(self, name: str, labels: Mapping[str, str], taints: tuple[Taint, ...], *, unschedulable: bool) -> bool:
        """Say whether a pod with these may go to the node."""
        if not self.tolerates(taints, unschedulable=unschedulable):
            return False
        return self.selects(labels) and self.affinity_allows(name, labels) and self.volumes_allow(labels)

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Say whether a node with these labels has those of the node selector."""
        return all(labels.get(key) == value for key, value in self.selector)

    def tolerates(self, taints: tuple[Taint, ...], *, unschedulable: bool) -> bool:
        """Say whether a pod with these puts up with all hard taints, and with the cordon of a node."""
        hard = [taint for taint in taints if taint.effect in _HARD]
        if unschedulable:
            hard.append(Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule"))
        return all(any(toleration.tolerates(taint) for toleration in self.tolerations) for taint in hard)

    def affinity_allows(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether a node of this name with these labels meets the required node affinity."""
        return self.terms is None or _met(self.terms, name, labels)

    def volumes_allow(self, labels: Mapping[str, str]) -> bool:
        """Say whether all volumes can be used on a node with these labels; like kube-scheduler, by nothing else."""
        return all(_met(terms, "", labels) for terms in self.volumes)


def _compares(operator: str, value: str, bound: str) -> bool:
    """Say whether a value is a larger whole number than the bound, or a smaller one for Lt."""
    number, limit = whole_number(value), whole_number(bound)
    if number is None or limit is None:
        return False
    return number > limit if operator == "Gt" else number < limit


def whole_number(text: str) -> int | None:
    """Return the whole number of 64 bits that Go reads in a text, None where it reads none."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if len(text) > _MOST_DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _met(terms: Terms, name: str, labels: Mapping[str, str]) -> bool:
    return any(term and all(requirement.met(name, labels) for requirement in term) for term in terms)


ANYWHERE = Constraints()
