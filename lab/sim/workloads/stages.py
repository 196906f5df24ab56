"""A workload as arrays: jobs [J] and stages [S] in the order in which a scheduler sees them, tasks [T] as given.

Jobs are in the order of (queue, name), stages in that of (job, place in the job), so that ties are the same ties in
every order of a trace. Tasks stay in the workload's order: a stage's are `first_task` .. + `tasks`.
"""

from collections.abc import Collection, Mapping, Sequence
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
from extender.policy.remaining import work_by_resource
from lab.sim.workloads.checks import refuse_malformed, refuse_misfits
from lab.sim.workloads.names import stage_names
from lab.sim.workloads.waves import Waves
from lab.sim.workloads.workload import LOCAL, SHUFFLE, SOURCES, Job, Machines, Stage, Use, Workload

_READ, _WRITE, _IN, _OUT = DISK_READ_INDEX, DISK_WRITE_INDEX, NETWORK_IN_INDEX, NETWORK_OUT_INDEX


@dataclass(frozen=True)
class StageTable:
    """All jobs and stages.

    `demand` [S, R] and `reading` [S] as the scheduler sees them: in one bin, reading is part of the demand. `source`
    [S] is a row of SOURCES, `expected` [S] the seconds that the scheduler expects. `work` [S] is the work of one task
    (policy.remaining), `busy` [S, R] the seconds for which it keeps each resource busy. `children` and `parents` are
    rows of stages. `backs_off` [J] are Kubernetes Jobs (job_backoff.py). `job_place` [J] and `stage_place` [S] are
    places in the workload. `copies` has the blocks [tasks, K] of the stages that declare them, `uses` what tasks use
    over time of those that say so. At most `at_once` jobs are there at a time. `axis` [R] are the dimensions, `tree`
    the queues that settings declare. `priority` [S] is that of a stage's pods, `gang` [S] says whose tasks start
    together (`least` [S] of them at first), `constraint` [S] is a row of `constraints` [K] and of `allowed` [K, N]:
    which machines a stage may go to at first (each None: there is no such thing). The output of stages that are
    `copied` [S] is written on `output_copies` machines. `one_to_one` has the parents of a stage for whose single tasks
    its own wait, `waves` what the tasks of a stage take by wave (of such a stage `durations` are the least), `comes`
    when the tasks of a stage come that do not all come at once. `runs` has the stages of one name in all runs of a
    recurring job, for each of them.
    """

    job_names: Sequence[str]
    job_queue: Rows
    job_stages: Counts
    job_place: Rows
    backs_off: Mask
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
    comes: Mapping[int, Floats] = field(default_factory=dict)
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

        It is 0 in jobs of which no stage waits for another: there is no chain.
        """
        path, chained = self.expected.copy(), np.zeros(len(self.job_tasks), dtype=np.bool_)
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
    # 1. Rows: jobs by queue, arrival and name, as on a cluster; stages by job, tasks as in the workload.
    order = sorted(range(len(workload.jobs)), key=lambda place: _key(workload.jobs[place]))
    jobs = [workload.jobs[place] for place in order]
    stages = [stage for job in jobs for stage in job.stages]
    job_of_stage = np.repeat(np.arange(len(jobs)), [len(job.stages) for job in jobs])
    first_stage = np.cumsum([0, *(len(job.stages) for job in jobs)])
    before_of_job = _before(workload)
    before = [counts for place in order for counts in before_of_job[place]]
    queues = sorted({job.queue for job in jobs})
    queue_row = {name: row for row, name in enumerate(queues)}
    # 2. Refuse what cannot be replayed.
    refuse_malformed(workload, jobs, machines)
    output_copies = _output_copies(workload, machines)
    copied = _copied(jobs, output_copies)
    refuse_misfits(jobs, machines, copied)
    # 3. What stages demand and read, and the work of a task.
    tasks = np.array([stage.tasks for stage in stages], dtype=np.int64)
    demand, reading, source = _inputs(stages, len(machines.axis), aggregate=machines.aggregate)
    if machines.aggregate:
        demand = everywhere(demand, np.zeros_like(reading), copied * (output_copies - 1))
        copied = np.zeros_like(copied)
    whole, total = everywhere(demand, reading, copied * (output_copies - 1)), machines.total
    expected = np.array([stage.duration for stage in stages])
    busy = work_by_resource(whole, expected, total)
    parents = [_rows(stage.parents, first_stage[job]) for job, stage in zip(job_of_stage, stages, strict=True)]
    durations = [stage.durations for job in workload.jobs for stage in job.stages]
    # 4. Who goes first, who starts together, and where to.
    priority = np.array([stage.priority for stage in stages], dtype=np.int64)
    gang, least = _gangs(stages, tasks)
    constraint, constraints, allowed = _constraints(stages, machines)
    return StageTable(
        job_names=[job.name for job in jobs],
        job_queue=np.array([queue_row[job.queue] for job in jobs], dtype=np.intp),
        job_stages=np.diff(first_stage),
        job_place=np.array(order, dtype=np.intp),
        backs_off=np.array([job.backs_off for job in jobs], dtype=np.bool_),
        queue_names=queues,
        queue_weight=np.array([workload.weights.get(queue, 1.0) for queue in queues]),
        arrives_at=np.array([job.arrives_at for job in jobs]),
        names=stage_names(jobs),
        job=job_of_stage,
        demand=demand,
        reading=reading,
        source=source,
        expected=expected,
        tasks=tasks,
        first_task=np.array([earlier for _, earlier in before], dtype=np.intp),
        work=busy.sum(axis=1),
        busy=busy,
        parents=parents,
        children=_children(parents),
        stage_place=np.array([place for place, _ in before], dtype=np.intp),
        durations=np.concatenate(durations) if durations else np.empty(0),
        copies={row: stage.copies for row, stage in enumerate(stages) if stage.copies is not None},
        uses={row: stage.use for row, stage in enumerate(stages) if stage.use is not None},
        at_once=np.inf if workload.at_once is None else workload.at_once,
        axis=machines.axis,
        tree=workload.tree,
        priority=priority if priority.any() else None,
        gang=gang,
        least=least,
        constraint=constraint,
        constraints=constraints,
        allowed=allowed,
        copied=copied,
        output_copies=output_copies,
        one_to_one={
            row: _rows(stage.one_to_one, first_stage[job])
            for row, (job, stage) in enumerate(zip(job_of_stage, stages, strict=True))
            if stage.one_to_one
        },
        waves={row: stage.waves for row, stage in enumerate(stages) if stage.waves is not None},
        comes={row: stage.comes for row, stage in enumerate(stages) if stage.comes is not None},
        runs=_runs([(job.recurring, stage.name) for job in jobs for stage in job.stages]),
    )


def _rows(places: Collection[int], first: int) -> Rows:
    """Return the rows of a job's stages, of which `first` is the first, by their places in the job."""
    return np.array(sorted(set(places)), dtype=np.intp) + first


def _gangs(stages: Sequence[Stage], tasks: Counts) -> tuple[Mask | None, Counts | None]:
    """Return whose tasks start together [S], and how many of them at first [S]; None where nobody's do."""
    gang = np.array([stage.gang for stage in stages], dtype=np.bool_)
    least = np.array([stage.least for stage in stages], dtype=np.int64)
    return (gang, np.where(least > 0, np.minimum(least, tasks), tasks)) if gang.any() else (None, None)


def _constraints(stages: Sequence[Stage], machines: Machines) -> tuple[Rows | None, Sequence[Constraints], Mask]:
    """Return the row of each stage's constraints [S], the constraints [K], and which machines they allow [K, N].

    No rows (None) where all stages may go anywhere at any time.
    """
    constraints = sorted({stage.constraints for stage in stages}, key=repr)
    allowed = np.array([machines.allowed(constraint) for constraint in constraints], dtype=np.bool_)
    if allowed.all() and not machines.changes:
        return None, constraints, allowed
    rows = {constraint: row for row, constraint in enumerate(constraints)}
    return np.array([rows[stage.constraints] for stage in stages], dtype=np.intp), constraints, allowed


def _runs(names: Sequence[tuple[str, str]]) -> Mapping[int, Rows]:
    """Return all stages of the same name, by stage; `names` [S] are of the recurring job ("": none) and the stage."""
    alike: dict[tuple[str, str], list[int]] = {}
    for stage, name in enumerate(names):
        if name[0]:
            alike.setdefault(name, []).append(stage)
    shared = [np.array(rows, dtype=np.intp) for rows in alike.values() if len(rows) > 1]
    return {stage: rows for rows in shared for stage in rows.tolist()}


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
