"""A workload as arrays: jobs [J] and stages [S] in the order in which a scheduler sees them, tasks [T] as given.

Jobs are in the order of (queue, name), stages in that of (job, place in the job), so that ties are the same ties in
every order of a trace. Tasks stay in the workload's order: a stage's are `first_task` .. + `tasks`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.resources import (
    DIMENSIONS,
    DISK_READ_INDEX,
    DISK_WRITE_INDEX,
    NETWORK_IN_INDEX,
    NETWORK_OUT_INDEX,
)
from extender.control.queues.tree import QueueTree
from extender.errors import DovetailError
from extender.policy.remaining import work_by_resource, work_per_task
from lab.sim.workloads.names import stage_names
from lab.sim.workloads.waves import Waves
from lab.sim.workloads.workload import BLOCKS, LOCAL, SHUFFLE, Job, Machines, Stage, Use, Workload

SOURCES = (LOCAL, BLOCKS, SHUFFLE)
_READ, _WRITE, _IN, _OUT = DISK_READ_INDEX, DISK_WRITE_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX
_FOLLOWS = [_READ, _IN, _OUT]


@dataclass(frozen=True)
class StageTable:
    """All jobs and stages.

    `demand` [S, R] and `reading` [S] as the scheduler sees them: in one bin, reading is part of the demand. `source`
    [S] is a row of SOURCES, `expected` [S] the seconds that the scheduler expects. `work` [S] is the work of one task
    (policy.remaining), `busy` [S, R] the seconds for which it keeps each resource busy. `children` and `parents` are
    rows of stages. `job_place` [J] and `stage_place` [S] are places in the workload. `copies` has the blocks
    [tasks, K] of the stages that declare them, `uses` what tasks use over time of those that say so. At most `at_once`
    jobs are there at a time. `axis` [R] are the dimensions, `tree` the queues that
    settings declare. `priority` [S] is that of a stage's pods, `gang` [S] says whose tasks start together (`least` [S]
    of them at first), `constraint` [S] is a row of `constraints` [K] and of `allowed` [K, N]: which machines a stage
    may go to at first (each None: there is no such thing). The output of stages that are `copied` [S] is written on
    `output_copies` machines. `one_to_one` has the parents of a stage for whose single tasks its own wait, `waves` what
    the tasks of a stage take by wave (of such a stage `durations` are the least). `runs` has the stages of one
    name in all runs of a recurring job, for each of them.
    """

    job_names: Sequence[str]
    job_queue: Rows
    job_stages: Counts
    job_place: Rows
    queue_names: Sequence[str]
    queue_weight: Floats
    arrives_at: Floats
    names: Sequence[str]
    job: Rows
    demand: Floats
    reading: Floats
    source: Rows
    expected: Floats
    tasks: Counts
    first_task: Rows
    work: Floats
    busy: Floats
    parents: Sequence[Rows]
    children: Sequence[Rows]
    stage_place: Rows
    durations: Floats
    copied: Mask
    output_copies: int
    copies: Mapping[int, Rows] = field(default_factory=dict)
    uses: Mapping[int, Use] = field(default_factory=dict)
    at_once: float = np.inf
    axis: tuple[str, ...] = DIMENSIONS
    tree: QueueTree | None = None
    priority: Counts | None = None
    gang: Mask | None = None
    least: Counts | None = None
    constraint: Rows | None = None
    constraints: Sequence[Constraints] = ()
    allowed: Mask = field(default_factory=lambda: np.ones((0, 0), dtype=np.bool_))
    one_to_one: Mapping[int, Rows] = field(default_factory=dict)
    waves: Mapping[int, Waves] = field(default_factory=dict)
    runs: Mapping[int, Rows] = field(default_factory=dict)

    @cached_property
    def seen(self) -> Floats:
        """What a task takes of its own machine besides reading [S, R], as a scheduler sees it: it sends its copies."""
        if not self.copied.any():
            return self.demand
        demand = self.demand.copy()
        demand[:, _OUT] += demand[:, _WRITE] * self.copied
        return demand

    @property
    def everywhere(self) -> Floats:
        """What a task takes of all machines together [S, R], if all that it reads is on its own."""
        return everywhere(self.demand, self.reading, self.copied * (self.output_copies - 1))

    @cached_property
    def stage_of_task(self) -> Rows:
        """Which stage each task is of [T]."""
        order = np.argsort(self.first_task, kind="stable")
        return np.repeat(order, self.tasks[order])

    @cached_property
    def path(self) -> Floats:
        """The least seconds of each stage with the longest chain of stages after it [S], by expected durations.

        It is 0 in jobs of several tasks of which no stage waits for another: there is no chain.
        """
        path, chained = self.expected.copy(), self.job_tasks == 1
        for stage in range(len(path) - 1, -1, -1):  # children come after their parents
            path[stage] += path[self.children[stage]].max(initial=0.0)
            chained[self.job[stage]] |= len(self.children[stage]) > 0
        return np.where(chained[self.job], path, 0.0)

    @property
    def shuffling_children(self) -> Counts:
        """How many stages shuffle the output of each stage [S]."""
        readers = np.zeros(len(self.tasks), dtype=np.int64)
        for stage in np.flatnonzero(self.source == SOURCES.index(SHUFFLE)).tolist():
            readers[self.parents[stage]] += 1
        return readers

    def least_seconds(self, total: Floats) -> float:
        """Return a lower bound of the makespan: the time of arrivals, or the work on the scarcest of `total` [R]."""
        if not len(self.arrives_at):
            return 0.0
        seconds = np.bincount(self.stage_of_task, weights=self.durations, minlength=len(self.tasks))
        work = np.divide(seconds @ self.everywhere, total, out=np.zeros(len(total)), where=total > 0)
        return max(float(np.ptp(self.arrives_at)), float(work.max()))

    @property
    def job_tasks(self) -> Counts:
        """How many tasks each job has [J]."""
        return np.bincount(self.job, weights=self.tasks, minlength=len(self.job_names)).astype(np.int64)


def table_of(workload: Workload, machines: Machines) -> StageTable:
    """Return the workload's table. Raises DovetailError for what could never run on these machines, by name."""
    # 1. Refuse what cannot be replayed.
    if workload.at_once is not None and workload.at_once < 1:
        raise DovetailError(f"at_once: {workload.at_once}; accepted: 1 or more")
    if workload.output_copies < 1:
        raise DovetailError(f"output_copies: {workload.output_copies}; accepted: 1 or more")
    if machines.copies < 1:
        raise DovetailError(f"copies: {machines.copies}; accepted: 1 or more")
    order = sorted(range(len(workload.jobs)), key=lambda place: _key(workload.jobs[place]))
    jobs = [workload.jobs[place] for place in order]
    _check_names(jobs)
    if any(not 0 <= weight < np.inf for weight in workload.weights.values()):
        raise DovetailError(f"weights: {dict(workload.weights)}; accepted: 0 or more")
    stages = [(row, place, stage) for row, job in enumerate(jobs) for place, stage in enumerate(job.stages)]
    copied = _copied(jobs, _output_copies(workload, machines))
    for (row, place, stage), copies in zip(stages, copied.tolist(), strict=True):
        _check(jobs[row], place, stage, machines, copies=copies)
    # 2. Rows: jobs by queue, arrival and name, as on a cluster; stages by job, tasks as in the workload.
    before = _before(workload)
    first_stage = np.cumsum([0, *(len(job.stages) for job in jobs)])
    queues = sorted({job.queue for job in jobs})
    constraints = sorted({stage.constraints for _, _, stage in stages}, key=repr)
    allowed = np.array([machines.allowed(constraint) for constraint in constraints], dtype=np.bool_)
    priority = np.array([stage.priority for _, _, stage in stages], dtype=np.int64)
    gang = np.array([stage.gang for _, _, stage in stages], dtype=np.bool_)
    least = np.array([stage.least for _, _, stage in stages], dtype=np.int64)
    constraint_rows = {constraint: row for row, constraint in enumerate(constraints)}
    # 3. What stages demand and read, and the work of a task.
    tasks = np.array([stage.tasks for _, _, stage in stages], dtype=np.int64)
    demand, reading, source = _inputs(
        [stage for _, _, stage in stages], len(machines.axis), aggregate=machines.aggregate
    )
    output_copies = _output_copies(workload, machines)
    if machines.aggregate:
        demand = everywhere(demand, np.zeros_like(reading), copied * (output_copies - 1))
        copied = np.zeros_like(copied)
    expected = np.array([stage.duration for _, _, stage in stages])
    parents = [np.array(sorted(set(stage.parents)), dtype=np.intp) + first_stage[row] for row, _, stage in stages]
    whole = everywhere(demand, reading, copied * (output_copies - 1))
    durations = [stage.durations for job in workload.jobs for stage in job.stages]
    return StageTable(
        job_names=[job.name for job in jobs],
        job_queue=np.array([queues.index(job.queue) for job in jobs], dtype=np.intp),
        job_stages=np.array([len(job.stages) for job in jobs], dtype=np.int64),
        job_place=np.array(order, dtype=np.intp),
        queue_names=queues,
        queue_weight=np.array([workload.weights.get(queue, 1.0) for queue in queues]),
        arrives_at=np.array([job.arrives_at for job in jobs]),
        names=stage_names(jobs),
        job=np.array([row for row, _, _ in stages], dtype=np.intp),
        demand=demand,
        reading=reading,
        source=source,
        expected=expected,
        tasks=tasks,
        first_task=np.array([before[order[row]][place][1] for row, place, _ in stages], dtype=np.intp),
        work=work_per_task(whole, expected, machines.capacity.sum(axis=0)),
        busy=work_by_resource(whole, expected, machines.capacity.sum(axis=0)),
        parents=parents,
        children=_children(parents),
        stage_place=np.array([before[order[row]][place][0] for row, place, _ in stages], dtype=np.intp),
        durations=np.concatenate(durations) if durations else np.empty(0),
        copies={row: stage.copies for row, (_, _, stage) in enumerate(stages) if stage.copies is not None},
        uses={row: stage.use for row, (_, _, stage) in enumerate(stages) if stage.use is not None},
        at_once=np.inf if workload.at_once is None else workload.at_once,
        axis=machines.axis,
        tree=workload.tree,
        priority=priority if priority.any() else None,
        gang=gang if gang.any() else None,
        least=np.where(least > 0, np.minimum(least, tasks), tasks) if gang.any() else None,
        constraint=None
        if allowed.all() and not machines.changes
        else np.array([constraint_rows[stage.constraints] for _, _, stage in stages], dtype=np.intp),
        constraints=constraints,
        allowed=allowed,
        copied=copied,
        output_copies=output_copies,
        one_to_one={
            child: np.array(sorted(stage.one_to_one), dtype=np.intp) + first_stage[row]
            for child, (row, _, stage) in enumerate(stages)
            if stage.one_to_one
        },
        waves={row: stage.waves for row, (_, _, stage) in enumerate(stages) if stage.waves is not None},
        runs=_runs([(jobs[row].recurring, stage.name) for row, _, stage in stages]),
    )


def _runs(names: Sequence[tuple[str, str]]) -> Mapping[int, Rows]:
    """Return all stages of the same name, by stage; `names` [S] are of the recurring job ("": none) and the stage."""
    alike: dict[tuple[str, str], list[int]] = {}
    for stage, name in enumerate(names):
        if name[0]:
            alike.setdefault(name, []).append(stage)
    shared = [np.array(some, dtype=np.intp) for some in alike.values() if len(some) > 1]
    return {stage: some for some in shared for stage in some.tolist()}


def _output_copies(workload: Workload, machines: Machines) -> int:
    """Return on how many machines a final output is written: as many as the workload says and have a disk for it."""
    return workload.output_copies if machines.aggregate else min(workload.output_copies, len(machines.output_holders))


def _copied(jobs: Sequence[Job], copies: int) -> Mask:
    """Return of which stages the output is copied to other machines [S]: those that no other of the job follows."""
    followed = [{parent for stage in job.stages for parent in stage.parents} for job in jobs]
    last = [
        place not in parents for job, parents in zip(jobs, followed, strict=True) for place in range(len(job.stages))
    ]
    return np.array(last, dtype=np.bool_) & (copies > 1)


def everywhere(demand: Floats, reading: Floats, elsewhere: Counts) -> Floats:
    """Return what tasks take of all machines [S, R]: besides `demand` they read, and write `elsewhere` [S] times more.

    Each copy takes network-out of one machine, network-in and disk-write of another.
    """
    amounts = demand.copy()
    amounts[:, _READ] += reading
    amounts[:, [_WRITE, _IN, _OUT]] += (demand[:, _WRITE] * elsewhere)[:, np.newaxis]
    return amounts


def _key(job: Job) -> tuple[str, float, str]:
    return job.queue, job.arrives_at, job.name


def _check_names(jobs: Sequence[Job]) -> None:
    """Raise if two jobs, or two stages of one, have one name: schedulers keep notes under these names."""
    for names in ([job.name for job in jobs], stage_names(jobs)):
        for name, count in Counter(names).items():
            if count > 1:
                raise DovetailError(f"two are named {name!r}; names of jobs, and of the stages of one, must differ")
    for job in jobs:
        if not job.stages:
            raise DovetailError(f"job {job.name!r} has no stages")


def _check(job: Job, place: int, stage: Stage, machines: Machines, *, copies: bool) -> None:
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
    follows = [_READ] if stage.source == LOCAL else _FOLLOWS  # who reads at home may use the network for something else
    if (stage.demand < 0).any() or (stage.demand[follows] != 0).any() or stage.reading < 0:
        raise DovetailError(f"{name}: its demand is negative, or says what follows from reading: {stage.demand}")
    if stage.use is not None:
        _check_use(name, stage, stage.use)
    if len(stage.demand) != len(machines.axis):
        raise DovetailError(f"{name} demands {len(stage.demand)} amounts; accepted: one for each of {machines.axis}")
    capacity = machines.capacity
    need = np.ceil(stage.demand)
    need[_IN if stage.source == SHUFFLE else _READ] += np.ceil(stage.reading)
    need[_OUT] += need[_WRITE] * copies
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
            of = job.stages[parent]
            raise DovetailError(
                f"{name} has {stage.tasks} tasks, and {of.name}, for which it waits one to one, {of.tasks}; accepted: "
                f"as many"
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


def _inputs(stages: Sequence[Stage], width: int, *, aggregate: bool) -> tuple[Floats, Floats, Rows]:
    """Return demand [S, R] and reading [S] in whole numbers, and sources [S]; in one bin, reading goes into demand."""
    demand = np.ceil(np.array([stage.demand for stage in stages]).reshape(-1, width))
    reading = np.ceil(np.array([stage.reading for stage in stages], dtype=np.float64))
    source = np.array([SOURCES.index(stage.source) for stage in stages], dtype=np.intp)
    source[reading <= 0] = SOURCES.index(LOCAL)
    if aggregate:
        demand[:, _READ] += reading
        shuffles = source == SOURCES.index(SHUFFLE)
        demand[:, _IN] += reading * shuffles
        demand[:, _OUT] += reading * shuffles
        return demand, np.zeros_like(reading), np.zeros_like(source)
    return demand, reading, source


def _before(workload: Workload) -> list[list[tuple[int, int]]]:
    """Return, for each job and stage as given, how many stages and how many tasks are before it."""
    counts, stages, tasks = [], 0, 0
    for job in workload.jobs:
        job_counts = []
        for stage in job.stages:
            job_counts.append((stages, tasks))
            stages, tasks = stages + 1, tasks + stage.tasks
        counts.append(job_counts)
    return counts


def _children(parents: Sequence[Rows]) -> list[Rows]:
    children: list[list[int]] = [[] for _ in parents]
    for child, parent_rows in enumerate(parents):
        for parent in parent_rows.tolist():
            children[parent].append(child)
    return [np.array(child_rows, dtype=np.intp) for child_rows in children]
