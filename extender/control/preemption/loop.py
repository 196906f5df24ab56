"""The preemption loop: where opportunistic pods use what others need by now, some of them are evicted (UBIS, IV.C).

All that it goes by is what was measured. Where nothing was, or what there is cannot be trusted, nobody is evicted: the
kubelet's own eviction is the last resort. What it remembers (counts of samples, who stays off) is lost at a restart.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from extender.cluster.model import Pod
from extender.cluster.stays_off import StaysOff
from extender.cluster.usage import Usage
from extender.control.allowance import Allowance
from extender.control.backlog.task_classes import name_of
from extender.control.cluster_view import ClusterView
from extender.control.eviction_requests import EvictionBatch, EvictionRequests
from extender.control.idle_room.measured_use import MeasuredRows
from extender.control.preemption.choice import Choice, choices
from extender.control.preemption.eviction_history import EvictionHistory
from extender.control.preemption.held_back import HeldBack
from extender.control.preemption.overload import Limits, Overload
from extender.control.preemption.starved_pods import StarvedPods

log = structlog.get_logger()


class Listener(Protocol):
    """Who is told of what was done (metrics)."""

    def note_preemption(self, victim: Pod, resource: str, *, dry_run: bool) -> None:
        """Note an eviction for what a node had too little of; with `dry_run`, one that would have been."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How many evictions a minute at most: of one node, and in all; a second's worth at once, and at least one."""

    per_node: float = 60.0
    in_all: float = 600.0


@dataclass(frozen=True, slots=True)
class Terms:
    """When to preempt, how fast, and for how long a sample is good; with `dry_run` nobody is asked to go."""

    limits: Limits
    rates: Rates = Rates()
    stale_after: float = 60.0
    dry_run: bool = False


class Preemptor:
    """Evicts opportunistic pods of overloaded nodes. One thread: that of the release loop; requests run in others."""

    def __init__(
        self,
        cluster: ClusterView,
        usage: Callable[[], Usage],
        requests: EvictionRequests,
        listener: Listener,
        terms: Terms,
        stays_off: StaysOff,
        *,
        history: EvictionHistory | None = None,
        starved: StarvedPods | None = None,
    ) -> None:
        """Take what was measured last (`usage`), and who is told which classes were evicted, and from where.

        Without `starved` nobody is moved who gets next to nothing.
        """
        self.stays_off, self._history = stays_off, EvictionHistory() if history is None else history
        self._cluster, self._usage, self._requests, self._listener = cluster, usage, requests, listener
        self._terms = terms
        self._overload = Overload(terms.limits)
        self._measured = MeasuredRows(terms.stale_after)
        self._in_all, self._of_node = Allowance(terms.rates.in_all), dict[str, Allowance]()
        self._held_back, self._starved = HeldBack(), starved
        self._evicted: dict[str, str] = {}
        self._outcomes: deque[tuple[Choice, int]] = deque()

    def step(self, now: float) -> int:
        """Do what is due at `now`, in seconds since the epoch; return how many pods were asked to go."""
        # 1. Only the leader evicts.
        if not self._cluster.leads():
            return 0
        # 2. See who was refused; then what was measured, and who is there or asked to go.
        self._take_outcomes()
        usage, snapshot = self._usage(), self._cluster.snapshot()
        self._requests.expire()
        going, spared = self._requests.asked(), self._requests.spared()
        # 3. See who has gone, after all else: whoever goes from now on is in what was read. Older samples say nothing
        #    of their nodes any more.
        self._settle(now)
        # 4. Count new samples above the limits.
        measured = self._measured.at(snapshot.layout, usage, now)
        over = self._overload.look(measured)
        # 5. Choose who goes, and ask as far as the rates allow; those that the rates held back go on.
        found: list[Choice] = []
        if over.any() and len(snapshot.opportunistic.pods):
            found = choices(snapshot, over, usage, now, going=going, spared=spared)
        found += self._held_back.due(snapshot, measured, found, {*going, *spared})
        if self._starved is not None:
            found += self._starved.look(snapshot, measured, usage, now, out={*going, *spared}, found=found)
        return sum(self._ask(choice, now) for choice in found)

    def _settle(self, now: float) -> None:
        for node in self._of_node.keys() - self._cluster.snapshot().layout.rows.keys():
            del self._of_node[node]
        gone = [uid for uid in self._evicted if self._cluster.backlog.pod(uid) is None]
        for uid in gone:
            self._overload.settle(self._evicted.pop(uid), now)

    def make_way(self, choices: Sequence[Choice], now: float) -> bool:
        """Ask all of these victims to go, or none where the rates do not allow that; in a dry run tell it only."""
        count = sum(len(choice.victims) for choice in choices)
        counts = Counter[str]()
        for choice in choices:
            counts[choice.node] += len(choice.victims)
        in_all, of_nodes = self._refilled(now), {node: self._refilled(now, node) for node in counts}
        if not in_all.allows(count) or not all(of_nodes[node].allows(counts[node]) for node in counts):
            return False
        for choice in choices:
            self._send(choice, now)
        return True

    def _ask(self, choice: Choice, now: float) -> int:
        left = min(self._refilled(now).left, self._refilled(now, choice.node).left)
        if left < 1.0:
            return 0
        self._held_back.note(choice, int(left), now)
        return self._send(replace(choice, victims=choice.victims[: int(left)]), now)

    def _refilled(self, now: float, node: str | None = None) -> Allowance:
        """Return how many may be asked for now: of a node, or in all."""
        allowance = self._in_all
        if node is not None:
            allowance = self._of_node.setdefault(node, Allowance(self._terms.rates.per_node))
        allowance.refill(now)
        return allowance

    def _send(self, choice: Choice, now: float) -> int:
        """Ask the victims to go, unless that is a dry run; return how many were asked."""
        count = len(choice.victims)
        for allowance in (self._in_all, self._of_node[choice.node]):
            allowance.left -= count
        if self._terms.dry_run:
            self._tell_only(choice, now)
            return 0
        for victim in choice.victims:
            task_class = name_of(self._cluster.backlog.pod(victim.uid) or victim)  # as the plan knows it
            self._evicted[victim.uid] = choice.node
            self.stays_off.note(task_class, choice.node, now)
            self._history.note_eviction(task_class)
        self._requests.send(_batch_of(choice, self._listener), lambda asked: self._outcomes.append((choice, asked)))
        return count

    def _take_outcomes(self) -> None:
        """Leave alone for a while who was refused: the next look finds others."""
        while self._outcomes:
            choice, asked = self._outcomes.popleft()
            if staying := choice.victims[asked:]:
                self._requests.refuse(staying)
                for victim in staying:
                    self._evicted.pop(victim.uid, None)

    def _tell_only(self, choice: Choice, now: float) -> None:
        for victim in choice.victims:
            self._listener.note_preemption(victim, _worst(choice), dry_run=True)
        self._overload.settle(choice.node, now)
        names = [f"{victim.namespace}/{victim.name}" for victim in choice.victims]
        log.info("would evict", node=choice.node, short=sorted(choice.over), pods=names)


def _batch_of(choice: Choice, listener: Listener) -> EvictionBatch:
    """Return the requests for one node's victims; the listener is told of each."""
    short = sorted(choice.over)

    def note_evicted(victim: Pod) -> tuple[str, str]:
        listener.note_preemption(victim, _worst(choice), dry_run=False)
        too_little = f"too little {' and '.join(short)} on node {choice.node}"
        if choice.starved:
            return "Preempted", f"it got next to no cpu on node {choice.node} for a while, and may get more elsewhere"
        if choice.room_for is not None:
            return "Preempted", f"it kept a regular pod such as {choice.room_for.name} out: {too_little}"
        return "Preempted", f"it ran on what others had reserved; these use it now: {too_little}"

    why = "starved" if choice.starved else "use" if choice.room_for is None else "regular pods"
    return EvictionBatch(choice.victims, {"node": choice.node, "why": why, "short": short}, note_evicted)


def _worst(choice: Choice) -> str:
    return next(iter(choice.over))
