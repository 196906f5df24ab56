"""Which of many nodes meet what pods ask of them: looked up by the values of labels, not node by node."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from extender.arrays import Counts, Mask, Rows
from extender.cluster.eligibility import Constraints, Requirement, Term, Terms, Toleration, whole_number
from extender.cluster.model import Node
from extender.cluster.pods.preference import Preferences

_MOST_KEPT = 256


class NodeLabels:
    """Answers about the nodes [N] of one moment; None stands for one of which nothing is known, and allows nobody."""

    def __init__(self, nodes: Sequence[Node | None]) -> None:
        self._nodes = nodes
        self._known = np.array([node is not None for node in nodes], dtype=np.bool_)
        names = ((row, node.name) for row, node in enumerate(nodes) if node is not None)
        self._rows: Mapping[str | None, Rows] = {name: np.array([row]) for row, name in names}
        self._by_key: dict[str, Mapping[str | None, Rows]] = {}
        self._by_number: dict[tuple[str, bool], tuple[Rows, Counts]] = {}
        by_taints = defaultdict(list)
        for row, node in enumerate(nodes):
            if node is not None and (node.taints or node.unschedulable):
                by_taints[node.taints, node.unschedulable].append(row)
        self._by_taints = {taints: np.array(rows) for taints, rows in by_taints.items()}
        self._by_tolerations: dict[tuple[Toleration, ...], Mask] = {}

    def allow(self, constraints: Constraints) -> Mask:
        """Return on which nodes a pod with these constraints may go [N] (as `Constraints.allow` says of one)."""
        allowed = self._tolerated(constraints.tolerations).copy()
        for key, value in constraints.selector:
            allowed &= self._meets(Requirement(key, "In", (value,)))
        if constraints.terms is not None:
            allowed &= self._meets_one(constraints.terms)
        return allowed & self.hold(constraints)

    def hold(self, constraints: Constraints) -> Mask:
        """Return on which nodes all volumes can be used [N]: by labels alone, as for kube-scheduler."""
        usable = self._known.copy()
        for terms in constraints.volumes:
            usable &= self._meets_one(terms, by_name=False)
        return usable

    def weights(self, preferences: Preferences) -> Counts:
        """Return by how much an affinity prefers each node [N]: the weights of the terms that it meets added up."""
        weight = np.zeros(len(self._nodes), dtype=np.int64)
        for much, term in preferences:
            if term:
                weight += much * self._meets_all(term)
        return weight

    def _tolerated(self, tolerations: tuple[Toleration, ...]) -> Mask:
        """Return which nodes have only taints that these tolerations put up with [N]: most pods have the same ones."""
        tolerated = self._by_tolerations.get(tolerations)
        if tolerated is None:
            if len(self._by_tolerations) >= _MOST_KEPT:
                self._by_tolerations.clear()
            pod, tolerated = Constraints(tolerations=tolerations), self._known.copy()
            for (taints, unschedulable), rows in self._by_taints.items():
                tolerated[rows] &= pod.tolerates(taints, unschedulable=unschedulable)
            self._by_tolerations[tolerations] = tolerated
        return tolerated

    def _meets_one(self, terms: Terms, *, by_name: bool = True) -> Mask:
        met = np.zeros(len(self._nodes), dtype=np.bool_)
        for term in terms:
            if term:
                met |= self._meets_all(term, by_name=by_name)
        return met

    def _meets_all(self, term: Term, *, by_name: bool = True) -> Mask:
        met = self._known.copy()
        for requirement in term:
            met &= self._meets(requirement, by_name=by_name)
        return met

    def _meets(self, requirement: Requirement, *, by_name: bool = True) -> Mask:
        if requirement.field and not by_name:
            return np.full(len(self._nodes), requirement.met("", {}))
        values = self._values(requirement)
        match requirement.operator:
            case "In":
                return self._with(values, requirement.values)
            case "NotIn":
                return self._known & ~self._with(values, requirement.values)
            case "Exists":
                return self._known & ~self._with(values, (None,))
            case "DoesNotExist":
                return self._with(values, (None,))
            case "Gt" | "Lt":
                return self._compare(requirement)
        return np.zeros(len(self._nodes), dtype=np.bool_)

    def _with(self, values: Mapping[str | None, Rows], wanted: Collection[str | None]) -> Mask:
        """Return which nodes have one of the wanted of these values [N]; of the others none is looked at."""
        met = np.zeros(len(self._nodes), dtype=np.bool_)
        for value in wanted:
            if value in values:
                met[values[value]] = True
        return met

    def _compare(self, requirement: Requirement) -> Mask:
        """Return which nodes have a larger whole number than the requirement says, or a smaller one for Lt [N]."""
        met = np.zeros(len(self._nodes), dtype=np.bool_)
        bound = whole_number(requirement.values[0]) if requirement.values else None
        if bound is not None:
            rows, numbers = self._numbers(requirement)
            met[rows[numbers > bound if requirement.operator == "Gt" else numbers < bound]] = True
        return met

    def _numbers(self, requirement: Requirement) -> tuple[Rows, Counts]:
        """Return the nodes whose value is a whole number, and these numbers."""
        key = requirement.key, requirement.field
        if key not in self._by_number:
            read = [
                (row, number)
                for value, rows in self._values(requirement).items()
                if (number := whole_number(value or "")) is not None
                for row in rows.tolist()
            ]
            table = np.array(read, dtype=np.int64).reshape(len(read), 2)
            self._by_number[key] = table[:, 0], table[:, 1]
        return self._by_number[key]

    def _values(self, requirement: Requirement) -> Mapping[str | None, Rows]:
        """Return which nodes have which value; None for none."""
        if requirement.field:
            return self._rows if requirement.key == "metadata.name" else {None: self._known.nonzero()[0]}
        if requirement.key not in self._by_key:
            if len(self._by_key) >= _MOST_KEPT:  # users may write keys that no node has, without end
                self._by_key.clear()
                self._by_number.clear()
            rows: dict[str | None, list[int]] = defaultdict(list)
            for row, node in enumerate(self._nodes):
                if node is not None:
                    rows[node.labels.get(requirement.key)].append(row)
            self._by_key[requirement.key] = {value: np.array(nodes) for value, nodes in rows.items()}
        return self._by_key[requirement.key]

    def groups(self, key: str) -> Rows:
        """Return in which group by the value of this label each node is [N], -1 for those without it."""
        group_of = np.full(len(self._nodes), -1, dtype=np.intp)
        values = self._values(Requirement(key, "Exists"))
        for group, value in enumerate(value for value in values if value is not None):
            group_of[values[value]] = group
        return group_of
