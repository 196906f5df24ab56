"""Small changes of an order, some of them where it hurts: at the stages that decide when the last task ends."""

from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats, Mask
from extender.graph.dag import Dag
from extender.graph.replay import Ranks

_CRITICAL = 0.5
_MIXED = 0.3
_ROUNDING = 1e-6


class Moves:
    """Changes of the order of a run in which the tasks began then."""

    def __init__(self, dag: Dag, random: np.random.Generator, begins: Sequence[Floats]) -> None:
        """Take when each task began: for each stage [T]."""
        self._random = random
        self._first = np.array([starts.min() for starts in begins])
        self._critical = critical(dag, begins)

    def of(self, ranks: Ranks) -> Ranks:
        """Return other ranks: one stage, or the last part of its tasks, goes where another is.

        Half of the time that is a stage that decides when all ends, and it goes before one that begins earlier.
        """
        random = self._random
        stage, other = random.choice(len(ranks), 2, replace=False).tolist()
        early = False
        if random.random() < _CRITICAL:
            stage = int(random.choice(self._critical))
            earlier = np.flatnonzero(self._first <= self._first[stage])
            if len(earlier) > 1:
                other, early = int(random.choice(earlier[earlier != stage])), True
            elif other == stage:
                other = (stage + 1) % len(ranks)
        if random.random() < _MIXED:
            return self._mixed(ranks, stage, other)
        place = float(random.choice(ranks[other]))
        shifted = ranks[stage].copy()
        tasks = np.ones(len(shifted), dtype=bool)
        if len(shifted) > 1 and random.random() < 0.5:
            tasks = np.argsort(np.argsort(shifted)) >= random.integers(1, len(shifted))
        beside = -0.5 if early else random.choice((-0.5, 0.5))
        shifted[tasks] += place - float(shifted[tasks].min()) + beside
        return [shifted if row == stage else of_stage for row, of_stage in enumerate(ranks)]

    def _mixed(self, ranks: Ranks, stage: int, other: int) -> Ranks:
        """Return ranks in which the tasks of two stages alternate, over all that both take up."""
        both = np.concatenate((ranks[stage], ranks[other]))
        first, last = float(both.min()), float(both.max())
        mixed = list(ranks)
        for row in (stage, other):
            places = np.argsort(np.argsort(ranks[row], kind="stable"), kind="stable")
            mixed[row] = first + (last - first) * (places + 0.5) / len(places)
        return mixed


def critical(dag: Dag, begins: Sequence[Floats]) -> list[int]:
    """Return the stages along which the run goes back from its end: each began when the next before it ended."""
    ends = [starts + stage.seconds for starts, stage in zip(begins, dag.stages, strict=True)]
    row = int(np.argmax([of_stage.max() for of_stage in ends]))
    moment = float(begins[row][ends[row].argmax()])
    chain = [row]
    while moment > 0:
        parents = [edge.row for edge in dag.parents[row]]
        rows = [*parents, *range(len(dag))]
        row = next((earlier for earlier in rows if _before(begins[earlier], ends[earlier], moment).any()), -1)
        if row < 0:
            break
        chain.append(row)
        moment = float(begins[row][_before(begins[row], ends[row], moment)].min())
    return sorted(set(chain))


def _before(begins: Floats, ends: Floats, moment: float) -> Mask:
    """Return which tasks ended at this moment; a task so short that it may have begun then as well is none of them."""
    return (begins < moment) & (np.abs(ends - moment) <= _ROUNDING * max(moment, 1.0))
