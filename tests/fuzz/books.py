"""The ledger and the backlog: whatever is heard, in whatever order, the books are those of a fresh list."""

from collections import Counter
from dataclasses import replace

import numpy as np

from extender.cluster.events import NodeGone, NodeSeen, NodesListed, PodGone, PodSeen, PodsListed
from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import HOLD_GATE, Node, Pod
from extender.cluster.pods.identity import Identity
from extender.control.backlog.backlog import Backlog, PodPhase
from tests.fuzz.broken import require

_NODES = ("a", "b", "c", "d")
_GPU = "a.b/gpu"
_IN_FLIGHT_SECONDS = 10.0


def ledger(random, size):
    """Any history of events, flights and looks ends in the same books as its end alone; old looks never change."""
    there, lived = _There(random), Ledger(in_flight_seconds=_IN_FLIGHT_SECONDS)
    looks = []
    for _ in range(4 + 4 * size):
        kind = random.random()
        if kind < 0.65:
            lived.apply(there.next())
        elif kind < 0.75:
            look = lived.snapshot(0.0)
            looks.append((look, _contents(look)))
        elif kind < 0.9:
            _fly(random, lived, there.pod())
        elif kind < 0.95:
            lived.promise(there.pod(), random.choice((*_NODES, "gone", None)), 0.0, preempts=random.random() < 0.3)
        else:
            lived.forget(random.choice(there.uids))
    for uid in there.uids if random.random() < 0.5 else ():
        lived.forget(uid)
    later = 2 * _IN_FLIGHT_SECONDS
    for uid in lived.in_flight(later):  # every flight is over, but those that kube-scheduler is still binding
        known = there.pods[uid]
        require(known.nominated is not None, "a pod flies for too long", known)
        require(known.nominated != known.promised and not known.leaving, "a pod flies that is not bound", known)
        lived.forget(uid)
    fresh = Ledger(in_flight_seconds=_IN_FLIGHT_SECONDS)
    for event in there.listed():
        fresh.apply(event)
    _require_same(_contents(lived.snapshot(later)), _contents(fresh.snapshot(later)), "what is allocated where")
    _require_same(lived.counts(), fresh.counts(), "how many pods hold a node")
    _require_same(lived.least_priority(), fresh.least_priority(), "the least priority")
    _require_same(lived.below(5).tolist(), fresh.below(5).tolist(), "what lower priorities hold")
    for look, then in looks:
        _require_same(_contents(look), then, "an old look")


def forgotten(random, size):
    """A pod that takes off and is forgotten leaves no trace."""
    there, lived = _There(random), Ledger(in_flight_seconds=_IN_FLIGHT_SECONDS)
    for _ in range(2 + 2 * size):
        lived.apply(there.next())
    before = _contents(lived.snapshot(0.0))
    for number in range(random.randint(1, 3)):
        flying = replace(there.pod(), uid=f"flying{number}")
        _fly(random, lived, flying)
        lived.promise(replace(flying, uid="promised"), random.choice(_NODES), 0.0)
        lived.forget(flying.uid)
    lived.forget("promised")
    _require_same(_contents(lived.snapshot(0.0)), before, "what was there before a flight")


def shuffled(random, size):
    """News of different pods and nodes in another order, and twice, ends in the same books."""
    there, news = _There(random), {}
    for _ in range(4 + 4 * size):
        event = there.next()
        for one in [NodeSeen(node) for node in event.nodes] if isinstance(event, NodesListed) else [event]:
            if isinstance(one, PodsListed):
                continue
            news.setdefault(_subject(one), []).append(one)
    histories = []
    for _ in range(2):
        lived = Ledger(in_flight_seconds=_IN_FLIGHT_SECONDS)
        for event in _interleaved(random, news):
            for _ in range(random.choice((1, 1, 2))):
                lived.apply(event)
            if random.random() < 0.2:
                lived.snapshot(0.0)
        histories.append((_contents(lived.snapshot(0.0)), lived.counts()))
    _require_same(*histories, "the books after another order")


def backlog(random, size):
    """Any history ends in the same classes, with the same pods at the same stages, as its end alone."""
    there, by_filter = _There(random, foreign=False), random.random() < 0.3
    lived = Backlog(["dovetail"], by_filter=by_filter)
    for number in range(4 + 4 * size):
        lived.apply(there.next(), float(number))
        if random.random() < 0.1 and lived.classes():
            lived.take(random.choice(lived.classes()), float(number), number + 5.0)
        if random.random() < 0.1:
            lived.back_off(random.choice(there.uids), float(number))
    fresh = Backlog(["dovetail"], by_filter=by_filter)
    for event in there.listed():
        fresh.apply(event, 0.0)
    _require_same(lines(lived), lines(fresh), "who waits at which stage")
    _require_same(
        {name: len(job.classes) > 0 for name, job in lived.jobs.items()}, dict.fromkeys(fresh.jobs, True), "jobs"
    )
    there_ended = Counter(pod.identity.group for pod in there.pods.values() if pod.finished and not pod.failed)
    for group in ("default/g", "default/h"):
        for it in (lived, fresh):
            require(it.groups.ended(group) <= there_ended[group], f"more of {group} have ended than there are")
    for stage in PodPhase:
        _require_same(*({pod.uid for pod in it.at(stage)} for it in (lived, fresh)), f"who is at {stage}")
    lived.writes.expire(1e9)
    counts = [{of.name: (it.ready(of), it.coming()[of]) for of in it.classes()} for it in (lived, fresh)]
    _require_same(*counts, "how many are ready and on their way")
    books = [[{of.name: n for of, n in book.items()} for book in it.opportunistic()] for it in (lived, fresh)]
    _require_same(*books, "how many are opportunistic")


class _There:
    """What there is, and the news of it: true, late and doubled."""

    def __init__(self, random, *, foreign=True):
        """With `foreign` one pod is of another scheduler; a backlog remembers of those what no list says."""
        self.random, self.nodes, self.pods, self.version, self.foreign = random, {}, {}, 0, foreign
        self.uids = [f"p{number}" for number in range(random.randint(1, 6))]
        self.alike = {uid: self._identity() for uid in self.uids}

    def next(self):
        """Let something happen, and return what is heard."""
        random, kind = self.random, self.random.random()
        self.version += 1
        if kind < 0.2:
            node = self.node()
            self.nodes[node.name] = node
            return NodeSeen(node)
        if kind < 0.3:
            name = random.choice(_NODES)
            self.nodes.pop(name, None)
            return NodeGone(name)
        if kind < 0.65:
            pod = self.pod()
            self.pods[pod.uid] = pod
            return PodSeen(pod)
        if kind < 0.75:
            known = self.pods.get(random.choice(self.uids))
            if known is None or known.finished or known.leaving or known.scheduler != "dovetail":
                # the backlog has forgotten such a one, and cannot tell late news of it
                return PodGone("stranger")
            return PodSeen(replace(self.pod(known.uid), resource_version=known.resource_version - 1))
        if kind < 0.82:
            known = self.pods.get(random.choice(self.uids))
            return PodSeen(known) if known else PodGone("stranger")
        if kind < 0.92:
            uid = random.choice(self.uids)
            self.pods.pop(uid, None)
            return PodGone(uid)
        if kind < 0.96:
            some = random.sample(self.uids, random.randint(0, len(self.uids)))
            self.pods = {uid: self.pod(uid) for uid in some}
            return self.listed()[1]
        self.nodes = {name: self.node(name) for name in random.sample(_NODES, random.randint(0, 4))}
        return self.listed()[0]

    def listed(self):
        return [NodesListed(list(self.nodes.values())), PodsListed(list(self.pods.values()))]

    def node(self, name=None):
        random = self.random
        allocatable = {"cpu": 100.0, "memory": 50.0, "disk-read": 300.0, _GPU: 4.0}
        some = {dimension: amount for dimension, amount in allocatable.items() if random.random() < 0.7}
        return Node(name or random.choice(_NODES), some, unschedulable=random.random() < 0.2)

    def pod(self, uid=None):
        """Return a pod as it may be next: what has ended or has a node stays so, and gates only go."""
        random = self.random
        uid = uid or random.choice(self.uids)
        known = self.pods.get(uid)
        demand = {name: float(random.randint(1, 50)) for name in random.sample(("cpu", "memory", "disk-read", _GPU), 2)}
        holders = random.sample((*_NODES, "gone"), random.choice((0, 0, 1, 2)))
        if known is not None and known.node is not None:  # what a pod declares counts as when it got its node
            rates = {name: amount for name, amount in known.demand.items() if name == "disk-read"}
            demand = {name: amount for name, amount in demand.items() if name != "disk-read"} | rates
            holders = [name for name, _ in known.inputs]
        opportunistic = random.random() < 0.3
        if (
            opportunistic and known is not None and known.node is not None and known.opportunistic
        ):  # so does what it needs
            rest = {name: amount for name, amount in demand.items() if name not in ("cpu", "memory")}
            demand = rest | {name: amount for name, amount in known.demand.items() if name in ("cpu", "memory")}
        node = (known and known.node) or random.choice((None, None, *_NODES, "gone"))
        gates = [gate for gate in ((known.gates) if known else (HOLD_GATE, "other")) if random.random() < 0.6]
        gates = [] if node else gates
        nominated = random.choice((None, None, *_NODES))
        return Pod(
            uid,
            "default",
            uid,
            demand,
            node=node,
            nominated=nominated,
            promised=random.choice((None, nominated)),
            priority=random.choice((0, 0, 5, 9)),
            finished=bool(known and known.finished) or (node is not None and random.random() < 0.3),
            failed=known.failed if known and known.finished else random.random() < 0.1,
            leaving=bool(known and known.leaving) or random.random() < 0.1,
            gates=tuple(gates),
            scheduler="other" if uid == "p0" and self.foreign else "dovetail",
            identity=self.alike[uid],
            inputs=tuple((name, 1.0) for name in sorted(holders)),
            created=float(self.uids.index(uid)),
            resource_version=2 * self.version,
            opportunistic=opportunistic,
        )

    def _identity(self):
        random = self.random
        group = random.choice(("", "", "default/g", "default/h"))
        return Identity(random.choice(("j", "k")), "", random.choice(("q", "r")), group, random.randint(0, 3))


def _fly(random, lived, pod):
    look = lived.snapshot(0.0)
    marks = np.array([random.random() < 0.5 for _ in look.layout.names], dtype=np.bool_)
    lived.assume(pod, marks, look, 0.0, preempts=random.random() < 0.2)


def _contents(look):
    nominated = look.nominations
    rows = zip(
        nominated.uids,
        nominated.rows.tolist(),
        nominated.priorities.tolist(),
        nominated.demand.tolist(),
        nominated.given.tolist(),
        strict=True,
    )
    return (
        look.layout.names,
        look.layout.axis,
        look.layout.capacity.tolist(),
        look.allocated.tolist(),
        look.in_flight.tolist(),
        look.given.tolist(),
        look.opportunistic.uids,
        look.opportunistic.node.tolist(),
        look.opportunistic.demand.tolist(),
        sorted(rows),
    )


def lines(backlog):
    """Return who waits at which stage of which class."""
    stages = ((of.name, stage.name, sorted(of.pods[stage])) for of in backlog.classes() for stage in PodPhase)
    return sorted(line for line in stages if line[-1])


def _subject(event):
    match event:
        case NodeSeen(node):
            return node.name
        case NodeGone(name):
            return name
        case PodSeen(pod):
            return pod.uid
        case PodGone(uid):
            return uid
    raise TypeError(event)


def _interleaved(random, news):
    """Return the news of each subject in its order, and subjects in any."""
    left = {subject: iter(events) for subject, events in news.items()}
    while left:
        subject = random.choice(sorted(left))
        event = next(left[subject], None)
        if event is None:
            del left[subject]
        else:
            yield event


def _require_same(ours, theirs, what):
    require(ours == theirs, f"{what} differs", lambda: f"{ours} and {theirs}")
