"""Recorded pods as jobs of stages of tasks."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.eligibility import Constraints
from extender.cluster.recording.lines import PodLine
from extender.cluster.resources import DISK_READ_INDEX
from lab.sim.workloads.names import distinct
from lab.sim.workloads.workload import Job, Stage

BURST_SECONDS = 10.0
SHORTEST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Ran:
    """Pods that ran [T]: when they came and were bound, on which `node`, how many seconds they take alone.

    `demand` [T, R] is what they ask for, `constraints` [T] say where they may go, `together` [T] which start
    with their group.
    """

    pods: Sequence[PodLine]
    created: Floats
    bound: Floats
    node: Rows
    seconds: Floats
    demand: Floats
    constraints: Sequence[Constraints]
    together: Mask

    def only(self, rows: Rows) -> "Ran":
        """Return these of the pods alone."""
        return Ran(
            [self.pods[row] for row in rows.tolist()],
            self.created[rows],
            self.bound[rows],
            self.node[rows],
            self.seconds[rows],
            self.demand[rows],
            [self.constraints[row] for row in rows.tolist()],
            self.together[rows],
        )


@dataclass(frozen=True, slots=True)
class _Shape:
    """What makes a stage."""

    name: str
    demand: tuple[float, ...]
    constraints: Constraints
    priority: int
    group: str
    least: int


def jobs_of(ran: Ran) -> tuple[list[Job], Rows]:
    """Return the jobs by arrival, and the pods' rows in the order of the jobs' tasks [T]."""
    # 1. Jobs, and their names.
    tasks_of = _by_burst(ran)
    plain = [f"{queue}/{job}" + (f", {number}" if number > 1 else "") for queue, job, number in tasks_of]
    names = distinct(plain, [f"{queue!r}/{job!r}, {number}" for queue, job, number in tasks_of])
    # 2. Their stages; the tasks of a stage in the order in which they were bound.
    jobs, order = list[Job](), list[int]()
    for name, ((queue, *_), rows) in zip(names, tasks_of.items(), strict=True):
        shapes: dict[_Shape, list[int]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: (ran.bound[row], ran.node[row])):
            shapes[_shape(ran, row, gang=bool(ran.together[row]))].append(row)
        arrives_at = float(ran.created[rows].min())
        stages = [
            _stage(str(place), shape, ran.seconds[tasks], ran.created[tasks] - arrives_at)
            for place, (shape, tasks) in enumerate(shapes.items())
        ]
        backs_off = all(ran.pods[row].owner_kind == "Job" for row in rows)
        jobs.append(Job(name, arrives_at, stages, queue, backs_off=backs_off))
        order += [row for tasks in shapes.values() for row in tasks]
    return jobs, np.array(order, dtype=np.intp)


def _by_burst(ran: Ran) -> dict[tuple[str, str, int], list[int]]:
    """Return the rows of each job, by queue, job and the number of its burst.

    Pods of one job that are created within a while of its first are one burst; later ones are another. A group that
    starts together stays whole: it is in the burst of its first pod.
    """
    tasks_of: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    burst: dict[tuple[str, str], tuple[float, int]] = {}
    of_group: dict[str, int] = {}
    for row in np.lexsort((ran.bound, ran.created)).tolist():
        pod, created = ran.pods[row], float(ran.created[row])
        key, group = (pod.queue, pod.job), pod.group if ran.together[row] else ""
        begun, number = burst.get(key, (-np.inf, 0))
        if group in of_group:
            number = of_group[group]
        elif created > begun + BURST_SECONDS:
            burst[key] = begun, number = created, number + 1
        if group:
            of_group[group] = number
        tasks_of[(*key, number)].append(row)
    return tasks_of


def whole_groups(pods: Sequence[PodLine], bound: Floats, ended: Floats) -> tuple[Mask, Floats]:
    """Return which pods [T] start together with their group here, and when the work of each pod began [T].

    All of such a group is one stage that came at once. It says how many must start together, there were as many, and
    none of them had ended before so many were bound: work that some could do alone did not wait for the others. Bound
    before, a pod of it begins its work when so many are. All others begin when they are bound.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for row, pod in enumerate(pods):
        if pod.group:
            members[pod.group].append(row)
    together, begun = np.zeros(len(pods), dtype=np.bool_), bound.copy()
    for rows in members.values():
        first = pods[rows[0]]
        alike = all(_alike(pods[row], first) for row in rows)
        came = [pods[row].created for row in rows]
        if alike and 0 < first.least <= len(rows) and max(came) <= min(came) + BURST_SECONDS:
            whole_at = np.sort(bound[rows])[first.least - 1]
            if (ended[rows] > whole_at).all():
                together[rows], begun[rows] = True, np.maximum(bound[rows], whole_at)
    return together, begun


def delayed(job: Job, seconds: float) -> Job:
    """Return a job whose tasks take so much longer."""
    stages = [
        replace(stage, duration=stage.duration + seconds, durations=stage.durations + seconds) for stage in job.stages
    ]
    return replace(job, stages=stages)


def _alike(pod: PodLine, other: PodLine) -> bool:
    """Say whether two pods of one group are of one stage."""
    return (pod.queue, pod.job, pod.stage, pod.demand, pod.constraints, pod.priority, pod.least) == (
        other.queue,
        other.job,
        other.stage,
        other.demand,
        other.constraints,
        other.priority,
        other.least,
    )


def _shape(ran: Ran, row: int, *, gang: bool) -> _Shape:
    pod = ran.pods[row]
    group, least = (pod.group, pod.least) if gang else ("", 0)
    return _Shape(pod.stage, tuple(ran.demand[row].tolist()), ran.constraints[row], pod.priority, group, least)


def _stage(name: str, shape: _Shape, seconds: Floats, comes: Floats) -> Stage:
    demand = np.array(shape.demand)
    reading, demand[DISK_READ_INDEX] = float(demand[DISK_READ_INDEX]), 0.0
    return Stage(
        name,
        demand,
        reading,
        float(seconds.mean()),
        np.maximum(seconds, SHORTEST_SECONDS),
        constraints=shape.constraints,
        priority=shape.priority,
        gang=shape.group != "",
        least=shape.least,
        comes=comes if comes.any() else None,
    )
