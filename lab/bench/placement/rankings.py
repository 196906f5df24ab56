"""The rankings that `dovetail bench placement` compares: the service's own, its parts, and baselines.

A ranking gives each node that fits a value; the highest wins, ties are broken at random as
kube-scheduler does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats, Rows
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.resources import CPU, MEMORY
from extender.policy.alignment import RULES
from extender.verdict import Placement, Ranker

Ranks = Callable[[Snapshot, Pod, Rows], NDArray[np.int64] | Floats]
"""A value per node that fits [K], higher is better."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """A named way to choose a node, and what it is."""

    name: str
    note: str
    ranks: Ranks


def rankings(default: Placement) -> list[Ranking]:
    """Return everything that is compared; `default` gives the step, and the rule whose parts are looked at."""
    rule, step = default.rule, default.shape_step
    return [
        *(Ranking(name, f"served: step {step:g}, then fuller", _served(name, step)) for name in RULES),
        Ranking(f"{rule}-without-levels", "the same order, no levels", _ordered(default)),
        Ranking(f"{rule}-scaled", "10 x score as the level", _scaled(rule)),
        *(Ranking(f"{name}-plain", "score alone, no levels", _plain(name)) for name in RULES),
        Ranking("least-allocated", "kube-scheduler's scorer", _least_allocated),
        Ranking("most-allocated", "kube-scheduler's: best fit", _most_allocated),
        Ranking("first-fit", "in the trace's order", lambda _snapshot, _pod, rows: -rows),
        Ranking("random", "any node that fits", lambda _snapshot, _pod, rows: np.zeros(len(rows))),
    ]


def _served(rule: str, step: float) -> Ranks:
    """Return the service's own ranking."""
    return Ranker(Placement(rule, step)).rank


def _plain(rule: str) -> Ranks:
    ranker = Ranker(Placement(rule))
    return lambda snapshot, pod, rows: ranker.score(snapshot, pod, rows)[0]


def _ordered(placement: Placement) -> Ranks:
    """Return rounded score, then fullness, as one number per node."""
    ranker = Ranker(placement)

    def ranks(snapshot: Snapshot, pod: Pod, rows: Rows) -> Floats:
        score, full = ranker.score(snapshot, pod, rows)
        return np.asarray(np.round(2 * np.rint(score / max(placement.shape_step, 1e-9)) + full, 6))

    return ranks


def _scaled(rule: str) -> Ranks:
    plain = _plain(rule)
    return lambda snapshot, pod, rows: np.rint(np.clip(plain(snapshot, pod, rows), 0, 1) * 10)


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
