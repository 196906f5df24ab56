"""Evictions: a waiting pod, the node that it is to get, and the pods evicted there for it, until these are gone.

From the request on, the node's room is promised to the waiting pod, so that neither the plan nor a second move gives it
away; once the watch shows the victims gone, the pod is released to that node. All of this is in memory: after a restart
what was freed goes by plan.
"""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from extender.cluster.ledger.flights import charge
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.pods.reading import taken
from extender.control.backlog.backlog import PodPhase, phase_of
from extender.control.queues.standings import MINIMUM_SHARE
from extender.control.reclaim.pod_needs import need_of
from extender.control.reclaim.trials import GONE, LATE, REFUSED, TAKEN, Shape, Trials, Vain, queue_of, shape_of
from extender.control.reclaim.victims import Choice
from extender.control.release.loop import Releaser
from extender.errors import ClusterError
from extender.verdict import judge, room_for

PATIENCE_SECONDS = 300.0
"""A node is kept for a pod for so long; victims that take longer to end give their room to whom the plan chooses."""
_SPARED_SECONDS, _LONGEST_SPARED_SECONDS = 30.0, 960.0
"""A pod whose PodDisruptionBudget forbids its eviction, or whose eviction failed, is left alone for so long at first,
twice as long each time, and at most."""
_ANY_PRIORITY = 2**31

log = structlog.get_logger()


class Evictor(Protocol):
    """What evicts. Raises ClusterError where that fails."""

    def evict(self, pod: Pod) -> bool:
        """Ask for the eviction of this very pod; False where a PodDisruptionBudget forbids it now."""

    def tell(self, pod: Pod, reason: str, message: str) -> None:
        """Write an event on a pod."""


class Listener(Protocol):
    """Who is told of what was done (metrics)."""

    def note_reclaim(self, victim: Pod, queue: str, why: str) -> None:
        """Note an eviction for a queue."""

    def note_vain(self, vain: Vain) -> None:
        """Note evictions whose room the pod did not use that it was made for."""


@dataclass(slots=True, eq=False)
class Eviction:
    """A waiting pod, the node that it gets, and who goes there. `since`, and `promised` anew, are in flight time.

    `level` is how far from its input that is, None where it is all the same.
    """

    pod: Pod
    queue: str
    why: str
    node: str
    level: int | None
    victims: Sequence[Pod]
    since: float
    promised: float
    shape: Shape


@dataclass(slots=True)
class _Spared:
    """A pod that was not to be evicted: it is left alone until then, as it was for so long."""

    until: float
    seconds: float


@dataclass(slots=True)
class Evictions:
    """The moves under way. Writes run in other threads; what came of them is taken in by `tend`.

    All times but those of claims are in flight time, which stands still while we cannot see who has gone.
    """

    releaser: Releaser
    evictor: Evictor
    listener: Listener
    trials: Trials = field(default_factory=Trials)
    _moves: list[Eviction] = field(default_factory=list)
    _asked: dict[str, float] = field(default_factory=dict)
    _spared: dict[str, _Spared] = field(default_factory=dict)
    _outcomes: deque[tuple[Eviction, Sequence[Pod]]] = field(default_factory=deque)

    def begin(self, pod: Pod, queue: str, why: str, choice: Choice) -> None:
        """Promise the node to the pod, which is claimed already, and ask for the evictions."""
        time = self.releaser.flight_time()
        move = Eviction(pod, queue, why, choice.node, choice.level, choice.victims, time, time, shape_of(pod))
        self._moves.append(move)
        self._asked |= {victim.uid: time for victim in choice.victims}
        self.releaser.kept.add(pod.uid)
        self.releaser.ledger.promise(pod, move.node, time)
        self.releaser.run_soon(lambda: self._evict(move))

    def tend(self, now: float) -> int:
        """Go on with all moves; return how many evictions that were counted have not been asked for."""
        unmade = self._take_outcomes(now)
        self._expire()
        self._go_on(now)
        for vain in self.trials.look(self.releaser.backlog, self.releaser.flight_time()):
            self._tell_vain(vain)
        return unmade

    def stop(self, now: float) -> None:
        """Let go of all moves: what they free goes by plan."""
        for move in self._moves:
            self._let_go(move, now)
        self._moves.clear()

    def goes(self, pod: Pod) -> bool:
        """Say whether a pod is on its way out, by us or anyhow."""
        return pod.leaving or pod.uid in self._asked

    def asked(self) -> Collection[str]:
        """Return the pods that were asked to go, by UID, and are there still."""
        return self._asked.keys()

    def spared(self) -> Collection[str]:
        """Return the pods that are not to be asked now, by UID, as their eviction was refused lately."""
        time = self.releaser.flight_time()
        return {uid for uid, spared in self._spared.items() if time < spared.until}

    def under_way(self) -> set[tuple[str, str]]:
        """Return for whom there are moves: why, and the queue."""
        return {(move.why, move.queue) for move in self._moves}

    def shapes(self) -> set[Shape]:
        """Return for which shapes, and queues as such, there are moves."""
        return {of for move in self._moves for of in (move.shape, queue_of(move.shape))}

    # -- writing

    def _evict(self, move: Eviction) -> None:
        """Ask for the evictions of a move, one after the other, until one is refused."""
        asked: list[Pod] = []
        for victim in move.victims:
            if not self._evict_one(victim, move):
                break
            asked.append(victim)
        self._outcomes.append((move, asked))

    def _evict_one(self, victim: Pod, move: Eviction) -> bool:
        named = {"pod": f"{victim.namespace}/{victim.name}", "queue": move.queue, "why": move.why}
        try:
            if not self.releaser.leads():
                raise ClusterError("the Lease is no longer ours")
            if not self.evictor.evict(victim):
                log.info("eviction not allowed now", **named)
                return False
        except ClusterError as error:
            log.warning("eviction failed", **named, error=str(error))
            return False
        self.listener.note_reclaim(victim, move.queue, move.why)
        log.info("evicted", **named, victim_queue=victim.identity.queue, node=move.node, room_for=move.pod.name)
        self._tell(victim, move)
        return True

    def _tell(self, victim: Pod, move: Eviction) -> None:
        share = "minimum" if move.why == MINIMUM_SHARE else "fair"
        message = f"evicted so that queue {move.queue} gets its {share} share"
        try:
            self.evictor.tell(victim, "Reclaimed", f"{message}; queue {victim.identity.queue} is above its fair share")
        except ClusterError as error:
            log.warning("event lost", error=str(error))

    # -- what came of it

    def _take_outcomes(self, now: float) -> int:
        """Undo moves that were refused in part; who was evicted for them is gone all the same.

        What was refused was asked for: it counts in the rate, only those after it do not.
        """
        unmade = 0
        while self._outcomes:
            move, asked = self._outcomes.popleft()
            left = move.victims[len(asked) :]
            if left:
                unmade += len(left) - 1
                self._undo(move, left, now)
        return unmade

    def _undo(self, move: Eviction, left: Sequence[Pod], now: float) -> None:
        before = self._spared.get(left[0].uid)
        seconds = _SPARED_SECONDS if before is None else min(2 * before.seconds, _LONGEST_SPARED_SECONDS)
        self._spared[left[0].uid] = _Spared(self.releaser.flight_time() + seconds, seconds)
        for victim in left:
            self._asked.pop(victim.uid, None)
        if move in self._moves:
            self._moves.remove(move)
            self._let_go(move, now)

    def _go_on(self, now: float) -> None:
        """Complete moves whose victims are gone, keep the promise of others, give up what came to nought."""
        self._moves, moves = [], self._moves
        for move in moves:
            pod = self.releaser.backlog.pod(move.pod.uid)
            if pod is None:
                self.releaser.kept.discard(move.pod.uid)
                self._fail(move, GONE)
            elif phase_of(pod) is not PodPhase.READY:
                self.releaser.kept.discard(move.pod.uid)
                self.trials.send(pod, len(move.victims))
            elif self._is_free(pod, move.node) or not (any(self._still_there(move)) or self._frees_more(move.node)):
                self._complete(move, pod, now)
            elif self._is_too_old(move) or not all(map(self.goes, self._still_there(move))):
                self._let_go(move, now)
                self._fail(move, LATE)
            else:
                self._keep(move, pod)

    def _is_too_old(self, move: Eviction) -> bool:
        return self.releaser.flight_time() - move.since > PATIENCE_SECONDS

    def _still_there(self, move: Eviction) -> Iterator[Pod]:
        known = (self.releaser.backlog.pod(victim.uid) for victim in move.victims)
        return (pod for pod in known if pod is not None)

    def _frees_more(self, node: str) -> bool:
        """Say whether others are still to go there, or that read from there: the room kept for a pod may be theirs."""
        nodes = self._snapshot().layout.rows
        asked = (pod for uid in self._asked if (pod := self.releaser.backlog.pod(uid)) is not None)
        leaving = self.releaser.ledger.leaving(node, below=_ANY_PRIORITY)
        return bool(leaving) or any(node in taken(pod, pod.node or "", nodes) for pod in asked)

    def _keep(self, move: Eviction, pod: Pod) -> None:
        """Promise the node anew in time, before the promise runs out."""
        self._moves.append(move)
        time = self.releaser.flight_time()
        if time - move.promised > self.releaser.pace.assume_seconds / 2:
            move.promised = time
            self.releaser.ledger.promise(pod, move.node, time)

    def _complete(self, move: Eviction, pod: Pod, now: float) -> None:
        """Release the pod to the node that is free now; where something else took the room, it waits for its turn."""
        self._let_go(move, now)
        if self._has_room(pod, move.node):
            self.releaser.backlog.claim(pod.uid, now + self.releaser.pace.assume_seconds)
            self.trials.send(pod, len(move.victims))
            self.releaser.send(pod, move.node, now, move.level)
        else:
            self._fail(move, TAKEN)

    def _is_free(self, pod: Pod, node: str) -> bool:
        """Say whether there is room for all that is promised, there and to read from: something else has ended."""
        snapshot = self._snapshot()
        row = snapshot.layout.rows.get(node)
        if row is None or pod.uid not in self.releaser.ledger.in_flight(self.releaser.flight_time()):
            return False
        free = room_for(snapshot, pod)
        charge(free, snapshot.layout, pod, node, 1.0)  # it is in flight itself
        return bool(need_of(pod, snapshot.layout, self.releaser.input_builder.allowed_nodes).nodes(free)[row])

    def _has_room(self, pod: Pod, node: str) -> bool:
        """Say whether the pod may run there and has room; what was made for it to read from is taken as there."""
        snapshot = self._snapshot()
        row = snapshot.layout.rows.get(node)
        if row is None or not self.releaser.input_builder.allowed(pod, snapshot.layout)[row]:
            return False
        return bool(judge(snapshot, pod).passed[row])

    def _snapshot(self) -> Snapshot:
        return self.releaser.ledger.snapshot(self.releaser.flight_time())

    def _let_go(self, move: Eviction, now: float) -> None:
        self.releaser.kept.discard(move.pod.uid)
        self.releaser.ledger.forget(move.pod.uid)
        self.releaser.backlog.claim(move.pod.uid, now)

    def _fail(self, move: Eviction, why: str) -> None:
        self._tell_vain(self.trials.fail(move.pod, len(move.victims), why, self.releaser.flight_time()))

    def _tell_vain(self, vain: Vain) -> None:
        self.listener.note_vain(vain)
        pod, rests = vain.pod, round(vain.rests_seconds)
        named = {"pod": f"{pod.namespace}/{pod.name}", "uid": pod.uid, "queue": pod.identity.queue, "why": vain.why}
        log.warning("evicted in vain", **named, evictions=vain.evictions, rests_seconds=rests)
        if vain.why == REFUSED:
            self.releaser.run_soon(lambda: self._tell_refused(pod, rests))

    def _tell_refused(self, pod: Pod, seconds: int) -> None:
        message = f"room was made for it, and kube-scheduler refuses it; nobody is evicted for its like for {seconds} s"
        try:
            self.evictor.tell(pod, "ReclaimedInVain", message)
        except ClusterError as error:
            log.warning("event lost", error=str(error))

    def _expire(self) -> None:
        """Forget refusals that are old, and evictions that are over or that the watch should have shown by now."""
        time, shown = self.releaser.flight_time(), self.releaser.pace.assume_seconds
        self.trials.forget_old(time)
        self._spared = {
            uid: spared for uid, spared in self._spared.items() if time - spared.until < _LONGEST_SPARED_SECONDS
        }
        self._asked = {
            uid: since
            for uid, since in self._asked.items()
            if (pod := self.releaser.backlog.pod(uid)) is not None and (pod.leaving or time - since <= shown)
        }
