"""Which jobs of a trace are replayed, and when they arrive."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from extender.cluster.resources import CPU_INDEX
from extender.errors import DovetailError
from lab.sim.workloads.workload import Job

PACED, TRACE, START = "paced", "trace", "start"
ARRIVALS = (PACED, TRACE, START)
"""In the trace's order and rhythm, but so fast that a given load results; at the trace's own times; all at 0."""

_CPU = CPU_INDEX
_MILLIS = 1000.0


def window(rng: np.random.Generator, available: int, jobs: int | None) -> slice:
    """Return which of the `available` jobs to take: all, or `jobs` of them in one piece that begins anywhere.

    One piece rather than a sample keeps the bursts and the mix of an hour together.
    """
    if jobs is None or jobs >= available:
        return slice(0, available)
    begin = int(rng.integers(available - jobs + 1))
    return slice(begin, begin + jobs)


def arrange(jobs: Sequence[Job], *, arrivals: str, load: float) -> list[Job]:
    """Return the jobs by arrival, the first at 0 seconds.

    PACED: the time between arrivals is scaled so that the jobs ask for `load` cores in the mean from the first arrival
    to the last. Raises DovetailError for arrivals that are none of ARRIVALS.
    """
    if arrivals not in ARRIVALS:
        raise DovetailError(f"arrivals {arrivals!r}; accepted: {', '.join(ARRIVALS)}")
    ordered = sorted(jobs, key=lambda job: job.arrives_at)
    if not ordered:
        return []
    first, last = ordered[0].arrives_at, ordered[-1].arrives_at
    scale = {TRACE: 1.0, START: 0.0, PACED: _pace(ordered, last - first, load)}[arrivals]
    return [replace(job, arrives_at=(job.arrives_at - first) * scale) for job in ordered]


def core_seconds(jobs: Sequence[Job]) -> float:
    """Return how long one core would compute for all of them."""
    return sum(float(stage.demand[_CPU] * stage.durations.sum()) for job in jobs for stage in job.stages) / _MILLIS


def _pace(jobs: Sequence[Job], seconds: float, load: float) -> float:
    return core_seconds(jobs) / load / seconds if seconds > 0 else 1.0
