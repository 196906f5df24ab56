"""How long tasks really take beside what schedulers expect: wrong by a factor, or with a heavy tail."""

from dataclasses import replace

import numpy as np

from extender.errors import DovetailError
from lab.sim.workloads.workload import Workload

_TAIL, _KNOW = 1, 2
"""Keep what is drawn here apart from what is drawn elsewhere by the same seed."""


def known(workload: Workload, part: float, seed: int) -> Workload:
    """Return the same jobs, about whose durations schedulers are wrong.

    What they would expect of a stage is multiplied by a number between `part`, above 0, and 1 / `part`, drawn evenly on
    a logarithmic scale. At 0 they know nothing: of each stage they expect the mean over all tasks. Raises DovetailError
    for a part outside 0..1.
    """
    if not 0 <= part <= 1:
        raise DovetailError(f"know: {part:g}; accepted: 0 to 1")
    random = np.random.default_rng((seed, _KNOW))
    mean = sum(stage.duration * stage.tasks for job in workload.jobs for stage in job.stages) / max(workload.tasks, 1)
    jobs = [
        replace(
            job,
            stages=tuple(
                replace(stage, duration=stage.duration * part ** random.uniform(-1.0, 1.0) if part else mean)
                for stage in job.stages
            ),
        )
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
