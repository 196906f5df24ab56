"""What `dovetail explain pod` prints for people."""

import math
from collections.abc import Sequence

from extender.app.inspection.page import NARROW, Page
from extender.control.plan_input.preferred_nodes import words_of
from extender.explain.amounts import amount, in_words, percent, seconds
from extender.explain.pod import (
    BOUND,
    FAILED,
    FINISHED,
    GATED,
    HELD,
    MOST_NODES,
    OTHERS,
    RELEASED,
    UNGATED,
    WAITING,
    Explanation,
    NodeTerms,
)
from extender.explain.position import Position
from extender.explain.running_as import OPPORTUNISTIC, PROMOTED
from extender.planner import WaitLeft
from extender.words import many

_LABEL = 14
_OVER = (FINISHED, FAILED)


def pod_text(pod: Explanation, page: Page = NARROW) -> str:
    """Return a pod's explanation: its state, labelled facts, what would have to change, and its nodes."""
    lines = [*page.wrapped(f"Pod {pod.pod}: {_state(pod)}", "", "  "), ""]
    for label, text in _facts(pod):
        lines += page.wrapped(text, f"{label:{_LABEL}}", " " * _LABEL)
    if pod.change:
        changes = (line for change in pod.change for line in page.wrapped(change, "  - ", "    "))
        lines += ["", "What would have to change", *changes]
    if pod.nodes:
        lines += ["", f"Best nodes as they are now ({_room(pod.nodes)})", _nodes(pod.nodes, page)]
    if pod.use:
        rows = [
            [name, amount(name, use.allocated), "no limit" if use.offered is None else amount(name, use.offered)]
            for name, use in pod.use.items()
        ]
        lines += ["", f"Node {pod.node}", page.table(["DIMENSION", "ALLOCATED", "OFFERED"], rows, right=(1, 2))]
    return "\n".join(lines)


def _state(pod: Explanation) -> str:
    waited = seconds(pod.waited_seconds)
    if pod.state == HELD:
        return f"held by our gate, for {waited}"
    if pod.state == GATED:
        return f"{pod.state}, for {waited}"
    if pod.state == UNGATED:
        return f"waits without a gate, for {waited}{_refused_for(pod)}"
    if pod.state == RELEASED:
        return f"released, waits for kube-scheduler, {waited} after its creation"
    if pod.state in (BOUND, *_OVER) and pod.node:
        gone = "" if pod.use or pod.state in _OVER else ", which is not there"
        leaving = ", being deleted" if pod.leaving else ""
        return f"{pod.state} {'to' if pod.state == BOUND else 'on'} node {pod.node}{gone}{leaving}"
    if pod.state == OTHERS:
        return f"{pod.state}: scheduler {pod.scheduler} decides{_refused_for(pod)}"
    return pod.state


def _refused_for(pod: Explanation) -> str:
    if not pod.refusal:
        return ""
    return ", refused" + ("" if pod.refused_seconds is None else f" for {seconds(pod.refused_seconds)}")


def _facts(pod: Explanation) -> list[tuple[str, str]]:
    """Return the labelled lines; those without text are left out."""
    facts = [
        ("Why it waits", f"{pod.reason.text} ({pod.reason.kind})" if pod.reason else _refusal(pod)),
        ("Refused", pod.refusal if pod.state == UNGATED else ""),
        ("Its wait", _wait(pod.wait) if pod.wait else ""),
        ("Position", _position(pod.position) if pod.position else ""),
        ("Would go to", f"node {pod.node}{_near(pod)}" if pod.state in WAITING and pod.node else ""),
        ("Near input", _preferred(pod)),
        ("Nominated", _nominated(pod)),
        ("Runs", _runs(pod)),
        ("Preempted", pod.preempted),
        ("Ended", pod.ended),
        ("Stays regular" if pod.state == HELD else "Not promoted", pod.stays),
        ("Idle room", pod.no_idle),
        ("New pods", pod.new_pods),
        ("Queue", _queue(pod)),
        ("Job", _job(pod)),
        ("Rank", _rank(pod)),
        ("Priority", str(pod.priority)),
        ("Demand", in_words(pod.demand)),
        ("Broken", pod.problem or ""),
    ]
    return [(label, text) for label, text in facts if text]


def _refusal(pod: Explanation) -> str:
    """Return why a released pod waits, or one that is not ours: what its scheduler said."""
    if pod.state != RELEASED:
        return pod.refusal if pod.state == OTHERS else ""
    return pod.refusal or (
        f"scheduler {pod.scheduler} has neither bound nor refused it yet: it may wait for a volume of the pod; where "
        "it does not run, or a ResourceClaim or PodGroup of the pod is not there, it never does"
    )


def _wait(wait: WaitLeft) -> str:
    passed = f"its job has been passed over for {_whole(wait.passed)} of {wait.seconds:g} s"
    if wait.stays:
        return f"{wait.beyond} in {_whole(wait.left)} s ({passed})"
    return f"{wait.beyond} in {_whole(wait.left)} s, if it is passed over all that time ({passed})"


def _whole(seconds: float) -> str:
    """Return seconds, without a part where there are several."""
    return f"{seconds:.0f}" if seconds >= 1 else f"{seconds:.1f}"


def _position(position: Position) -> str:
    before = f"{many(position.before, 'pod')} before it, {position.in_queue:,} of its queue"
    if position.placed:
        return f"{before}; this plan places it"
    if position.reached:
        return f"{before}, once there is room (as if all nodes were empty)"
    return f"at least {before}: as many as all nodes hold if they were empty"


def _nominated(pod: Explanation) -> str:
    if pod.ours is None:
        return f"to node {pod.nominated}" if pod.nominated and pod.state in (*WAITING, RELEASED) else ""
    return f"to node {pod.nominated}" + (", where it went" if pod.ours else ", but kube-scheduler chose another")


def _runs(pod: Explanation) -> str:
    """Return how an opportunistic pod runs, or one that was; nothing of others."""
    if pod.running_as == PROMOTED:
        return f"regular: it began on idle resources of node {pod.node}, and what it requests is its own there now"
    if pod.running_as != OPPORTUNISTIC:
        return ""
    requests = f"regular requests: {in_words(pod.regular_requests)}" if pod.regular_requests else "it never is regular"
    if pod.state in _OVER:
        return f"ran on idle resources{f' of node {pod.node}' if pod.node else ''}; {requests}"
    if pod.state == BOUND:
        return f"opportunistic: runs on idle resources of node {pod.node}, until others need them; {requests}"
    if pod.nominated:
        return f"opportunistic: waits to run on idle resources of node {pod.nominated}; {requests}"
    return f"opportunistic: waits for a node with idle resources; {requests}"


def _near(pod: Explanation) -> str:
    return f", {words_of(pod.level)}" if pod.level else ""


def _preferred(pod: Explanation) -> str:
    if not pod.preferred:
        return ""
    more = ", ..." if len(pod.preferred) >= MOST_NODES else ""
    runs = f"; it runs {words_of(pod.level)}" if pod.level and pod.state in (BOUND, *_OVER) else ""
    return f"on {', '.join(pod.preferred)}{more}{runs}"


def _queue(pod: Explanation) -> str:
    if not pod.queue or pod.share is None or pod.fair_share is None:
        return pod.queue
    idle = f", beside it {percent(pod.opportunistic_share)} opportunistic" if pod.opportunistic_share else ""
    return f"{pod.queue}: share {percent(pod.share)}, fair share {percent(pod.fair_share)}{idle}"


def _job(pod: Explanation) -> str:
    """Return a pod's job, what it has left, and how far it is from its fair share.

    One of which nothing can start, or end, has no work; one that has room and wants none has no fair share.
    """
    details = [f"{seconds(pod.work)} of the whole cluster left"] if pod.work else []
    if pod.owed is not None and math.isfinite(pod.owed):
        side = f"{percent(abs(pod.owed))} {'below' if pod.owed > 0 else 'above'}" if abs(pod.owed) >= 0.0005 else "at"
        details.append(f"{side} its fair share")
    return f"{pod.job}: {', '.join(details)}" if details else pod.job


def _rank(pod: Explanation) -> str:
    return "" if pod.rank is None else f"{pod.rank:.3f} in the order of its job's DAG (1: the first task)"


def _room(nodes: Sequence[NodeTerms]) -> str:
    fits = sum(node.fits for node in nodes)
    if not fits:
        return "none has room for it"
    if fits == len(nodes):
        return "all of these have room for it"
    return f"{fits} of these {'has' if fits == 1 else 'have'} room for it"


def _nodes(nodes: Sequence[NodeTerms], page: Page) -> str:
    near = any(node.level for node in nodes)
    stranding = any(node.strands is not None for node in nodes)
    ordered = any(node.order not in (None, 1.0) for node in nodes)
    rows = [
        [
            page.name(node.name),
            "yes" if node.fits else "no" if node.allowed else "barred",
            _term(node.score),
            _term(node.alignment),
            _term(node.remote),
            *([_term(node.order)] if ordered else []),
            _term(node.work),
            *([_term(node.strands)] if stranding else []),
            *([node.level or "-"] if near else []),
            in_words(node.short) if node.short else "-",
        ]
        for node in nodes
    ]
    terms = [
        "SCORE",
        "ALIGNMENT",
        "REMOTE",
        *(["ORDER"] if ordered else []),
        "WORK",
        *(["STRANDS"] if stranding else []),
    ]
    heads = ["NODE", "FITS", *terms, *(["NEAR"] if near else []), "SHORT OF"]
    return page.table(heads, rows, right=range(2, 2 + len(terms)))


def _term(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
