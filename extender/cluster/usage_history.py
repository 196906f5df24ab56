"""What nodes and pods have used over the last hours, as somebody else measured it. Nothing here knows who."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.model import Pod
from extender.cluster.resources import DIMENSIONS

Who = tuple[str, str, str]
"""A pod by node, namespace and name; a whole node has the latter two empty. One name on two nodes is two pods."""


def _nothing() -> Floats:
    return np.empty((0, 0, len(DIMENSIONS)))


@dataclass(frozen=True, slots=True)
class UsageHistory:
    """Samples every `step_seconds` at `times` [T], in seconds since the epoch, the newest last.

    `use` [P, T, D] in the units of demands, by row of who it is of; NaN is what was not measured. Each sample is a mean
    over the `window_seconds` before its time, of memory what it was then.
    """

    times: Floats = field(default_factory=lambda: np.empty(0))
    rows: Mapping[Who, int] = field(default_factory=dict)
    use: Floats = field(default_factory=_nothing)
    window_seconds: float = 0.0
    step_seconds: float = 300.0

    def until(self, now: float, columns: Rows) -> "UsageHistory":
        """Return as many samples up to `now`, of these columns [K]: those that nobody has read yet are NaN."""
        late = 0 if not len(self.times) else int(max(now - self.times[-1], 0.0) // self.step_seconds)
        use = np.full((*self.use.shape[:2], len(columns)), np.nan)
        kept = max(self.use.shape[1] - late, 0)
        use[:, :kept] = self.use[:, self.use.shape[1] - kept :, columns]
        return replace(self, times=self.times + late * self.step_seconds, use=use)

    def of(self, whose: Sequence[Who]) -> Floats:
        """Return the samples of these [K, T, D], NaN of those who have none."""
        rows = np.array([self.rows.get(who, -1) for who in whose], dtype=np.intp)
        samples = np.full((len(rows), *self.use.shape[1:]), np.nan)
        samples[rows >= 0] = self.use[rows[rows >= 0]]
        return samples


def who_of(pod: Pod) -> Who:
    """Return by what name a history has a pod."""
    return pod.node or "", pod.namespace, pod.name
