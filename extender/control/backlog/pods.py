"""Where each pod is on its way to a node, and what can be asked about that."""

import itertools
import math
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, KeysView

from extender.cluster.model import Pod
from extender.control.backlog.pending_writes import PendingWrites, doubled
from extender.control.backlog.task_classes import PodPhase, TaskClass

WAITING = (PodPhase.READY, PodPhase.UNGATED)
"""The phases of pods that wait for their turn and for nothing else."""

_NOTHING_KEPT_SECONDS, _LONGEST_NOTHING_KEPT_SECONDS = 120.0, 86_400.0
"""For so long after a turn in vain no room is kept for a pod: at first, doubled each time, and at most."""


class PodIndex:
    """Pods by UID, by phase and in their task classes.

    Any thread may ask. Whoever asks more than one thing, and needs one moment's answers, holds `lock` meanwhile.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.writes = PendingWrites(self.lock)
        self._pods: dict[str, Pod] = {}
        self._where: dict[str, tuple[TaskClass, PodPhase]] = {}
        self._by_phase: dict[PodPhase, dict[str, Pod]] = {phase: {} for phase in PodPhase}
        self._opportunistic: set[str] = set()
        self._opportunistic_on_nodes: Counter[TaskClass] = Counter()
        self._ungranted: set[str] = set()
        self._opportunistic_of: dict[tuple[str, str], set[str]] = {}

    # -- pods

    def pod(self, uid: str) -> Pod | None:
        """Return the pod of a UID, if it takes part."""
        with self.lock:
            return self._pods.get(uid)

    def find(self, uid: str) -> tuple[TaskClass, PodPhase] | None:
        """Return the task class and the phase of a pod."""
        with self.lock:
            return self._where.get(uid)

    def find_all(self, uids: Collection[str]) -> list[tuple[TaskClass, PodPhase] | None]:
        """Return the task class and the phase of each of these pods, None for who takes no part."""
        with self.lock:
            return list(map(self._where.get, uids))

    def gone(self, uids: Iterable[str]) -> list[str]:
        """Return those of these pods that take no part any more."""
        with self.lock:
            return [uid for uid in uids if uid not in self._pods]

    def at(self, phase: PodPhase) -> list[Pod]:
        """Return the pods in a phase."""
        with self.lock:
            return list(self._by_phase[phase].values())

    def uids_at(self, phase: PodPhase) -> KeysView[str]:
        """Return the UIDs of the pods in a phase, as a view that changes with them. The caller holds the lock."""
        return self._by_phase[phase].keys()

    def is_idle(self, uid: str) -> bool:
        """Say whether a pod waits for its turn and nothing is being written to it; a refused one may rest."""
        with self.lock:
            where = self._where.get(uid)
            if where is None or where[1] not in WAITING:
                return False
            if where[1] is PodPhase.READY:
                return not self.writes.busy(uid)
            return self._pods[uid].unschedulable and not self.writes.under_way(uid)

    # -- the pods of a task class

    def ready(self, task_class: TaskClass) -> int:
        """Return how many pods of a class may be released now."""
        with self.lock:
            count, busy = 0, self.writes.any()
            for phase in WAITING:
                if pods := task_class.pods[phase]:
                    count += self.waiting(task_class, phase) if busy else len(pods)
            return count

    def waiting(self, task_class: TaskClass, phase: PodPhase) -> int:
        """Return how many pods of a class are in a phase, without those that are busy (`PendingWrites.busy`)."""
        with self.lock:
            pods = task_class.pods[phase]
            return len(pods) - self.writes.count(pods.keys()) if pods else 0

    def waiting_pods(self, task_class: TaskClass) -> list[Pod]:
        """Return the pods of a class that may be released now, those without a gate first."""
        with self.lock:
            pods = (*task_class.pods[PodPhase.UNGATED].values(), *task_class.pods[PodPhase.READY].values())
            return [pod for pod in pods if not self.writes.busy(pod.uid)]

    def waiting_since(self, task_class: TaskClass) -> float:
        """Return since when the oldest pod of a class can start, or when the last one was released if that is later."""
        with self.lock:
            since = math.inf
            for phase in WAITING:
                if pods := task_class.pods[phase]:
                    since = min(since, next(iter(pods.values())).created)
            return max(since, task_class.released_at)

    def rests(self) -> dict[str, float]:
        """Return until when refused pods have no turn, by UID, in seconds since the epoch."""
        with self.lock:
            ungated = self._by_phase[PodPhase.UNGATED]
            return {uid: until for uid, until in self.writes.backoff.items() if uid in ungated}

    def in_vain(self, task_class: TaskClass, now: float, *, held: bool) -> bool:
        """Say whether turns of a class were in vain not long ago: its pods were refused, or writes to them failed.

        That is for two minutes from its last turn on, for twice as long with each one, at most for a day; not where a
        pod waits that had no such turn. Its held pods count with `held`.
        """
        waiting = [task_class.pods[phase] for phase in (WAITING if held else (PodPhase.UNGATED,))]
        if not all(map(self.writes.failures, itertools.chain(*waiting))):  # of many pods mostly the first says so
            return False
        turns = min(map(self.writes.failures, itertools.chain(*waiting)), default=0)
        rest = doubled(_NOTHING_KEPT_SECONDS, turns, _LONGEST_NOTHING_KEPT_SECONDS)
        return turns > 0 and now - task_class.released_at < rest

    def coming(self) -> Counter[TaskClass]:
        """Return how many pods of each class are on their way to a node: they hold room, and are on none yet.

        Those are the nominated ones, and those that are being released.
        """
        with self.lock:
            return Counter(self._where[uid][0] for uid in self._coming())

    def opportunistic(self) -> tuple[Counter[TaskClass], Counter[TaskClass]]:
        """Return how many of the pods of each class that are on nodes, and of those `coming`, are opportunistic."""
        with self.lock:
            if not self._opportunistic:
                return Counter(), Counter()
            coming = (self._where[uid][0] for uid in self._coming() if uid in self._opportunistic)
            return self._opportunistic_on_nodes.copy(), Counter(coming)

    def opportunistic_of(self, namespace: str, owner: str) -> set[str]:
        """Return the opportunistic pods of an owner, by UID, wherever they are.

        It owns pods of its own namespace alone; those of others may say that it is theirs.
        """
        with self.lock:
            return set(self._opportunistic_of.get((namespace, owner), ()))

    def ungranted(self) -> list[Pod]:
        """Return the running pods whose requests came back, and are not granted yet."""
        with self.lock:
            return [self._pods[uid] for uid in sorted(self._ungranted)]

    # -- writes to pods

    def take(
        self,
        task_class: TaskClass,
        now: float,
        until: float,
        uid: str | None = None,
        *,
        phase: PodPhase = PodPhase.READY,
        to_try: bool = False,
    ) -> Pod | None:
        """Take the oldest ready pod of a class for release, or the one of this UID if it is ready.

        It is not ready again before `until`, or before news of it. UNGATED ones are taken to be nominated anew. One
        taken `to_try` has its turn only when `note_turn` says so.
        """
        with self.lock:
            ready = task_class.pods[phase]
            candidates = ready if uid is None else [uid] if uid in ready else []
            pod = next((ready[uid] for uid in candidates if not self.writes.busy(uid)), None)
            if pod is not None:
                self.writes.in_progress[pod.uid] = until
                if not to_try:
                    task_class.released_at = max(task_class.released_at, now)
            return pod

    def note_turn(self, uid: str, now: float) -> None:
        """Note that a pod that was taken to try has its turn."""
        with self.lock:
            if (position := self._where.get(uid)) is not None:
                position[0].released_at = max(position[0].released_at, now)

    def put_back(self, uid: str) -> None:
        """Note that nothing was written to a pod that was taken: it is ready again."""
        with self.lock:
            self.writes.in_progress.pop(uid, None)

    def claim(self, uid: str, until: float) -> None:
        """Note that a pod is being written to: it is left alone until then, or until news of it."""
        with self.lock:
            if uid in self._pods:
                self.writes.in_progress[uid] = until

    def back_off(self, uid: str, now: float) -> None:
        """Leave a pod alone for a while after a write to it failed, if it is still there (`PendingWrites.back_off`)."""
        with self.lock:
            if uid in self._pods:
                self.writes.back_off(uid, now)

    def set_in_progress(self, uids: Collection[str]) -> None:
        """Note that exactly these pods are being released, for a caller that says so before each plan."""
        with self.lock:
            self.writes.in_progress = dict.fromkeys(uids, math.inf)

    def _move(self, pod: Pod, after: tuple[TaskClass, PodPhase]) -> None:
        """Note what a pod is now, and its place."""
        self._leave_book(pod.uid)
        self._pods[pod.uid], self._where[pod.uid] = pod, after
        if pod.ungranted and pod.holds is not None:
            self._ungranted.add(pod.uid)
        if pod.opportunistic:
            self._opportunistic.add(pod.uid)
            self._opportunistic_of.setdefault((pod.namespace, pod.owner), set()).add(pod.uid)
            if after[1] is PodPhase.RUNNING:
                self._opportunistic_on_nodes[after[0]] += 1

    def _leave_book(self, uid: str) -> None:
        """Take a pod, as it is known, out of those that are opportunistic, or not granted what they request."""
        self._ungranted.discard(uid)
        if uid not in self._opportunistic:
            return
        self._opportunistic.discard(uid)
        (task_class, phase), pod = self._where[uid], self._pods[uid]
        owner = (pod.namespace, pod.owner)
        if phase is PodPhase.RUNNING:
            self._opportunistic_on_nodes[task_class] -= 1
            if not self._opportunistic_on_nodes[task_class]:
                del self._opportunistic_on_nodes[task_class]
        self._opportunistic_of[owner].discard(uid)
        if not self._opportunistic_of[owner]:
            del self._opportunistic_of[owner]

    def _coming(self) -> Iterator[str]:
        """Return the UIDs of the pods that hold room and are on no node."""
        pending = (uid for uid, pod in self._by_phase[PodPhase.PENDING].items() if pod.awaited is not None)
        released = (uid for uid in self.writes.in_progress if uid in self._where and self._where[uid][1] in WAITING)
        return itertools.chain(self._by_phase[PodPhase.NOMINATED], pending, released)
