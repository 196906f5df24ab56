"""The questions of one look: one for each dimension, one for single pods, one for the samples' times.

One more is asked where some of the single pods have ended. Another is asked where evictions go by it: how long regular
pods wait for CPU.

Each asks for several things at once. The label `dovetail` says of which each series of the answer is.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from extender.adapters.usage.templates import NODES, PODS, PRESSURE, TIME
from extender.cluster.resources import DIMENSIONS

TAG = "dovetail"
"""The label that says what a series is: `node`, `pods-on` (the sum of a node's pods), or a pod's dimension or time.
In a history, which is of one dimension, `pod`."""

NODE, PODS_ON, POD = "node", "pods-on", "pod"
_ALL_PODS = 'pod!=""'
_REGEX = re.compile(r"([.\-+*?()\[\]{}|^$])")


@dataclass(frozen=True, slots=True)
class Queries:
    """What is asked: templates by name, the defaults with those of settings. An empty one is not asked."""

    window_seconds: int
    node_labels: Sequence[str]
    matchers: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    pods: Mapping[str, str] = field(default_factory=dict)

    def of_dimension(self, name: str) -> str:
        """Return the query for a dimension: the use of whole nodes, and the sum of the pods on each."""
        return self._both(name, "sum")

    def of_pods(self, pods: Collection[tuple[str, str]]) -> str:
        """Return the query for the use of single pods (namespace, name), in all dimensions."""
        selected = _selected(pods)
        return _either(_tagged(self._of_pods(name, selected), name) for name in DIMENSIONS)

    def of_history(self, name: str) -> str:
        """Return the query for a dimension over time: the use of whole nodes, and that of every pod."""
        node, pods = self._filled({**NODES, **self.nodes}[name]), self._of_pods(name, _ALL_PODS)
        return _either((_tagged(node, NODE), _tagged(pods, POD)))

    def of_times(self, pods: Collection[tuple[str, str]]) -> str:
        """Return the query for the times of the newest raw samples: of nodes, of the pods on each, of single pods."""
        single = _tagged(self._of_pods(TIME, _selected(pods)), TIME) if pods else ""
        return _either((self._both(TIME, "max"), single))

    def of_pressure(self, others: Collection[tuple[str, str]]) -> str:
        """Return the query for how long regular pods wait for CPU, the longest on each node.

        All pods are regular but the `others` (namespace, name).
        """
        waiting = self._of_pods(PRESSURE, _ALL_PODS)
        if others:
            left_out = " or ".join(f"({self._of_pods(PRESSURE, one)})" for one in _by_namespace(others))
            waiting = f"({waiting}) unless on (namespace, pod) ({left_out})"
        return _tagged(f"max by ({', '.join(self.node_labels)}) ({waiting})", PRESSURE)

    def _both(self, name: str, over_pods: str) -> str:
        node = self._filled({**NODES, **self.nodes}[name])
        pods = self._of_pods(name, _ALL_PODS)
        on_node = f"{over_pods} by ({', '.join(self.node_labels)}) ({pods})" if pods else ""
        return _either((_tagged(node, NODE), _tagged(on_node, PODS_ON)))

    def _of_pods(self, name: str, pods: str) -> str:
        return self._filled({**PODS, **self.pods}[name], pods)

    def _filled(self, template: str, pods: str = "") -> str:
        text = template
        if not self.matchers:
            text = re.sub(r",\s*\$matchers", "", text)
        values = {"window": f"{self.window_seconds}s", "matchers": self.matchers, "pods": pods}
        for name, value in values.items():
            text = text.replace(f"${name}", value)
        return re.sub(r"\$node\b", ", ".join(self.node_labels), text)


def _tagged(query: str, tag: str) -> str:
    return f'label_replace({query}, "{TAG}", "{tag}", "", "")' if query else ""


def _either(queries: Iterable[str]) -> str:
    return " or ".join(query for query in queries if query)


def _selected(pods: Collection[tuple[str, str]]) -> str:
    """Return the matchers of these pods. A pod of one's name in the namespace of another is asked for in vain."""
    namespaces, names = (sorted({pod[part] for pod in pods}) for part in (0, 1))
    return f'namespace=~"{"|".join(map(_quoted, namespaces))}",pod=~"{"|".join(map(_quoted, names))}"'


def _by_namespace(pods: Collection[tuple[str, str]]) -> Iterable[str]:
    """Return matchers of these pods, for each namespace: so no pod of another namespace that has such a name."""
    return (_selected(list(group)) for _, group in groupby(sorted(pods), key=lambda pod: pod[0]))


def _quoted(name: str) -> str:
    """Return a name as a regular expression in a PromQL string: names of Kubernetes have dots, and nothing worse."""
    return _REGEX.sub(r"\\\\\1", name)
