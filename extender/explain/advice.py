"""What would have to change for a pod that waits to go on, in one sentence each."""

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from extender.arrays import fits, times_fits
from extender.cluster.eligibility import UNSCHEDULABLE_TAINT, Constraints
from extender.cluster.ledger.layout import UNADVERTISED
from extender.cluster.model import Node, Pod
from extender.cluster.pods.opportunistic import ONLY
from extender.cluster.pods.reading import sources
from extender.control.backlog.backlog import PodPhase
from extender.control.pod_shapes import shape_of
from extender.control.release.refusals import refused_pods
from extender.explain.amounts import amount, percent, seconds
from extender.explain.pod_in_plan import Case
from extender.explain.wait_reasons import (
    GANG,
    GATES,
    PACE,
    REFUSED,
    RELEASING,
    SHARE,
    TRYING,
    TURN,
    Reason,
    gates_of_others,
    group_sizes,
)
from extender.planner import CANNOT_READ, Near
from extender.policy import shares
from extender.words import many

LOCALITY = "locality"

_BY_ITSELF = (
    "kube-scheduler tries it again when another pod is bound or ends or a node changes, and after five minutes anyway"
)

_COMPUTED = (
    "its first wait may be another by now, computed by control for locality.target: "
    "dovetail_locality_wait_in_force_seconds"
)


def changes_for(
    case: Case, reason: Reason | None, *, unknown: str = "", by_target: bool = False, unled: str = ""
) -> list[str]:
    """Return what would have to change for a waiting pod with this reason.

    `unknown` is why `control` could not say how far waits for locality have got, empty where it did. `by_target`: it
    computes the first wait, which may differ from the one in settings. `unled` is why no `control` leads, empty where
    one does.
    """
    if reason is None:
        return ["the next plan must look at it: it has just come"]
    changes = [*_without_control(case, unled), *_of_kind(case, reason.kind, led=not unled)]
    return [*changes, *_not_known(unknown, by_target=by_target)] if reason.kind == LOCALITY else changes


def _of_kind(case: Case, kind: str, *, led: bool) -> list[str]:
    """Return what would have to change for this kind of reason; nothing more where only a leader is missing."""
    if not led and kind in (PACE, RELEASING, TRYING) and (case.pod.held or case.pod.unschedulable):
        return []
    return _BY_KIND.get(kind, _nothing)(case)


def _without_control(case: Case, unled: str) -> list[str]:
    """Return what it means for a pod that no `control` leads."""
    if not unled:
        return []
    if case.pod.held:
        return [f"`dovetail control` must run, as it alone releases held pods: {unled}"]
    if case.pod.unschedulable:
        return [f"nobody wakes it in its turn ({unled}): {_BY_ITSELF}"]
    return []


def _not_known(unknown: str, *, by_target: bool) -> list[str]:
    """Return what only `control` knows of a wait, where it could not be asked."""
    if not unknown:
        return []
    passed = f"it may be at a farther level by now: for how long its job has waited only control knows ({unknown})"
    return [passed, *([_COMPUTED] if by_target else [])]


def _nothing(_case: Case) -> list[str]:
    return []


def _gates(case: Case) -> list[str]:
    return [f"the gate {gate} must be removed, by whoever set it" for gate in gates_of_others(case.pod)]


def _gang(case: Case) -> list[str]:
    group = case.pod.identity.group
    pods, least = group_sizes(case.order.backlog, [group])[group]
    if pods < least:
        return [f"{many(least - pods, 'more pod')} of pod group {group} must be created ({pods} of {least})"]
    if case.task_class in case.order.plan_input.short:
        members = [pod for pod in case.order.backlog.at(PodPhase.GATED) if pod.identity.group == group]
        gates = sorted({gate for pod in members for gate in gates_of_others(pod)})
        return [
            f"the gate {gate} must be removed from others of pod group {group}, by whoever set it" for gate in gates
        ]
    return [f"enough room for {least} pods of pod group {group} at once must be free", *_room(case)]


def _pace(_case: Case) -> list[str]:
    return ["nothing: pods go a few at a time (control.unboundPods); if it stays so, see `dovetail doctor`"]


def _trying(case: Case) -> list[str]:
    rests_until = case.order.backlog.rests().get(case.pod.uid)
    if rests_until is not None:
        rest = seconds(max(rests_until - case.order.now, 1.0))
        return [
            "what kube-scheduler refused it for must change, unless that was room",
            f"its next turn comes in {rest} at the earliest; before that it starts where kube-scheduler finds room",
        ]
    if case.pod.unschedulable:
        return [
            "what kube-scheduler refused it for must change, unless that was room or its turn",
            f"else nothing: {_BY_ITSELF}, or as `dovetail control` wakes it; if it stays so, see `dovetail doctor`",
        ]
    return ["nothing: kube-scheduler has it in its queue; if it stays so, see `dovetail doctor`"]


def _refused(case: Case) -> list[str]:
    like = refused_pods(case.order.backlog).get(shape_of(case.pod)) or _refused_first(case)
    pods, their = (f"pod {like[0].full_name}", "its") if len(like) == 1 else (f"these {len(like)} pods", "their")
    return [f"{pods} must be bound, or deleted: see {their} events; one more is released now and then, to try"]


def _refused_first(case: Case) -> list[Pod]:
    """Return the refused pods without a gate that go before the held ones of their class."""
    ungated = case.task_class.pods[PodPhase.UNGATED] if case.task_class is not None else {}
    return [pod for pod in ungated.values() if pod.unschedulable]


def _turn(case: Case) -> list[str]:
    before = len(case.order.plan.assignments)
    first = "the pod that the plan places now must have its node"
    if before != 1:
        first = f"the {before:,} pods that the plan places now must have their nodes"
    return [f"{first}, and room be left or come free", *_room_now(case)]


def _share(case: Case) -> list[str]:
    queue = case.pod.identity.queue
    share, fair = case.order.plan_input.usage.by_queue().get(queue, (0.0, 0.0))
    return [f"queue {queue} must fall below its fair share of {percent(fair)} (it has {percent(share)})", *_turn(case)]


def _room_now(case: Case) -> list[str]:
    """Return on how many nodes there is room until the pods before it are placed."""
    nodes = int((case.allowed & fits(case.free, case.demand)).sum())
    return [f"now {nodes:,} {'node has' if nodes == 1 else 'nodes have'} room for it, which goes to them"]


def _room(case: Case) -> list[str]:
    """Return how much more some node must have free: of those that could hold it, one that lacks least."""
    if case.pod.choice == ONLY:
        return ["pods of a node that allows it must use so much less of what they reserved there"]
    layout, usable = case.order.snapshot.layout, (case.allowed & case.large_enough).nonzero()[0]
    short, axis = case.short[usable], layout.axis
    if not len(usable) or not short.any(axis=1).all():
        return []
    parts = shares.parts(short, layout.capacity[usable])
    nearest = int(np.lexsort(((short > 0).sum(axis=1), parts.max(axis=1)))[0])
    needs = " and ".join(_more(axis[d], float(short[nearest, d])) for d in np.flatnonzero(short[nearest] > 0))
    alike = int((short == short[nearest]).all(axis=1).sum())
    where = f"node {layout.names[int(usable[nearest])]}" if alike == 1 else f"any of {alike:,} nodes"
    lack, others = "it lacks" if alike == 1 else "they lack", len(usable) - alike
    elsewhere = "the other" if others == 1 else f"any of {others:,} others"
    return [f"{needs} free on {where}" + (f" ({lack} least), or enough on {elsewhere}" if others else "")]


def _more(name: str, value: float) -> str:
    return f"{amount(name, value)} more" if name == "cpu" else f"{amount(name, value)} more {name}"


def _too_large(case: Case) -> list[str]:
    """Return what no node that allows it offers, and the most that one does; where it fits, what its gang lacks."""
    layout, empty = case.order.snapshot.layout, case.order.snapshot.empty[case.allowed]
    reason = case.order.why.get(case.pod.uid)
    if reason is not None and reason.text.startswith(CANNOT_READ.text):
        return [f"{_named(case, _holders(case))} must offer more disk read and network out, or it must declare less"]
    if (case.allowed & case.large_enough).any():
        return _too_large_gang(case)
    offered, demand = empty.max(axis=0, initial=0.0), layout.vector(case.pod.demand)
    beside = " beside its DaemonSets' and static pods" if (empty < layout.capacity[case.allowed]).any() else ""
    missing = layout.unadvertised(case.pod.demand)
    changes = [f"a node that advertises {name} must be added (none does now)" for name in missing]
    short = [(d, name) for d, name in enumerate(layout.axis) if demand[d] > offered[d] and name != UNADVERTISED]
    changes += [
        f"a node with {name} {amount(name, demand[d])}{beside} must be added "
        f"(the most is {amount(name, offered[d])} now)"
        for d, name in short
    ]
    return changes or ["a node that is large enough in all dimensions at once must be added"]


def _too_large_gang(case: Case) -> list[str]:
    """Return how many like this one all nodes that allow it hold, and that more are needed or fewer must suffice."""
    group = case.pod.identity.group
    _, least = group_sizes(case.order.backlog, [group])[group]
    empty = case.order.snapshot.empty
    demand = np.broadcast_to(case.demand, empty.shape)  # of one that reads its input it is another on each node
    like = sum(int(times_fits(empty[row], demand[row])) for row in case.allowed.nonzero()[0].tolist())
    return [
        f"nodes must be added until {least} pods of pod group {group} fit at once (empty, those that allow this pod "
        f"hold {like} like it), or the group must need fewer"
    ]


def _barred(case: Case) -> list[str]:
    """Return which of the pod's constraints keeps it from which nodes: the first one that no node passes."""
    nodes, constraints = list(case.order.backlog.nodes.values()), case.pod.constraints
    # 1. The node selector: which nodes carry all its labels?
    selected = [node for node in nodes if constraints.selects(node.labels)]
    if not selected:
        labels = ",".join(f"{key}={value}" for key, value in constraints.selector)
        return [f"a node must carry the labels of its node selector: {labels}"]
    # 2. The required node affinity: which of these meet one of its terms?
    fitting = [node for node in selected if constraints.affinity_allows(node.name, node.labels)]
    if not fitting:
        return [f"{_one_of(selected)} must meet its required node affinity"]
    # 3. The node affinity of its volumes.
    reached = [node for node in fitting if constraints.volumes_allow(node.labels)]
    if not reached:
        return [f"{_one_of(fitting)} must meet the node affinity of its volumes"]
    # 4. What is left are taints and cordons. Where there is both, it would not help to end the cordon alone.
    tainted, cordoned = _by_taints(reached, constraints)
    return [
        *([f"a taint that it does not tolerate must go from {_one_of(tainted)}"] if tainted else []),
        *([f"{_one_of(cordoned)} must be uncordoned"] if cordoned else []),
    ]


def _by_taints(nodes: Sequence[Node], constraints: Constraints) -> tuple[Sequence[Node], Sequence[Node]]:
    """Return the nodes of which other taints than that of a cordon keep a pod away, and the others."""
    tainted: list[Node] = []
    others: list[Node] = []
    for node in nodes:
        taints = tuple(taint for taint in node.taints if taint.key != UNSCHEDULABLE_TAINT)
        (others if constraints.tolerates(taints, unschedulable=False) else tainted).append(node)
    return tainted, others


def _one_of(nodes: Sequence[Node]) -> str:
    return f"node {nodes[0].name}" if len(nodes) == 1 else f"one of {len(nodes):,} nodes"


def _reserved(case: Case) -> list[str]:
    reservations = case.order.plan.carried.reserved.values()
    nodes = sorted({node for reservation in reservations for node in reservation.nodes})
    return [f"those for whom room is reserved must start, on {', '.join(nodes[:5])}"]


def _input(case: Case) -> list[str]:
    """Return which disks and links it waits for: those of the nodes that hold its input."""
    if not (there := _holders(case)):
        return []
    return [f"disk read or network out must come free on {_named(case, there)}, or network in on a node with room"]


def _holders(case: Case) -> Sequence[int]:
    """Return the rows of the nodes that hold its input."""
    rows = case.order.snapshot.layout.rows
    return [rows[name] for name in sources(case.pod, rows)]


def _locality(case: Case) -> list[str]:
    """Return where room must come free, or that it need only wait."""
    held = case.order.plan.held.get(case.row)
    changes = _near(case, held.near) if held is not None and held.near is not None else []
    changes.append("nothing: after its waits (locality.waitSeconds) it takes what there is")
    return [changes[0], *(f"or {change}" for change in changes[1:])]


def _near(case: Case, near: Near) -> list[str]:
    """Return what would have to happen on which of the nodes that it waits for."""
    near_rows = set(case.near(near.level).nonzero()[0].tolist())
    reserved, crowded = near_rows.intersection(near.reserved), near_rows.intersection(near.crowded)
    rows_and_words = (
        (near_rows - reserved - crowded, "room must come free on"),
        (reserved, "those for whom room is reserved must start, on"),
        (crowded, "fewer long tasks must run on"),
    )
    return [f"{words} {_named(case, rows)}" for rows, words in rows_and_words if rows]


def _named(case: Case, rows: Collection[int]) -> str:
    names = [case.order.snapshot.layout.names[row] for row in sorted(rows)]
    return f"{', '.join(names[:5])}{f', or {len(names) - 5:,} others' if len(names) > 5 else ''}"


def _no_nodes(_case: Case) -> list[str]:
    return ["a node must be added"]


_BY_KIND: Mapping[str, Callable[[Case], list[str]]] = {
    GATES: _gates,
    GANG: _gang,
    PACE: _pace,
    TRYING: _trying,
    REFUSED: _refused,
    RELEASING: _nothing,
    TURN: _turn,
    SHARE: _share,
    "no-room": _room,
    "too-large": _too_large,
    "barred": _barred,
    "reserved": _reserved,
    "input": _input,
    LOCALITY: _locality,
    "no-nodes": _no_nodes,
}
