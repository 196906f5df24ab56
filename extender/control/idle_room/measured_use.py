"""What was measured, on the rows and columns of a snapshot: who is not to be trusted is as if not measured."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Layout
from extender.cluster.resources import DIMENSIONS, Amounts
from extender.cluster.usage import Sample, Usage, samples_of
from extender.policy.slack import load_besides_pods, used


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """What is used of nodes by name: `used` and `allocatable` [N, R], each node's window from `since` to `at` [N].

    NaN is what was not measured. `since` and `at` are NaN too where nothing of a node was. `pressure` [N] is for which
    part of the window regular pods waited for CPU; None: nobody asks. `gone` [N, R] is what `used` holds of pods that
    have ended, as far as that is known (None: of none).
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

    A sample that is older than `stale_after` seconds counts as none, and so does a node with a problem. On clusters
    that is infinite: the reader has left out what is stale, by the clock that samples are dated by (the wall clock).
    """

    def __init__(self, stale_after: float) -> None:
        self._stale_after = stale_after
        self._kept: _Kept | None = None

    def at(self, layout: Layout, usage: Usage, now: float) -> MeasuredUse:
        """Return what is used of the nodes of a layout at `now`.

        Where either the node's own use or that of its pods is missing, the other counts alone.
        """
        kept, whole, pods = self._books(layout, usage, now)
        return MeasuredUse(
            layout.names,
            layout.axis,
            used(whole.amounts, pods.amounts, layout.system),
            layout.capacity,
            np.fmin(whole.since, pods.since),
            np.fmin(whole.at, pods.at),
            np.where(np.isnan(pods.at), np.nan, kept.pressure),
            kept.gone,
        )

    def load_besides_pods(self, layout: Layout, usage: Usage, now: float) -> Floats:
        """Return what nodes use that no pod accounts for [N, R] at `now`, 0 where that is not known."""
        _, whole, pods = self._books(layout, usage, now)
        return load_besides_pods(whole.amounts, pods.amounts, layout.system, layout.capacity)

    def _books(self, layout: Layout, usage: Usage, now: float) -> tuple["_Kept", "_Book", "_Book"]:
        """Return what was made of a look, and what it says of whole nodes and of their pods that is fresh at `now`."""
        kept = self._kept
        if kept is None or kept.layout is not layout or kept.usage is not usage:
            kept = self._kept = _Kept(
                layout,
                usage,
                _book(layout, usage.nodes, usage.problems),
                _book(layout, usage.pods_on, usage.problems),
                _pressure(layout, usage),
                _by_node(layout, usage.gone),
            )
        return kept, kept.whole.fresh(now, self._stale_after), kept.pods.fresh(now, self._stale_after)


def measured_use(layout: Layout, usage: Usage, now: float, *, stale_after: float) -> MeasuredUse:
    """Return what is used of the nodes of a layout at `now`, as `MeasuredRows` does, for who asks once."""
    return MeasuredRows(stale_after).at(layout, usage, now)


@dataclass(frozen=True, slots=True)
class _Book:
    """What samples say [N, R], and their windows [N]; NaN where there is none."""

    amounts: Floats
    since: Floats
    at: Floats

    def fresh(self, now: float, stale_after: float) -> "_Book":
        """Return the same without samples that are too old."""
        is_fresh = now - self.at <= stale_after
        return _Book(
            np.where(is_fresh[:, np.newaxis], self.amounts, np.nan),
            np.where(is_fresh, self.since, np.nan),
            np.where(is_fresh, self.at, np.nan),
        )


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was made of one look at the use, on the rows and columns of one layout."""

    layout: Layout
    usage: Usage
    whole: _Book
    pods: _Book
    pressure: Floats
    gone: Floats


def _book(layout: Layout, samples: Mapping[str, Sample], problems: Container[str]) -> _Book:
    count = len(layout.names)
    amounts = np.full((count, len(layout.axis)), np.nan)
    since, at = np.full(count, np.nan), np.full(count, np.nan)
    rows = np.array([-1 if name in problems else layout.rows.get(name, -1) for name in samples], dtype=np.intp)
    known, measured = np.flatnonzero(rows >= 0), samples_of(samples)
    amounts[rows[known], : len(DIMENSIONS)] = measured.amounts[known]
    since[rows[known]], at[rows[known]] = measured.since[known], measured.at[known]
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
