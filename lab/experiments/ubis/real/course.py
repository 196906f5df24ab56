"""What happened, as it was written down: states of pods, holders of the Lease, writes, samples, phases, and kills."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lab.experiments.ubis.real.audit import Write
from lab.experiments.ubis.real.recording import PodState
from lab.experiments.ubis.real.series import MeasuredSeries
from lab.experiments.ubis.real.stage import Span


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over. `jobs` says by Job how many were to end, how many did, and how many failed."""

    nodes: Sequence[str]
    spans: Sequence[Span]
    states: Sequence[PodState]
    holders: Sequence[tuple[float, str]]
    kills: Sequence[tuple[float, str]]
    writes: Sequence[Write]
    measured: MeasuredSeries
    jobs: Mapping[str, tuple[int, int, int]]
    kubernetes: str = ""

    @cached_property
    def histories(self) -> dict[str, list[PodState]]:
        """Return the states of each pod by UID, in their order."""
        by_pod: dict[str, list[PodState]] = defaultdict(list)
        for state in self.states:
            by_pod[state.uid].append(state)
        return dict(by_pod)

    @cached_property
    def by_name(self) -> dict[str, list[PodState]]:
        """Return the states of each pod by name, in their order; names of pods of Jobs are never used again."""
        return {states[0].name: states for states in self.histories.values()}

    def at(self, moment: float) -> Iterator[PodState]:
        """Return the state of each pod that was there at a moment."""
        for states in self.histories.values():
            state = before(states, moment)
            if state is not None and state.there:
                yield state

    def span(self, name: str) -> Span:
        """Return the first phase of a name."""
        return next(span for span in self.spans if span.name == name)

    def phase(self, moment: float) -> str:
        """Return the name of the phase at a moment."""
        return next((span.name for span in self.spans if span.begun <= moment <= span.ended), "")

    @cached_property
    def evictions(self) -> list[Write]:
        """Return the evictions that were made."""
        return [write for write in self.writes if write.eviction and write.done]


def before(states: Sequence[PodState], moment: float) -> PodState | None:
    """Return a pod's state at a moment; None before it was first seen."""
    place = bisect_right(states, moment, key=lambda state: state.at)
    return states[place - 1] if place else None
