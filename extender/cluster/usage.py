"""What was measured: the use of nodes, and of the pods on them. Nothing here knows who measured it.

Amounts are in the units of demands: millicores, bytes, bytes per second. A resource that is absent was not measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from extender.cluster.resources import DIMENSIONS, Amounts


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement: the mean use from `since` to `at`, in seconds since the epoch.

    `at` is the time of the newest raw sample in it, not of the question. A gauge (memory) has `since` = `at`.
    """

    amounts: Amounts
    since: float
    at: float


class Samples(dict[str, Sample]):
    """Samples by whom they are of, and what they say as arrays, in the same order: not to be changed once made.

    `amounts` [S, R] are in the order of `DIMENSIONS`, NaN where a resource was not measured; `since` and `at` are [S].
    Whoever measures makes them, so that nobody who plans has to.
    """

    def __init__(self, samples: Mapping[str, Sample]) -> None:
        super().__init__(samples)
        amounts = [sample.amounts for sample in self.values()]
        # Column by column: a list for each of many samples would keep the garbage collector busy.
        columns = [[measured.get(name, np.nan) for measured in amounts] for name in DIMENSIONS]
        self.amounts = np.array(columns, dtype=np.float64).T
        self.since = np.array([sample.since for sample in self.values()], dtype=np.float64)
        self.at = np.array([sample.at for sample in self.values()], dtype=np.float64)


def samples_of(samples: Mapping[str, Sample]) -> Samples:
    """Return samples with their arrays, which are made only where they are not there yet."""
    return samples if isinstance(samples, Samples) else Samples(samples)


@dataclass(frozen=True, slots=True)
class Usage:
    """One look at the use of a cluster: that of whole `nodes`, of all the `pods_on` each node, and of single `pods`.

    Nodes and `pods_on` by the node's name, `pods` by UID. Whoever is missing, or has a `problem` (a node's name, and
    why its measurements cannot be trusted), was not measured: that is never the same as idle.

    `pressure` is that for CPU, by node: the part of the window of `pods_on` for which the regular pod that waited
    longest had to wait. Of a node that is missing it is not known: that is never the same as nobody waiting.

    `gone` is what `pods_on` still holds of pods that have ended: rates are means over a window, and memory is that of
    the last sample within it. The rates of single pods are means over `rate_seconds`, also where a pod ran for a part
    of them only; 0: over the time for which each ran.
    """

    nodes: Mapping[str, Sample] = field(default_factory=dict)
    pods_on: Mapping[str, Sample] = field(default_factory=dict)
    pods: Mapping[str, Sample] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    pressure: Mapping[str, float] = field(default_factory=dict)
    gone: Mapping[str, Amounts] = field(default_factory=dict)
    rate_seconds: float = 0.0

    def __post_init__(self) -> None:
        for book in ("nodes", "pods_on", "pods"):
            object.__setattr__(self, book, samples_of(getattr(self, book)))
