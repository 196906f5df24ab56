"""What may be wrong with an installation, found from what could be read of it. `facts_of` the caller gathers; pure.

Each check returns one finding or several: fine, a warning, or a problem, and what to do. What could not be read is a
warning that says how to find out, never taken for fine.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from extender.cluster.model import Node, Pod
from extender.cluster.resources import IO_DIMENSIONS
from extender.control.backlog.backlog import PodPhase
from extender.control.queues.fair_shares import shares_of
from extender.explain.amounts import percent, seconds
from extender.explain.planned_order import PlannedOrder
from extender.explain.wait_reasons import PACE

Level = Literal["ok", "warning", "problem"]
OK: Level = "ok"
WARNING: Level = "warning"
PROBLEM: Level = "problem"

DEFAULT_SCHEDULER = "default-scheduler"
_ALL_NODES_BELOW = 100
"""kube-scheduler looks at all nodes where there are no more than so many."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; `advice` what to do, empty where there is nothing."""

    check: str
    level: Level
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Lead:
    """The Lease that `dovetail control` leads by: its holder (empty: nobody), the age of its renewal, and its time."""

    name: str
    holder: str
    age_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Called:
    """What `dovetail serve` says of itself: filter calls, those that failed, nodes that it knows.

    `samples` are the calls that asked about more than one node, `sampled` the nodes of all these.
    """

    source: str
    ready: bool
    nodes: int
    calls: int
    failed: int
    samples: int
    sampled: int


@dataclass(frozen=True, slots=True)
class Told:
    """What the KubeSchedulerConfiguration says: the extender's weight, percentageOfNodesToScore (0: the default)."""

    name: str
    weight: int
    percentage: int


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time that runs while pods of an owner are held."""

    owner: str
    field: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Facts:
    """What could be read. Where a value is a string, it says why it could not; `unread` does so for lists.

    `later` is the order a few seconds after `view`, by which is seen whether anything moves. `deadlines` by owner UID,
    `leases` the names of all Leases. `passed_over` says for how many seconds queues below their share have waited while
    room that they could have used went to others. `reserved` says on which nodes room is reserved, by class;
    `kept_idle` is the part of the cluster that is free there.
    """

    schedulers: Sequence[str]
    lead: Lead | str | None
    called: Called | str
    told: Told | str
    view: PlannedOrder | None = None
    later: PlannedOrder | None = None
    pods: Sequence[Pod] = ()
    nodes: Sequence[Node] = ()
    deadlines: Mapping[str, Deadline] = field(default_factory=dict)
    leases: frozenset[str] = frozenset()
    unread: Mapping[str, str] = field(default_factory=dict)
    passed_over: Mapping[str, float] | str = field(default_factory=dict)
    reserved: Mapping[str, Sequence[str]] = field(default_factory=dict)
    kept_idle: float = 0.0

    @property
    def held(self) -> list[Pod]:
        """The pods that our gate holds."""
        return [pod for pod in self.pods if pod.held and pod.waits]


def findings(facts: Facts) -> list[Finding]:
    """Return what all checks found, in their order."""
    return [finding for check in CHECKS for finding in check(facts)]


def rights(facts: Facts) -> Iterator[Finding]:
    """Say what could not be read, and so was not checked."""
    for name, why in sorted(facts.unread.items()):
        yield Finding("rights", WARNING, f"{name} cannot be read: {why}", "ask again with a user who may list them")


def leader(facts: Facts) -> Iterator[Finding]:
    """Say whether a replica of `dovetail control` acts."""
    lead, held = facts.lead, len(facts.held)
    worse: Level = PROBLEM if held else WARNING
    waits = f"; {_count(held, 'pod')} held until one leads" if held else ""
    start = "start `dovetail control`, or look at its logs; `dovetail drain` lets all pods go"
    if isinstance(lead, str):
        yield Finding("leader", WARNING, f"cannot tell whether `dovetail control` leads: {lead}", "read the Lease")
    elif lead is None:
        yield Finding("leader", worse, f"no Lease: `dovetail control` has never led here{waits}", start)
    elif not lead.holder:
        yield Finding("leader", worse, f"nobody holds the Lease {lead.name}{waits}", start)
    elif lead.age_seconds > lead.seconds:
        old = f"Lease {lead.name} of {lead.holder} was renewed {seconds(lead.age_seconds)} ago, it lasts"
        yield Finding("leader", worse, f"{old} {seconds(lead.seconds)}{waits}", start)
    else:
        yield Finding("leader", OK, f"{lead.holder} leads, renewed {seconds(lead.age_seconds)} ago")


def extender(facts: Facts) -> Iterator[Finding]:
    """Say whether kube-scheduler asks the extender."""
    called = facts.called
    if isinstance(called, str):
        ask = "give its address by --extender, after `kubectl port-forward` if need be"
        yield Finding("extender", WARNING, f"cannot tell whether kube-scheduler asks `dovetail serve`: {called}", ask)
        return
    if not called.ready:
        yield Finding("extender", PROBLEM, f"{called.source} is not ready", "look at its /readyz and its logs")
    ours = sum(pod.node is not None and pod.scheduler in facts.schedulers for pod in facts.pods)
    if not called.calls:
        level: Level = PROBLEM if ours else WARNING
        text = f"{called.source} has not been asked since it started"
        text += f", though {_count(ours, 'pod')} of our schedulerName got a node" if ours else ""
        yield Finding("extender", level, text, "check urlPrefix in the KubeSchedulerConfiguration's extenders")
    elif called.failed:
        text = f"{called.source}: {called.failed} of {called.calls} filter calls failed"
        yield Finding("extender", WARNING, text, "look at its logs")
    else:
        yield Finding("extender", OK, f"{called.source} has answered {_count(called.calls, 'filter call')}")


def sample(facts: Facts) -> Iterator[Finding]:
    """Say about how many nodes the extender is asked."""
    called, told = facts.called, facts.told
    if isinstance(called, str):
        return
    if not called.samples:
        yield Finding("sample", OK, "only nominated nodes have been asked about, one at a time")
        return
    mean = called.sampled / called.samples
    text = f"{mean:.0f} of {_count(called.nodes, 'node')} in the mean of {_count(called.samples, 'call')}"
    text += " that asked about more than one"
    sampled = called.nodes > _ALL_NODES_BELOW and mean < 0.9 * called.nodes
    if sampled and not isinstance(told, str) and told.percentage != 100:
        advice = (
            "the best node is often not among them: percentageOfNodesToScore: 100, or gates, by which it is nominated"
        )
        yield Finding("sample", WARNING, f"the sample is {text}", advice)
    else:
        yield Finding("sample", OK, f"asked about {text}")


def weight(facts: Facts) -> Iterator[Finding]:
    """Say what our score counts beside kube-scheduler's own."""
    told = facts.told
    if isinstance(told, str):
        find = "look at extenders[].weight in the configuration that kube-scheduler runs with"
        yield Finding("weight", WARNING, f"cannot tell the extender's weight: {told}", find)
    elif told.weight < 1:
        yield Finding("weight", PROBLEM, f"the extender's weight is {told.weight} ({told.name})", "make it 1 or more")
    else:
        text = f"weight {told.weight}: up to {100 * told.weight} points of a node's score ({told.name})"
        yield Finding("weight", OK, text)


def gates(facts: Facts) -> Iterator[Finding]:
    """Say whether pods that the plan places now are released."""
    now, later = facts.view, facts.later
    if now is None:
        return
    due = _due(now)
    if not due:
        yield Finding("gates", OK, f"{_count(len(facts.held), 'pod')} held, none of which fits now in its turn")
        return
    if later is None:
        return
    stuck = due & _due(later)
    if stuck != due or not stuck:
        yield Finding("gates", OK, f"gates are being released: {len(due - stuck)} of {len(due)} due went on meanwhile")
        return
    oldest = max(later.now - pod.created for pod in facts.pods if pod.uid in stuck)
    text = f"{_count(len(stuck), 'pod')} would fit in their turn, and none was released in {later.now - now.now:.0f} s;"
    text += f" the oldest has waited {seconds(oldest)}"
    yield Finding(
        "gates", PROBLEM, text, "see who leads, the logs of `dovetail control`, and pods released but not bound"
    )


def strangers(facts: Facts) -> Iterator[Finding]:
    """Say which pods name a scheduler that nobody has seen here."""
    known = {DEFAULT_SCHEDULER, *facts.schedulers} | {pod.scheduler for pod in facts.pods if pod.node is not None}
    waiting: dict[str, int] = {}
    for pod in facts.pods:
        if pod.waits and pod.scheduler and pod.scheduler not in known | facts.leases:
            waiting[pod.scheduler] = waiting.get(pod.scheduler, 0) + 1
    for name, count in sorted(waiting.items()):
        text = (
            f"no pod with schedulerName {name} has a node here, no Lease has that name; {_count(count, 'pod')} waiting"
        )
        yield Finding("schedulers", WARNING, text, "run that scheduler, or correct spec.schedulerName")
    if not waiting and "pods" not in facts.unread:
        yield Finding("schedulers", OK, "every waiting pod names a scheduler that is known here")


def deadlines(facts: Facts) -> Iterator[Finding]:
    """Say what runs out while pods are held."""
    held: dict[str, int] = {}
    for pod in facts.held:
        if pod.owner in facts.deadlines:
            held[pod.owner] = held.get(pod.owner, 0) + 1
    for uid in sorted(held, key=lambda uid: facts.deadlines[uid].owner)[:_MOST_SHOWN]:
        it = facts.deadlines[uid]
        text = f"{it.field} ({seconds(it.seconds)}) of {it.owner} runs; held: {_count(held[uid], 'pod')}"
        yield Finding("deadlines", WARNING, text, "leave it out, make it longer, or do not have these pods held")
    if len(held) > _MOST_SHOWN:
        yield Finding("deadlines", WARNING, f"the same goes for {len(held) - _MOST_SHOWN} owners more", "see above")
    if not held and not {"jobs", "replicasets", "deployments"} & facts.unread.keys():
        yield Finding("deadlines", OK, "no deadline of a Job or Deployment runs while its pods are held")


def minimums(facts: Facts) -> Iterator[Finding]:
    """Say whether queues are promised more than there is."""
    if facts.view is None:
        return
    tree = facts.view.input_builder.tree
    if tree.scaled_down:
        now = ", ".join(f"{name} {percent(tree.minimum(name))}" for name, it in tree.declared.items() if it.minimum)
        text = f"minimum shares exceed what is above them and were scaled down: {now}"
        yield Finding("minimum shares", WARNING, text, "make them add up to at most 1 among siblings")
    else:
        yield Finding("minimum shares", OK, "minimum shares add up to at most the cluster")


def shares(facts: Facts) -> Iterator[Finding]:
    """Say which queues wait below their share although there was room for them; of the others that wait so, why."""
    if facts.view is None:
        return
    passed = facts.passed_over if not isinstance(facts.passed_over, str) else {}
    wrong = sorted(name for name, lasted in passed.items() if lasted > _PASSED_OVER_SECONDS)
    for name in wrong:
        text = f"queue {name} has waited below its share for {seconds(passed[name])} while room that it could have used"
        advice = "this must not be: report it, with the settings and the log of `dovetail control` of that time"
        yield Finding("shares", PROBLEM, f"{text} went to queues above theirs", advice)
    if isinstance(facts.passed_over, str):
        text = f"cannot tell whether queues are passed over: {facts.passed_over}"
        yield Finding("shares", WARNING, text, "look at dovetail_queue_passed_over_seconds of `dovetail control`")
    elif not wrong:
        notes = "; ".join(_below_share(facts.view))
        yield Finding("shares", OK, "no queue is passed over" + (f"; below their share: {notes}" if notes else ""))


def _below_share(found: PlannedOrder) -> Iterator[str]:
    """Yield which queues wait below their share, and what most of their pods wait for."""
    kinds: dict[str, Counter[str]] = {}
    for uid, reason in found.why.items():
        pod = found.backlog.pod(uid)
        if pod is not None:
            kinds.setdefault(pod.identity.queue, Counter())[reason.kind] += 1
    for name, (share, fair) in shares_of(found.made, found.snapshot).items():
        if name in kinds and share < fair - _ROUNDING:
            (kind, _) = kinds[name].most_common(1)[0]
            yield f"{name} has {percent(share)} of {percent(fair)} (mostly {kind})"


def reserved_room(facts: Facts) -> Iterator[Finding]:
    """Say for whom room is kept idle, and how much."""
    if facts.reserved:
        named = (f"{name.strip('|')} on {', '.join(nodes[:3])}" for name, nodes in sorted(facts.reserved.items()))
        text = f"{percent(facts.kept_idle)} of the cluster is free and reserved: for " + "; ".join(named)
        yield Finding("reserved room", OK, text)


def queue_names(facts: Facts) -> Iterator[Finding]:
    """Say which namespaces' pods name a queue that they cannot use."""
    if facts.view is None:
        return
    there = (pod for stage in PodPhase for pod in facts.view.backlog.at(stage) if pod.queue_problem)
    refused = Counter((pod.namespace, pod.queue_problem) for pod in there)
    for (namespace, problem), count in sorted(refused.items())[:_MOST_SHOWN]:
        text = f"{_count(count, 'pod')} of namespace {namespace}: {problem}"
        advice = "correct dovetail.dev/queue, or declare the queue, or add the namespace to queues[].namespaces"
        yield Finding("queue names", WARNING, text, advice)
    if len(refused) > _MOST_SHOWN:
        yield Finding("queue names", WARNING, f"the same goes for {len(refused) - _MOST_SHOWN} more", "see above")
    if not refused:
        yield Finding("queue names", OK, "every pod counts in the queue that it names")


def capacities(facts: Facts) -> Iterator[Finding]:
    """Say which nodes declare neither disk nor network."""
    if "nodes" in facts.unread:
        return
    if not facts.nodes:
        yield Finding("capacities", WARNING, "there are no nodes")
        return
    bare = sorted(node.name for node in facts.nodes if not node.allocatable.keys() & set(IO_DIMENSIONS))
    if bare:
        text = f"{len(bare)} of {_count(len(facts.nodes), 'node')} declare no disk or network: {_few(bare)}"
        fix = "annotate them with dovetail.dev/capacity, or set cluster.capacities; until then these are not limited"
        yield Finding("capacities", WARNING, text, fix)
    else:
        yield Finding("capacities", OK, "every node declares disk or network")


def annotations(facts: Facts) -> Iterator[Finding]:
    """Say which annotations of ours cannot be understood."""
    broken = [(f"node {node.name}", node.problem) for node in facts.nodes if node.problem]
    broken += [(f"pod {pod.namespace}/{pod.name}", pod.problem) for pod in facts.pods if pod.problem]
    for name, problem in sorted(broken)[:_MOST_SHOWN]:
        yield Finding("annotations", WARNING, f"{name}: {problem}", "correct it; until then it is not counted")
    if len(broken) > _MOST_SHOWN:
        yield Finding(
            "annotations", WARNING, f"{len(broken) - _MOST_SHOWN} more are broken", "see events BrokenAnnotation"
        )
    if not broken and not {"nodes", "pods"} & facts.unread.keys():
        yield Finding("annotations", OK, "all annotations of ours can be understood")


CHECKS: Sequence[Callable[[Facts], Iterator[Finding]]] = (
    rights,
    leader,
    extender,
    sample,
    weight,
    gates,
    strangers,
    deadlines,
    minimums,
    shares,
    reserved_room,
    queue_names,
    capacities,
    annotations,
)
_MOST_SHOWN = 5
_PASSED_OVER_SECONDS = 60.0
_ROUNDING = 1e-9


def due_now(found: PlannedOrder) -> bool:
    """Say whether the plan places pods that are still held, so that a second look would tell whether anything moves."""
    return bool(_due(found))


def _due(found: PlannedOrder) -> set[str]:
    """Return the held pods that the plan places, or that are nominated and only to be let go."""
    return {uid for uid, reason in found.why.items() if reason.kind in (PACE, "releasing")}


def _count(number: int, of: str) -> str:
    return f"{number:,} {of}{'' if number == 1 else 's'}"


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown}, ..." if len(names) > 3 else shown
