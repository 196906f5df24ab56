"""Which nodes a pod may go to at all: node selector, required node affinity, taints, cordons.

What depends on other pods or on volumes is left to kube-scheduler, which decides in any case.
Source: Kubernetes' NodeAffinity, TaintToleration and NodeUnschedulable plugins.
"""

from collections.abc import Mapping
from dataclasses import dataclass

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_HARD = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Taint:
    """A node's taint."""

    key: str
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A pod's toleration; without a key, or without an effect, it is for all of them."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Say whether the pod puts up with the taint."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.key != "" and self.value == taint.value)


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression about a node's label; `field` for metadata.name."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    field: bool = False

    def met(self, name: str, labels: Mapping[str, str]) -> bool:
        """Say whether a node of this name with these labels meets it; an operator that is unknown is never met."""
        value = (name if self.key == "metadata.name" else None) if self.field else labels.get(self.key)
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
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        try:
            ours, theirs = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return ours > theirs if self.operator == "Gt" else ours < theirs


Term = tuple[Requirement, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """Where a pod may go. `terms`: one of them must be met, all of it (None: no required affinity)."""

    selector: tuple[tuple[str, str], ...] = ()
    terms: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()

    def allow(self, name: str, labels: Mapping[str, str], taints: tuple[Taint, ...], *, unschedulable: bool) -> bool:
        """Say whether a pod with these may go to the node."""
        hard = [taint for taint in taints if taint.effect in _HARD]
        if unschedulable:
            hard.append(Taint(UNSCHEDULABLE_TAINT, "", "NoSchedule"))
        if not all(any(it.tolerates(taint) for it in self.tolerations) for taint in hard):
            return False
        if not all(labels.get(key) == value for key, value in self.selector):
            return False
        return self.terms is None or any(term and all(it.met(name, labels) for it in term) for term in self.terms)


ANYWHERE = Constraints()
