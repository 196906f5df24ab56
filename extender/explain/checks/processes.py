"""Whether our processes run and are asked: rights, the leader, the extender, its sample of nodes and its weight."""

from collections.abc import Iterator

from extender.explain.amounts import seconds
from extender.explain.findings import OK, PROBLEM, WARNING, Facts, Finding, Level, Silent, why_unled
from extender.words import many

_ALL_NODES_BELOW = 100
"""kube-scheduler looks at all nodes where there are no more than so many."""
_FEW_FAILED = 0.01
"""So small a part of the filter calls may fail, as while caches fill: kube-scheduler tries these pods again."""


def rights(facts: Facts) -> Iterator[Finding]:
    """Say what could not be read, and so was not checked."""
    for name, why in sorted(facts.unread.items()):
        yield Finding("rights", WARNING, f"{name} cannot be read: {why}", "ask again with a user who may list them")


def leader(facts: Facts) -> Iterator[Finding]:
    """Say whether a replica of `dovetail control` acts."""
    lease, held = facts.lease, len(facts.held)
    worse: Level = PROBLEM if held else WARNING
    waits = f"; {many(held, 'pod')} held until one leads" if held else ""
    start = "start `dovetail control`, or look at its logs; `dovetail drain` lets all pods go"
    if isinstance(lease, str):
        yield Finding("leader", WARNING, f"cannot tell whether `dovetail control` leads: {lease}", "read the Lease")
    elif unled := why_unled(lease):
        yield Finding("leader", worse, f"{unled}{waits}", start)
    elif lease is not None:
        yield Finding("leader", OK, f"{lease.holder} leads, renewed {seconds(lease.age_seconds)} ago")


def extender(facts: Facts) -> Iterator[Finding]:
    """Say whether kube-scheduler asks the extender."""
    calls = facts.filter_calls
    if isinstance(calls, Silent):
        find = "look at whether it runs, and at its logs; or correct --extender, where that was given"
        yield Finding("extender", PROBLEM, f"`dovetail serve` does not answer: {calls}", find)
        return
    if isinstance(calls, str):
        ask = "give its address by --extender, after `kubectl port-forward` if need be"
        yield Finding("extender", WARNING, f"cannot tell whether kube-scheduler asks `dovetail serve`: {calls}", ask)
        return
    if calls.silent:
        yield Finding("extender", WARNING, f"some replicas do not answer: {calls.silent}", "look at their logs")
    if not calls.ready:
        yield Finding("extender", PROBLEM, f"{calls.source} is not ready", "look at its /readyz and its logs")
    if not calls.calls:
        since = (pod for pod in facts.pods if pod.node is not None and pod.created > calls.started)
        placed = sum(pod.scheduler in facts.schedulers for pod in since)
        level: Level = PROBLEM if placed else WARNING
        text = f"{calls.source} has not been asked since it started"
        text += f", though {many(placed, 'pod')} of our schedulerName came and got a node" if placed else ""
        yield Finding("extender", level, text, "check urlPrefix in the KubeSchedulerConfiguration's extenders")
    elif calls.failed:
        text = f"{calls.source}: {calls.failed:,} of {many(calls.calls, 'filter call')} failed since it started"
        few = calls.failed <= _FEW_FAILED * calls.calls
        yield Finding("extender", OK, text) if few else Finding("extender", WARNING, text, "look at its logs")
    else:
        yield Finding("extender", OK, f"{calls.source} has answered {many(calls.calls, 'filter call')}")


def sample(facts: Facts) -> Iterator[Finding]:
    """Say about how many nodes the extender is asked."""
    calls = facts.filter_calls
    if isinstance(calls, str) or not calls.calls:
        return
    if not calls.samples:
        yield Finding("sample", OK, "only nominated nodes have been asked about, one at a time")
        return
    mean = calls.sampled / calls.samples
    text = f"{mean:,.0f} of {many(calls.nodes, 'node')} a call"
    sampled = calls.nodes > _ALL_NODES_BELOW and mean < 0.9 * calls.nodes
    choosy = facts.stated.waits_nearby or any(pod.inputs or pod.prefers for pod in facts.pods if pod.waits)
    if sampled and choosy and facts.stated.order != "gates":
        advice = (
            "percentageOfNodesToScore: 100 asks about all; gates do without, as a held pod is nominated for its node"
        )
        text = f"asked about {text}: where a node near their input is not among them, pods without a gate start farther"
        text += " away, or are tried again as far as they wait for that"
        yield Finding("sample", WARNING, text, advice)
    elif sampled:
        yield Finding("sample", OK, f"asked about {text}; the best of these gets the pod, unless it was held")
    else:
        yield Finding("sample", OK, f"asked about {text}")


def weight(facts: Facts) -> Iterator[Finding]:
    """Say what our score counts beside kube-scheduler's own."""
    configuration = facts.configuration
    if isinstance(configuration, str):
        find = "look at extenders[].weight in the configuration that kube-scheduler runs with"
        yield Finding("weight", WARNING, f"cannot tell the extender's weight: {configuration}", find)
    elif configuration.weight < 1:
        text = f"the extender's weight is {configuration.weight} ({configuration.name})"
        yield Finding("weight", PROBLEM, text, "make it 1 or more")
    else:
        points = f"up to {100 * configuration.weight} points of a node's score ({configuration.name})"
        if facts.stated.chooses:
            points += ", for pods whose node filter leaves to kube-scheduler"
        yield Finding("weight", OK, f"weight {configuration.weight}: {points}")
