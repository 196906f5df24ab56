"""One pod explained: where it is on its way, whose turn it is before, how nodes suit it, what would have to change.

Everything comes from the same plan that the release loop would make (`view`), and from what the pod says itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Nominations
from extender.cluster.model import Pod
from extender.cluster.resources import PODS, Amounts
from extender.control.plan_input.preferred_nodes import NODE
from extender.control.queues.fair_shares import shares_of
from extender.explain.planned_order import PlannedOrder
from extender.explain.pod_in_plan import Case, case_of
from extender.explain.wait_reasons import Reason, line_of, places
from extender.planner import Carried, Plan, Policy, Rating, WaitLeft, alignments, owed_to_jobs, plan_once, ratings

HELD, RELEASED, BOUND, FINISHED, LEAVING, OTHERS = "held", "released", "bound", "finished", "being deleted", "not ours"
MOST_NODES = 5


@dataclass(frozen=True, slots=True)
class Position:
    """`before` pods of the whole order go first, `in_queue` of them of its own queue: by the plan, where that has it
    `placed`; else by the same plan with all nodes empty, as nobody knows where room will come free. Not `reached`: not
    even that plan places it, and more may go first.
    """  # noqa: D205 - one sentence

    placed: bool
    before: int
    in_queue: int
    reached: bool = True


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """How one node suits the pod now, before anything else is placed; without a score where it is not in the plan.

    `short` is what it has too little of, and by how much; `allowed` False where selectors, affinity, taints or a cordon
    keep the pod away; `level` how near it is to the pod's input, empty where that makes no difference.
    """

    name: str
    fits: bool
    allowed: bool
    alignment: float
    short: Amounts = field(default_factory=dict)
    remote: float | None = None
    work: float | None = None
    score: float | None = None
    level: str = ""


@dataclass(frozen=True, slots=True)
class Use:
    """What a node has of one dimension: `offered` None where it does not limit it."""

    allocated: float
    offered: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a pod is on its way and why. `node` is where it is or where the plan puts it; `ours` whether we chose it.

    `work` is what its job has left, in seconds of the whole cluster; `owed` how far the job is below its fair share
    (1: it has nothing). `preferred` are the nodes that have its input, or that it prefers most, at most `MOST_NODES`
    of them, and `level` how near to those its node is. `wait` is how far its wait for them has got, None: not known.
    """

    pod: str
    state: str
    waited_seconds: float
    demand: Amounts
    priority: int
    scheduler: str
    queue: str = ""
    share: float | None = None
    fair_share: float | None = None
    job: str = ""
    work: float | None = None
    owed: float | None = None
    reason: Reason | None = None
    position: Position | None = None
    node: str | None = None
    nominated: str | None = None
    ours: bool | None = None
    refusal: str = ""
    nodes: Sequence[NodeTerms] = ()
    use: Mapping[str, Use] = field(default_factory=dict)
    change: Sequence[str] = ()
    problem: str | None = None
    preferred: Sequence[str] = ()
    level: str = ""
    wait: WaitLeft | None = None


def state_of(pod: Pod, *, ours: bool) -> str:
    """Return where a pod is on its way; `ours` says whether it has a place in the order."""
    if pod.finished:
        return FINISHED
    if pod.node is not None:
        return BOUND
    if pod.leaving:
        return LEAVING
    if pod.held:
        return HELD
    return RELEASED if ours else OTHERS


def position_of(case: Case, policy: Policy) -> Position | None:
    """Return a held pod's place in the order; None where the plan does not know it, or it can never be placed."""
    if case.of is None or case.row < 0 or not (case.allowed & case.large_enough).any():
        return None
    found = case.view
    if case.pod.uid not in line_of(found.backlog, case.of):
        return None
    plan, uid = found.plan, case.pod.uid
    place = places(found.backlog, found.made, plan).get(case.of, {}).get(uid)
    placed = place is not None
    if not placed:
        plan = _plan_if_empty(found, policy)
        place = places(found.backlog, found.made, plan).get(case.of, {}).get(uid)
    before = plan.assignments.task_class.tolist()[:place]
    mine = sum(found.made.classes[row].job.queue == case.of.job.queue for row in before)
    return Position(placed, len(before), mine, place is not None)


def terms_of(case: Case, policy: Policy, most: int = MOST_NODES) -> list[NodeTerms]:
    """Return the best nodes for a pod: those where it fits by score, then those that lack least."""
    found, names = case.view, case.view.snapshot.layout.names
    rated: dict[int, Rating] = {}
    if case.row >= 0:
        made = found.made.waiting
        rated = {it.node: it for it in ratings(policy, found.snapshot, made, found.carried, case.row)}
    aligned = alignments(policy, found.snapshot, case.demand, case.free)
    short, lacks = case.short, _lacks(case)
    fits = case.allowed & (lacks <= 0)
    score = np.array([rated[row].score if row in rated else aligned[row] for row in range(len(names))])
    order = np.lexsort((np.arange(len(names)), -score, lacks, ~case.allowed))
    level = _levels(case)
    axis = found.snapshot.layout.axis
    return [
        NodeTerms(
            name=names[row],
            fits=bool(fits[row]),
            allowed=bool(case.allowed[row]),
            alignment=float(aligned[row]),
            short={axis[d]: float(short[row, d]) for d in np.flatnonzero(short[row] > 0)},
            remote=rated[row].remote if row in rated else None,
            work=rated[row].work if row in rated else None,
            score=rated[row].score if row in rated else None,
            level=level[row],
        )
        for row in order[:most].tolist()
    ]


def use_of(found: PlannedOrder, node: str) -> dict[str, Use]:
    """Return what a node has allocated and offers, by dimension."""
    layout, row = found.snapshot.layout, found.snapshot.layout.rows.get(node)
    if row is None:
        return {}
    held, offered = found.snapshot.allocated[row].tolist(), layout.capacity[row].tolist()
    return {
        name: Use(has, of if np.isfinite(of) else None)
        for name, has, of in zip(layout.axis, held, offered, strict=True)
        if has > 0 or 0 < of < np.inf
    }


def explain(
    found: PlannedOrder, pod: Pod, policy: Policy, change: Sequence[str], refusal: str = "", *, waits_known: bool = True
) -> Explanation:
    """Return all that there is to say of a pod; `change` (`changes.changes_for`) says what would have to be otherwise.

    `refusal` is what kube-scheduler said of it last; not `waits_known`: the plan knew of no job how long it had waited.
    """
    case = case_of(found, pod)
    state = state_of(pod, ours=found.backlog.has_place(pod))
    share, fair = shares_of(found.made, found.snapshot).get(pod.identity.queue, (None, None))
    waits = state in (HELD, RELEASED)
    placed = found.places(pod)
    node, level = pod.node or (placed[1] if placed else pod.nominated), _levels(case)
    jobs = found.made.waiting.jobs
    job, owed = _job_row(case), None
    if job is not None:
        owed = float(owed_to_jobs(policy, found.snapshot, found.made.waiting, found.carried)[job])
    return Explanation(
        pod=f"{pod.namespace}/{pod.name}",
        state=state,
        waited_seconds=max(found.now - pod.created, 0.0) if pod.node is None else 0.0,
        demand={name: amount for name, amount in pod.demand.items() if name != PODS},
        priority=pod.priority,
        scheduler=pod.scheduler,
        queue=pod.identity.queue if state != OTHERS else "",
        share=share,
        fair_share=fair,
        job=pod.identity.job if state != OTHERS else "",
        work=float(jobs.work[job]) if job is not None else None,
        owed=owed,
        reason=found.why.get(pod.uid) if state == HELD else None,
        position=position_of(case, policy) if state == HELD else None,
        node=node,
        nominated=pod.promised or pod.nominated,
        ours=(pod.promised == pod.node) if pod.node and pod.promised else None,
        refusal=refusal if state == RELEASED else "",
        nodes=terms_of(case, policy) if waits and len(found.snapshot.layout.names) else (),
        use=use_of(found, pod.node) if pod.node else {},
        change=change,
        problem=pod.problem,
        preferred=[name for name, of in zip(found.snapshot.layout.names, level, strict=True) if of == NODE][
            :MOST_NODES
        ],
        level=level[row] if (row := found.snapshot.layout.rows.get(node or "")) is not None else "",
        wait=_wait_left(case) if state == HELD and waits_known else None,
    )


def _wait_left(case: Case) -> WaitLeft | None:
    """Return how far a pod's wait for room near its input has got; None where it waits for something else."""
    reason, held = case.view.why.get(case.pod.uid), case.view.plan.held.get(case.row)
    return held.wait if held is not None and reason is not None and reason.kind == held.kind else None


def _levels(case: Case) -> list[str]:
    """Return how near each node is to where a pod would rather be; empty where that makes no difference.

    Of one that waits also on nodes that it could never use.
    """
    places, levels = case.view.input_builder.places, case.levels
    if levels is None:
        return [""] * len(case.allowed)
    counts = (case.allowed & case.large_enough) | (case.pod.node is not None)
    return [places.level_name(level) if it else "" for level, it in zip(levels.tolist(), counts.tolist(), strict=True)]


def _plan_if_empty(found: PlannedOrder, policy: Policy) -> Plan:
    """Return who would be placed, in order, if everything that runs had gone, with its shares."""
    layout = found.snapshot.layout
    nothing = np.zeros(layout.capacity.shape)
    empty = replace(found.snapshot, allocated=nothing, in_flight=nothing, nominations=_no_nominations(len(layout.axis)))
    carried = Carried(deficits=found.carried.deficits)
    return plan_once(policy, empty, found.made.waiting, found.now, carried)


def _no_nominations(dimensions: int) -> Nominations:
    return Nominations((), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64), np.zeros((0, dimensions)))


def _job_row(case: Case) -> int | None:
    """Return the row of a pod's job; of one in a FIFO queue, that of the queue."""
    if case.of is None:
        return None
    queue, names = case.of.job.queue, list(case.view.made.waiting.jobs.names)
    name = f"{queue}|" if case.view.input_builder.tree.is_fifo(queue) else f"{queue}|{case.of.job.name}"
    return names.index(name) if name in names else None


def _lacks(case: Case) -> Floats:
    """Return the greatest part of its capacity that each node lacks [N]; infinite where it is not large enough."""
    capacity = case.view.snapshot.layout.capacity
    finite = np.isfinite(capacity) & (capacity > 0)
    parts = np.divide(case.short, capacity, out=np.zeros_like(case.short), where=finite).max(axis=1, initial=0.0)
    return np.where(case.large_enough, parts, np.inf)
