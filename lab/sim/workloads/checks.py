"""What of a workload cannot be replayed on some machines: what is malformed, and what fits none of them."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.resources import (
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.errors import DovetailError
from lab.sim.workloads.names import stage_names
from lab.sim.workloads.workload import LOCAL, SHUFFLE, SOURCES, Job, Machines, Stage, Use, Workload

_FOLLOWS = [DISK_READ_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX]


def refuse_malformed(workload: Workload, jobs: Sequence[Job], machines: Machines) -> None:
    """Raise DovetailError if the workload, or the machines, say what cannot be; `jobs` are those of the workload."""
    if workload.at_once is not None and workload.at_once < 1:
        raise DovetailError(f"at_once: {workload.at_once}; accepted: 1 or more")
    if workload.output_copies < 1:
        raise DovetailError(f"output_copies: {workload.output_copies}; accepted: 1 or more")
    if machines.copies < 1:
        raise DovetailError(f"copies: {machines.copies}; accepted: 1 or more")
    _check_names(jobs)
    if any(not 0 <= weight < np.inf for weight in workload.weights.values()):
        raise DovetailError(f"weights: {dict(workload.weights)}; accepted: 0 or more")


def refuse_misfits(jobs: Sequence[Job], machines: Machines, copied: Mask) -> None:
    """Raise DovetailError for a stage that is malformed, or fits no machine; the outputs of some are `copied` [S]."""
    places = [(job, place) for job in jobs for place in range(len(job.stages))]
    for (job, place), copies in zip(places, copied.tolist(), strict=True):
        _check_stage(job, place, job.stages[place], machines, copies=copies)


def _check_names(jobs: Sequence[Job]) -> None:
    """Raise if two jobs, or two stages of one, have one name: schedulers keep notes under these names."""
    for names in ([job.name for job in jobs], stage_names(jobs)):
        for name, count in Counter(names).items():
            if count > 1:
                raise DovetailError(f"two are named {name!r}; names of jobs, and of the stages of one, must differ")
    for job in jobs:
        if not job.stages:
            raise DovetailError(f"job {job.name!r} has no stages")


def _check_stage(job: Job, place: int, stage: Stage, machines: Machines, *, copies: bool) -> None:
    """Raise if the stage is malformed or fits no machine even when empty."""
    name = f"{job.name}/{stage.name}"
    if stage.source not in SOURCES:
        raise DovetailError(f"{name} reads from {stage.source!r}; accepted: {', '.join(SOURCES)}")
    if stage.source == SHUFFLE and stage.reading > 0 and not stage.parents:
        raise DovetailError(f"{name} shuffles but has no parents to read from")
    if not all(0 <= parent < place for parent in stage.parents):
        raise DovetailError(f"{name} has parents {stage.parents}; accepted: places before its own, {place}")
    _check_one_to_one(name, job, stage)
    if not stage.tasks or not (stage.durations > 0).all() or not np.isfinite(stage.durations).all():
        raise DovetailError(f"{name} needs one task or more, each of more than 0 seconds")
    follows = (
        [DISK_READ_INDEX] if stage.source == LOCAL else _FOLLOWS
    )  # who reads at home may use the network for something else
    if (stage.demand < 0).any() or (stage.demand[follows] != 0).any() or stage.reading < 0:
        raise DovetailError(f"{name}: its demand is negative, or says what follows from reading: {stage.demand}")
    if stage.use is not None:
        _check_use(name, stage, stage.use)
    if len(stage.demand) != len(machines.axis):
        raise DovetailError(f"{name} demands {len(stage.demand)} amounts; accepted: one for each of {machines.axis}")
    capacity = machines.capacity
    need = np.ceil(stage.demand)
    need[NETWORK_IN_INDEX if stage.source == SHUFFLE else DISK_READ_INDEX] += np.ceil(stage.reading)
    need[NETWORK_OUT_INDEX] += need[DISK_WRITE_INDEX] * copies
    if not (need <= capacity).all(axis=1).any():
        short = [name for column, name in enumerate(machines.axis) if need[column] > capacity[:, column].max(initial=0)]
        lacking = ", ".join(short) or "all of it together"
        raise DovetailError(f"{name} fits no machine: it demands {_words(need, machines.axis)}, too much {lacking}")


def _check_one_to_one(name: str, job: Job, stage: Stage) -> None:
    """Raise if tasks cannot wait for single tasks of these parents."""
    for parent in stage.one_to_one:
        if parent not in stage.parents:
            raise DovetailError(f"{name} waits one to one for stage {parent}; accepted: its parents {stage.parents}")
        if job.stages[parent].tasks != stage.tasks:
            raise DovetailError(
                f"{name} has {stage.tasks} tasks, and {job.stages[parent].name}, for which it waits one to one, "
                f"{job.stages[parent].tasks}; accepted: as many"
            )
    if stage.one_to_one and (stage.gang or stage.source != LOCAL):
        raise DovetailError(f"{name} waits one to one; accepted: where it is no gang and reads on its own machine")


def _check_use(name: str, stage: Stage, use: Use) -> None:
    """Raise if what the tasks of a stage use over time is malformed."""
    phases, scale = len(use.until), use.scale
    ascends = phases > 0 and use.until[0] > 0 and (np.diff(use.until) > 0).all() and use.until[-1] == 1
    if not ascends or use.parts.shape != (phases, len(DIMENSIONS)) or not (use.parts >= 0).all():
        raise DovetailError(
            f"{name}: its use goes by phases, ascending to 1, with parts of 0 or more in each dimension"
        )
    if scale is not None and (scale.shape != (stage.tasks,) or not (scale >= 0).all()):
        raise DovetailError(f"{name}: its use needs a scale of 0 or more for each of its {stage.tasks} tasks")


def _words(demand: Floats, axis: Sequence[str]) -> str:
    return ", ".join(f"{name} {amount:g}" for name, amount in zip(axis, demand, strict=True) if amount > 0)
