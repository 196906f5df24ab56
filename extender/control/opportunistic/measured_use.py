"""What was measured, on the rows and columns of a snapshot: who is not to be trusted is as if not measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.resources import DIMENSIONS, Amounts
from extender.cluster.usage import Sample, Usage
from extender.policy.slack import used

MOST_SKEW_SECONDS = 5.0
"""A sample from so far in the future is not believed: the clocks differ."""


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """What is used of nodes by name: `used` and `allocatable` [N, R], each node's window from `since` to `at` [N].

    NaN is what was not measured. `since` and `at` are NaN too where nothing of a node was.
    """

    names: Sequence[str]
    axis: Sequence[str]
    used: Floats
    allocatable: Floats
    since: Floats
    at: Floats


def measured_use(
    layout: Layout, usage: Usage, now: float, *, stale_after: float, system: Mapping[str, Amounts] | None = None
) -> MeasuredUse:
    """Return what is used of the nodes of a layout at `now`.

    `system` is what each node sets aside for itself (capacity - allocatable). A sample that is older than `stale_after`
    seconds or from the future counts as none, and so does a node with a problem. Where either the node's own use or
    that of its pods is missing, the other counts alone.
    """
    whole = _book(layout, usage.nodes, usage, now, stale_after)
    pods = _book(layout, usage.pods_on, usage, now, stale_after)
    aside = np.zeros(layout.capacity.shape)
    for name, amounts in (system or {}).items():
        if name in layout.rows:
            aside[layout.rows[name]] = [amounts.get(dimension, 0.0) for dimension in layout.axis]
    return MeasuredUse(
        layout.names,
        layout.axis,
        used(whole.amounts, pods.amounts, aside),
        layout.capacity,
        np.fmin(whole.since, pods.since),
        np.fmin(whole.at, pods.at),
    )


@dataclass(frozen=True, slots=True)
class _Book:
    amounts: Floats
    since: Floats
    at: Floats


def _book(layout: Layout, samples: Mapping[str, Sample], usage: Usage, now: float, stale_after: float) -> _Book:
    count = len(layout.names)
    amounts = np.full((count, len(layout.axis)), np.nan)
    since, at = np.full(count, np.nan), np.full(count, np.nan)
    for name, sample in samples.items():
        row = layout.rows.get(name)
        fresh = -MOST_SKEW_SECONDS <= now - sample.at <= stale_after
        if row is not None and fresh and name not in usage.problems:
            amounts[row, : len(DIMENSIONS)] = [sample.amounts.get(dimension, np.nan) for dimension in DIMENSIONS]
            since[row], at[row] = sample.since, sample.at
    return _Book(amounts, since, at)
