"""How long tasks really take beside what schedulers expect: wrong by a factor, or with a heavy tail."""

from dataclasses import replace

import numpy as np

from extender.errors import DovetailError
from lab.sim.workloads.workload import Workload

_TAIL = 1
"""Keeps what is drawn here apart from what is drawn elsewhere by the same seed."""


def known(workload: Workload, factor: float) -> Workload:
    """Return the same jobs, of which schedulers expect `factor` times the durations that they would."""
    jobs = [
        replace(job, stages=tuple(replace(stage, duration=stage.duration * factor) for stage in job.stages))
        for job in workload.jobs
    ]
    return replace(workload, jobs=jobs)


def heavy_tailed(workload: Workload, shape: float, seed: int) -> Workload:
    """Return the same jobs, each task of which takes a drawn number of times longer; schedulers expect what they did.

    The numbers are Pareto distributed with this shape and a mean of 1: the least is 1 - 1 / shape, and the smaller the
    shape, the longer the few longest tasks. At a shape of 2 and below their variance is infinite. They are the same for
    every policy. Raises DovetailError for a shape of 1 and below, where there is no mean.
    """
    if not 1 < shape < np.inf:
        raise DovetailError(f"tail: {shape:g}; accepted: a number above 1")
    random = np.random.default_rng((seed, _TAIL))
    jobs = [
        replace(
            job,
            stages=tuple(
                replace(stage, durations=stage.durations * (1 - 1 / shape) * (1 + random.pareto(shape, stage.tasks)))
                for stage in job.stages
            ),
        )
        for job in workload.jobs
    ]
    return replace(workload, jobs=jobs)
