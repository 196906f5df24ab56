"""The preemption loop: where opportunistic pods use what others need by now, some of them are evicted (UBIS, IV.C).

All that it goes by is what was measured. Where nothing was, or what there is cannot be trusted, nobody is evicted: the
kubelet's own eviction is the last resort. What it remembers (counts of samples, who stays off) is lost at a restart.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Protocol

import structlog

from extender.cluster.model import Pod
from extender.cluster.stays_off import StaysOff
from extender.cluster.usage import Usage
from extender.control.backlog.task_classes import name_of
from extender.control.cluster_view import ClusterView
from extender.control.eviction_requests import EvictionBatch, EvictionRequests
from extender.control.idle_room.measured_use import MeasuredRows
from extender.control.preemption.choice import PreemptionChoice, choices
from extender.control.preemption.eviction_history import EvictionHistory
from extender.control.preemption.overload import Limits, Overload
from extender.control.preemption.rates import EvictionRates, Rates
from extender.control.preemption.starved_pods import StarvedPods

log = structlog.get_logger()


class PreemptionListener(Protocol):
    """Who is told of what was done (metrics)."""

    def note_preemption(self, victim: Pod, resource: str, *, dry_run: bool) -> None:
        """Note an eviction for what a node had too little of; with `dry_run`, one that would have been."""


@dataclass(frozen=True, slots=True)
class PreemptionLimits:
    """When to preempt, and how fast; with `dry_run` nobody is asked to go."""

    limits: Limits
    rates: Rates = field(default_factory=Rates)
    dry_run: bool = False


class Preemptor:
    """Evicts opportunistic pods of overloaded nodes. One thread: that of the release loop; requests run in others."""

    def __init__(
        self,
        cluster: ClusterView,
        usage: Callable[[], Usage],
        requests: EvictionRequests,
        listener: PreemptionListener,
        terms: PreemptionLimits,
        stays_off: StaysOff,
        *,
        history: EvictionHistory | None = None,
        starved: StarvedPods | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take what was measured last (`usage`), and who is told which classes were evicted, and from where.

        Without `starved` nobody is moved who gets next to nothing. `clock` is the one by which samples are dated: that
        of the loops may be behind or ahead of it for hours, once a machine stood still or its clock was set.
        """
        self.stays_off, self._history = stays_off, EvictionHistory() if history is None else history
        self._cluster, self._usage, self._requests, self._listener = cluster, usage, requests, listener
        self._terms, self._clock = terms, clock
        self._overload = Overload(terms.limits)
        self._measured = MeasuredRows()
        self._rates, self._starved = EvictionRates(terms.rates), starved
        self._evicted: dict[str, str] = {}
        self._outcomes: deque[_Outcome] = deque()

    def step(self, now: float) -> int:
        """Do what is due at `now`, in seconds since the epoch; return how many pods were asked to go."""
        # 1. Only the leader evicts.
        if not self._cluster.leads():
            self._overload.forget()
            return 0
        # 2. See who was asked, and who was refused; then what was measured, and who is there or asked to go.
        self._take_outcomes(now)
        usage, snapshot = self._usage(), self._cluster.snapshot()
        self._requests.expire()
        going, spared = self._requests.asked(), self._requests.spared()
        # 3. See who has gone, after all else: whoever goes from now on is in what was read. Older samples say nothing
        #    of their nodes any more.
        self._settle()
        # 4. Count new samples above the limits.
        measured = self._measured.of(snapshot.layout, usage)
        over = self._overload.look(measured)
        # 5. Choose who goes, and ask as far as the rates allow.
        chosen: list[PreemptionChoice] = []
        if over.any() and len(snapshot.opportunistic.pods):
            chosen = choices(snapshot, over, usage, now, going=going, spared=spared)
        if self._starved is not None:
            chosen += self._starved.look(snapshot, measured, usage, now, out={*going, *spared}, chosen=chosen)
        return sum(self._ask(choice, now) for choice in chosen)

    def _settle(self) -> None:
        self._rates.keep(self._cluster.snapshot().layout.rows.keys())
        gone = [uid for uid in self._evicted if self._cluster.backlog.pod(uid) is None]
        for uid in gone:
            self._overload.settle(self._evicted.pop(uid), self._clock())

    def make_way(self, choices: Sequence[PreemptionChoice], now: float) -> bool:
        """Ask all of these victims to go, or none where the rates do not allow that; in a dry run tell it only."""
        counts = Counter[str]()
        for choice in choices:
            counts[choice.node] += len(choice.victims)
        if not self._rates.allow(counts, now):
            return False
        self._send(choices, now)
        return True

    def _ask(self, choice: PreemptionChoice, now: float) -> int:
        most = self._rates.most(choice.node, now)
        return self._send([replace(choice, victims=choice.victims[:most])], now) if most else 0

    def _send(self, choices: Sequence[PreemptionChoice], now: float) -> int:
        """Ask the victims of all nodes to go, unless that is a dry run; return how many were asked.

        One is asked after the other, until one is refused: without it the others would go in vain.
        """
        for choice in choices:
            self._rates.take(choice.node, len(choice.victims), now)
            if self._terms.dry_run:
                self._tell_only(choice)
        if self._terms.dry_run:
            return 0
        choice_of = {victim.uid: choice for choice in choices for victim in choice.victims}
        victims = self._requests.in_order([victim for choice in choices for victim in choice.victims])
        nodes = [choice_of[victim.uid].node for victim in victims]
        self._evicted |= {victim.uid: node for victim, node in zip(victims, nodes, strict=True)}
        classes = [name_of(self._cluster.backlog.pod(victim.uid) or victim) for victim in victims]
        done = partial(_Outcome, victims, nodes, classes)  # by their names as the plan knows them, while they are there
        batch = _batch_of(victims, choice_of, self._listener)
        self._requests.send(batch, lambda asked: self._outcomes.append(done(asked)))
        return len(victims)

    def _take_outcomes(self, now: float) -> None:
        """Keep the classes of those that go off their node; leave alone for a while who was refused: others are found.

        The samples of a node say that there is no room as long as nobody knows of the outcome.
        """
        while self._outcomes:
            outcome = self._outcomes.popleft()
            for task_class, node in islice(zip(outcome.classes, outcome.nodes, strict=True), outcome.asked):
                self.stays_off.note(task_class, node, now)
                self._history.note_eviction(task_class)
            if staying := outcome.victims[outcome.asked :]:
                self._requests.refuse(staying)
                for victim in staying:
                    self._evicted.pop(victim.uid, None)

    def _tell_only(self, choice: PreemptionChoice) -> None:
        for victim in choice.victims:
            self._listener.note_preemption(victim, _worst(choice), dry_run=True)
        self._overload.settle(choice.node, self._clock())
        names = [victim.full_name for victim in choice.victims]
        log.info("would evict", node=choice.node, short=sorted(choice.over), pods=names)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How many `victims` were asked to go before one was refused; `nodes` and `classes` are the names of theirs."""

    victims: Sequence[Pod]
    nodes: Sequence[str]
    classes: Sequence[str]
    asked: int


def _batch_of(
    victims: Sequence[Pod], choice_of: Mapping[str, PreemptionChoice], listener: PreemptionListener
) -> EvictionBatch:
    """Return the requests for victims, by whose UIDs it is said why they were chosen; the listener is told of each."""

    def note_evicted(victim: Pod) -> tuple[str, str]:
        choice = choice_of[victim.uid]
        short = sorted(choice.over)
        listener.note_preemption(victim, _worst(choice), dry_run=False)
        too_little = f"too little {' and '.join(short)} on node {choice.node}"
        if choice.starved:
            return "Preempted", f"it got next to no cpu on node {choice.node} for a while, and may get more elsewhere"
        if choice.room_for is not None:
            return "Preempted", f"it kept a regular pod such as {choice.room_for.name} out: {too_little}"
        return "Preempted", f"it ran on what others had reserved; these use it now: {too_little}"

    def fields(victim: Pod) -> Mapping[str, object]:
        choice = choice_of[victim.uid]
        why = "starved" if choice.starved else "use" if choice.room_for is None else "regular pods"
        return {"node": choice.node, "why": why, "short": sorted(choice.over)}

    return EvictionBatch(victims, fields, note_evicted)


def _worst(choice: PreemptionChoice) -> str:
    return next(iter(choice.over))
