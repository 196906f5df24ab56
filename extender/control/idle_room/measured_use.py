"""What was measured, on the rows and columns of a snapshot: a node that is not to be trusted counts as not measured."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.layout import Layout
from extender.cluster.resources import DIMENSIONS, MEMORY, Amounts
from extender.cluster.usage import Sample, Usage, samples_of
from extender.policy.slack import load_besides_pods, used


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """What is used of nodes by name: `used` and `allocatable` [N, R], each node's window from `since` to `at` [N].

    NaN is what was not measured. `since` and `at` are NaN too where nothing of a node was. `pressure` [N] is for which
    part of the window regular pods waited for CPU; None: nobody asks. `gone` [N, R] is what `used` holds of pods that
    have ended, as far as that is known (None: of none): rates, and no memory.
    """

    names: Sequence[str]
    axis: Sequence[str]
    used: Floats
    allocatable: Floats
    since: Floats
    at: Floats
    pressure: Floats | None = None
    gone: Floats | None = None


class MeasuredRows:
    """Makes what was measured into arrays, once for each look at the use. One thread.

    A node with a problem counts as not measured. What is stale is not here any more: the reader leaves it out.
    """

    def __init__(self) -> None:
        self._kept: tuple[Layout, Usage, MeasuredUse] | None = None

    def of(self, layout: Layout, usage: Usage) -> MeasuredUse:
        """Return what is used of the nodes of a layout."""
        if self._kept is None or self._kept[0] is not layout or self._kept[1] is not usage:
            self._kept = (layout, usage, measured_use(layout, usage))
        return self._kept[2]


def measured_use(layout: Layout, usage: Usage) -> MeasuredUse:
    """Return what is used of the nodes of a layout.

    Where either the node's own use or that of its pods is missing, the other counts alone. The memory of pods that have
    ended is free, whereas their rates were used in the window.
    """
    whole, pods = _book(layout, usage.nodes, usage.problems), _book(layout, usage.pods_on, usage.problems)
    gone, memory = _by_node(layout, usage.gone), layout.columns[MEMORY]
    pods.amounts[:, memory] -= gone[:, memory]
    gone[:, memory] = 0.0
    return MeasuredUse(
        layout.names,
        layout.axis,
        used(whole.amounts, pods.amounts, layout.system),
        layout.capacity,
        np.fmin(whole.since, pods.since),
        np.fmin(whole.at, pods.at),
        np.where(np.isnan(pods.at), np.nan, _pressure(layout, usage)),
        gone,
    )


def measured_load_besides_pods(layout: Layout, usage: Usage) -> Floats:
    """Return what nodes use that no pod accounts for [N, R], 0 where that is not known."""
    whole, pods = _book(layout, usage.nodes, usage.problems), _book(layout, usage.pods_on, usage.problems)
    return load_besides_pods(whole.amounts, pods.amounts, layout.system, layout.capacity)


@dataclass(frozen=True, slots=True)
class _Book:
    """What samples say [N, R], and their windows [N]; NaN where there is none."""

    amounts: Floats
    since: Floats
    at: Floats


def _book(layout: Layout, samples: Mapping[str, Sample], problems: Container[str]) -> _Book:
    count = len(layout.names)
    amounts = np.full((count, len(layout.axis)), np.nan)
    since, at = np.full(count, np.nan), np.full(count, np.nan)
    rows = np.array([-1 if name in problems else layout.rows.get(name, -1) for name in samples], dtype=np.intp)
    places, measured = np.flatnonzero(rows >= 0), samples_of(samples)
    amounts[rows[places], : len(DIMENSIONS)] = measured.amounts[places]
    since[rows[places]], at[rows[places]] = measured.since[places], measured.at[places]
    return _Book(amounts, since, at)


def _pressure(layout: Layout, usage: Usage) -> Floats:
    pressure = np.full(len(layout.names), np.nan)
    for name, part in usage.pressure.items():
        if name in layout.rows and name not in usage.problems:
            pressure[layout.rows[name]] = part
    return pressure


def _by_node(layout: Layout, amounts_of: Mapping[str, Amounts]) -> Floats:
    rows = np.zeros(layout.capacity.shape)
    for name, amounts in amounts_of.items():
        if name in layout.rows:
            rows[layout.rows[name]] = [amounts.get(dimension, 0.0) for dimension in layout.axis]
    return rows
