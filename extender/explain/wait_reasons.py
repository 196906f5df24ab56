"""Why a pod waits: what the planner says of its class, and what only the loop and the API server know."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from extender.cluster.eligibility import Constraints
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import HOLD_GATE, Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.control.backlog.backlog import Backlog, PodPhase, TaskClass
from extender.control.plan_input.builder import PlanInput, PlanInputBuilder, pods_of
from extender.control.pod_shapes import shape_of
from extender.control.reclaim.pod_needs import need_of
from extender.control.release.refusals import refused_pods
from extender.planner import HELD_KINDS, NONE_ALLOWS, SOURCES_ARE_BUSY, Plan
from extender.verdict import judge, room_for

GATES, RELEASING, GANG, PACE, TURN, SHARE = "gates", "releasing", "gang", "pace", "turn", "share"
REFUSED, TRYING = "refused", "trying"
KINDS = (*HELD_KINDS, GATES, RELEASING, PACE, TURN, SHARE, REFUSED, TRYING)
"""All kinds: the planner's own; gates of others; being released; paced; others go first; queues below their share go
first; kube-scheduler refuses a pod before it that asks for the same; of a pod without a gate, its turn has come."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a pod waits: one of `KINDS`, and words. The same state gives the same words."""

    kind: str
    text: str


IS_RELEASING = Reason(RELEASING, "its turn has come: it is being released")
WRITE_FAILED = Reason(RELEASING, "its turn has come, but it cannot be written to: that is tried again")
IS_PACED = Reason(PACE, "its turn has come; few may be on their way to their nodes at once")
AWAITS_IDLE_ROOM = Reason("no-room", "it runs on idle resources alone, and waits for a node that has enough of them")
IS_TRIED = Reason(TRYING, "its turn has come: kube-scheduler has yet to try it")
IS_RESTING = Reason(TRYING, "kube-scheduler refused it on the node that the plan chose: its next turn comes later")
IS_TRIED_AGAIN = Reason(TRYING, "its turn has come: kube-scheduler has yet to try it again")
OTHERS_FIRST = Reason(TURN, "it would fit, but others go first")
HIGHER_FIRST = Reason(TURN, "it would fit, but pods of higher priority go first")
BELOW_SHARE_FIRST = Reason(SHARE, "it would fit, but its queue has its share: queues below theirs go first")
INPUT_IS_BUSY = Reason(SOURCES_ARE_BUSY.kind, SOURCES_ARE_BUSY.text)

_WOULD_FIT_OTHERWISE = ("no-room", "gang", "reserved", "input")
"""Kinds that the planner may give only because of what it placed before."""


def reasons(
    backlog: Backlog, input_builder: PlanInputBuilder, snapshot: Snapshot, plan_input: PlanInput, plan: Plan
) -> dict[str, Reason]:
    """Return why each held pod waits, and each without a gate that waits for its turn, by UID.

    `plan` is the whole plan over `plan_input`, with its reasons.
    """
    by_class = _ClassReasons(input_builder, snapshot, plan_input, plan)
    # 1. Copy under the lock, no longer than that takes: the watches and the release loop want it too.
    with backlog.lock:
        why = {pod.uid: _gated(pod) for pod in backlog.at(PodPhase.GATED)}
        why.update((pod.uid, IS_RELEASING) for pod in backlog.at(PodPhase.NOMINATED))
        written_to = (backlog.pod(uid) for uid in backlog.writes.pods())
        why.update((pod.uid, IS_RELEASING) for pod in written_to if pod is not None and pod.held)
        why.update((uid, WRITE_FAILED) for uid in backlog.writes.backoff if why.get(uid) is IS_RELEASING)
        lines = [(task_class, line) for task_class in backlog.classes() if (line := line_of(backlog, task_class))]
        placed = places_in_plan(backlog, plan_input, plan)
        groups = {task_class.template.identity.group for task_class in plan_input.short}
        gangs = {group: _gang(*size) for group, size in group_sizes(backlog, groups).items()}
        ungated = {pod.uid: pod for pod in backlog.at(PodPhase.UNGATED)}
        resting = backlog.writes.backoff if backlog.by_filter else backlog.writes.pods()
        why.update((uid, IS_RESTING) for uid in ungated.keys() & resting)
    refused = {shape: _refused(pods) for shape, pods in refused_pods(backlog).items()}
    for task_class, line in lines:
        # 2. A class like pods that kube-scheduler refuses waits for these; they themselves wait for their turn.
        if (waits_for := refused.get(shape_of(task_class.template))) is not None:
            again = set() if task_class.template.inputs else ungated.keys() & set(line)
            why.update((uid, waits_for) for uid in line if uid not in again)
            line = [uid for uid in line if uid in again]
        # 3. Pods that the plan places wait for kube-scheduler, or for the pace of releases only, unless those without
        #    a gate that go before them are refused: nobody may use their turns. The others wait for what the plan says.
        going = set(placed.get(task_class, ()))
        tried = [ungated[uid] for uid in line if uid in going and uid in ungated]
        refused_first = [pod for pod in tried if pod.unschedulable]
        held_going = _refused(refused_first) if refused_first else IS_PACED
        why.update((pod.uid, IS_TRIED_AGAIN if pod.unschedulable else IS_TRIED) for pod in tried)
        why.update((uid, held_going) for uid in line if uid in going and uid not in ungated)
        for uid in line:
            if uid not in going and (reason := by_class.reason(task_class, uid, gangs)) is not None:
                why[uid] = reason
    return why


def places_in_plan(backlog: Backlog, plan_input: PlanInput, plan: Plan) -> dict[TaskClass, dict[str, int]]:
    """Return the waiting pods that a plan places, by class and UID, and each one's place in the plan, 0 the first."""
    places: dict[TaskClass, dict[str, int]] = {}
    lines: dict[TaskClass, list[str]] = {}
    for place, (row, pod) in enumerate(pods_of(plan_input, plan)):
        task_class = plan_input.classes[row]
        if task_class not in lines:
            lines[task_class] = line_of(backlog, task_class)[::-1]
        line = lines[task_class]
        uid = pod.uid if pod is not None else line.pop() if line else None
        if uid is not None:
            places.setdefault(task_class, {})[uid] = place
    return places


class _ClassReasons:
    """What a plan says of each class; a class whose pods have inputs of their own has one row for each of them."""

    def __init__(self, input_builder: PlanInputBuilder, snapshot: Snapshot, plan_input: PlanInput, plan: Plan) -> None:
        self._input_builder, self._snapshot, self._plan = input_builder, snapshot, plan
        self._pods = plan_input.pods
        self._row = {
            id(task_class): row for row, task_class in enumerate(plan_input.classes) if plan_input.pods[row] is None
        }
        self._task_of_pod = {
            pod.uid: (row, task) for row, pods in enumerate(plan_input.pods) for task, pod in enumerate(pods or ())
        }
        self._row_reasons: dict[int, Reason | None] = {}
        self._short = {id(task_class) for task_class in plan_input.short}
        self._room: dict[tuple[object, ...], bool] = {}
        self._shares = plan_input.usage.by_queue()
        rows = sorted(set(plan.assignments.task_class.tolist()))
        self._going = [plan_input.classes[row] for row in rows]

    def reason(self, task_class: TaskClass, uid: str, gangs: Mapping[str, Reason]) -> Reason | None:
        """Return why a pod of a class waits that the plan does not place; None where it knew nothing of it yet."""
        if id(task_class) in self._short:
            return gangs[task_class.template.identity.group]
        row, task = self._task_of_pod.get(uid, (self._row.get(id(task_class)), -1))
        if row is None:
            return None
        if row not in self._row_reasons:
            self._row_reasons[row] = self._of_row(task_class, row)
        reason = self._row_reasons[row]
        return self._of_task(reason, row, task) if reason is not None and reason.kind == "locality" else reason

    def _of_task(self, reason: Reason, row: int, task: int) -> Reason:
        """Return a reason in the words of one pod of a row: each waits for nodes of its own."""
        near = self._plan.held[row].near
        return replace(reason, text=near.texts.get(task, reason.text)) if near is not None else reason

    def _of_row(self, task_class: TaskClass, row: int) -> Reason | None:
        if task_class.template.choice == ONLY:
            return self._of_idle_room(task_class.template)
        held = self._plan.held.get(row)
        if held is None:
            return None
        like = next(iter(self._pods[row] or ()), task_class.template)
        if self._going and held.kind in _WOULD_FIT_OTHERWISE and self._had_room(like):
            return self._turn(task_class) if self._could_read(like) else INPUT_IS_BUSY
        if held.kind == "too-large" and (missing := self._snapshot.layout.unadvertised(task_class.template.demand)):
            return Reason(held.kind, f"no node advertises {' or '.join(missing)}")
        return Reason(held.kind, held.text)

    def _of_idle_room(self, like: Pod) -> Reason:
        """Return why one that never is regular waits: the plan, which is for regular pods, does not know it."""
        allowed = self._input_builder.allowed_nodes.allowed(like, self._snapshot.layout)
        return AWAITS_IDLE_ROOM if allowed.any() or not len(allowed) else Reason(NONE_ALLOWS.kind, NONE_ALLOWS.text)

    def _had_room(self, like: Pod) -> bool:
        """Say whether such a pod fits somewhere before anything is placed."""
        demand = tuple(sorted(like.demand.items()))
        key: tuple[Constraints | object, ...] = (demand, like.constraints, like.priority, like.inputs)
        if key not in self._room:
            allowed = self._input_builder.allowed_nodes.allowed(like, self._snapshot.layout)
            self._room[key] = bool((judge(self._snapshot, like).passed & allowed).any())
        return self._room[key]

    def _could_read(self, like: Pod) -> bool:
        """Say whether such a pod can read its input on a node where it fits, before anything is placed."""
        if not like.inputs:
            return True
        layout, allowed_nodes = self._snapshot.layout, self._input_builder.allowed_nodes
        fitting = need_of(like, layout, allowed_nodes).nodes(room_for(self._snapshot, like))
        return bool((fitting & allowed_nodes.allowed(like, layout)).any())

    def _turn(self, task_class: TaskClass) -> Reason:
        """Return who goes before a class that would fit: higher priority, queues below their share, or just others."""
        if all(going.template.priority > task_class.template.priority for going in self._going):
            return HIGHER_FIRST
        share, fair = self._shares.get(task_class.job.queue, (0.0, 1.0))
        if share >= fair and all(going.job.queue != task_class.job.queue for going in self._going):
            return BELOW_SHARE_FIRST
        return OTHERS_FIRST


def line_of(backlog: Backlog, task_class: TaskClass) -> list[str]:
    """Return the pods of a class that wait for their turn, in the order in which they get it."""
    return [pod.uid for pod in backlog.waiting_pods(task_class)]


def group_sizes(backlog: Backlog, groups: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return how many pods each group has, and how many of them it must start together.

    Those that ended well count as long as they count for its minimum. Left out are pods that ended badly, and those
    that are being deleted: they start no more.
    """
    pods, stated = {group: backlog.groups.ended(group) for group in groups}, dict.fromkeys(groups, 0)
    for task_class in backlog.classes():
        identity = task_class.template.identity
        if identity.group in pods:
            leaving = sum(pod.leaving for pod in task_class.pods[PodPhase.RUNNING].values())
            pods[identity.group] += task_class.unfinished - leaving
            stated[identity.group] = max(stated[identity.group], identity.least)
    declared = backlog.groups.declared
    return {group: (pods[group], declared[group].least if group in declared else stated[group]) for group in groups}


def gates_of_others(pod: Pod) -> Sequence[str]:
    """Return a pod's gates that are not ours, sorted."""
    return sorted(gate for gate in pod.gates if gate != HOLD_GATE)


def counted(reasons_of_pods: Iterable[Reason]) -> dict[str, int]:
    """Return how many pods wait for which kind of reason, for all kinds."""
    counts = dict.fromkeys(KINDS, 0)
    for reason in reasons_of_pods:
        counts[reason.kind] += 1
    return counts


def _gated(pod: Pod) -> Reason:
    return Reason(GATES, f"waits for gates of others: {', '.join(gates_of_others(pod))}")


def _refused(like: Sequence[Pod]) -> Reason:
    first = min(like, key=lambda pod: (pod.created, pod.namespace, pod.name))
    return Reason(REFUSED, f"kube-scheduler refuses pod {first.full_name}, which asks for the same")


def _gang(pods: int, least: int) -> Reason:
    if pods >= least:
        return Reason(GANG, f"not all {least} pods of its pod group may start yet: gates of others hold some")
    return Reason(GANG, f"its pod group has {pods} of {least} pods")
