"""A recording -> workload, machines, and what was done. What the simulator cannot replay is left out and counted."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.recording.lines import Begin, Checkpoint, Line, NodeLine, PodLine, decoded
from extender.cluster.resources import DIMENSIONS, DISK_READ_INDEX, row_of
from extender.errors import SpecError, TraceError
from lab.sim.recorded.contention_undone import seconds_at_peak
from lab.sim.recorded.delay import usual_delay
from lab.sim.recorded.placements import Placements
from lab.sim.workloads.workload import Job, Machines, Stage, Workload

FORM, MACHINES, RECORDED = "recording:", "recorded", "recorded"
"""How a workload, its machines and the policy that did what was done are named."""
BURST_SECONDS = 10.0
_SHORTEST_SECONDS = 0.001

Shape = tuple[str, tuple[float, ...]]
"""What makes a stage: its name and its demand."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A recording as the simulator takes it. `notes` say what is not in it, `ended` [T] when each task ended.

    `simulated` is the workload for simulated schedulers, which start a task without delay: each takes longer by the
    delay that was usual.
    """

    workload: Workload
    simulated: Workload
    machines: Machines
    placements: Placements
    ended: Floats
    notes: Sequence[str]


@dataclass(slots=True)
class _Read:
    """What a file says: when it began, all nodes that there were, the pods that ended, and those that lived at last."""

    begun: float
    nodes: dict[str, NodeLine]
    ended: list[PodLine]
    first: frozenset[str]
    living: dict[str, PodLine]
    changes: int = 0
    gaps: int = 0


def replay_of(file: Path) -> Replay:
    """Return a recording as a replay. Raises SpecError for a file that cannot be read, TraceError for its lines."""
    try:
        with file.open("rb") as stream:
            return _replay(_read(stream, str(file)), str(file))
    except OSError as error:
        raise SpecError(f"recording {file}: {error.strerror}; accepted: a file of dovetail record") from None


def _read(lines: Iterable[bytes], file: str) -> _Read:
    read: _Read | None = None
    for number, text in enumerate(lines, 1):
        where = f"{file}, line {number}"
        if not text.endswith(b"\n"):
            raise TraceError(f"{where}: the file ends in the middle of it; dovetail record --append goes on after it")
        line = decoded(text, where)
        if read is None:
            if not isinstance(line, Begin):
                raise TraceError(f"{where}: a recording begins with a line of the kind begin")
            read = _Read(line.at, {}, [], frozenset(), {})
        _take(read, line)
    if read is None or not read.nodes:
        raise TraceError(f"{file}: there is no checkpoint with nodes in it; record until one is written")
    return read


def _take(read: _Read, line: Line) -> None:
    match line:
        case Checkpoint():
            if not read.nodes:
                read.first = frozenset(pod.uid for pod in line.pods)
            read.nodes |= {node.name: node for node in line.nodes}
            read.living = {pod.uid: pod for pod in line.pods}
        case NodeLine():
            read.changes += 1
            read.nodes[line.name] = line
        case PodLine():
            read.living.pop(line.uid, None)
            read.ended.append(line)
        case _:
            read.changes += type(line).__name__ == "NodeGoneLine"
            read.gaps += type(line).__name__ == "Gap"


def _replay(read: _Read, file: str) -> Replay:
    # 1. Machines: the nodes, without what those pods take that were there all the time.
    nodes = {name: row for row, name in enumerate(sorted(read.nodes))}
    services = [pod for uid, pod in read.living.items() if uid in read.first and pod.node in nodes]
    ran = [
        pod
        for pod in read.ended
        if pod.node in nodes and pod.bound is not None and pod.ended is not None and pod.ended > read.begun
    ]
    if not ran:
        raise TraceError(f"{file}: no pod in it was bound and ended; record for longer")
    demand = np.array([_row(pod.demand) for pod in ran])
    capacity = np.array([row_of(read.nodes[name].offers, otherwise=np.inf) for name in nodes], dtype=np.float64)
    for pod in services:
        capacity[nodes[str(pod.node)]] -= _row(pod.demand)
    unlimited = np.where(np.isfinite(capacity).all(axis=0), 0.0, demand.sum(axis=0) + 1.0)
    capacity = np.where(np.isfinite(capacity), np.maximum(capacity, 0.0), unlimited)
    # 2. When tasks ran, and how long they would have taken alone.
    created = np.array([max(pod.created, read.begun) for pod in ran]) - read.begun
    bound = np.maximum(np.array([pod.bound or 0.0 for pod in ran]) - read.begun, created)
    ended = np.maximum(np.array([pod.ended or 0.0 for pod in ran]) - read.begun, bound + _SHORTEST_SECONDS)
    node = np.array([nodes[str(pod.node)] for pod in ran], dtype=np.intp)
    seconds = seconds_at_peak(bound, ended, node, demand, capacity)
    # 3. Jobs of stages of tasks; the tasks of a stage in the order in which they were bound.
    jobs, order = _jobs(ran, created, bound, node, seconds, demand)
    workload = Workload(f"{FORM}{file}", jobs, about=f"{len(ran)} pods of {len(jobs)} jobs, as recorded in {file}")
    delay = usual_delay(created, bound, ended, node)
    return Replay(
        workload,
        replace(workload, jobs=[_delayed(job, delay) for job in jobs]),
        Machines(MACHINES, capacity),
        Placements.of(jobs, bound[order], node[order]),
        ended[order],
        [*_notes(read, ran, services), f"Simulated starts take {delay:.3f} s, as was usual."],
    )


def _row(amounts: Mapping[str, float]) -> Floats:
    return np.array(row_of(amounts), dtype=np.float64)


def _jobs(
    pods: Sequence[PodLine], created: Floats, bound: Floats, node: Rows, seconds: Floats, demand: Floats
) -> tuple[list[Job], Rows]:
    """Return the jobs by arrival, and the pods' rows in the order of the jobs' tasks [T]."""
    # 1. Pods of one job that are created within a while of its first are one job here; later ones are another.
    tasks_of: dict[tuple[str, str, int], list[int]] = defaultdict(list)
    burst: dict[tuple[str, str], tuple[float, int]] = {}
    for row in np.lexsort((bound, created)).tolist():
        key = pods[row].queue, pods[row].job
        begun, number = burst.get(key, (-np.inf, 0))
        if created[row] > begun + BURST_SECONDS:
            burst[key] = begun, number = float(created[row]), number + 1
        tasks_of[(*key, number)].append(row)
    # 2. Their stages.
    jobs, order = list[Job](), list[int]()
    for (queue, job, number), rows in tasks_of.items():
        shapes: dict[Shape, list[int]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: (bound[row], node[row])):
            shapes[pods[row].stage, tuple(demand[row].tolist())].append(row)
        name = f"{queue}/{job}" if number == 1 else f"{queue}/{job}, {number}"
        arrives_at = float(created[rows].min())
        stages = [_stage(str(place), shape, seconds[tasks]) for place, (shape, tasks) in enumerate(shapes.items())]
        jobs.append(Job(name, arrives_at, stages, queue))
        order += [row for tasks in shapes.values() for row in tasks]
    return jobs, np.array(order, dtype=np.intp)


def _delayed(job: Job, seconds: float) -> Job:
    """Return a job whose tasks take so much longer."""
    stages = [
        replace(stage, duration=stage.duration + seconds, durations=stage.durations + seconds) for stage in job.stages
    ]
    return replace(job, stages=stages)


def _stage(name: str, shape: Shape, seconds: Floats) -> Stage:
    demand = np.array(shape[1])
    reading, demand[DISK_READ_INDEX] = float(demand[DISK_READ_INDEX]), 0.0
    return Stage(name, demand, reading, float(seconds.mean()), np.maximum(seconds, _SHORTEST_SECONDS))


def _notes(read: _Read, ran: Sequence[PodLine], services: Sequence[PodLine]) -> list[str]:
    """Return what a reader should know of what is not replayed, or not as it was."""
    unknown = len(read.ended) - len(ran)
    begun = len(read.living) - len(services)
    other = sorted({name for pod in ran for name in pod.demand} - {*DIMENSIONS, "pods"})
    bound_to = sum(pod.constraints.selector != () or pod.constraints.terms is not None for pod in ran)
    tainted = sum(bool(node.taints) for node in read.nodes.values())
    groups = sum(bool(pod.group) for pod in ran)
    priorities = len({pod.priority for pod in ran}) - 1
    said = [
        (services, f"{len(services)} pods lived all the time: what they take is taken from their nodes."),
        (unknown, f"{unknown} pods are left out: they got no node, or nobody knows when they ended."),
        (begun, f"{begun} pods are left out: they came, and had not ended at the last checkpoint."),
        (other, f"Not counted: {', '.join(other)}. Simulated schedulers do not know them."),
        (bound_to, f"{bound_to} pods select nodes: simulated schedulers place them anywhere."),
        (tainted, f"{tainted} nodes have taints: simulated schedulers place pods there all the same."),
        (groups, f"{groups} pods belong to groups: they need not start together here."),
        (priorities, f"Pods have {priorities + 1} priorities: simulated schedulers know none."),
        (read.changes, f"Nodes changed {read.changes} times: here each is there all the time, as it was last."),
        (read.gaps, f"The recording has {read.gaps} gaps: what came and went in them is not in it."),
    ]
    return [text for count, text in said if count]
