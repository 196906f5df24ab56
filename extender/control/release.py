"""The release loop: plan over all that waits, nominate and release those whose turn it is, tidy up what was left.

Every step starts from what the watches say, so that it does not matter where the last one, of this process or of its
predecessor, ended: between nomination and release, before either, or after both. What was written and is not seen yet
is in flight (`cluster.state`) and claimed (`backlog.releasing`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from extender.cluster.model import Pod
from extender.cluster.snapshot import Snapshot
from extender.cluster.state import Ledger
from extender.control import outlets
from extender.control.backlog import Backlog, Stage, TaskClass
from extender.control.rounds import Round, Rounds
from extender.control.waking import Waker
from extender.errors import ClusterError
from extender.planner import Plan, Planner
from extender.verdict import judge

NOMINATED, COMPLETED, PREEMPTING, SCALE_UP = "nominated", "completed", "preempting", "scale-up"
HOWS = (NOMINATED, COMPLETED, PREEMPTING, SCALE_UP)

_AFTER_FAILURE_SECONDS = 1.0
"""A pod whose write failed is left alone for so long: by then there is news of it, or it is tried again."""

_SLOTS_PART, _PLAN_ANYWAY_SECONDS = 4, 0.2
"""While more than three quarters of those who may be on their way are, a plan waits for so long."""

log = structlog.get_logger()


class Writer(Protocol):
    """What writes to pods. Each call raises ClusterError, and changes nothing then, where the pod is another by now."""

    def nominate(self, pod: Pod, node: str) -> None:
        """Set the nominated node, and note that it is ours."""

    def release(self, pod: Pod) -> None:
        """Remove our gate, which must be the only one."""

    def clear(self, pod: Pod) -> None:
        """Remove our nomination."""


class Listener(Protocol):
    """Who is told of what was done (events, metrics)."""

    def note_release(self, pod: Pod, node: str | None, how: str, waited_seconds: float) -> None:
        """Note a release, to a node or to none."""


@dataclass(frozen=True, slots=True)
class Pace:
    """`unbound_pods`: how many may be released and not bound yet; `assume_seconds`: how long a write takes to show."""

    unbound_pods: int = 64
    assume_seconds: float = 15.0
    scale_up_after: float = 0.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One pod's release: to the node that the plan chose, or to none, so that kube-scheduler finds its own way."""

    pod: Pod
    node: str | None
    how: str
    score: float = 0.0


@dataclass(slots=True)
class Releaser:
    """`run_soon` runs a write, now or later; `leads` says whether we may still write."""

    ledger: Ledger
    backlog: Backlog
    rounds: Rounds
    planner: Planner
    writer: Writer
    listener: Listener
    pace: Pace
    run_soon: Callable[[Callable[[], None]], object]
    leads: Callable[[], bool]
    flight_time: Callable[[], float]
    kept: set[str] = field(default_factory=set)
    """Pods that a node is kept for until its room is free (reclaim): in flight, but not on their way."""
    waker: Waker | None = None
    _outlets: outlets.Outlets = field(init=False)
    _stirred: tuple[int, float] = field(default=(-1, 0.0), init=False)
    _planned_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._outlets = outlets.Outlets(self.ledger, self.backlog, self.rounds)

    def step(self, now: float) -> int:
        """Do what is due at `now`, in seconds since the epoch; return how many pods were sent on their way."""
        if not self.leads():
            return 0
        self.backlog.expire(now)
        flights = self.ledger.in_flight(self.flight_time())
        snapshot = self.ledger.snapshot(self.flight_time())
        turns = self._left_behind(snapshot, now)
        self._clear_stale(snapshot, flights, now)
        on_their_way = (flights | self.backlog.releasing.keys()) - self.kept
        slots = self.pace.unbound_pods - len(on_their_way) - len(turns)
        if slots > 0 and self._is_time_to_plan(slots, now):
            turns += self._by_plan(snapshot, slots, now)
            self._planned_at = now
        for turn in turns:
            self._send(turn, now)
        return len(turns)

    def _is_time_to_plan(self, slots: int, now: float) -> bool:
        """Say whether a plan is worth its cost, which is the same for few as for many."""
        return slots * _SLOTS_PART >= self.pace.unbound_pods or now - self._planned_at >= _PLAN_ANYWAY_SECONDS

    def send(self, pod: Pod, node: str, now: float) -> None:
        """Release a pod that has been claimed to the node that was kept for it."""
        self._send(Turn(pod, node, NOMINATED), now)

    # -- what a predecessor, or a failed write, left

    def _left_behind(self, snapshot: Snapshot, now: float) -> list[Turn]:
        """Return held pods with our nomination whose node still has room; of the others the nomination is cleared."""
        turns = []
        for pod in self._not_claimed(Stage.NOMINATED):
            if pod.nominated == pod.promised and self._fits(snapshot, pod, pod.promised or ""):
                self.backlog.claim(pod.uid, now + self.pace.assume_seconds)
                turns.append(Turn(pod, None, COMPLETED))
            else:
                self._clear(pod, now)
        return turns

    def _clear_stale(self, snapshot: Snapshot, flights: set[str], now: float) -> None:
        """Clear our nominations of released pods whose node has gone, filled up or been cordoned."""
        for pod in self._not_claimed(Stage.PENDING):
            ours = pod.promised is not None and pod.nominated == pod.promised
            if ours and pod.uid not in flights and not self._fits(snapshot, pod, pod.promised or ""):
                self._clear(pod, now)

    def _not_claimed(self, stage: Stage) -> list[Pod]:
        return [pod for pod in self.backlog.at(stage) if pod.uid not in self.backlog.releasing]

    def _fits(self, snapshot: Snapshot, pod: Pod, node: str) -> bool:
        row = snapshot.layout.rows.get(node)
        there = self.backlog.nodes.get(node)
        if row is None or there is None or not there.allows(pod.constraints):
            return False
        return bool(judge(snapshot, pod).passed[row])

    # -- the plan

    def _by_plan(self, snapshot: Snapshot, slots: int, now: float) -> list[Turn]:
        made = self.rounds.next(snapshot.layout, now, self.waker.left_out(now) if self.waker is not None else ())
        if not made.classes:
            self._wake({}, snapshot, now)
            return []
        plan = self.planner.plan(snapshot, made.waiting, now, most=slots)
        asked = self._asked(made, plan)
        turns = self._turns(made, plan, snapshot, slots, now, asked)
        self._wake(asked, snapshot, now)
        taken = {id(made.classes[row]) for row in plan.assignments.task_class.tolist()}
        left = [it for it in made.classes if id(it) not in taken and it.pods[Stage.READY]]
        for of in self._outlets.preempting(snapshot, left):
            turns += self._without_node(of, PREEMPTING, now)
        if self.pace.scale_up_after > 0:
            for of in self._outlets.scaling_up(snapshot, left, now - self.pace.scale_up_after):
                turns += self._without_node(of, SCALE_UP, now)
        return turns

    def _asked(self, made: Round, plan: Plan) -> dict[TaskClass, int]:
        """Return how many pods without a gate have their turn, by class: they go before held ones of it."""
        if self.waker is None:
            return {}
        counts = Counter(made.classes[row] for row in plan.assignments.task_class.tolist())
        asked = {of: min(count, self.backlog.waiting(of, Stage.UNGATED)) for of, count in counts.items()}
        return {of: count for of, count in asked.items() if count}

    def _wake(self, asked: Mapping[TaskClass, int], snapshot: Snapshot, now: float) -> None:
        if self._stirred[0] != snapshot.version:
            self._stirred = (snapshot.version, now)
        if self.waker is not None:
            self.waker.step(asked, now, self._stirred[1])

    def _turns(
        self,
        made: Round,
        plan: Plan,
        snapshot: Snapshot,
        slots: int,
        now: float,
        asked: Mapping[TaskClass, int],
    ) -> list[Turn]:
        """Return the first releases of the plan, as many as the pace allows; a gang is whole, and counts as one.

        The first turns of a class are those of its pods that are `asked` about.
        """
        passing = dict(asked)
        gang_of = made.waiting.gang
        begun: set[int] = set()
        turns: list[Turn] = []
        scores = plan.terms.score.tolist() if plan.terms is not None else [0.0] * len(plan.assignments)
        where = zip(plan.assignments.task_class.tolist(), plan.assignments.node.tolist(), scores, strict=True)
        for row, node, score in where:
            if passing.get(made.classes[row], 0) > 0:
                passing[made.classes[row]] -= 1
                continue
            gang = int(gang_of[row]) if gang_of is not None else -1
            if gang not in begun:
                if slots <= 0:
                    continue
                slots -= 1
                if gang >= 0:
                    begun.add(gang)
            of = made.classes[row]
            pod = self.backlog.take(of, now, now + self.pace.assume_seconds)
            if pod is not None:
                turns.append(Turn(pod, snapshot.layout.names[node], NOMINATED, score))
        return turns

    def _without_node(self, of: TaskClass, how: str, now: float) -> Sequence[Turn]:
        pod = self.backlog.take(of, now, now + self.pace.assume_seconds)
        return [] if pod is None else [Turn(pod, None, how)]

    # -- writing

    def _send(self, turn: Turn, now: float) -> None:
        node = turn.node if turn.how != COMPLETED else turn.pod.promised
        self.ledger.promise(turn.pod, node, self.flight_time(), preempts=turn.how == PREEMPTING)
        if turn.node is not None and turn.pod.nominated is None:
            self.run_soon(lambda: self._nominate(turn, now))
        else:
            self.run_soon(lambda: self._release(turn, now))

    def _nominate(self, turn: Turn, now: float) -> None:
        """Nominate, then release, once all others of this step are nominated too.

        Two writes to one pod in a row meet a copy of it in the API server that is older than the first, and are made
        twice there.
        """
        pod, node = turn.pod, turn.node or ""
        if self._written(turn, now, lambda: self.writer.nominate(pod, node)):
            self.run_soon(lambda: self._release(turn, now))

    def _written(self, turn: Turn, now: float, write: Callable[[], None]) -> bool:
        """Write, if we still lead; where that fails the pod is left alone for a moment."""
        pod = turn.pod
        try:
            self._require_lead()
            write()
        except ClusterError as error:
            self.backlog.claim(pod.uid, now + _AFTER_FAILURE_SECONDS)
            self.ledger.forget(pod.uid)
            log.warning("release failed", pod=f"{pod.namespace}/{pod.name}", error=str(error))
            return False
        return True

    def _release(self, turn: Turn, now: float) -> None:
        pod = turn.pod
        if not self._written(turn, now, lambda: self.writer.release(pod)):
            return
        waited = max(now - pod.created, 0.0)
        node = turn.node or pod.promised
        self.listener.note_release(pod, node, turn.how, waited)
        log.info(
            "released",
            pod=f"{pod.namespace}/{pod.name}",
            uid=pod.uid,
            queue=pod.identity.queue,
            job=pod.identity.job,
            node=node,
            how=turn.how,
            score=round(turn.score, 4),
            waited_seconds=round(waited, 3),
        )

    def _clear(self, pod: Pod, now: float) -> None:
        self.backlog.claim(pod.uid, now + _AFTER_FAILURE_SECONDS)
        self.run_soon(lambda: self._write_clear(pod))

    def _write_clear(self, pod: Pod) -> None:
        try:
            self._require_lead()
            self.writer.clear(pod)
            log.info("nomination cleared", pod=f"{pod.namespace}/{pod.name}", node=pod.promised)
        except ClusterError as error:
            log.warning("nomination not cleared", pod=f"{pod.namespace}/{pod.name}", error=str(error))

    def _require_lead(self) -> None:
        if not self.leads():
            raise ClusterError("the Lease is no longer ours")
