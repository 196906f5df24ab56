"""One look by the API `metrics.k8s.io` (metrics-server): CPU and memory, where there is no Prometheus."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from extender.adapters.usage.looks import MOST_NAMED, UsageLook
from extender.adapters.usage.templates import TIME
from extender.adapters.usage.trust import SampleLimits, Tally, Values, judged
from extender.cluster.model import Node, Pod
from extender.cluster.resources import CPU, LARGEST, MEMORY, parse_quantity
from extender.errors import ClusterError, TooLarge, UsageError

NODES, PODS = "/apis/metrics.k8s.io/v1beta1/nodes", "/apis/metrics.k8s.io/v1beta1/pods"
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "\u00b5s": 1e-6, "ns": 1e-9}


class Lists(Protocol):
    """What reads lists as JSON (an Api)."""

    def read(self, path: str, params: Sequence[tuple[str, str]] = ()) -> Any:  # noqa: ANN401 - whatever JSON is there
        """Return a list."""


@dataclass(slots=True)
class MetricsApi:
    """The API server, asked for what metrics-server measured. `node_of_all` says where pods are (namespace, name)."""

    api: Lists
    stale_seconds: float
    node_of_all: Callable[[], Mapping[tuple[str, str], str]]
    clock: Callable[[], float] = time.time

    def look(self, nodes: Sequence[Node], pods: Sequence[Pod]) -> UsageLook:
        """Return the use of these nodes, and of these pods, each of which is, or has ended, on a node.

        What metrics-server holds of pods that have ended is not known: it does not list them. Raises UsageError.
        """
        pods = [pod for pod in pods if not pod.finished]
        try:
            # Pods first: they are taken out of the use of their nodes, and never more of them than is in it.
            measured_pods, measured_nodes = self.api.read(PODS)["items"], self.api.read(NODES)["items"]
            tally, strangers, since = self._tally(measured_nodes, measured_pods, nodes, pods)
        except ClusterError as error:
            status = getattr(error, "status", None)
            kind = "unreachable" if status is None else "refused" if status < 500 else "server_error"
            raise UsageError(kind, str(error)[:300]) from None
        except (LookupError, TypeError, AttributeError, ValueError) as error:  # a BadQuantity is a ValueError
            raise UsageError("malformed", f"metrics.k8s.io cannot be understood: {error}") from None
        if nodes and not tally.nodes:
            raise UsageError("empty", "metrics.k8s.io knows no node of this cluster")
        usage = judged(tally, nodes, pods, SampleLimits(self.clock(), since, self.stale_seconds))
        node_of = {pod.uid: pod.node or "" for pod in pods if pod.opportunistic}
        return UsageLook(usage, node_of, len(strangers), tuple(strangers[:MOST_NAMED]))

    def _tally(
        self, of_nodes: Sequence[Any], of_pods: Sequence[Any], nodes: Sequence[Node], pods: Sequence[Pod]
    ) -> tuple[Tally, list[str], float]:
        """Return what was measured, names of nodes that are not here, and where the earliest window begins."""
        tally, since = Tally(), self.clock()
        known = {node.name for node in nodes}
        for one in of_nodes:
            if one["metadata"]["name"] in known:
                tally.nodes.setdefault(one["metadata"]["name"], {})
                since = min(since, _take(tally.nodes[one["metadata"]["name"]], one, [one["usage"]]))
        uids = {(pod.namespace, pod.name): pod.uid for pod in pods}
        places = self.node_of_all()
        sums: dict[str, dict[str, float]] = {}
        for one in of_pods:
            full_name = one["metadata"]["namespace"], one["metadata"]["name"]
            values: Values = {}
            since = min(since, _take(values, one, [container["usage"] for container in one["containers"]]))
            if (node := places.get(full_name)) is not None:
                _add(sums.setdefault(node, {}), values)
            if (uid := uids.get(full_name)) is not None:
                tally.pods[uid] = values
        tally.pods_on = {node: {name: [value] for name, value in total.items()} for node, total in sums.items()}
        strangers = sorted({one["metadata"]["name"] for one in of_nodes} - known)
        return tally, strangers, since


def _take(values: Values, one: Mapping[str, Any], usages: Sequence[Mapping[str, str]]) -> float:
    """Put what was measured of a node or pod into `values`; return when its window began."""
    values.setdefault(CPU, []).append(sum(_amount(usage, CPU, 1000) for usage in usages))
    values.setdefault(MEMORY, []).append(sum(_amount(usage, MEMORY, 1) for usage in usages))
    at = datetime.fromisoformat(one["timestamp"])
    values.setdefault(TIME, []).append(at.timestamp())
    return (at - timedelta(seconds=_seconds(one["window"]))).timestamp()


def _add(total: dict[str, float], values: Values) -> None:
    """Add a pod to the sum of its node, which is as old as its oldest part."""
    for name, (value, *_) in values.items():
        total[name] = min(total.get(name, value), value) if name == TIME else total.get(name, 0.0) + value


def _amount(usage: Mapping[str, str], name: str, per_unit: int) -> float:
    """Return an amount; one that is negative or absurd (-1 in 64 bits) is judged like any other, by its node alone."""
    text = usage[name]
    try:
        amount = parse_quantity(text.removeprefix("-"), per_unit=per_unit)
    except TooLarge:
        amount = LARGEST
    return -amount if text.startswith("-") else amount


def _seconds(duration: str) -> float:
    """Return the seconds of a duration as Go writes it: 20.041s, 1m0s. Raises ValueError."""
    parts = re.findall("([0-9.]+)(ms|us|\u00b5s|ns|h|m|s)", duration)
    if not parts or "".join(number + unit for number, unit in parts) != duration:
        raise ValueError(f"{duration!r} is not a duration")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
