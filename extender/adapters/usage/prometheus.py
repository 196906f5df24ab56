"""One look by Prometheus: its questions, then whose each series is, then what can be believed."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from extender.adapters.usage.access import Access
from extender.adapters.usage.decoding import PrometheusAnswer, Row, answer
from extender.adapters.usage.looks import MOST_NAMED, UsageLook
from extender.adapters.usage.matching import NodeNames
from extender.adapters.usage.pressure import LatelyOpportunistic
from extender.adapters.usage.queries import NODE, PODS_ON, TAG, Queries
from extender.adapters.usage.templates import NAMES, PRESSURE, TIME
from extender.adapters.usage.trust import SKEW_SECONDS, SampleLimits, Tally, judged
from extender.cluster.model import Node, Pod
from extender.cluster.resources import DIMENSIONS
from extender.errors import UsageError

QUERY = "/api/v1/query"
LOOK_SECONDS = 10.0
"""All questions of one look are answered in this time, or the look has failed."""


@dataclass(slots=True)
class Prometheus:
    """Prometheus, or what speaks as it does. `timer` is monotonic.

    With `pressure` it is also asked how long regular pods wait for CPU.
    """

    access: Access
    queries: Queries
    stale_seconds: float
    pressure: bool = False
    look_seconds: float = LOOK_SECONDS
    timer: Callable[[], float] = time.monotonic
    _lately: LatelyOpportunistic = field(default_factory=LatelyOpportunistic)

    def look(self, nodes: Sequence[Node], pods: Sequence[Pod]) -> UsageLook:
        """Return the use of these nodes, and of these pods, each of which is, or has ended, on a node.

        Raises UsageError.
        """
        deadline = self.timer() + self.look_seconds
        # 1. The questions. One that fails is a look that fails: what it would have said is not known. Times are asked
        #    first: a scrape between two questions then makes values newer than they are called, never older. The use
        #    of pods is taken out of that of their nodes. By such a scrape the use of running pods may rise, and that
        #    of ended ones falls. So running pods are asked about before the nodes, and ended ones after: never is more
        #    taken out than the node's use has in it.
        times = self._ask(self.queries.of_times(_names(pods)), deadline)
        single = self._ask_pods([pod for pod in pods if not pod.finished], deadline)
        answers = {name: self._ask(self.queries.of_dimension(name), deadline) for name in DIMENSIONS}
        ended = self._ask_pods([pod for pod in pods if pod.finished], deadline)
        waiting = self._ask_pressure(pods, deadline) if self.pressure else PrometheusAnswer((), None)
        if nodes and not any(one.rows for one in answers.values()):
            raise UsageError("empty", "there is not one series: see usage.nodeQueries, podQueries and matchers")
        # 2. Whose each series is.
        sorting = _Sorting(NodeNames(nodes, self.queries.node_labels), pods)
        for name, one in (*answers.items(), (TIME, times)):
            sorting.take(name, one.rows)
        sorting.take("", (*single, *ended))
        sorting.take(PRESSURE, waiting.rows)
        # 3. What can be believed. The window is the earliest that any answer reaches back to.
        evaluated = min(one.evaluated for one in answers.values() if one.evaluated is not None) if nodes else 0.0
        window = self.queries.window_seconds
        usage = judged(
            sorting.tally, nodes, pods, SampleLimits(time.time(), evaluated - window, self.stale_seconds, window)
        )
        node_of = {pod.uid: pod.node or "" for pod in pods if pod.opportunistic}
        return UsageLook(usage, node_of, len(sorting.strangers), tuple(sorted(sorting.strangers)[:MOST_NAMED]))

    def _ask_pods(self, pods: Sequence[Pod], deadline: float) -> Sequence[Row]:
        """Return the use of single pods, and not what else the question fits (`queries`)."""
        names = set(_names(pods))
        rows = self._ask(self.queries.of_pods(names) if names else "", deadline).rows
        return [row for row in rows if (row.labels.get("namespace"), row.labels.get("pod")) in names]

    def _ask_pressure(self, pods: Sequence[Pod], deadline: float) -> PrometheusAnswer:
        opportunistic = [pod for pod in pods if pod.opportunistic]
        others = self._lately.at(self.timer(), _names(opportunistic), self.queries.window_seconds)
        return self._ask(self.queries.of_pressure(others), deadline)

    def _ask(self, query: str, deadline: float) -> PrometheusAnswer:
        """Return the answer, by Prometheus' own clock, which must be near ours."""
        if not query:
            return PrometheusAnswer((), None)
        before = time.time()
        milliseconds = max(round(1000 * (deadline - self.timer())), 1)
        one = answer(self.access.post(QUERY, {"query": query, "timeout": f"{milliseconds}ms"}, deadline))
        after = time.time()
        if one.evaluated is not None and not before - SKEW_SECONDS <= one.evaluated <= after + SKEW_SECONDS:
            raise UsageError("skew", f"Prometheus' clock and ours differ by more than {SKEW_SECONDS:g} s")
        return one


def _names(pods: Sequence[Pod]) -> list[tuple[str, str]]:
    return [(pod.namespace, pod.name) for pod in pods]


@dataclass(slots=True)
class _Sorting:
    """Sorts the rows of all answers to nodes and pods."""

    nodes: NodeNames
    asked: Sequence[Pod]
    tally: Tally = field(default_factory=Tally)
    strangers: set[str] = field(default_factory=set)
    _pods: dict[tuple[str, str], Pod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._pods = {(pod.namespace, pod.name): pod for pod in self.asked}

    def take(self, name: str, rows: Iterable[Row]) -> None:
        """Sort the rows of the answer about a dimension or about times; "": about single pods, whose tags say what."""
        for row in rows:
            tag = row.labels.get(TAG, "")
            node = self.nodes.find(row.labels)
            if node is None:
                self._note_stranger(tag, row)
            elif tag == NODE:
                self.tally.put(self.tally.nodes, node, name, row.value)
            elif tag == PODS_ON:
                self.tally.put(self.tally.pods_on, node, name, row.value)
            elif tag == PRESSURE:
                self.tally.put(self.tally.pressure, node, name, row.value)
            elif tag in NAMES:
                pod = self._pods.get((row.labels.get("namespace", ""), row.labels.get("pod", "")))
                if pod is not None and pod.node == node:
                    self.tally.put(self.tally.gone if pod.finished else self.tally.pods, pod.uid, tag, row.value)

    def _note_stranger(self, tag: str, row: Row) -> None:
        """Note a series of a whole node that is of none here; those of its pods come from the same place."""
        if tag == NODE:
            self.strangers.add(next((text for key in ("node", "instance") if (text := row.labels.get(key))), "?"))
