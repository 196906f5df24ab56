"""Opportunistic pods that get next to nothing where they are go, to start elsewhere (UBIS, IV.C).

Requests of 0 weigh little where the CPU is full. By use somebody is evicted there; by pressure nobody is, and who has
been unlucky would stay for ever.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask
from extender.cluster.ledger.snapshot import Snapshot
from extender.cluster.model import Pod
from extender.cluster.resources import CPU, CPU_INDEX
from extender.cluster.usage import Usage
from extender.control.idle_room.measured_use import MeasuredUse
from extender.control.idle_room.room import RAMP_UP_SECONDS
from extender.control.preemption.choice import Choice, work_lost
from extender.policy import slack

FULL = 0.95
"""Where less of the CPU is used, who gets little wants little."""

NEXT_TO_NOTHING = 0.1
"""Less than this part of what its class uses in the mean is next to nothing."""

Usual = Callable[[Sequence[Pod], Floats], Floats]
"""Says what the classes of pods [P] use [P, R]; the second argument [P, R] where that is not known."""


@dataclass(frozen=True, slots=True)
class _Streak:
    samples: int
    at: float


class Starved:
    """Counts for how many new samples in a row a pod got next to no CPU. One thread, that of the release loop.

    After `samples` of them it goes, one of a node at a time, the least work lost first. `usual` says what classes use.
    """

    def __init__(self, usual: Usual, samples: int) -> None:
        self._usual, self._samples = usual, samples
        self._streaks: dict[str, _Streak] = {}
        self._looked: Usage | None = None

    def look(
        self,
        snapshot: Snapshot,
        measured: MeasuredUse,
        usage: Usage,
        now: float,
        *,
        out: Collection[str],
        found: Sequence[Choice],
    ) -> list[Choice]:
        """Return who is to go; nobody of a node that is in `found`, or who is `out` of the question (by UID).

        `measured` is on the rows of the snapshot. A look at the use that was seen before says nothing new.
        """
        if usage is self._looked or not len(snapshot.opportunistic.pods):
            return []
        self._looked = usage
        # 1. Count a new sample of each pod that was deprived in it; all others start anew.
        pods, deprived = snapshot.opportunistic, self._deprived(snapshot, measured, usage)
        streaks: dict[str, _Streak] = {}
        for place in np.flatnonzero(deprived).tolist():
            uid, at = pods.uids[place], float(measured.at[pods.node[place]])
            last = self._streaks.get(uid, _Streak(0, -np.inf))
            streaks[uid] = _Streak(last.samples + 1, at) if at > last.at else last
        self._streaks = streaks
        # 2. One of each node goes.
        taken = {choice.node for choice in found}
        lost = work_lost(snapshot, np.arange(len(pods.pods)), now)
        chosen: dict[str, Choice] = {}
        for place in sorted(np.flatnonzero(deprived).tolist(), key=lambda place: (lost[place], pods.uids[place])):
            pod, node = pods.pods[place], snapshot.layout.names[pods.node[place]]
            goes = streaks[pod.uid].samples >= self._samples and not (pod.leaving or pod.uid in out)
            if goes and node not in taken and node not in chosen:
                chosen[node] = Choice(node, {CPU: float(pods.demand[place, CPU_INDEX])}, [pod], starved=True)
        for choice in chosen.values():
            del self._streaks[choice.victims[0].uid]
        return list(chosen.values())

    def _deprived(self, snapshot: Snapshot, measured: MeasuredUse, usage: Usage) -> Mask:
        """Return which pods [P] got next to nothing in their node's sample, and have been there for all of it."""
        pods, node = snapshot.opportunistic, snapshot.opportunistic.node
        full = measured.used[:, CPU_INDEX] >= FULL * snapshot.layout.capacity[:, CPU_INDEX]
        deprived = full[node] & slack.measured_whole(
            pods.started, measured.since[node], measured.at[node], RAMP_UP_SECONDS
        )
        rows = np.flatnonzero(deprived)
        if not len(rows):
            return deprived
        there = [pods.pods[row] for row in rows.tolist()]
        samples = [usage.pods.get(pod.uid) for pod in there]
        got = np.array([np.nan if one is None else one.amounts.get(CPU, np.nan) for one in samples])
        usual = self._usual(there, np.zeros((len(there), len(snapshot.layout.axis))))[:, CPU_INDEX]
        deprived[rows] = got < NEXT_TO_NOTHING * usual
        return deprived
