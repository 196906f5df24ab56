"""The rankings that `dovetail bench placement` compares: the service's own, its parts, and baselines.

A ranking gives each node that fits a value; the highest wins, ties are broken at random as
kube-scheduler does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Rows
from extender.cluster.ledger.mix import NO_MIX
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.resources import CPU, MEMORY
from extender.policy.alignment import RULES
from extender.verdict import Placement, Ranker
from lab.bench.placement.gradient import Gradient
from lab.bench.placement.traces import PodShape, TraceCluster

Values = NDArray[np.int64] | Floats


@dataclass(frozen=True, slots=True)
class Choice:
    """A task that comes, the nodes [K] that would take it, and the cluster; `gpus` [N, D] is left of single GPUs."""

    snapshot: Snapshot
    task: PodShape
    rows: Rows
    gpus: Floats
    workload: TraceCluster


Ranks = Callable[[Choice], Values]
"""A value per node that fits [K], higher is better."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """A named way to choose a node, and what it is."""

    name: str
    note: str
    ranks: Ranks


OURS = "cosine"
"""The service's default ranking, by its name here."""

FGD = "fgd"

BESIDE = (OURS, "cosine-without-stranding", FGD, "most-allocated", "least-allocated")
"""What is compared on every variant of a workload; all others on the first alone."""


def rankings(default: Placement) -> list[Ranking]:
    """Return everything that is compared; `default` gives the step, and the rule whose parts are looked at."""
    rule, step = default.rule, default.shape_step
    return [
        *(Ranking(name, "served: least stranded, then shape, then fuller", _served(name, step)) for name in RULES),
        Ranking(f"{rule}-without-stranding", "served: shape, then fuller", _without_stranding(default)),
        Ranking(f"{rule}-without-levels", "that, and no levels", _ordered(default)),
        Ranking(f"{rule}-scaled", "10 x score as the level", _scaled(rule)),
        *(Ranking(f"{name}-plain", "score alone, no levels", _plain(name)) for name in RULES),
        Ranking(FGD, "fragmentation gradient descent", _Fgd()),
        Ranking("least-allocated", "kube-scheduler's scorer", _of(_least_allocated)),
        Ranking("most-allocated", "kube-scheduler's: best fit", _of(_most_allocated)),
        Ranking("first-fit", "in the trace's order", lambda choice: -choice.rows),
        Ranking("random", "any node that fits", lambda choice: np.zeros(len(choice.rows))),
    ]


def _of(ranks: Callable[[Snapshot, Pod, Rows], Values]) -> Ranks:
    """Return a ranking that looks at the snapshot alone."""
    return lambda choice: ranks(choice.snapshot, choice.task.pod, choice.rows)


def _served(rule: str, step: float) -> Ranks:
    """Return the service's own ranking."""
    return _of(Ranker(Placement(rule, step)).rank)


def _without_stranding(placement: Placement) -> Ranks:
    """Return the service's ranking where it knows of nobody who asks for devices."""
    ranker = Ranker(placement)
    return _of(lambda snapshot, pod, rows: ranker.rank(replace(snapshot, mix=NO_MIX), pod, rows))


def _plain(rule: str) -> Ranks:
    ranker = Ranker(Placement(rule))
    return _of(lambda snapshot, pod, rows: ranker.suitability(snapshot, pod, rows).score)


def _ordered(placement: Placement) -> Ranks:
    """Return rounded score, then fullness, as one number per node."""
    ranker = Ranker(placement)

    def ranks(snapshot: Snapshot, pod: Pod, rows: Rows) -> Floats:
        suits = ranker.suitability(snapshot, pod, rows)
        return np.asarray(np.round(2 * np.rint(suits.score / max(placement.shape_step, 1e-9)) + suits.full, 6))

    return _of(ranks)


class _Fgd:
    """The baseline that looks into single GPUs; begins anew with each replay."""

    def __init__(self) -> None:
        self._last: tuple[object, Gradient] | None = None

    def __call__(self, choice: Choice) -> Values:
        """Return its scores."""
        layout = choice.snapshot.layout
        if self._last is None or self._last[0] is not layout:
            self._last = (layout, Gradient(choice.workload, layout))
        return self._last[1].scores(choice.snapshot.allocated, choice.gpus, choice.task, choice.rows)


def _scaled(rule: str) -> Ranks:
    plain = _plain(rule)
    return lambda choice: np.rint(np.clip(plain(choice), 0, 1) * 10)


def _least_allocated(snapshot: Snapshot, pod: Pod, rows: Rows) -> Floats:
    return _score(1 - _allocated_after(snapshot, pod, rows))


def _most_allocated(snapshot: Snapshot, pod: Pod, rows: Rows) -> Floats:
    return _score(_allocated_after(snapshot, pod, rows))


def _allocated_after(snapshot: Snapshot, pod: Pod, rows: Rows) -> Floats:
    """Return the fraction allocated with the pod [K, 2 or more]: CPU, memory, and extended resources that it asks for.

    These are what kube-scheduler's scorers look at once an administrator has listed the extended resources.
    """
    scored: Mapping[str, float] = {CPU: 0.0, MEMORY: 0.0, **pod.demand}
    columns = [snapshot.layout.columns[name] for name in scored]
    demand = np.array(list(scored.values()))
    free, capacity = _free(snapshot, rows)
    return np.asarray(1 - (free[:, columns] - demand) / capacity[:, columns])


def _score(fractions: Floats) -> Floats:
    """Return the mean in whole per cents, rounded down at each step, as kube-scheduler does."""
    return np.asarray(np.floor(np.floor(100 * fractions + 1e-9).mean(axis=1) + 1e-9))


def _free(snapshot: Snapshot, rows: Rows) -> tuple[Floats, Floats]:
    capacity = snapshot.layout.capacity[rows]
    return capacity - snapshot.allocated[rows], capacity
