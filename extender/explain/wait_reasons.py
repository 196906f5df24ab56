"""Why a pod waits: what the planner says of its class, and what only the loop and the API server know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from extender.cluster.eligibility import Constraints
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import HOLD_GATE, Pod
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.plan_input.builder import PlanInput, PlanInputBuilder, pods_of
from extender.control.queues.fair_shares import shares_of
from extender.control.release.refusals import refused_pods, shape_of
from extender.planner import HELD_KINDS, Plan
from extender.verdict import judge

GATES, RELEASING, GANG, PACE, TURN, SHARE = "gates", "releasing", "gang", "pace", "turn", "share"
REFUSED = "refused"
KINDS = (*HELD_KINDS, GATES, RELEASING, PACE, TURN, SHARE, REFUSED)
"""All kinds: the planner's; gates of others; being released; paced; others go first; others are below their share;
kube-scheduler refuses one like it that was released."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a pod waits: one of `KINDS`, and words. The same state gives the same words."""

    kind: str
    text: str


IS_RELEASING = Reason(RELEASING, "its turn has come: it is being released")
IS_PACED = Reason(PACE, "its turn has come; few may be on their way to their nodes at once")
OTHERS_FIRST = Reason(TURN, "it would fit, but others go first")
HIGHER_FIRST = Reason(TURN, "it would fit, but pods of higher priority go first")
BELOW_SHARE_FIRST = Reason(SHARE, "it would fit, but its queue has its share: queues below theirs go first")

_WOULD_FIT_OTHERWISE = ("no-room", "gang", "reserved", "input")
"""What the planner says may only be so because of what it placed before."""


def reasons(
    backlog: Backlog, input_builder: PlanInputBuilder, snapshot: Snapshot, made: PlanInput, plan: Plan
) -> dict[str, Reason]:
    """Return why each held pod waits, by UID; `plan` is the whole plan of what `made` says, with its reasons."""
    classes = _Classes(input_builder, snapshot, made, plan)
    with backlog.lock:  # held no longer than copying takes: the watches and the release loop want it
        found = {pod.uid: _gated(pod) for pod in backlog.at(PodPhase.GATED)}
        found.update((pod.uid, IS_RELEASING) for pod in backlog.at(PodPhase.NOMINATED))
        written_to = (backlog.pod(uid) for uid in (*backlog.writes.claimed, *backlog.writes.resting))
        found.update((pod.uid, IS_RELEASING) for pod in written_to if pod is not None and pod.held)
        lines = [(of, line) for of in backlog.classes() if (line := line_of(backlog, of))]
        placed = places(backlog, made, plan)
        gangs = {group: _gang(backlog, group) for group in {it.like.identity.group for it in made.short}}
    refused = refused_pods(backlog)
    for of, line in lines:
        if (like := refused.get(shape_of(of.like))) is not None:
            found.update((uid, _refused(like)) for uid in line)
            continue
        going = set(placed.get(of, ()))
        found.update((uid, IS_PACED) for uid in line if uid in going)
        for uid in line:
            if uid not in going and (reason := classes.reason(of, uid, gangs)) is not None:
                found[uid] = reason
    return found


def places(backlog: Backlog, made: PlanInput, plan: Plan) -> dict[TaskClass, dict[str, int]]:
    """Return the held pods that a plan places, by class and UID, and each one's place in the plan, 0 the first."""
    found: dict[TaskClass, dict[str, int]] = {}
    lines: dict[TaskClass, list[str]] = {}
    for place, (row, pod) in enumerate(pods_of(made, plan)):
        of = made.classes[row]
        line = lines.setdefault(of, line_of(backlog, of)[::-1])
        uid = pod.uid if pod is not None else line.pop() if line else None
        if uid is not None:
            found.setdefault(of, {})[uid] = place
    return found


class _Classes:
    """What a plan says of each class."""

    def __init__(self, input_builder: PlanInputBuilder, snapshot: Snapshot, made: PlanInput, plan: Plan) -> None:
        self._input_builder, self._snapshot, self._made, self._plan = input_builder, snapshot, made, plan
        self._row = {id(of): row for row, of in enumerate(made.classes) if made.pods[row] is None}
        self._place_of = {
            pod.uid: (row, task) for row, pods in enumerate(made.pods) for task, pod in enumerate(pods or ())
        }
        self._said: dict[int, Reason | None] = {}
        self._short = {id(of) for of in made.short}
        self._room: dict[tuple[object, ...], bool] = {}
        self._shares = shares_of(made, snapshot)
        rows = sorted(set(plan.assignments.task_class.tolist()))
        self._going = [made.classes[row] for row in rows]

    def reason(self, of: TaskClass, uid: str, gangs: Mapping[str, Reason]) -> Reason | None:
        """Return why a pod of a class waits that the plan does not place; None where it knew nothing of it yet."""
        if id(of) in self._short:
            return gangs[of.like.identity.group]
        row, task = self._place_of.get(uid, (self._row.get(id(of)), -1))
        if row is None:
            return None
        if row not in self._said:
            self._said[row] = self._of_row(of, row)
        said = self._said[row]
        return self._of_task(said, row, task) if said is not None and said.kind == "locality" else said

    def _of_task(self, said: Reason, row: int, task: int) -> Reason:
        """Return a reason in the words of one pod of a row: each waits for nodes of its own."""
        near = self._plan.held[row].near
        return replace(said, text=near.texts.get(task, said.text)) if near is not None else said

    def _of_row(self, of: TaskClass, row: int) -> Reason | None:
        said = self._plan.held.get(row)
        if said is None:
            return None
        if self._going and said.kind in _WOULD_FIT_OTHERWISE and self._had_room(of):
            return self._turn(of)
        if said.kind == "too-large" and (missing := self._snapshot.layout.unadvertised(of.like.demand)):
            return Reason(said.kind, f"no node advertises {' or '.join(missing)}")
        return Reason(said.kind, said.text)

    def _had_room(self, of: TaskClass) -> bool:
        """Say whether one of a class fits somewhere before anything is placed."""
        like = of.like
        key: tuple[Constraints | object, ...] = (tuple(sorted(like.demand.items())), like.constraints, like.priority)
        if key not in self._room:
            allowed = self._input_builder.allowed(like, self._snapshot.layout)
            self._room[key] = bool((judge(self._snapshot, like).passed & allowed).any())
        return self._room[key]

    def _turn(self, of: TaskClass) -> Reason:
        if all(it.like.priority > of.like.priority for it in self._going):
            return HIGHER_FIRST
        share, fair = self._shares.get(of.job.queue, (0.0, 1.0))
        others = [it for it in self._going if it.job.queue != of.job.queue]
        if share >= fair and len(others) == len(self._going):
            return BELOW_SHARE_FIRST
        return OTHERS_FIRST


def line_of(backlog: Backlog, of: TaskClass) -> list[str]:
    """Return the pods of a class that may be released, in the order in which they will be."""
    return [uid for uid in of.pods[PodPhase.READY] if not backlog.writes.busy(uid)]


def group_size(backlog: Backlog, group: str) -> tuple[int, int]:
    """Return how many pods a pod group has that have not ended badly, and how many it must start together."""
    members = [it for it in backlog.classes() if it.like.identity.group == group]
    known = backlog.workloads.groups.get(group)
    least = known.least if known is not None else max((it.like.identity.least for it in members), default=0)
    return sum(it.unfinished + it.finished for it in members), least


def gates_of_others(pod: Pod) -> Sequence[str]:
    """Return a pod's gates that are not ours, sorted."""
    return sorted(gate for gate in pod.gates if gate != HOLD_GATE)


def counted(found: Mapping[str, Reason]) -> dict[str, int]:
    """Return how many pods wait for which kind of reason, for all kinds."""
    counts = dict.fromkeys(KINDS, 0)
    for reason in found.values():
        counts[reason.kind] += 1
    return counts


def _gated(pod: Pod) -> Reason:
    return Reason(GATES, f"waits for gates of others: {', '.join(gates_of_others(pod))}")


def _refused(like: Sequence[Pod]) -> Reason:
    first = min(like, key=lambda pod: (pod.created, pod.namespace, pod.name))
    return Reason(REFUSED, f"kube-scheduler refuses pod {first.namespace}/{first.name}, which asks for the same")


def _gang(backlog: Backlog, group: str) -> Reason:
    there, least = group_size(backlog, group)
    if there >= least:
        return Reason(GANG, f"not all {least} pods of its pod group may start yet: gates of others hold some")
    return Reason(GANG, f"its pod group has {there} of {least} pods")
