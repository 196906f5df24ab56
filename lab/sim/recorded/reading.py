"""A recording -> workload, machines, and what was done. What the simulator cannot replay is left out and counted."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.eligibility import Constraints, Requirement, Toleration
from extender.cluster.recording.lines import (
    Begin,
    Checkpoint,
    End,
    Gap,
    Line,
    NodeGoneLine,
    NodeLine,
    PodLine,
    Quiet,
    decoded,
    impossible,
    lines_in,
    placed,
)
from extender.errors import TraceError
from extender.words import many
from lab.errors import SpecError
from lab.sim.recorded.contention_undone import seconds_at_peak
from lab.sim.recorded.delay import usual_delay
from lab.sim.recorded.jobs import SHORTEST_SECONDS, Ran, delayed, jobs_of, whole_groups
from lab.sim.recorded.made_again import in_the_end, made_in_place
from lab.sim.recorded.nodes import Columns, Versions
from lab.sim.recorded.notes import notes_of
from lab.sim.recorded.placements import Placements
from lab.sim.workloads.workload import Job, Machines, Workload

FORM, MACHINES, STEADY, RECORDED = "recording:", "recorded", "recorded-all", "recorded"
"""How a workload, its machines (as they came and went, or all of them all the time) and the policy that did what was
done are named.
"""


@dataclass(frozen=True, slots=True)
class Replay:
    """A recording as the simulator takes it. `notes` say what is not in it.

    `workload` is for the policy `recorded`: a task takes what it took, and may go wherever it ran, whatever labels and
    taints that node has for most of the time. `simulated` is the workload for simulated schedulers, which start a task
    without delay: each takes longer by the delay that was usual. There a pod that was preempted or evicted and the one
    that was made in its place are one task. `steady` is the same for nodes that are there all the time, as each was for
    longest: pods that none of them would take keep theirs.
    """

    workload: Workload
    simulated: Workload
    steady: Workload
    machines: Machines
    placements: Placements
    notes: Sequence[str]


@dataclass(slots=True)
class _Read:
    """What a file says: from when until when, what nodes were, the pods that ended, and those that lived at last.

    Pods are by UID. `first` are those that had a node at the first checkpoint. `repeated` counts the lines of pods that
    had one already.
    """

    begun: float
    until: float
    nodes: dict[str, list[tuple[float, NodeLine | None]]] = field(default_factory=dict)
    ended: dict[str, PodLine] = field(default_factory=dict)
    first: frozenset[str] | None = None
    living: dict[str, PodLine] = field(default_factory=dict)
    gaps: int = 0
    repeated: int = 0
    anonymous: bool = False

    def see(self, at: float, name: str, line: NodeLine | None) -> None:
        """Note what a node is from then on; None: it is gone."""
        before = self.nodes[name][-1][1] if name in self.nodes else None
        if not _same(before, line):
            self.nodes.setdefault(name, []).append((at, line))

    def end(self, pod: PodLine) -> None:
        """Note that a pod has ended; of two lines of one pod the first that says when counts."""
        self.living.pop(pod.uid, None)
        before = self.ended.get(pod.uid)
        if before is None or before.ended is None:
            self.ended[pod.uid] = pod
        self.repeated += before is not None


def _same(node: NodeLine | None, other: NodeLine | None) -> bool:
    if node is None or other is None:
        return node is other
    return msgspec.structs.replace(node, at=other.at) == other


def replay_of(file: Path) -> Replay:
    """Return a recording as a replay. Raises SpecError for a file that cannot be read, TraceError for its lines."""
    try:
        with file.open("rb") as stream:
            return _replay(_read(lines_in(stream, str(file)), str(file)), str(file))
    except OSError as error:
        raise SpecError(f"recording {file}: {error.strerror}; accepted: a file of dovetail record") from None


def _read(lines: Iterable[bytes], file: str) -> _Read:
    read: _Read | None = None
    for where, text in placed(lines, file):
        if not text.endswith(b"\n"):
            raise TraceError(f"{where}: the file ends in the middle of it; {_way_on(read)}")
        line = decoded(text, where)
        if read is None:
            if not isinstance(line, Begin):
                raise TraceError(f"{where}: a recording begins with a line of the kind begin")
            read = _Read(line.at, line.at, anonymous=line.anonymous)
        _refuse_impossible(line, where)
        _take(read, line)
    if read is None or not read.nodes:
        raise TraceError(f"{file}: there is no checkpoint with nodes in it; record until one is written")
    return read


def _way_on(read: _Read | None) -> str:
    """Return what to do about a last line that was cut off."""
    if read is not None and read.anonymous:  # whose key is not kept
        return "take that line away: a recording without names cannot be gone on with"
    return "dovetail record --append goes on after it"


def _refuse_impossible(line: Line, where: str) -> None:
    """Raise TraceError for a node that offers, or a pod that demands, what cannot be."""
    inner = (*line.nodes, *line.pods) if isinstance(line, Checkpoint) else (line,)
    for part in inner:
        if isinstance(part, NodeLine | PodLine):
            field, given = ("offers", part.offers) if isinstance(part, NodeLine) else ("demand", part.demand)
            if wrong := impossible(given):
                raise TraceError(f"{where}: {part.name}: field {field}.{wrong}")


def _take(read: _Read, line: Line) -> None:
    match line:
        case Checkpoint():
            # Nodes of the first one were there from the beginning; one that is missing in a later one is gone.
            at = read.begun if read.first is None else line.at
            for name in read.nodes.keys() - {node.name for node in line.nodes}:
                read.see(at, name, None)
            for node in line.nodes:
                read.see(at, node.name, node)
            if read.first is None:
                read.first = frozenset(pod.uid for pod in line.pods if pod.node is not None)
            read.living = {pod.uid: pod for pod in line.pods}
        case NodeLine():
            read.see(line.at, line.name, line)
        case NodeGoneLine():
            read.see(line.at, line.name, None)
        case PodLine():
            read.end(line)
        case Gap():
            read.gaps += 1
        case _:
            pass
    if isinstance(line, Begin | Checkpoint | NodeLine | NodeGoneLine | Quiet | End):
        read.until = max(read.until, line.at)


def _replay(read: _Read, file: str) -> Replay:
    # 1. The pods that are replayed, and those that were there all the time.
    services = [pod for uid, pod in read.living.items() if uid in (read.first or ()) and pod.node in read.nodes]
    pods = [
        pod
        for pod in read.ended.values()
        if pod.node in read.nodes and pod.bound is not None and pod.ended is not None and pod.ended > read.begun
    ]
    if not pods:
        raise TraceError(f"{file}: no pod in it was bound and ended; record for longer")
    # 2. Machines: the nodes from when to when, without what those pods take that were there all the time.
    created = np.array([max(pod.created, read.begun) for pod in pods]) - read.begun
    bound = np.maximum(np.array([pod.bound or 0.0 for pod in pods]) - read.begun, created)
    ended = np.maximum(np.array([pod.ended or 0.0 for pod in pods]) - read.begun, bound + SHORTEST_SECONDS)
    lines = [line for versions in read.nodes.values() for _, line in versions if line is not None]
    columns = Columns.of(lines, pods, services)
    versions = Versions(read.nodes, columns, services, read.begun)
    demand, node = columns.demands(pods), versions.rows_of(pods)
    versions.hold(demand, node, bound)
    machines = versions.machines(MACHINES, max(read.until - read.begun, float(ended.max())))
    # 3. How long tasks would have taken alone, and where they may go.
    together, begun = whole_groups(pods, bound, ended)
    seconds = seconds_at_peak(begun, ended, node, demand, machines.capacity)
    own_nodes = _nodes_of_groups(pods, together)
    constraints, stay = _constraints([pod.constraints for pod in pods], demand, own_nodes, versions.take)
    for_steady, kept = _constraints(constraints, demand, own_nodes, _takes(machines))
    # 4. Jobs of stages of tasks. Who was made in another's place belongs to the same job, whenever that was.
    last = in_the_end(made_in_place(pods))
    came = created.copy()
    np.minimum.at(came, last, created)
    ran = Ran(pods, came[last], bound, node, seconds, demand, constraints, together)
    jobs, order = jobs_of(ran)
    to_do, _ = jobs_of(ran.only(np.unique(last)))
    workload = Workload(
        f"{FORM}{file}", jobs, about=f"{many(len(pods), 'pod')} of {many(len(jobs), 'job')}, as recorded in {file}"
    )
    delay = usual_delay(created, bound, ended, node)
    notes = notes_of(
        pods,
        together=together,
        stay=stay,
        kept=kept,
        again=len(pods) - len(np.unique(last)),
        unknown=columns.unknown,
        others=_of_the_rest(read, pods, services),
    )
    simulated = steady = replace(workload, jobs=[delayed(job, delay) for job in to_do])
    if kept:
        as_steady, _ = jobs_of(replace(ran, constraints=for_steady).only(np.unique(last)))
        steady = replace(workload, jobs=[delayed(job, delay) for job in as_steady])
    return Replay(
        replace(workload, jobs=[_anywhere(job) for job in jobs], taken=(ended - begun)[order]),
        simulated,
        steady,
        machines,
        Placements.of(jobs, bound[order], node[order]),
        [*notes, f"Simulated starts take {delay:.3f} s, as was usual."],
    )


def _nodes_of_groups(pods: Sequence[PodLine], together: Mask) -> list[tuple[str, ...]]:
    """Return the node of each pod, or those of all pods that start together with it [T]."""
    nodes: dict[str, set[str]] = defaultdict(set)
    groups = [pod.group if whole else "" for pod, whole in zip(pods, together.tolist(), strict=True)]
    for pod, group in zip(pods, groups, strict=True):
        nodes[group].add(str(pod.node))
    of_group = {group: tuple(sorted(names)) for group, names in nodes.items() if group}
    return [of_group.get(group, (str(pod.node),)) for pod, group in zip(pods, groups, strict=True)]


def _constraints(
    constraints: Sequence[Constraints],
    demand: Floats,
    nodes: Sequence[tuple[str, ...]],
    takes: Callable[[Floats, Constraints], bool],
) -> tuple[list[Constraints], int]:
    """Return where pods may go, and how many of them no machine `takes`: they keep the `nodes` that they had."""
    finds: dict[tuple[Constraints, bytes], bool] = {}
    chosen, stay = list[Constraints](), 0
    for asked, need, on in zip(constraints, demand, nodes, strict=True):
        key = asked, need.tobytes()
        if key not in finds:
            finds[key] = takes(need, asked)
        chosen.append(asked if finds[key] else _only(on))
        stay += not finds[key]
    return chosen, stay


def _takes(machines: Machines) -> Callable[[Floats, Constraints], bool]:
    """Return what says whether some machine takes a pod that needs this [R], if all are there all the time."""
    allowed: dict[Constraints, Mask] = {}

    def takes(need: Floats, constraints: Constraints) -> bool:
        if constraints not in allowed:
            allowed[constraints] = machines.allowed(constraints)
        return bool((allowed[constraints] & (need <= machines.capacity).all(axis=1)).any())

    return takes


def _only(nodes: tuple[str, ...]) -> Constraints:
    """Return the constraints of a pod that keeps to these nodes whatever their taints."""
    named = Requirement("metadata.name", "In", nodes, field=True)
    return Constraints(terms=((named,),), tolerations=(Toleration(operator="Exists"),))


def _anywhere(job: Job) -> Job:
    """Return a job whose tasks are all there at once, and may go to any node."""
    constraints = Constraints(tolerations=(Toleration(operator="Exists"),))
    return replace(job, stages=[replace(stage, constraints=constraints, comes=None) for stage in job.stages])


def _of_the_rest(read: _Read, pods: Sequence[PodLine], services: Sequence[PodLine]) -> list[tuple[int, str]]:
    ran = sum(pod.bound is not None and pod.bound <= read.begun for pod in pods)
    changes = sum(at > read.begun for versions in read.nodes.values() for at, _ in versions)
    return [
        (len(services), f"{many(len(services), 'pod')} lived all the time: that room is taken from the nodes."),
        (
            ran,
            f"{many(ran, 'pod')} ran when the recording began: such pods come then, and take what was left of their "
            "time.",
        ),
        *_left_out(read, pods, services),
        (
            changes,
            f"Nodes came, changed or went {many(changes, 'time')}: so they do here (--machines {STEADY}: all are there "
            "all the time). Use is in percent of all of them.",
        ),
        (read.gaps, f"The recording has {many(read.gaps, 'gap')}: what came and went meanwhile is not in it."),
    ]


def _left_out(read: _Read, pods: Sequence[PodLine], services: Sequence[PodLine]) -> list[tuple[int, str]]:
    """Return how many pods are not replayed, with each reason."""
    ended, living = read.ended.values(), read.living.values()
    elsewhere = sum(pod.node is not None and pod.node not in read.nodes for pod in (*ended, *living))
    seen = [pod for pod in ended if pod.node in read.nodes]
    before = sum(pod.bound is not None and pod.ended is not None and pod.ended <= read.begun for pod in seen)
    unseen = sum(pod.node is None for pod in ended) + len(seen) - len(pods) - before
    begun = sum(pod.node is None or pod.node in read.nodes for pod in living) - len(services)
    return [
        (unseen, f"Left out: {many(unseen, 'pod')} that got no node, or whose binding or end nobody saw."),
        (elsewhere, f"Left out: {many(elsewhere, 'pod')} on nodes that are not in the recording."),
        (before, f"Left out: {many(before, 'pod')} that had ended before the recording began."),
        (begun, f"Left out: {many(begun, 'pod')} that came, and had not ended at the last checkpoint."),
        (read.repeated, f"Left out: {many(read.repeated, 'line')} of pods that stand in the recording twice."),
    ]
