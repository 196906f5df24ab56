"""The history of every pod on a watch: when it was created, ungated, bound, running and ended, and what went wrong."""

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats
from extender.cluster.model import Pod


class History:
    """The history of pods, by row; times [P] in seconds, NaN for what has not been seen.

    `opened`: when its creation was requested; `created`: when it was first seen; `turn`: when it was first seen without
    our gate (a stock pod: when it was created); `bound`, `running`: when that was first seen; `done`: when its work was
    done, and `ended`: when that was first seen.
    """

    def __init__(self, pods: int) -> None:
        self.opened, self.created, self.turn, self.bound, self.running, self.done, self.ended = np.full(
            (7, pods), np.nan
        )
        self._uid: dict[int, str] = {}
        self._node: dict[int, str] = {}
        self._row: dict[str, int] = {}
        self._gated: set[int] = set()
        self._doubled: set[int] = set()
        self._gone: set[int] = set()
        self._failed: set[int] = set()

    def see(self, row: int, pod: Pod, now: float) -> None:
        """Note the state of a pod."""
        self._row[pod.uid] = row
        if self._uid.setdefault(row, pod.uid) != pod.uid:
            self._doubled.add(row)  # created again under the same name: the task would run twice
        self._set_first(self.created, row, now)
        self._gate(row, pod, now)
        if pod.node is not None:
            self._set_first(self.bound, row, now)
            if self._node.setdefault(row, pod.node) != pod.node:
                self._doubled.add(row)
        if pod.started is not None:
            self._set_first(self.running, row, now)
        if pod.failed:
            self._failed.add(row)
        elif pod.finished:
            self._set_first(self.ended, row, now)

    def gone(self, uid: str) -> None:
        """Note that a pod was removed."""
        if uid in self._row:
            self._gone.add(self._row[uid])

    @property
    def held(self) -> NDArray[np.bool_]:
        """Which had our gate at some time [P]."""
        return np.isin(np.arange(len(self.turn)), list(self._gated))

    @property
    def finished(self) -> int:
        """How many have ended well."""
        return int(np.isfinite(self.ended).sum())

    @property
    def lost(self) -> int:
        """How many vanished or failed, or were requested and never ended."""
        missing = np.isfinite(self.opened) & np.isnan(self.ended)
        missing[list(self._gone | self._failed)] = True
        return int(missing.sum())

    @property
    def stuck(self) -> int:
        """How many were requested and never had a node."""
        return int((np.isfinite(self.opened) & np.isnan(self.bound)).sum())

    @property
    def double(self) -> int:
        """How many had two nodes, lost their gate twice, or were made twice."""
        return len(self._doubled)

    def _gate(self, row: int, pod: Pod, now: float) -> None:
        if pod.held:
            if np.isfinite(self.turn[row]):
                self._doubled.add(row)
            self._gated.add(row)
        else:
            self._set_first(self.turn, row, now)

    @staticmethod
    def _set_first(times: Floats, row: int, now: float) -> None:
        if np.isnan(times[row]):
            times[row] = now
