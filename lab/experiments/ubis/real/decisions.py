"""Who was evicted together, and who would have had to be: the smallest set, by trying every set on the recorded use."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, groupby, pairwise

import numpy as np

from extender.arrays import Floats
from lab.experiments.ubis.real.audit import Write
from lab.experiments.ubis.real.course import FinishedRun, before
from lab.experiments.ubis.real.recording import PodState
from lab.experiments.ubis.real.scale import DIMENSIONS, OFFERED, T_PREEMPT, WINDOW_SECONDS

_TOGETHER_SECONDS = 2.0
"""Evictions of one node within so long of each other were decided together."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Evictions of one node at a time, by the phase in which they were made.

    `needed` is how few pods would have been enough, by the last samples before. `samples` is how many samples in a row
    said that the node was over its limit and could be read, `led` whether one process led all that time.
    """

    at: float
    node: str
    phase: str
    evicted: int
    needed: int
    samples: int
    led: bool


def decisions(course: FinishedRun, protected: str) -> list[Decision]:
    """Return all decisions, in order. Pods of the Job `protected` cannot go once its phase has begun."""
    made: list[Decision] = []
    for node, writes in _together(course):
        made.append(_decision(course, node, writes, protected, [one.at for one in made if one.node == node]))
    return made


def smallest(over: Floats, use: Floats) -> int:
    """Return how many of the pods [P, R] it takes at least to give back `over` [R]; all, where they do not suffice."""
    short = over > 0
    if not short.any():
        return 0
    gives = use[:, short] / over[short]
    for count in range(1, len(gives) + 1):
        if any((gives[list(chosen)].sum(axis=0) >= 1.0).all() for chosen in combinations(range(len(gives)), count)):
            return count
    return len(gives)


def _together(course: FinishedRun) -> Iterator[tuple[str, list[Write]]]:
    """Return the evictions that were decided together, with their node."""
    by_node: dict[str, list[Write]] = {}
    for write in course.evictions:
        state = before(course.by_name[write.pod], write.at)
        by_node.setdefault((state.node if state else None) or "", []).append(write)
    batches = [(node, batch) for node, writes in by_node.items() for batch in _near(writes)]
    yield from sorted(batches, key=lambda batch: batch[1][0].at)


def _near(writes: list[Write]) -> list[list[Write]]:
    places = [0]
    for earlier, later in pairwise(writes):
        places.append(places[-1] + (later.at - earlier.at > _TOGETHER_SECONDS))
    return [
        [write for _, write in group] for _, group in groupby(zip(places, writes, strict=True), lambda pair: pair[0])
    ]


def _decision(course: FinishedRun, node: str, writes: list[Write], protected: str, earlier: list[float]) -> Decision:
    at, phase = writes[0].at, course.phase(writes[0].at)
    there = [state for state in course.at(at) if state.node == node and state.opportunistic]
    going, staying = _apart(there, protected if phase == "budget" else "")
    over = _over(course, node, at)
    over -= np.nansum([_use(course, state.name, at) for state in going], axis=0) if going else 0.0
    use = np.nan_to_num(np.array([_use(course, state.name, at) for state in staying]).reshape(-1, len(DIMENSIONS)))
    back = [span.ended for span in course.spans if span.name == "outage" and span.ended <= at]
    since = max(max(earlier, default=-np.inf) + WINDOW_SECONDS, *back, -np.inf)
    samples, first = _samples(course, node, at, since)
    holders = [moment for moment, _ in course.holders if first <= moment <= at]
    return Decision(at, node, phase, len(writes), smallest(over, use), samples, not holders)


def _apart(states: Collection[PodState], protected: str) -> tuple[list[PodState], list[PodState]]:
    """Return the pods that were on their way out already, and those that could be asked to go."""
    going = [state for state in states if state.leaving]
    staying = [state for state in states if not state.leaving and not (protected and state.name.startswith(protected))]
    return going, staying


def _over(course: FinishedRun, node: str, at: float) -> Floats:
    """Return by how much a node was over its limits [R], by its last samples."""
    use = np.array([course.measured.node(node, dimension).before(at) for dimension in DIMENSIONS])
    return np.asarray(np.maximum(np.nan_to_num(use) - limits(), 0.0))


def limits() -> Floats:
    """Return T_preempt [R] in the units of use."""
    return np.array([T_PREEMPT * OFFERED[dimension] for dimension in DIMENSIONS])


def _use(course: FinishedRun, pod: str, at: float) -> Floats:
    return np.array([course.measured.pod(pod, dimension).before(at) for dimension in DIMENSIONS])


def _samples(course: FinishedRun, node: str, at: float, since: float) -> tuple[int, float]:
    """Return how many samples in a row up to `at` were over a limit, and when the first was; the most of all limits."""
    in_a_row: Mapping[str, tuple[int, float]] = {
        dimension: _in_a_row(course, node, dimension, at, since) for dimension in DIMENSIONS
    }
    over = {dimension: pair for dimension, pair in in_a_row.items() if pair[0]}
    if not over:
        return 0, at
    return max(over.values(), key=lambda pair: pair[0])


def _in_a_row(course: FinishedRun, node: str, dimension: str, at: float, since: float) -> tuple[int, float]:
    samples = course.measured.node(node, dimension)
    last = int(np.searchsorted(samples.at, at, side="right"))
    count = 0
    for place in range(last - 1, -1, -1):
        if not samples.use[place] > T_PREEMPT * OFFERED[dimension] or samples.at[place] < since:
            break
        count += 1
    return count, float(samples.at[last - count]) if count else at
