"""Promotion: an opportunistic pod becomes regular in place when regular room appears on its node (UBIS, IV.D).

Before new regular work, but not before somebody who has an older claim to that room: a waiting pod of a higher
priority, or of a queue that has less of its share (C3 before algorithm 1). What a queue gets by promotions counts in
its share at once. The pod is not restarted.

kube-scheduler tries a pod that preempts wherever room shows. A promotion there would race with it for the same room:
one of the two would be too much for the node.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Protocol

import numpy as np
import structlog

from extender.arrays import Floats, Mask, Rows, fits, needs, needs_fit
from extender.cluster.ledger.snapshot import OpportunisticPods, Snapshot
from extender.cluster.model import Pod
from extender.control.backlog.pending_writes import doubled
from extender.control.cluster_view import ClusterView
from extender.control.opportunistic.resizing import is_final
from extender.control.plan_input.builder import PlanInput
from extender.control.queues.usage import QueueUsage
from extender.control.release.planned import regular_only
from extender.errors import ClusterError
from extender.planner.opportunistic import nobody_before, promotions
from extender.verdict import demand_on

SHOWS_SECONDS = 60.0
"""A promotion that is not granted after so long, Deferred or Infeasible, has failed: it is taken back."""

RESTS_SECONDS, LONGEST_REST_SECONDS = 300.0, 4_800.0
"""A pod whose promotion has failed is left alone for so long at first, twice as long each time, and at most."""

UNWRITTEN_RESTS_SECONDS = 15.0
"""The first such time where the write failed, as the API server was away, say: that says nothing of the node."""

_ROUNDING = 1e-9

log = structlog.get_logger()


class PromotionResizes(Protocol):
    """What changes a pod's requests. Raises ClusterError."""

    def restore(self, pod: Pod) -> int:
        """Bring a pod's requests back."""

    def take_back(self, pod: Pod) -> int:
        """Make a pod's requests 0 again, where they came back and its node does not grant them."""


class Promoter:
    """Promotes opportunistic pods. One thread: that of the release loop; the writes run in others.

    `note` is told who was promoted, as soon as that shows, `note_refused` whose promotion the API server refuses, and
    why. Pods that are `going`, by UID, were asked to leave.
    """

    def __init__(
        self,
        cluster: ClusterView,
        resizes: PromotionResizes,
        note: Callable[[Pod], object],
        going: Callable[[], Collection[str]],
        note_refused: Callable[[Pod, str], object] = lambda _pod, _reason: None,
    ) -> None:
        self._cluster, self._resizes, self._note, self._going = cluster, resizes, note, going
        self._under_way: dict[str, float] = {}
        self._writing: set[str] = set()
        self._rests_until: dict[str, float] = {}
        self._failures: Counter[str] = Counter()
        self._note_refused = note_refused
        self._refused: deque[str] = deque()
        self._unwritten: deque[str] = deque()
        self._failed: deque[str] = deque()
        self._unsure_until: dict[str, float] = {}

    def under_way(self) -> Collection[str]:
        """Return the pods that are being made regular, by UID."""
        return self._under_way.keys()

    def step(self, snapshot: Snapshot, plan_input: PlanInput | None, now: float) -> Snapshot:
        """Begin the promotions that are due; return the cluster with their room taken."""
        # 1. See what came of those that began before; the room of those under way is taken.
        pods = snapshot.opportunistic
        self._see_outcomes({pods.uids[place] for place in pods.rows_of(self._under_way).tolist()}, now)
        if not len(pods.pods):
            return snapshot
        under_way = pods.rows_of(self._under_way)
        taken = self._taken(snapshot, under_way)
        # 2. See who may be, and whose node has the room.
        free = taken.free()
        may = _has_room(free, pods)
        may[under_way] = False
        going = self._going()
        may[may] = [self._may(pods.pods[place], going) for place in np.flatnonzero(may).tolist()]
        if may.any():
            may &= self._nobody_preempts(taken)
        # 3. Leave room to those who come first. What a queue gets by this counts in its share at once.
        if plan_input is None or not plan_input.classes:
            chosen = promotions(free, pods.node, pods.demand, pods.started, may=may)
        else:
            usage = _with_more(plan_input.usage, pods, under_way)
            chosen = self._in_turn(pods, may, plan_input, usage, taken)
        # 4. Begin.
        for place in chosen.tolist():
            self._begin(pods.pods[place], now)
        return self._taken(taken, chosen)

    def _in_turn(
        self, pods: OpportunisticPods, may: Mask, plan_input: PlanInput, usage: QueueUsage, taken: Snapshot
    ) -> Rows:
        """Return those who `may` [P] be promoted, in order, as long as nobody comes before them.

        Once its queue has its fair share one passes it, and counts, before the next is looked at: what it has by then
        may be more than others have that wait for the room.
        """
        chosen, may = np.empty(0, dtype=np.intp), may.copy()
        while may.any():
            free, turn, able = taken.free(), may.copy(), np.flatnonzero(may)
            turn[able] = self._nobody_before(pods, able, plan_input, usage, free)
            more = promotions(free, pods.node, pods.demand, pods.started, may=turn)
            if not len(more):
                break
            counted = _with_more(usage, pods, more)
            if not self._nobody_before(pods, more, plan_input, counted, free).all():
                more = _within_fair_shares(usage, pods, more)
            chosen, usage, taken = np.append(chosen, more), _with_more(usage, pods, more), self._taken(taken, more)
            may[more] = False
        return chosen

    def _may(self, pod: Pod, going: Collection[str]) -> bool:
        stays = pod.stays_opportunistic or pod.leaving or pod.uid in going
        return not stays and pod.uid not in self._rests_until and pod.uid not in self._writing

    def _nobody_preempts(self, snapshot: Snapshot) -> Mask:
        """Return of which opportunistic pods [P] no pod of a higher priority that preempts fits on their node now.

        One that has got its node since the snapshot was made is among them: that may be this very room.
        """
        pods, layout, free = snapshot.opportunistic, snapshot.layout, snapshot.free()
        first: Mask = np.ones(len(pods.node), dtype=np.bool_)
        nominated = (self._cluster.backlog.pod(uid) for uid in dict.fromkeys(snapshot.nominations.uids))
        for pod in nominated:
            if pod is not None and (pod.unschedulable or pod.node) and not pod.opportunistic:
                allowed = self._cluster.input_builder.allowed_nodes.allowed(pod, layout)
                wants = fits(free, demand_on(layout, pod)) & allowed
                first &= ~wants[pods.node] | (pods.priority >= pod.priority)
        return first

    def _nobody_before(
        self, pods: OpportunisticPods, able: Rows, plan_input: PlanInput, usage: QueueUsage, free: Floats
    ) -> Mask:
        """Return of these pods [A] whether nobody waits for their node who comes first."""
        waiting, classes = regular_only(plan_input), plan_input.classes
        nodes, place = np.unique(pods.node[able], return_inverse=True)
        room, demand = free[nodes], needs(waiting.demand)
        share = _shares(usage)
        own = np.array([share.get(pods.pods[pod].identity.queue, 0.0) for pod in able.tolist()])

        def fitting(row: int) -> Mask:
            fits_there = needs_fit(room, demand[row])
            return fits_there if waiting.barred is None else fits_there & ~waiting.barred[row, nodes]

        rows = np.flatnonzero((waiting.count > 0) & needs_fit(room.max(axis=0), demand)).tolist()
        waits = (
            (classes[row].template.priority, share.get(classes[row].job.queue, 0.0), partial(fitting, row))
            for row in rows
        )
        return nobody_before(pods.priority[able], own, place, waits, len(nodes))

    def _taken(self, snapshot: Snapshot, places: Rows) -> Snapshot:
        """Return the cluster as if these opportunistic pods were regular."""
        if not len(places):
            return snapshot
        pods, allocated = snapshot.opportunistic, snapshot.allocated.copy()
        np.add.at(allocated, pods.node[places], pods.demand[places])
        return replace(snapshot, allocated=allocated)

    def _begin(self, pod: Pod, now: float) -> None:
        self._under_way[pod.uid] = now + SHOWS_SECONDS
        self._soon(pod, lambda: self._restore(pod))

    def _restore(self, pod: Pod) -> None:
        try:
            self._resizes.restore(pod)
        except ClusterError as error:
            if is_final(error):
                self._refused.append(pod.uid)
                self._note_refused(pod, str(error))
            else:
                self._failed.append(pod.uid)
            raise

    def _see_outcomes(self, opportunistic: Collection[str], now: float) -> None:
        """Note whose promotion shows, and take back those that do not in time.

        It shows once the pod is no longer among those of them that are `opportunistic` by the snapshot: until then its
        room is not counted there. While its node has granted nothing it is not promoted, though kube-scheduler counts
        it.
        """
        self._rests_until = {uid: until for uid, until in self._rests_until.items() if now < until}
        self._failures = Counter(
            {uid: count for uid, count in self._failures.items() if self._cluster.backlog.pod(uid)}
        )
        while self._unwritten:  # we did not lead for a moment
            self._under_way.pop(self._unwritten.popleft(), None)
        while self._refused:  # nothing was changed, so there is nothing to take back
            uid = self._refused.popleft()
            if self._under_way.pop(uid, None) is not None:
                self._rest(uid, now)
        self._see_failed(now)
        for ungranted in self._cluster.backlog.ungranted():  # perhaps begun by a predecessor
            if ungranted.uid not in self._rests_until and ungranted.uid not in self._writing:
                self._under_way.setdefault(ungranted.uid, now + SHOWS_SECONDS)
        for uid, until in list(self._under_way.items()):
            pod = self._cluster.backlog.pod(uid)
            if pod is None or not (pod.opportunistic or pod.ungranted or uid in opportunistic):
                del self._under_way[uid]
                if pod is not None:
                    self._note(pod)
            elif now >= until and (pod.opportunistic or pod.ungranted) and uid not in self._writing:
                del self._under_way[uid]
                self._rest(uid, now)
                self._soon(pod, partial(self._resizes.take_back, pod))

    def _see_failed(self, now: float) -> None:
        """Give up promotions whose write failed; such a write may have been made all the same, which shows soon."""
        while self._failed:
            self._unsure_until[self._failed.popleft()] = now + self._cluster.assume_seconds
        for uid in [uid for uid, until in self._unsure_until.items() if now >= until]:
            del self._unsure_until[uid]
            pod = self._cluster.backlog.pod(uid)
            if pod is not None and pod.opportunistic and self._under_way.pop(uid, None) is not None:
                self._rest(uid, now, UNWRITTEN_RESTS_SECONDS)

    def _rest(self, uid: str, now: float, first: float = RESTS_SECONDS) -> None:
        """Leave a pod alone for a while after a promotion that failed, longer each time."""
        self._failures[uid] += 1
        self._rests_until[uid] = now + doubled(first, self._failures[uid], LONGEST_REST_SECONDS)

    def _soon(self, pod: Pod, write: Callable[[], object]) -> None:
        """Have a write run, now or later: the only one of its pod until it has ended."""
        self._writing.add(pod.uid)
        self._cluster.run_soon(lambda: self._write(pod, write))

    def _write(self, pod: Pod, write: Callable[[], object]) -> None:
        """Write, if we still lead. What fails shows as a promotion that does not come."""
        try:
            if self._cluster.leads():
                write()
            else:
                self._unwritten.append(pod.uid)
        except Exception as error:  # whatever it is: the next look goes by what the watch shows
            log.warning("resize failed", pod=pod.full_name, error=str(error) or repr(error))
        finally:
            self._writing.discard(pod.uid)


def _shares(usage: QueueUsage) -> dict[str, float]:
    """Return what each queue has of its fair share."""
    return {queue: share / fair if fair > 0 else np.inf for queue, (share, fair) in usage.by_queue().items()}


def _with_more(usage: QueueUsage, pods: OpportunisticPods, places: Rows) -> QueueUsage:
    """Return what queues have as if these opportunistic pods were regular."""
    return usage.with_more((pods.pods[place].identity.queue, pods.demand[place]) for place in places.tolist())


def _within_fair_shares(usage: QueueUsage, pods: OpportunisticPods, places: Rows) -> Rows:
    """Return the first of these pods with which all queues are within their fair shares; one at least."""
    for count in range(1, len(places) + 1):
        usage = _with_more(usage, pods, places[count - 1 : count])
        if _shares(usage).get(pods.pods[places[count - 1]].identity.queue, 0.0) > 1.0 + _ROUNDING:
            return places[: max(count - 1, 1)]
    return places


def _has_room(free: Floats, pods: OpportunisticPods) -> Mask:
    """Return whose node has room for it as regular [P]; `free` [N, R] is what nodes have.

    Only those are looked at whose node has the least that any of them needs.
    """
    has_room: Mask = np.zeros(len(pods.node), dtype=np.bool_)
    able = fits(free, pods.demand.min(axis=0))[pods.node].nonzero()[0]
    has_room[able] = fits(free[pods.node[able]], pods.demand[able])
    return has_room
