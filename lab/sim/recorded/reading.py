"""A recording -> workload, machines, and what was done. What the simulator cannot replay is left out and counted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from extender.arrays import Floats, Rows
from extender.cluster.eligibility import Constraints, Requirement, Toleration
from extender.cluster.recording.lines import Begin, Checkpoint, Line, NodeLine, PodLine, decoded
from extender.errors import SpecError, TraceError
from lab.sim.recorded.contention_undone import seconds_at_peak
from lab.sim.recorded.delay import usual_delay
from lab.sim.recorded.jobs import SHORTEST_SECONDS, Ran, delayed, jobs_of, whole_groups
from lab.sim.recorded.nodes import Columns, capacity_of, node_of, rows_of
from lab.sim.recorded.notes import notes_of
from lab.sim.recorded.placements import Placements
from lab.sim.workloads.workload import Machines, Workload

FORM, MACHINES, RECORDED = "recording:", "recorded", "recorded"
"""How a workload, its machines and the policy that did what was done are named."""


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
    rows = rows_of(read.nodes)
    services = [pod for uid, pod in read.living.items() if uid in read.first and pod.node in rows]
    pods = [
        pod
        for pod in read.ended
        if pod.node in rows and pod.bound is not None and pod.ended is not None and pod.ended > read.begun
    ]
    if not pods:
        raise TraceError(f"{file}: no pod in it was bound and ended; record for longer")
    columns = Columns.of(read.nodes.values(), pods)
    demand, node = columns.demands(pods), _nodes(pods, rows)
    taken = np.zeros((len(rows), len(columns.axis)))
    np.add.at(taken, _nodes(services, rows), columns.demands(services))
    capacity = capacity_of(np.array([columns.offers(read.nodes[name]) for name in rows]), taken, demand, node)
    nodes = tuple(node_of(read.nodes[name]) for name in rows)
    machines = Machines(MACHINES, capacity, axis=columns.axis, nodes=nodes)
    # 2. When tasks ran, how long they would have taken alone, and where they may go.
    created = np.array([max(pod.created, read.begun) for pod in pods]) - read.begun
    bound = np.maximum(np.array([pod.bound or 0.0 for pod in pods]) - read.begun, created)
    ended = np.maximum(np.array([pod.ended or 0.0 for pod in pods]) - read.begun, bound + SHORTEST_SECONDS)
    seconds = seconds_at_peak(bound, ended, node, demand, capacity)
    constraints, stay = _constraints(pods, demand, machines)
    # 3. Jobs of stages of tasks.
    jobs, order = jobs_of(Ran(pods, created, bound, node, seconds, demand, constraints))
    workload = Workload(f"{FORM}{file}", jobs, about=f"{len(pods)} pods of {len(jobs)} jobs, as recorded in {file}")
    delay = usual_delay(created, bound, ended, node)
    notes = notes_of(
        pods, together=whole_groups(pods), stay=stay, unknown=columns.unknown, others=_of_the_rest(read, pods, services)
    )
    return Replay(
        workload,
        replace(workload, jobs=[delayed(job, delay) for job in jobs]),
        machines,
        Placements.of(jobs, bound[order], node[order]),
        ended[order],
        [*notes, f"Simulated starts take {delay:.3f} s, as was usual."],
    )


def _nodes(pods: Sequence[PodLine], rows: Mapping[str, int]) -> Rows:
    return np.array([rows[str(pod.node)] for pod in pods], dtype=np.intp)


def _constraints(pods: Sequence[PodLine], demand: Floats, machines: Machines) -> tuple[list[Constraints], int]:
    """Return where pods may go, and how many of them would find no machine there: they keep the one that they had."""
    finds: dict[tuple[Constraints, bytes], bool] = {}
    constraints, stay = list[Constraints](), 0
    for pod, need in zip(pods, demand, strict=True):
        key = pod.constraints, need.tobytes()
        if key not in finds:
            fits = (need <= machines.capacity).all(axis=1)
            finds[key] = bool((fits & machines.allowed(pod.constraints)).any())
        constraints.append(pod.constraints if finds[key] else _only(str(pod.node)))
        stay += not finds[key]
    return constraints, stay


def _only(node: str) -> Constraints:
    """Return the constraints of a pod that keeps its node whatever the node's taints."""
    there = Requirement("metadata.name", "In", (node,), field=True)
    return Constraints(terms=((there,),), tolerations=(Toleration(operator="Exists"),))


def _of_the_rest(read: _Read, pods: Sequence[PodLine], services: Sequence[PodLine]) -> list[tuple[int, str]]:
    unknown, begun = len(read.ended) - len(pods), len(read.living) - len(services)
    return [
        (len(services), f"{len(services)} pods lived all the time: what they take is taken from their nodes."),
        (unknown, f"{unknown} pods are left out: they got no node, or nobody knows when they ended."),
        (begun, f"{begun} pods are left out: they came, and had not ended at the last checkpoint."),
        (read.changes, f"Nodes changed {read.changes} times: here each is there all the time, as it was last."),
        (read.gaps, f"The recording has {read.gaps} gaps: what came and went in them is not in it."),
    ]
