"""Whether pods wait for something that will never come: gates, schedulers that nobody runs, deadlines that run out."""

from collections import Counter
from collections.abc import Iterator

from extender.control.backlog.backlog import PodPhase
from extender.explain.amounts import seconds
from extender.explain.findings import MOST_SHOWN, OK, PROBLEM, WARNING, Facts, Finding
from extender.explain.planned_order import PlannedOrder
from extender.explain.wait_reasons import IS_RESTING, PACE, REFUSED, RELEASING, TRYING
from extender.words import many

DEFAULT_SCHEDULER = "default-scheduler"


def gates(facts: Facts) -> Iterator[Finding]:
    """Say whether pods that the plan places now are released."""
    now, later = facts.order, facts.later
    if now is None:
        return
    due = _due(now)
    refused = Counter(why.text for pod in facts.held if (why := now.why.get(pod.uid)) and why.kind == REFUSED)
    for why_refused, count in refused.most_common(MOST_SHOWN):
        advice = "`dovetail explain pod` says what that one was refused for; "
        advice += "unless that was room, correct or delete it, and those like it"
        yield Finding("gates", WARNING, f"{many(count, 'pod')} held: {why_refused}", advice)
    if not due:
        others = len(facts.held) - refused.total()
        text = f"{many(others, 'pod')} held, none of which fits now in its turn" if others else "no pod is held"
        if others or not refused:
            yield Finding("gates", OK, text)
        return
    if later is None:
        return
    stuck = due & _due(later)
    if stuck != due or not stuck:
        yield Finding("gates", OK, f"gates are being released: {len(due - stuck)} of {len(due)} due went on meanwhile")
        return
    oldest = max(later.now - pod.created for pod in facts.pods if pod.uid in stuck)
    text = f"{many(len(stuck), 'pod')} would fit in their turn, and none was released in {later.now - now.now:.0f} s;"
    text += f" the oldest has waited {seconds(oldest)}"
    yield Finding(
        "gates", PROBLEM, text, "see who leads, the logs of `dovetail control`, and pods released but not bound"
    )


def strangers(facts: Facts) -> Iterator[Finding]:
    """Say which pods name a scheduler that nobody has seen here."""
    seen = {pod.scheduler for pod in facts.pods if pod.node is not None}
    known_names = {DEFAULT_SCHEDULER, *facts.schedulers, *facts.leases, *seen}
    schedulers = (pod.scheduler for pod in facts.pods if pod.waits)
    waiting = Counter(name for name in schedulers if name and name not in known_names)
    for name, count in sorted(waiting.items()):
        text = f"no pod with schedulerName {name} has a node here, no Lease has that name; {many(count, 'pod')} waiting"
        yield Finding("schedulers", WARNING, text, "run that scheduler, or correct spec.schedulerName")
    if not waiting and "pods" not in facts.unread:
        yield Finding("schedulers", OK, "every waiting pod names a scheduler that is known here")


def deadlines(facts: Facts) -> Iterator[Finding]:
    """Say what runs out while pods are held."""
    held = Counter(facts.deadlines[pod.owner] for pod in facts.held if pod.owner in facts.deadlines)
    for deadline in sorted(held, key=lambda deadline: deadline.owner)[:MOST_SHOWN]:
        runs = f"{deadline.field} ({seconds(deadline.seconds)}) of {deadline.owner} runs"
        text = f"{runs}; held: {many(held[deadline], 'pod')}"
        yield Finding("deadlines", WARNING, text, "leave it out, make it longer, or do not have these pods held")
    if len(held) > MOST_SHOWN:
        others = many(len(held) - MOST_SHOWN, "more owner")
        yield Finding("deadlines", WARNING, f"the same goes for {others}", "see above")
    if not held and not {"jobs", "replicasets", "deployments"} & facts.unread.keys():
        yield Finding("deadlines", OK, "no deadline of a Job or Deployment runs while its pods are held")


def turns(facts: Facts) -> Iterator[Finding]:
    """Say whether pods without a gate whose turn has come go on (order: auto, filter)."""
    now, later = facts.order, facts.later
    if now is None or facts.stated.order == "gates":
        return
    due = _tried(now)
    if not due:
        waiting = len(now.backlog.at(PodPhase.UNGATED))
        text = f"{many(waiting, 'pod')} without a gate waiting, none of which fits now in its turn"
        yield Finding("turns", OK, text if waiting else "no pod without a gate waits")
        return
    if later is None:
        return
    stuck = due & _tried(later)
    if stuck != due:
        text = f"pods without a gate go on: {len(due - stuck)} of {len(due)} whose turn it was did meanwhile"
        yield Finding("turns", OK, text)
        return
    text = f"{many(len(stuck), 'pod')} without a gate would fit in their turn, and none got a node in"
    advice = (
        "see whether kube-scheduler runs, its events about these pods, and who leads: `dovetail control` wakes them"
    )
    yield Finding("turns", WARNING, f"{text} {later.now - now.now:.0f} s", advice)


def silence(facts: Facts) -> Iterator[Finding]:
    """Say where kube-scheduler answers about none of the pods that it may schedule."""
    if facts.order is None or facts.later is None:
        return
    silent = _unanswered(facts.order)
    if not silent or silent != silent & _unanswered(facts.later):
        return
    passed = facts.later.now - facts.order.now
    text = f"{many(len(silent), 'pod')} may be scheduled, and kube-scheduler neither bound nor refused any in"
    advice = "see whether kube-scheduler runs; it never tries a pod whose ResourceClaim or PodGroup is not there"
    yield Finding("kube-scheduler", WARNING, f"{text} {passed:.0f} s", advice)


def due_now(order: PlannedOrder) -> bool:
    """Say whether a second look would tell whether anything moves: some pods are to go on, or to be answered about."""
    return bool(_due(order) or _tried(order) or _unanswered(order))


def _unanswered(order: PlannedOrder) -> set[str]:
    """Return the pods without a gate that kube-scheduler has not refused; it waits for volumes without a word."""
    backlog = order.backlog
    pods = (*backlog.at(PodPhase.PENDING), *backlog.at(PodPhase.UNGATED))
    return {pod.uid for pod in pods if backlog.is_ours(pod) and not (pod.tried_in_vain or pod.claims or pod.leaving)}


def _due(order: PlannedOrder) -> set[str]:
    """Return the held pods that the plan places, or that are nominated and only to be let go."""
    return {uid for uid, reason in order.why.items() if reason.kind in (PACE, RELEASING)}


def _tried(order: PlannedOrder) -> set[str]:
    """Return the pods without a gate that the plan places, not those that rest."""
    return {uid for uid, reason in order.why.items() if reason.kind == TRYING and reason != IS_RESTING}
