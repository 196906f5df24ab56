"""One pod explained: where it is on its way, who goes before it, how nodes suit it, what would have to change.

All of it comes from the plan that the release loop would make (`PlannedOrder`) and from the pod itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.arrays import Floats
from extender.cluster.ledger.layout import UNADVERTISED
from extender.cluster.model import Pod
from extender.cluster.pods.opportunistic import NEVER
from extender.cluster.resources import PODS, Amounts
from extender.control.backlog.backlog import Backlog, PodPhase
from extender.control.plan_input.preferred_nodes import NODE
from extender.explain.job_names import job_name
from extender.explain.new_pods import NewPods, in_words, of_this_one
from extender.explain.planned_order import PlannedOrder
from extender.explain.pod_in_plan import Case, case_of
from extender.explain.position import Position, position_of
from extender.explain.running_as import REGULAR, regular_requests, running_as
from extender.explain.wait_reasons import Reason
from extender.planner import Policy, Rating, WaitLeft, alignments, dag_rank, owed_to_jobs, ratings
from extender.policy.shares import dominant_shares
from extender.verdict import Placement, Ranker

HELD, RELEASED, BOUND, LEAVING, OTHERS = "held", "released", "bound", "being deleted", "not ours"
FINISHED, FAILED = "finished", "failed"
UNGATED, GATED = "without a gate", "held by gates of others"
WAITING = (HELD, UNGATED, GATED)
"""The states of pods that wait for their turn, or for gates to go."""

MOST_NODES = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """What kube-scheduler said of a pod last, and `since` when it has refused it.

    That is in seconds since the epoch; None: not known.
    """

    text: str
    since: float | None = None


@dataclass(frozen=True, slots=True)
class NodeTerms:
    """How one node suits the pod now, before anything else is placed; `score` is None where the plan has not rated it.

    `short` is what the node has too little of, and by how much. `allowed` is False where selectors, affinity, taints or
    a cordon keep the pod away. `level` is how near it is to the pod's input, empty where that makes no difference.
    `strands` is how many devices more nobody could use with it there, None where it does not fit, or none asks for any.
    `order` is what the place in its job's DAG makes of the alignment: 1 for the first that waits, or without a DAG.
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
    order: float | None = None
    strands: float | None = None


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
    `level` says how near to those its node is. `wait` is how long it has waited for them, None: not known. `running_as`
    is one of those of that module, `regular_requests` what an opportunistic pod gave up. `preempted` is what its event
    says where it was evicted because others use what it ran on. `ended` is what its status says where it failed or is
    being deleted. `stays` is what its event says where it could not be made opportunistic while it is held, or regular
    while it runs. `refusal` is what kube-scheduler said of it last, which it has refused for `refused_seconds`.
    `problem` is what is wrong with its annotations, and why it counts in another queue than it names. `new_pods` says
    whether such pods are held now (`order: auto`), `no_idle` why a pod that may run on idle resources finds none.
    `rank` is where the next task of its class stands in the order of its job's DAG (1: first of all), None without such
    an order. A pod that is `leaving` is being deleted, and holds its node until it is gone.
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
    refused_seconds: float | None = None
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
    ended: str = ""
    stays: str = ""
    new_pods: str = ""
    no_idle: str = ""
    rank: float | None = None
    leaving: bool = False


def state_of(pod: Pod, backlog: Backlog) -> str:
    """Return where a pod is on its way."""
    if pod.finished:
        return FAILED if pod.failed else FINISHED
    if pod.node is not None:
        return BOUND
    if pod.leaving:
        return LEAVING
    if pod.held:
        return HELD
    _, phase = backlog.find(pod.uid) or (None, None)
    if phase is PodPhase.UNGATED:
        return UNGATED
    if phase is PodPhase.GATED:
        return GATED
    return RELEASED if backlog.takes_part(pod) else OTHERS


def terms_of(case: Case, policy: Policy, most: int) -> list[NodeTerms]:
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
    # 4. Say what it would strand there: `filter` and `prioritize` go by that first.
    rows = np.array(best, dtype=np.intp)
    more = Ranker(Placement()).stranded(order.snapshot, case.pod, rows).tolist()
    has_devices = len(order.snapshot.mix.count) > 0
    return [
        NodeTerms(
            name=layout.names[row],
            fits=bool(fits[row]),
            allowed=bool(case.allowed[row]),
            alignment=float(aligned[row]),
            short=_amounts(case, short[row]),
            remote=rated[row].remote if row in rated else None,
            work=rated[row].work if row in rated else None,
            score=rated[row].score if row in rated else None,
            level=level[row],
            order=rated[row].order if row in rated else None,
            strands=strands if has_devices and fits[row] else None,
        )
        for row, strands in zip(best, more, strict=True)
    ]


def _amounts(case: Case, short: Floats) -> Amounts:
    """Return what a node has too little of [R], by dimension; what no node advertises by its own name."""
    axis, demand = case.order.snapshot.layout.axis, case.pod.demand
    amounts = {axis[d]: float(short[d]) for d in np.flatnonzero(short > 0)}
    if amounts.pop(UNADVERTISED, 0.0):
        amounts |= {name: demand[name] for name in case.order.snapshot.layout.unadvertised(demand)}
    return amounts


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
    refusal: Refusal | None = None,
    *,
    waits_known: bool = True,
    most_nodes: int = MOST_NODES,
    preempted: str = "",
    ended: str = "",
    stays: str = "",
    new_pods: NewPods | None = None,
    idle: Mapping[str, str] | str | None = None,
) -> Explanation:
    """Return all that there is to say of a pod; `change` (`advice.changes_for`) is what would have to change.

    `refusal` is kube-scheduler's, None where it has not refused the pod. `waits_known` is False where the plan did not
    know how long jobs have waited for locality. At most `most_nodes` nodes are rated. `preempted` is the event of its
    preemption, `ended` what its status says of its end, `stays` that of a change that was refused. `new_pods` says
    whether these are held, None: the order is not auto. `idle` says by class why pods find no idle room, or why that is
    not known; None: no pod is to use any.
    """
    case = case_of(order, pod)
    pod, state = case.pod, state_of(pod, order.backlog)
    share, fair = order.plan_input.usage.by_queue().get(pod.identity.queue, (None, None))
    rated = state in (*WAITING, RELEASED) and not pod.opportunistic  # that would fit by what it counts, so anywhere
    refused = refusal if state in (UNGATED, RELEASED, OTHERS) else None
    placed = order.places(pod)
    node, level = pod.node or (placed[1] if placed else pod.nominated), _levels(case)
    layout, waiting = order.snapshot.layout, order.plan_input.waiting
    node_row, job_row, owed = layout.rows.get(node or ""), _job_row(case), None
    if job_row is not None:
        owed = float(owed_to_jobs(policy, order.snapshot, waiting, order.carried)[job_row])
    return Explanation(
        pod=pod.full_name,
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
        rank=dag_rank(policy, waiting, case.row) if case.row >= 0 and state in WAITING else None,
        reason=order.why.get(pod.uid) if state in WAITING else None,
        position=position_of(case, policy) if state in WAITING else None,
        node=node,
        nominated=pod.awaited if state in (UNGATED, RELEASED) else pod.promised or pod.nominated,
        ours=(pod.promised == pod.node) if pod.node and pod.promised else None,
        refusal=refused.text if refused else "",
        refused_seconds=max(order.now - refused.since, 0.0) if refused and refused.since is not None else None,
        nodes=terms_of(case, policy, most_nodes) if rated and len(layout.names) else (),
        use=use_of(order, pod.node) if pod.node else {},
        change=change,
        problem=pod.warning,
        preferred=[name for name, near in zip(layout.names, level, strict=True) if near == NODE][:MOST_NODES],
        level=level[node_row] if node_row is not None else "",
        wait=_wait_left(case) if state in WAITING and waits_known else None,
        running_as=running_as(pod),
        regular_requests=regular_requests(pod),
        opportunistic_share=order.plan_input.usage.opportunistic_share({pod.identity.queue}),
        preempted=preempted,
        ended=ended,
        stays=stays,
        no_idle=_no_idle(case, idle) if state == HELD else "",
        new_pods=_new_pods(new_pods, pod) if new_pods and state in WAITING else "",
        leaving=pod.leaving,
    )


def _no_idle(case: Case, idle: Mapping[str, str] | str | None) -> str:
    """Return why a held pod finds no idle room; empty where it may not use any, or is about to."""
    if idle is None or case.task_class is None or case.pod.may_run == NEVER:
        return ""
    return f"only control knows: {idle}" if isinstance(idle, str) else idle.get(case.task_class.name, "")


def _new_pods(new_pods: NewPods, pod: Pod) -> str:
    own = of_this_one(new_pods, pod)
    return in_words(new_pods) + (f"; {own}" if own else "")


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
    lacks = dominant_shares(case.short, case.order.snapshot.layout.capacity)
    return np.where(case.large_enough, lacks, np.inf)
