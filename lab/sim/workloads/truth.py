"""What tasks really take beside what schedulers are told: durations and demands wrong by a factor, heavy tails."""

from dataclasses import replace

import numpy as np

from extender.arrays import Floats, times_fits
from extender.cluster.resources import (
    CPU_INDEX,
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    MEMORY_INDEX,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.errors import DovetailError
from lab.sim.workloads.workload import LOCAL, SHUFFLE, Machines, Stage, Use, Workload

_TAIL, _KNOW, _DECLARE = 1, 2, 3
"""Keep what is drawn here apart from what is drawn elsewhere by the same seed."""

_CPU, _MEMORY, _READ, _WRITE = CPU_INDEX, MEMORY_INDEX, DISK_READ_INDEX, DISK_WRITE_INDEX
_IN, _OUT = NETWORK_IN_INDEX, NETWORK_OUT_INDEX
_LEAST_KNOWN = 1e-6
"""A factor of a million in what is declared: more says nothing, and far more is no number."""
_HALVINGS = 8
_ROUNDING = 1e-12
"""So much less is used than should be: tasks that fill a machine exactly do not get past it by a rounding."""


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
    every policy. Raises DovetailError for a shape of 1 and below, where there is no mean, and for
    durations by wave.
    """
    if not 1 < shape < np.inf:
        raise DovetailError(f"tail: {shape:g}; accepted: a number above 1")
    if any(stage.waves is not None for job in workload.jobs for stage in job.stages):
        raise DovetailError(f"workload {workload.name}: its tasks take seconds by wave; accepted with them: no tail")
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


def declared_wrongly(workload: Workload, machines: Machines, part: float, seed: int) -> Workload:
    """Return the same jobs, whose tasks use what they used, and declare something else.

    What a stage declares of CPU, of memory, and of disk and network is each multiplied by a number between `part` and
    1 / `part`, drawn evenly on a logarithmic scale; never to more than a machine has on which its tasks fit, nor so
    much that a gang does not fit whole. The numbers are the same for every policy. Raises DovetailError for a part
    outside 1e-6..1, and for machines that offer more than the six dimensions: of the rest, use is the promise.
    """
    if not _LEAST_KNOWN <= part <= 1:
        raise DovetailError(f"know_demands: {part:g}; accepted: {_LEAST_KNOWN:g} to 1")
    if len(machines.axis) > len(DIMENSIONS):
        counted = ", ".join(DIMENSIONS)
        raise DovetailError(f"wrong demands are simulated of {counted}; not where these count too: {machines.beyond}")
    random = np.random.default_rng((seed, _DECLARE))
    copied = workload.output_copies > 1
    jobs = [
        replace(
            job,
            stages=tuple(
                _declaring(stage, machines, part ** random.uniform(-1.0, 1.0, 3), copied=copied) for stage in job.stages
            ),
        )
        for job in workload.jobs
    ]
    return replace(workload, jobs=jobs)


def _declaring(stage: Stage, machines: Machines, factors: Floats, *, copied: bool) -> Stage:
    """Return a stage that declares so many times what it uses of CPU, memory and the rates; `factors` [3].

    Where its output is `copied`, what it writes goes over the network as well.
    """
    # 1. What it may declare at most: what that machine has which has most memory of those on which its tasks fit.
    demand, reading = np.ceil(stage.demand), float(np.ceil(stage.reading))
    need = demand.copy()
    need[_IN if stage.source == SHUFFLE else _READ] += reading
    need[_OUT] += demand[_WRITE] * copied
    fits = (need <= machines.capacity).all(axis=1) & machines.allowed(stage.constraints)
    if not fits.any():
        return stage  # refused or waiting, as without
    room = machines.capacity[int(np.where(fits, machines.capacity[:, _MEMORY], -1.0).argmax())]
    most = np.divide(room - 1.0, need, out=np.full(len(need), np.inf), where=need > 0)
    # 2. What it declares, in whole numbers; one factor for all rates, as what a task reads may take disk or network.
    factor = np.full(len(need), min(factors[2], float(np.delete(most, [_CPU, _MEMORY]).min())))
    factor[_CPU], factor[_MEMORY] = np.minimum(factors[:2], most[[_CPU, _MEMORY]])
    if stage.gang:
        factor = _whole(factor, need, machines.capacity[fits], stage.tasks)
    declared, declared_reading = np.ceil(demand * factor), float(np.ceil(reading * factor[_READ]))
    # 3. What it uses is a part of that.
    part = np.divide(demand, declared, out=np.ones(len(need)), where=declared > 0)
    if reading > 0:
        follows = [_READ] if stage.source == LOCAL else [_READ, _IN, _OUT]
        part[follows] = reading / declared_reading
    use = stage.use or Use(np.ones(1), np.ones((1, len(DIMENSIONS))))
    use = replace(use, parts=use.parts * part * (1.0 - _ROUNDING))
    return replace(stage, demand=declared, reading=declared_reading, use=use)


def _whole(factor: Floats, need: Floats, capacity: Floats, tasks: int) -> Floats:
    """Return factors [R] with which so many tasks fit on machines [N, R] at once: what is too much is halved, on a log.

    As they are, they do (the workload's reader sees to it).
    """
    for _ in range(_HALVINGS):
        if times_fits(capacity, np.ceil(need * factor)).sum() >= tasks:
            return factor
        factor = np.where(factor > 1.0, np.sqrt(factor), factor)
    return np.minimum(factor, 1.0)
