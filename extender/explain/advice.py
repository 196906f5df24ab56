"""What would have to change for a pod that waits to go on, in one sentence each."""

from collections.abc import Callable, Collection, Mapping

import numpy as np

from extender.cluster.ledger.snapshot import UNADVERTISED
from extender.control.queues.fair_shares import shares_of
from extender.control.release.refusals import refused_pods, shape_of
from extender.explain.amounts import amount, percent
from extender.explain.pod_in_plan import Case
from extender.explain.wait_reasons import (
    GANG,
    GATES,
    PACE,
    REFUSED,
    RELEASING,
    SHARE,
    TURN,
    Reason,
    gates_of_others,
    group_size,
)
from extender.planner import Near

LOCALITY = "locality"

_COMPUTED = (
    "its first wait may be another by now, computed by control for locality.target: "
    "dovetail_locality_wait_in_force_seconds"
)


def changes_for(case: Case, reason: Reason | None, *, unknown: str = "", by_target: bool = False) -> list[str]:
    """Return what would have to be otherwise for a held pod with this reason.

    `unknown` is why `control` could not tell how far waits for locality have got, empty where it did; `by_target`: it
    may have computed another wait than settings state.
    """
    if reason is None:
        return ["the next plan must look at it: it has just come"]
    found = _BY_KIND.get(reason.kind, _nothing)(case)
    return [*found, *_not_told(unknown, by_target=by_target)] if reason.kind == LOCALITY else found


def _not_told(unknown: str, *, by_target: bool) -> list[str]:
    """Return what only `control` knows of a wait, where it did not say so."""
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
    there, least = group_size(case.view.backlog, group)
    if there < least:
        more = least - there
        return [
            f"{more} more {'pod' if more == 1 else 'pods'} of pod group {group} must be created ({there} of {least})"
        ]
    return [f"enough room for {least} pods of pod group {group} at once must be free", *_room(case)]


def _pace(_case: Case) -> list[str]:
    return ["nothing: pods go a few at a time (control.unboundPods); if it stays so, see `dovetail doctor`"]


def _refused(case: Case) -> list[str]:
    like = refused_pods(case.view.backlog).get(shape_of(case.pod), ())
    one, it = (
        (f"pod {like[0].namespace}/{like[0].name}", "its") if len(like) == 1 else (f"these {len(like)} pods", "their")
    )
    return [f"{one} must be bound, or deleted: see {it} events; one more is released now and then, to try"]


def _turn(case: Case) -> list[str]:
    before = len(case.view.plan.assignments)
    who = "the pod that the plan places now must have its node"
    if before != 1:
        who = f"the {before:,} pods that the plan places now must have their nodes"
    return [f"{who}, and room be left or come free", *_room_now(case)]


def _share(case: Case) -> list[str]:
    queue = case.pod.identity.queue
    share, fair = shares_of(case.view.made, case.view.snapshot).get(queue, (0.0, 0.0))
    return [f"queue {queue} must fall below its fair share of {percent(fair)} (it has {percent(share)})", *_turn(case)]


def _room_now(case: Case) -> list[str]:
    """Say that there is room only until those before it are placed."""
    where = int((case.allowed & (case.short <= 0).all(axis=1)).sum())
    return [f"now {where:,} {'node has' if where == 1 else 'nodes have'} room for it, which goes to them"]


def _room(case: Case) -> list[str]:
    """Return how much more some node must have free: of those that could hold it, the one that lacks least."""
    able = (case.allowed & case.large_enough).nonzero()[0]
    short, axis = case.short[able], case.view.snapshot.layout.axis
    lacking = short.any(axis=1)
    if not len(able) or not lacking.all():
        return []
    capacity = case.view.snapshot.layout.capacity[able]
    parts = np.divide(short, capacity, out=np.zeros_like(short), where=np.isfinite(capacity) & (capacity > 0))
    nearest = int(np.lexsort((parts.max(axis=1), (short > 0).sum(axis=1)))[0])
    needs = " and ".join(_more(axis[d], float(short[nearest, d])) for d in np.flatnonzero(short[nearest] > 0))
    name = case.view.snapshot.layout.names[int(able[nearest])]
    others = len(able) - 1
    rest = (
        f" (it lacks least), or enough on {'the other' if others == 1 else f'any of {others} others'}" if others else ""
    )
    return [f"{needs} free on node {name}{rest}"]


def _more(name: str, value: float) -> str:
    return f"{amount(name, value)} more" if name == "cpu" else f"{amount(name, value)} more {name}"


def _too_large(case: Case) -> list[str]:
    """Return what no node that allows it offers, and the most that one does."""
    layout = case.view.snapshot.layout
    offered, demand = layout.capacity[case.allowed].max(axis=0, initial=0.0), layout.vector(case.pod.demand)
    missing = layout.unadvertised(case.pod.demand)
    found = [f"a node that advertises {name} must be added (none does now)" for name in missing]
    found += [
        f"a node with {name} {amount(name, demand[d])} must be added (the most is {amount(name, offered[d])} now)"
        for d, name in enumerate(layout.axis)
        if demand[d] > offered[d] and name != UNADVERTISED
    ]
    return found or ["a node that is large enough in all dimensions at once must be added"]


def _barred(case: Case) -> list[str]:
    """Return which of the pod's constraints how many nodes fail by themselves."""
    nodes, where = list(case.view.backlog.nodes.values()), case.pod.constraints
    selected = [it for it in nodes if all(it.labels.get(key) == value for key, value in where.selector)]
    fitting = [
        it
        for it in selected
        if where.terms is None or any(term and all(one.met(it.name, it.labels) for one in term) for term in where.terms)
    ]
    reached = [it for it in fitting if where.volumes_allow(it.labels)]
    told = ",".join(f"{key}={value}" for key, value in where.selector)
    if not selected:
        return [f"a node must carry the labels of its node selector: {told}"]
    if not fitting:
        return [f"one of {len(selected)} nodes must meet its required node affinity"]
    if not reached:
        return [f"one of {len(fitting)} nodes must meet the node affinity of its volumes"]
    cordoned = sum(it.unschedulable for it in reached)
    tainted = len(reached) - cordoned
    return [
        *([f"a taint that it does not tolerate must go from one of {tainted} nodes"] if tainted else []),
        *([f"one of {cordoned} cordoned nodes must be uncordoned"] if cordoned else []),
    ]


def _reserved(case: Case) -> list[str]:
    nodes = sorted({node for of in case.view.plan.carried.reserved.values() for node in of.nodes})
    return [f"those for whom room is reserved must start, on {', '.join(nodes[:5])}"]


def _locality(case: Case) -> list[str]:
    """Return where room must come free, or that it need only wait."""
    held = case.view.plan.held.get(case.row)
    found = _near(case, held.near) if held is not None and held.near is not None else []
    found.append("nothing: after its waits (locality.waitSeconds) it takes what there is")
    return [found[0], *(f"or {it}" for it in found[1:])]


def _near(case: Case, near: Near) -> list[str]:
    """Return what would have to happen on which of the nodes that it waits for."""
    wanted = set(case.near(near.level).nonzero()[0].tolist())
    reserved, crowded = wanted.intersection(near.reserved), wanted.intersection(near.crowded)
    rows = (wanted - reserved - crowded, reserved, crowded)
    words = (
        "room must come free on {}",
        "those for whom room is reserved must start, on {}",
        "fewer long tasks must run on {}",
    )
    return [words.format(_named(case, of)) for of, words in zip(rows, words, strict=True) if of]


def _named(case: Case, rows: Collection[int]) -> str:
    names = [case.view.snapshot.layout.names[row] for row in sorted(rows)]
    return f"{', '.join(names[:5])}{f', or {len(names) - 5:,} others' if len(names) > 5 else ''}"


def _no_nodes(_case: Case) -> list[str]:
    return ["a node must be added"]


_BY_KIND: Mapping[str, Callable[[Case], list[str]]] = {
    GATES: _gates,
    GANG: _gang,
    PACE: _pace,
    REFUSED: _refused,
    RELEASING: _nothing,
    TURN: _turn,
    SHARE: _share,
    "no-room": _room,
    "too-large": _too_large,
    "barred": _barred,
    "reserved": _reserved,
    LOCALITY: _locality,
    "no-nodes": _no_nodes,
}
