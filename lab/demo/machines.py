"""How fast pods run on machines that they share. Pure: times go in.

A pod is as fast as its scarcest disk or network dimension lets it be (Tetris, equation 5, where each term is work over
the rate that was allotted). What is over-allocated is shared in proportion to demand: everybody who wants it gets the
same part of what they want. CPU and memory cannot be over-allocated, because kube-scheduler counts their requests.
That contention also wastes capacity (incast, seeks: Tetris 2.1) is left out, in favour of who over-allocates.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from extender.arrays import Floats
from lab.sim.engine.contention import RATES, factors

_DONE_SECONDS = 1e-6


def parts(allocated: Floats, capacity: Floats) -> Floats:
    """Return which part of its demand a pod gets there, per dimension, in (0, 1]; both arrays [..., D].

    1 where demand fits, where it is not shared in this way (CPU, memory), and where nothing is allocated.
    """
    return factors(allocated, capacity, shared=RATES)


def rates(demand: Floats, part: Floats) -> Floats:
    """Return how fast pods run [P], 1 being full speed: the least part of what they demand; both arrays [P, D]."""
    slowest: Floats = np.where(demand > 0, part, 1.0).min(axis=-1)
    return slowest


class DemoMachine:
    """The pods that run on one node, and how much of their work is left."""

    def __init__(self, capacity: Floats) -> None:
        self._capacity = capacity
        self._pods: NDArray[np.intp] = np.empty(0, dtype=np.intp)
        self._demand = np.empty((0, len(capacity)))
        self._left = np.empty(0)
        self._rates = np.empty(0)
        self._seen_at = 0.0

    @property
    def next_end(self) -> float:
        """The time at which the next pod will be done if nothing changes; infinite if none runs."""
        return self._seen_at + float((self._left / self._rates).min(initial=np.inf))

    def start(self, pod: int, demand: Floats, work_seconds: float, now: float) -> None:
        """Run a pod from now on."""
        self._advance(now)
        self._pods = np.append(self._pods, pod)
        self._demand = np.vstack((self._demand, demand))
        self._left = np.append(self._left, work_seconds)
        self._share()

    def end_due(self, now: float) -> list[int]:
        """Return the pods whose work is done by now; they run no longer."""
        self._advance(now)
        stay = self._left > _DONE_SECONDS
        ended: list[int] = self._pods[~stay].tolist()
        if ended:
            self._pods, self._demand, self._left = self._pods[stay], self._demand[stay], self._left[stay]
            self._share()
        return ended

    def _advance(self, now: float) -> None:
        self._left = self._left - self._rates * (now - self._seen_at)
        self._seen_at = now

    def _share(self) -> None:
        self._rates = rates(self._demand, parts(self._demand.sum(axis=0), self._capacity))


class DemoMachines:
    """All nodes, by number."""

    def __init__(self, capacity: Floats) -> None:
        self._machines: Sequence[DemoMachine] = [DemoMachine(row) for row in capacity]

    @property
    def next_end(self) -> float:
        """The time at which the next pod on any node will be done if nothing changes."""
        return min((machine.next_end for machine in self._machines), default=np.inf)

    def start(self, node: int, pod: int, demand: Floats, work_seconds: float, now: float) -> None:
        """Run a pod on a node from now on."""
        self._machines[node].start(pod, demand, work_seconds, now)

    def end_due(self, now: float) -> list[int]:
        """Return the pods whose work is done by now."""
        due = [machine for machine in self._machines if machine.next_end <= now + _DONE_SECONDS]
        return [pod for machine in due for pod in machine.end_due(now)]
