"""The predicted peak of each node, by what its pods have used: what T_alloc `auto` goes by (policy/peak.py).

It is made every half minute, beside the release loop, which adds whoever began since. A pod counts by its own samples
once these reach back for the warm-up. Before that it counts by what nearly all pods of its class never passed, those
that have ended among them; where too few have shown that, by its demand. So tasks that end before any warm-up are
known by their class. What a node uses that no pod accounts for counts as one more pod.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.ledger.layout import Layout
from extender.cluster.model import Pod
from extender.cluster.resources import DIMENSIONS
from extender.cluster.usage_history import UsageHistory, Who, who_of
from extender.control.backlog.task_classes import name_of
from extender.control.idle_room.eviction_budget import EvictionBudget
from extender.control.idle_room.measured_use import MeasuredUse
from extender.control.idle_room.room import Thresholds
from extender.policy.peak import History, PeakTuning, SigmaRule, auto_room, class_peaks, is_warm, peak
from extender.policy.slack import RAMP_UP_SECONDS

_WIDTH = len(DIMENSIONS)


@dataclass(frozen=True, slots=True)
class PredictedPeaks:
    """The peak of each node of a layout [N, R], made at `at`; 0 where a resource has none, as pod slots.

    Pods that began after `cutoff`, or of which it is not known, are not in it. `known` counts nodes that have a history
    as long as the warm-up; `sigmas` is N.
    """

    layout: Layout
    peak: Floats
    at: float
    cutoff: float
    known: int
    sigmas: float

    def with_young(self, measured: MeasuredUse) -> MeasuredUse:
        """Return a measurement by which all pods are young that are not in the peaks: they count as such."""
        return replace(measured, since=np.minimum(measured.since, self.cutoff))

    def room(self, thresholds: Thresholds) -> dict[str, float]:
        """Return what the peaks leave of all nodes together, by resource.

        Of those alone that limit it and state no threshold of their own.
        """
        layout = self.layout
        room = auto_room(thresholds.most(layout), self.peak)
        room = np.where(np.isfinite(room) & np.isnan(layout.threshold)[:, np.newaxis], room, 0.0)
        return dict(zip(DIMENSIONS, room.sum(axis=0).tolist(), strict=False))

    def on(self, layout: Layout) -> Floats:
        """Return the peaks on the rows of another layout; NaN for nodes that are new there."""
        if layout is self.layout:
            return self.peak
        moved = np.full(layout.capacity.shape, np.nan)
        if layout.axis == self.layout.axis:
            stay = [name for name in layout.names if name in self.layout.rows]
            moved[[layout.rows[name] for name in stay]] = self.peak[[self.layout.rows[name] for name in stay]]
        return moved


@dataclass(frozen=True, slots=True)
class _Seen:
    """A pod that was seen on its node: its UID and resource version, its class, its start, and what it needs.

    That is in the order of `DIMENSIONS`.
    """

    version: tuple[str, int]
    task_class: str
    started: float
    demand: tuple[float, ...]


class PeakPredictor:
    """Predicts the peaks of all nodes. One thread; any may call `note_eviction`.

    `blind_seconds`: for so long after a pod's start an eviction beside it is not counted against the budget. Its use
    was in no history, so no N would have avoided it.
    """

    def __init__(self, budget: float, blind_seconds: float, tuning: PeakTuning | None = None) -> None:
        self._tuning, self._blind = tuning or PeakTuning(), blind_seconds
        self._rule = SigmaRule(budget=budget)
        self._budget = EvictionBudget(self._rule)
        self._evicted: deque[tuple[Pod, float]] = deque()
        self._seen: dict[Who, _Seen] = {}

    def note_eviction(self, victim: Pod, now: float) -> None:
        """Note that a pod was evicted, or would have been: it may not have shown all that it uses."""
        self._evicted.append((victim, now))

    def predict(
        self, layout: Layout, pods: Sequence[Pod], history: UsageHistory, now: float, *, leads: bool = True
    ) -> PredictedPeaks:
        """Return the peaks by these pods, each of which holds resources of a node, and by what was measured of them.

        Who does not lead evicts nobody, and learns nothing of N: it begins anew.
        """
        # 1. Evictions lead N.
        self._lead(pods, now)
        if not leads:
            self._budget = EvictionBudget(self._rule)
        # 2. See who is there, and since when; forget who has ended and has no sample any more.
        cutoff = now - RAMP_UP_SECONDS
        counted = [pod for pod in pods if pod.started is not None and pod.started <= cutoff and pod.node in layout.rows]
        self._see(counted, history)
        # 3. What was measured of each, on the columns that any node limits.
        columns = np.flatnonzero(np.isfinite(layout.capacity[:, :_WIDTH]).any(axis=0))
        history = history.until(now, columns)
        whole = history.of([(name, "", "") for name in layout.names])
        known = int(np.count_nonzero(is_warm(whole, self._tuning).all(axis=1)))
        rest = _rest(layout, history, whole)
        history = self._own_only(history)
        # 4. What each counts as until enough is known of itself.
        running = [who_of(pod) for pod in counted]
        expected = self._expected(running, history, columns)
        # 5. The peak by all of it.
        node = np.array([layout.rows[key[0]] for key in running], dtype=np.intp)
        use = history.of(running)
        peaks = np.zeros(layout.capacity.shape)
        peaks[:, columns] = self._peak(use, node, expected, rest)
        return PredictedPeaks(layout, peaks, now, cutoff, known, self._budget.sigmas)

    def _peak(self, use: Floats, node: Rows, expected: Floats, rest: Floats) -> Floats:
        most_of_rest = np.fmax.reduce(rest, axis=1, initial=np.nan)
        amounts = np.concatenate((expected, np.where(np.isnan(most_of_rest), 0.0, most_of_rest)))
        history = History(
            use=np.concatenate((use, rest)),
            node=np.concatenate((node, np.arange(len(rest)))),
            expected=amounts,
            most=np.full(amounts.shape, np.inf),
            present=np.zeros((len(rest), rest.shape[2])),
        )
        return peak(history, self._budget.sigmas, self._tuning)

    def _lead(self, pods: Sequence[Pod], now: float) -> None:
        evicted = []
        while self._evicted:
            victim, at = self._evicted.popleft()
            self._seen.pop(who_of(victim), None)
            evicted.append((victim.node, at))
        newest: dict[str | None, float] = dict.fromkeys((node for node, _ in evicted), -np.inf)
        if newest:
            for pod in pods:
                if pod.node in newest and not pod.opportunistic and pod.started is not None:
                    newest[pod.node] = max(newest[pod.node], pod.started)
        counted = sum(at - newest[node] > self._blind for node, at in evicted)
        self._budget.advance(now, sum(pod.opportunistic for pod in pods), counted)

    def _see(self, there: Sequence[Pod], history: UsageHistory) -> None:
        before, now = self._seen, dict[Who, _Seen]()
        for pod in there:
            key = who_of(pod)
            seen = before.get(key)
            version = (pod.uid, pod.resource_version)
            if seen is None or seen.version != version:
                demand = tuple(pod.demand.get(name, 0.0) for name in DIMENSIONS)
                seen = _Seen(version, name_of(pod), pod.started or 0.0, demand)
            now[key] = seen
        self._seen = {key: seen for key, seen in before.items() if key in history.rows} | now

    def _own_only(self, history: UsageHistory) -> UsageHistory:
        """Return it without samples whose windows begin before their pod: another's of its name, or too low."""
        started = np.full(len(history.use), -np.inf)
        for key, seen in self._seen.items():
            row = history.rows.get(key)
            if row is not None:
                started[row] = seen.started
        since = history.times - history.window_seconds
        use = np.where((since < started[:, np.newaxis])[:, :, np.newaxis], np.nan, history.use)
        return replace(history, use=use)

    def _expected(self, running: Sequence[Who], history: UsageHistory, columns: Rows) -> Floats:
        """Return what these pods count as before they are known by themselves [P, K]: by their class, else in full."""
        # 1. All pods that were seen and measured, those that have ended among them.
        names = {name: row for row, name in enumerate(sorted({seen.task_class for seen in self._seen.values()}))}
        measured = [key for key in self._seen if key in history.rows]
        now = set(running)
        ended: Mask = np.array([key not in now for key in measured], dtype=np.bool_)
        own = history.of(measured)
        says = ended | is_warm(own, self._tuning).all(axis=1)
        task_class = np.array([names[self._seen[key].task_class] for key in measured], dtype=np.intp)
        # 2. What nearly all of a class never passed.
        most = np.fmax.reduce(own, axis=1, initial=np.nan)
        classes = class_peaks(most, task_class, says, len(names), self._tuning)
        # 3. Who is there counts by its class, and where that is not known by its demand.
        of_class = classes[[names[self._seen[key].task_class] for key in running]].reshape(len(running), len(columns))
        demand = np.array([self._seen[key].demand for key in running]).reshape(len(running), _WIDTH)[:, columns]
        return np.where(np.isnan(of_class), demand, of_class)


def _rest(layout: Layout, history: UsageHistory, whole: Floats) -> Floats:
    """Return what was used of each node [N, T, K] that none of its pods accounts for, by what `whole` nodes used."""
    of_pods = np.zeros(whole.shape)
    pods = [(layout.rows[key[0]], row) for key, row in history.rows.items() if key[2] and key[0] in layout.rows]
    if pods:
        node, row = np.array(pods, dtype=np.intp).T
        np.add.at(of_pods, node, np.nan_to_num(history.use[row]))
    return np.asarray(np.maximum(whole - of_pods, 0.0))
