"""One pod explained: where it is on its way, who goes before it, how nodes suit it, what would have to change.

All of it comes from the plan that the release loop would make (`PlannedOrder`) and from the pod itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.snapshot import Nominations
from extender.cluster.model import Pod
from extender.cluster.resources import PODS, Amounts
from extender.control.plan_input.preferred_nodes import NODE
from extender.explain.job_names import job_name
from extender.explain.planned_order import PlannedOrder
from extender.explain.pod_in_plan import Case, case_of
from extender.explain.running_as import REGULAR, regular_requests, running_as
from extender.explain.wait_reasons import Reason, line_of, places_in_plan
from extender.planner import Carried, Plan, Policy, Rating, WaitLeft, alignments, owed_to_jobs, plan_once, ratings

HELD, RELEASED, BOUND, FINISHED, LEAVING, OTHERS = "held", "released", "bound", "finished", "being deleted", "not ours"
MOST_NODES = 5


@dataclass(frozen=True, slots=True)
class Position:
    """How many pods of the whole order go `before` a pod, and how many of these are of its own queue (`in_queue`).

    `placed`: the plan places it, and says so. Else the order is that of the same plan with all nodes empty, because
    nobody knows where room will come free. Where not even that plan has `reached` it, more pods may go first.
    """

    placed: bool
    before: int
    in_queue: int
    reached: bool = True


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """How one node suits the pod now, before anything else is placed; `score` is None where the plan has not rated it.

    `short` is what the node has too little of, and by how much. `allowed` is False where selectors, affinity, taints or
    a cordon keep the pod away. `level` is how near it is to the pod's input, empty where that makes no difference.
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
    """What a node has of one dimension; `offered` is None where it states no limit."""

    allocated: float
    offered: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Where a pod is on its way and why. `node` is where it is, or where the plan puts it; `ours`: we chose that node.

    `work` is what its job has left, in seconds of the whole cluster. `owed` is how far the job is below its fair share
    (1: it has nothing). `preferred` are at most `MOST_NODES` nodes that have its input or that it prefers most, and
    `level` says how near to those its node is. `wait` is how long it has waited for them, None: not known.
    `running_as` is one of those of that module, `regular_requests` what an opportunistic pod gave up. `preempted` is
    what its event says where it was evicted because others use what it ran on. `stays` is what its event says where it
    could not be made opportunistic while it is held, or regular while it runs.
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
    running_as: str = REGULAR
    regular_requests: Amounts = field(default_factory=dict)
    opportunistic_share: float = 0.0
    preempted: str = ""
    stays: str = ""


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
    order, task_class, uid = case.order, case.task_class, case.pod.uid
    if task_class is None or case.row < 0 or not (case.allowed & case.large_enough).any():
        return None
    if uid not in line_of(order.backlog, task_class):
        return None

    def place_in(plan: Plan) -> int | None:
        return places_in_plan(order.backlog, order.plan_input, plan).get(task_class, {}).get(uid)

    plan = order.plan
    place = place_in(plan)
    placed = place is not None
    if not placed:
        plan = _plan_if_empty(order, policy)
        place = place_in(plan)
    before = plan.assignments.task_class.tolist()[:place]
    in_queue = sum(order.plan_input.classes[row].job.queue == task_class.job.queue for row in before)
    return Position(placed, len(before), in_queue, place is not None)


def terms_of(case: Case, policy: Policy, most: int = MOST_NODES) -> list[NodeTerms]:
    """Return the best nodes for a pod: those where it fits by score, then those that lack least."""
    order, layout = case.order, case.order.snapshot.layout
    # 1. Rate the nodes as the plan does, where the plan knows the pod; elsewhere by their alignment alone.
    rated: dict[int, Rating] = {}
    if case.row >= 0:
        waiting = order.plan_input.waiting
        rated = {rating.node: rating for rating in ratings(policy, order.snapshot, waiting, order.carried, case.row)}
    aligned = alignments(policy, order.snapshot, case.demand, case.free)
    score = np.array([rated[row].score if row in rated else aligned[row] for row in range(len(layout.names))])
    # 2. Sort: nodes that allow it first, then those that lack least, then the best score.
    short, lacks = case.short, _lacks(case)
    fits = case.allowed & (lacks <= 0)
    best = np.lexsort((np.arange(len(layout.names)), -score, lacks, ~case.allowed))[:most].tolist()
    # 3. Say of each what it is short of, and how near to the pod's input it is.
    level = _levels(case)
    return [
        NodeTerms(
            name=layout.names[row],
            fits=bool(fits[row]),
            allowed=bool(case.allowed[row]),
            alignment=float(aligned[row]),
            short={layout.axis[d]: float(short[row, d]) for d in np.flatnonzero(short[row] > 0)},
            remote=rated[row].remote if row in rated else None,
            work=rated[row].work if row in rated else None,
            score=rated[row].score if row in rated else None,
            level=level[row],
        )
        for row in best
    ]


def use_of(order: PlannedOrder, node: str) -> dict[str, Use]:
    """Return what a node has allocated and offers, by dimension."""
    layout, row = order.snapshot.layout, order.snapshot.layout.rows.get(node)
    if row is None:
        return {}
    allocated, offered = order.snapshot.allocated[row].tolist(), layout.capacity[row].tolist()
    return {
        name: Use(taken, limit if np.isfinite(limit) else None)
        for name, taken, limit in zip(layout.axis, allocated, offered, strict=True)
        if taken > 0 or 0 < limit < np.inf
    }


def explain(
    order: PlannedOrder,
    pod: Pod,
    policy: Policy,
    change: Sequence[str],
    refusal: str = "",
    *,
    waits_known: bool = True,
    most_nodes: int = MOST_NODES,
    preempted: str = "",
    stays: str = "",
) -> Explanation:
    """Return all that there is to say of a pod; `change` (`advice.changes_for`) is what would have to change.

    `refusal` is what kube-scheduler said of it last. `waits_known` is False where the plan did not know how long jobs
    have waited for locality. At most `most_nodes` nodes are rated. `preempted` is the event of its preemption, `stays`
    that of a change that was refused.
    """
    case = case_of(order, pod)
    state = state_of(pod, ours=order.backlog.takes_part(pod))
    share, fair = order.plan_input.usage.by_queue().get(pod.identity.queue, (None, None))
    rated = state in (HELD, RELEASED) and not pod.opportunistic  # that would fit by what it counts, so anywhere
    placed = order.places(pod)
    node, level = pod.node or (placed[1] if placed else pod.nominated), _levels(case)
    layout, waiting = order.snapshot.layout, order.plan_input.waiting
    node_row, job_row, owed = layout.rows.get(node or ""), _job_row(case), None
    if job_row is not None:
        owed = float(owed_to_jobs(policy, order.snapshot, waiting, order.carried)[job_row])
    return Explanation(
        pod=f"{pod.namespace}/{pod.name}",
        state=state,
        waited_seconds=max(order.now - pod.created, 0.0) if pod.node is None else 0.0,
        demand={name: amount for name, amount in pod.demand.items() if name != PODS},
        priority=pod.priority,
        scheduler=pod.scheduler,
        queue=pod.identity.queue if state != OTHERS else "",
        share=share,
        fair_share=fair,
        job=job_name(pod) if state != OTHERS else "",
        work=float(waiting.jobs.work[job_row]) if job_row is not None else None,
        owed=owed,
        reason=order.why.get(pod.uid) if state == HELD else None,
        position=position_of(case, policy) if state == HELD else None,
        node=node,
        nominated=pod.promised or pod.nominated,
        ours=(pod.promised == pod.node) if pod.node and pod.promised else None,
        refusal=refusal if state == RELEASED else "",
        nodes=terms_of(case, policy, most_nodes) if rated and len(layout.names) else (),
        use=use_of(order, pod.node) if pod.node else {},
        change=change,
        problem=pod.problem,
        preferred=[name for name, near in zip(layout.names, level, strict=True) if near == NODE][:MOST_NODES],
        level=level[node_row] if node_row is not None else "",
        wait=_wait_left(case) if state == HELD and waits_known else None,
        running_as=running_as(pod),
        regular_requests=regular_requests(pod),
        opportunistic_share=order.plan_input.usage.opportunistic_share({pod.identity.queue}),
        preempted=preempted,
        stays=stays,
    )


def _wait_left(case: Case) -> WaitLeft | None:
    """Return how far a pod's wait for room near its input has got; None where it waits for something else."""
    reason, held = case.order.why.get(case.pod.uid), case.order.plan.held.get(case.row)
    return held.wait if held is not None and reason is not None and reason.kind == held.kind else None


def _levels(case: Case) -> list[str]:
    """Return how near each node is to a pod's input or preferred nodes; empty where that makes no difference.

    It makes none on nodes that a waiting pod could never use.
    """
    preferred, levels = case.order.input_builder.preferred_nodes, case.levels
    if levels is None:
        return [""] * len(case.allowed)
    matters = (case.allowed & case.large_enough) | (case.pod.node is not None)
    return [
        preferred.level_name(level) if counts else ""
        for level, counts in zip(levels.tolist(), matters.tolist(), strict=True)
    ]


def _plan_if_empty(order: PlannedOrder, policy: Policy) -> Plan:
    """Return the plan over empty nodes, with the shares that queues and jobs have now."""
    layout = order.snapshot.layout
    nothing = np.zeros(layout.capacity.shape)
    empty = replace(order.snapshot, allocated=nothing, in_flight=nothing, nominations=_no_nominations(len(layout.axis)))
    carried = Carried(deficits=order.carried.deficits)
    return plan_once(policy, empty, order.plan_input.waiting, order.now, carried)


def _no_nominations(dimensions: int) -> Nominations:
    return Nominations((), np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64), np.zeros((0, dimensions)))


def _job_row(case: Case) -> int | None:
    """Return the row of a pod's job; of one in a FIFO queue, that of the queue."""
    if case.task_class is None:
        return None
    queue, names = case.task_class.job.queue, list(case.order.plan_input.waiting.jobs.names)
    fifo = case.order.input_builder.tree.is_fifo(queue)
    name = f"{queue}|" if fifo else f"{queue}|{case.task_class.job.name}"
    return names.index(name) if name in names else None


def _lacks(case: Case) -> Floats:
    """Return the greatest part of its capacity that each node lacks [N]; infinite where it is not large enough."""
    capacity = case.order.snapshot.layout.capacity
    finite = np.isfinite(capacity) & (capacity > 0)
    parts = np.divide(case.short, capacity, out=np.zeros_like(case.short), where=finite).max(axis=1, initial=0.0)
    return np.where(case.large_enough, parts, np.inf)
