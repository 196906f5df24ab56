"""What is counted from a run that is over."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats
from extender.cluster.resources import CPU
from lab.experiments.ubis.real.course import FinishedRun, before
from lab.experiments.ubis.real.recording import PodState
from lab.experiments.ubis.real.scale import OFFERED, TASK
from lab.experiments.ubis.real.stage import JOB_LABEL, Span

_LATE_SECONDS = 1.0
"""A write that was decided while samples were good may come so much later."""


@dataclass(frozen=True, slots=True)
class Changes:
    """When a pod was released, opportunistic or not, and promoted; NaN for what never was."""

    name: str
    opportunistic: bool
    released: float
    promoted: float


def changes(course: FinishedRun) -> list[Changes]:
    """Return the changes of every pod of a Job."""
    counted = []
    for states in course.histories.values():
        if JOB_LABEL in states[0].labels:
            released = next((state for state in states if not state.held), None)
            counted.append(
                Changes(
                    states[0].name,
                    released is not None and released.opportunistic,
                    released.at if released else np.nan,
                    _promoted(states),
                )
            )
    return counted


def _promoted(states: list[PodState]) -> float:
    on_idle_room = next((place for place, state in enumerate(states) if state.there and state.opportunistic), None)
    if on_idle_room is None:
        return np.nan
    after = (state.at for state in states[on_idle_room:] if state.there and not state.opportunistic)
    return next(after, np.nan)


def use_after(course: FinishedRun) -> Floats:
    """Return which part of each node's CPU was used once idle room was filled, in the mean over its samples [N]."""
    return np.array([np.nanmean(_use_in(course, node, course.span("filled"))) for node in course.nodes])


def use_most(course: FinishedRun) -> float:
    """Return the largest part of any node's CPU that was used until the first overload."""
    spans = (course.span("fill"), course.span("filled"))
    return max(float(np.nanmax(_use_in(course, node, span))) for node in course.nodes for span in spans)


def _use_in(course: FinishedRun, node: str, span: Span) -> Floats:
    samples = course.measured.node(node, CPU)
    inside = (samples.at >= span.begun) & (samples.at <= span.ended)
    return np.asarray(samples.use[inside] / OFFERED[CPU])


def regular_evicted(course: FinishedRun) -> int:
    """Return how many pods were evicted that kube-scheduler counted then."""
    states = [before(course.by_name[write.pod], write.at) for write in course.evictions]
    return sum(state is None or not state.opportunistic for state in states)


def evicted_twice(course: FinishedRun) -> int:
    """Return how many pods were evicted more than once."""
    return sum(count > 1 for count in Counter(write.pod for write in course.evictions).values())


def unmeasured(course: FinishedRun) -> Iterator[Span]:
    """Return when nothing was known: in each outage, which begins when both replicas of `control` say so."""
    for span in course.spans:
        if span.name == "outage":
            yield Span(span.name, span.begun + _LATE_SECONDS, span.ended, span.kind)


def within(moment: float, spans: Iterator[Span]) -> bool:
    """Return whether a moment is in one of these spans."""
    return any(span.begun <= moment <= span.ended for span in spans)


def released_unmeasured(course: FinishedRun) -> tuple[int, int]:
    """Return how many pods went to idle room while nothing was measured, and how many went on as regular ones."""
    on_idle_room = sum(pod.opportunistic and within(pod.released, unmeasured(course)) for pod in changes(course))
    outages = [span for span in course.spans if span.name == "outage"]
    return on_idle_room, sum(not pod.opportunistic and within(pod.released, iter(outages)) for pod in changes(course))


def evicted_unmeasured(course: FinishedRun) -> int:
    """Return how many pods were evicted while nothing was measured."""
    return sum(within(write.at, unmeasured(course)) for write in course.evictions)


def promoted(course: FinishedRun) -> tuple[int, int]:
    """Return how many pods of the node whose regular pod ended were promoted then, and how many more would have fit."""
    span, node = course.span("promote"), course.nodes[1]
    there = [state for state in course.at(span.ended) if state.node == node]
    free = OFFERED[CPU] - sum(state.counted.get(CPU, 0.0) for state in there)
    left = min(int(free // TASK[CPU]), sum(state.opportunistic and not state.leaving for state in there))
    return sum(span.begun <= pod.promoted <= span.ended for pod in changes(course)), left


def writes_to_release(course: FinishedRun) -> Floats:
    """Return how many times `control` wrote to each pod until it went to idle room [P]."""
    at = {pod.name: pod.released for pod in changes(course) if pod.opportunistic}
    counts = Counter(write.pod for write in course.writes if _counts(write.pod, write.at, at) and write.done)
    return np.array([counts[name] for name in at], dtype=np.float64)


def writes_to_promote(course: FinishedRun) -> Floats:
    """Return how many times `control` wrote to each promoted pod after its release, evictions aside [P]."""
    at = {pod.name: pod.released for pod in changes(course) if np.isfinite(pod.promoted)}
    later = (write for write in course.writes if write.pod in at and write.at > at[write.pod] and not write.eviction)
    counts = Counter(write.pod for write in later if write.done)
    return np.array([counts[name] for name in at], dtype=np.float64)


def _counts(pod: str, moment: float, released: dict[str, float]) -> bool:
    return pod in released and moment <= released[pod]


def lost(course: FinishedRun) -> int:
    """Return how many pods of Jobs did not end well, or failed otherwise than by an eviction."""
    return sum(max(count - ended, 0) + failed for count, ended, failed in course.jobs.values())
