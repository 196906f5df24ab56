"""Opportunistic pods that get next to nothing where they are go, to start elsewhere (UBIS, IV.C).

Requests of 0 weigh little where the CPU is full. By use somebody is evicted there; by pressure nobody is, and who has
been unlucky would stay for ever. P pods, N nodes.
"""

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import CPU
from extender.control.idle_room.measured_use import MeasuredUse
from extender.policy import slack

FULL = 0.95
"""Where less of the CPU is used, who gets little wants little."""

NEXT_TO_NOTHING = 0.1
"""Less than this part of what its class uses in the mean is next to nothing."""

STARVED_TIMES = 4
"""A pod that gets next to nothing is moved after so many times the samples after which others are evicted."""


@dataclass(frozen=True, slots=True)
class Squeezed:
    """Opportunistic pods on full nodes [P]; `names` tell them apart, `node` is the row of each one's node.

    `got` is what CPU each was measured to use (NaN: that is not known), `usual` what its class uses in the mean (0: not
    known), `lost` the work that it would lose, `may_go` whether it may be asked.
    """

    names: Sequence[Hashable]
    node: Rows
    got: Floats
    usual: Floats
    lost: Floats
    may_go: Mask


def on_full_nodes(measured: MeasuredUse, node: Rows, started: Floats) -> Rows:
    """Return which opportunistic pods (on these nodes [P], since then [P]) the sample of a full node holds whole."""
    cpu = measured.axis.index(CPU)
    full = measured.used[:, cpu] >= FULL * measured.allocatable[:, cpu]
    whole = slack.measured_whole(started, measured.since[node], measured.at[node])
    return np.flatnonzero(full[node] & whole)


@dataclass(frozen=True, slots=True)
class _Streak:
    samples: int
    at: float


class Starved:
    """Counts for how many new samples in a row a pod got next to no CPU. One thread.

    After `samples` of them it goes, one of a node at a time, the least work lost first.
    """

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self._streaks: dict[Hashable, _Streak] = {}

    def look(self, measured: MeasuredUse, pods: Squeezed, taken: Collection[int]) -> Rows:
        """Return who of the pods is to go: of each node one, of those that are `taken` (by row) nobody."""
        # 1. Count a new sample of each pod that was deprived in it; all others start anew.
        deprived = np.flatnonzero(pods.got < NEXT_TO_NOTHING * pods.usual)
        streaks: dict[Hashable, _Streak] = {}
        for pod in deprived.tolist():
            at = float(measured.at[pods.node[pod]])
            last = self._streaks.get(pods.names[pod], _Streak(0, -np.inf))
            streaks[pods.names[pod]] = _Streak(last.samples + 1, at) if at > last.at else last
        self._streaks = streaks
        # 2. One of each node goes.
        chosen: dict[int, int] = {}
        for pod in deprived[np.argsort(pods.lost[deprived], kind="stable")].tolist():
            node = int(pods.node[pod])
            goes = pods.may_go[pod] and streaks[pods.names[pod]].samples >= self._samples
            if goes and node not in taken and node not in chosen:
                chosen[node] = pod
        for pod in chosen.values():
            del self._streaks[pods.names[pod]]
        return np.array(list(chosen.values()), dtype=np.intp)
