"""Whether queues get what they are promised: minimum shares, shares, reserved room, and the queues that pods name."""

from collections import Counter
from collections.abc import Iterator, Mapping

from extender.control.backlog.backlog import PodPhase
from extender.explain.amounts import percent, seconds
from extender.explain.findings import MOST_SHOWN, OK, PROBLEM, WARNING, Facts, Finding, Silent
from extender.explain.job_names import job_name
from extender.explain.planned_order import PlannedOrder
from extender.words import many

_PASSED_OVER_SECONDS = 60.0
_ROUNDING = 1e-9


def minimums(facts: Facts) -> Iterator[Finding]:
    """Say whether queues are promised more than there is."""
    if facts.order is None:
        return
    tree = facts.order.input_builder.tree
    if tree.scaled_down:
        declared = (name for name, queue in tree.declared.items() if queue.minimum)
        now = ", ".join(f"{name} {percent(tree.minimum(name))}" for name in declared)
        text = f"minimum shares exceed what is above them and were scaled down: {now}"
        yield Finding("minimum shares", WARNING, text, "make them add up to at most 1 among siblings")
    else:
        yield Finding("minimum shares", OK, "minimum shares add up to at most the cluster")


def shares(facts: Facts) -> Iterator[Finding]:
    """Say which queues wait below their share although there was room; for the others below it, what they wait for."""
    if facts.order is None:
        return
    passed = facts.passed_over if not isinstance(facts.passed_over, str) else {}
    wrong = sorted(name for name, lasted in passed.items() if lasted > _PASSED_OVER_SECONDS)
    for name in wrong:
        text = f"queue {name} has waited below its share for {seconds(passed[name])} while room that it could have used"
        advice = "this must not be: report it, with the settings and the log of `dovetail control` of that time"
        yield Finding("shares", PROBLEM, f"{text} went to queues above theirs", advice)
    if isinstance(facts.passed_over, str):
        text = f"cannot tell whether queues are passed over, which only `dovetail control` knows: {facts.passed_over}"
        advice = "look at dovetail_queue_passed_over_seconds of `dovetail control`"
        if isinstance(facts.passed_over, Silent):
            text = f"`dovetail control` does not answer: {facts.passed_over}"
            advice = "look at whether it runs, and at its logs; or correct --control, where that was given"
        yield Finding("shares", PROBLEM if isinstance(facts.passed_over, Silent) else WARNING, text, advice)
    elif not wrong:
        notes = "; ".join(_below_share(facts.order))
        yield Finding("shares", OK, "no queue is passed over" + (f"; below their share: {notes}" if notes else ""))


def _below_share(order: PlannedOrder) -> Iterator[str]:
    """Yield which queues wait below their share, and what most of their pods wait for."""
    kinds: dict[str, Counter[str]] = {}
    for uid, reason in order.why.items():
        pod = order.backlog.pod(uid)
        if pod is not None:
            kinds.setdefault(pod.identity.queue, Counter())[reason.kind] += 1
    for name, (share, fair) in order.plan_input.usage.by_queue().items():
        if name in kinds and share < fair - _ROUNDING:
            (kind, _) = kinds[name].most_common(1)[0]
            yield f"{name} has {percent(share)} of {percent(fair)} (mostly {kind})"


def reserved_room(facts: Facts) -> Iterator[Finding]:
    """Say for whom room is kept idle, and how much."""
    if facts.reserved:
        names = {pod.identity.job: job_name(pod) for pod in facts.pods}
        nodes_of: dict[str, set[str]] = {}
        for name, nodes in facts.reserved.items():
            nodes_of.setdefault(_claimant(name, names), set()).update(nodes)
        claims = (f"{name} on {', '.join(sorted(nodes)[:3])}" for name, nodes in sorted(nodes_of.items()))
        text = f"{percent(facts.kept_idle)} of the cluster is free and reserved: for " + "; ".join(claims)
        yield Finding("reserved room", OK, text)


def _claimant(task_class: str, names: Mapping[str, str]) -> str:
    """Return whom the room is for that is reserved for a task class ("queue|job|..."); jobs are called by `names`."""
    queue, job, _ = f"{task_class}||".split("|", 2)
    return f"{names.get(job, job)} of queue {queue}"


def queue_names(facts: Facts) -> Iterator[Finding]:
    """Say which namespaces' pods name a queue that they cannot use."""
    if facts.order is None:
        return
    pods = (pod for phase in PodPhase for pod in facts.order.backlog.at(phase) if pod.queue_problem)
    refused = Counter((pod.namespace, pod.queue_problem) for pod in pods)
    for (namespace, problem), count in sorted(refused.items())[:MOST_SHOWN]:
        text = f"{many(count, 'pod')} of namespace {namespace}: {problem}"
        advice = "correct dovetail.dev/queue, or declare the queue, or add the namespace to queues[].namespaces"
        yield Finding("queue names", WARNING, text, advice)
    if len(refused) > MOST_SHOWN:
        yield Finding("queue names", WARNING, f"the same goes for {len(refused) - MOST_SHOWN} more", "see above")
    if not refused:
        yield Finding("queue names", OK, "every pod counts in the queue that it names")
