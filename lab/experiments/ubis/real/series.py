"""What Prometheus holds at the end: the raw samples of nodes and pods, and the use that follows from them."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import urllib3

from extender.arrays import Floats
from extender.cluster.resources import CPU, DISK_READ, MEMORY
from lab.errors import ControlPlaneError
from lab.experiments.ubis.real.scale import DIMENSIONS, WINDOW_SECONDS

NODES = {
    CPU: "node_cpu_usage_seconds_total",
    MEMORY: "node_memory_working_set_bytes",
    DISK_READ: "node_disk_read_bytes_total",
}
PODS = {
    CPU: "container_cpu_usage_seconds_total",
    MEMORY: "container_memory_working_set_bytes",
    DISK_READ: "container_fs_reads_bytes_total",
}
_UNITS = {CPU: 1000.0}
_LEAST_SAMPLES = 3
"""A rate over fewer is not believed."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Use at the times of raw samples [S]: of a counter the mean over a full window before each, else NaN."""

    at: Floats
    use: Floats

    def before(self, moment: float) -> float:
        """Return the use by the last sample before a moment; NaN where there is none."""
        place = int(np.searchsorted(self.at, moment, side="right")) - 1
        return float(self.use[place]) if place >= 0 else np.nan


NONE = Samples(np.zeros(0), np.zeros(0))


@dataclass(frozen=True, slots=True)
class MeasuredSeries:
    """The samples by dimension of each node, and of each pod by name."""

    nodes: Mapping[str, Mapping[str, Samples]]
    pods: Mapping[str, Mapping[str, Samples]]

    def node(self, name: str, dimension: str) -> Samples:
        """Return the samples of a node, none where there are none."""
        return self.nodes[dimension].get(name, NONE)

    def pod(self, name: str, dimension: str) -> Samples:
        """Return the samples of a pod, none where there are none."""
        return self.pods[dimension].get(name, NONE)


def read(url: str, since: float) -> MeasuredSeries:
    """Return all samples since a time. Raises ControlPlaneError where Prometheus does not answer."""
    return MeasuredSeries(
        {dimension: _read(url, NODES[dimension], "node", dimension, since) for dimension in DIMENSIONS},
        {dimension: _read(url, PODS[dimension], "pod", dimension, since) for dimension in DIMENSIONS},
    )


def of_counter(at: Floats, total: Floats, window: float = WINDOW_SECONDS) -> Samples:
    """Return the growth a second of a counter [S] over the window before each sample.

    NaN until the series is as old as the window, and where a window holds too few samples.
    """
    first = np.searchsorted(at, at - window, side="right")
    last = np.arange(len(at))
    enough = (last - first + 1 >= _LEAST_SAMPLES) & (at - window >= at[:1])
    seconds = np.where(enough, at - at[first], 1.0)
    return Samples(at, np.where(enough, (total - total[first]) / seconds, np.nan))


def _read(url: str, metric: str, label: str, dimension: str, since: float) -> dict[str, Samples]:
    now = time.time()
    fields = {"query": f"{metric}[{int(now - since) + 1}s]", "time": f"{now:.3f}"}
    answer = urllib3.request("GET", f"{url}/api/v1/query", fields=fields, timeout=60.0)
    if answer.status != 200:
        raise ControlPlaneError(f"Prometheus does not say {metric}: {answer.data.decode(errors='replace')[:200]}")
    by_name: dict[str, Samples] = {}
    for series in json.loads(answer.data)["data"]["result"]:
        at, values = (np.array(column, dtype=np.float64) for column in _columns(series["values"]))
        values = values * _UNITS.get(dimension, 1.0)
        name = series["metric"][label]
        by_name[name] = Samples(at, values) if dimension == MEMORY else of_counter(at, values)
    return by_name


def _columns(values: Sequence[tuple[float, str]]) -> tuple[list[float], list[float]]:
    return [float(at) for at, _ in values], [float(value) for _, value in values]
