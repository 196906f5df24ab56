"""Who makes way for regular pods: where only opportunistic ones keep them out, the fewest of these go (UBIS, C4).

No resize gives up a place for a pod, a device or scratch space: an opportunistic pod holds these as a regular one does.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows, fits, short_of
from extender.policy.slack import smallest_set

_NODES_TRIED = 8
"""So many nodes are looked at closely for one pod, those first where the fewest may have to go."""


@dataclass(frozen=True, slots=True)
class Way:
    """The node [row] that is cleared for one regular pod, who goes there (places in [P]), and what was short [R]."""

    node: int
    victims: Rows
    short: Floats


@dataclass(frozen=True, slots=True)
class InTheWay:
    """Opportunistic pods [P]: on which `node`, what they have there that a resize does not free (`held` [P, R]).

    `lost` [P] is the work that each would lose, `may_go` [P] who may be asked to go.
    """

    node: Rows
    held: Floats
    lost: Floats
    may_go: Mask


class MakingWay:
    """One look at who has to go. `free` [N, R] is what is free as regular, with the room of those who go already."""

    def __init__(self, free: Floats, pods: InTheWay) -> None:
        self._free, self._pods, self._may_go = free.copy(), pods, pods.may_go.copy()
        self._nodes, self._row = np.unique(pods.node, return_inverse=True)

    def checkpoint(self) -> tuple[Floats, Mask]:
        """Return what `restore` takes everything back to."""
        return self._free.copy(), self._may_go.copy()

    def restore(self, state: tuple[Floats, Mask]) -> None:
        """Forget what was chosen since a checkpoint."""
        self._free, self._may_go = state

    def most(self) -> Floats:
        """Return the most that any node where some are could have of each resource [R]."""
        room = self._free[self._nodes] + self._held()
        return np.asarray(room.max(axis=0, initial=-np.inf))

    def possible(self, demand: Floats, allowed: Mask) -> bool:
        """Say whether a pod fits anywhere at all if all go who may; `demand` [R] or [N, R], `allowed` [N]."""
        room = self._free[self._nodes] + self._held()
        return bool((fits(room, self._on(demand)) & allowed[self._nodes]).any())

    def ways(self, demand: Floats, allowed: Mask, count: int, most: float) -> tuple[int, Sequence[Way]]:
        """Return how many of `count` pods get a node, and how it is cleared for those that take evictions.

        Room that is free, or comes free, is taken first. Once `most` pods have been chosen to go nobody else is.
        """
        placed = self._fill(demand, allowed, count)
        ways: list[Way] = []
        chosen = 0
        while placed < count and chosen < most:
            # Holds at each turn: `placed` pods have a node, and `chosen` are to go for them.
            way = self._clear(demand, allowed)
            if way is None:
                break
            ways.append(way)
            placed, chosen = placed + 1, chosen + len(way.victims)
        return placed, ways

    def _fill(self, demand: Floats, allowed: Mask, count: int) -> int:
        """Put as many pods as fit on what is free; return how many."""
        times = np.where(allowed & fits(self._free, demand), _times(self._free, demand), 0.0)
        before = np.minimum(np.cumsum(times), count)
        put = np.diff(before, prepend=0.0)
        self._free -= put[:, np.newaxis] * demand
        return int(before[-1]) if len(before) else 0

    def _clear(self, demand: Floats, allowed: Mask) -> Way | None:
        """Clear the node where the fewest have to go, and of such where the least work is lost."""
        need, free = self._on(demand), self._free[self._nodes]
        able = np.flatnonzero(fits(free + self._held(), need) & allowed[self._nodes])
        short = np.where(short_of(free, need), need - free, 0.0)
        ways = [way for place in self._fewest_first(able, short) if (way := self._way(place, short[place])) is not None]
        if not ways:
            return None
        way = min(ways, key=lambda way: (len(way.victims), self._pods.lost[way.victims].sum(), way.node))
        self._may_go[way.victims] = False
        taken = demand if demand.ndim == 1 else demand[way.node]
        self._free[way.node] += self._pods.held[way.victims].sum(axis=0) - taken
        return way

    def _way(self, place: int, short: Floats) -> Way | None:
        pods_there = np.flatnonzero(self._row == place)
        pods = self._pods
        chosen = smallest_set(short, pods.held[pods_there], pods.lost[pods_there], self._may_go[pods_there])
        return None if chosen is None else Way(int(self._nodes[place]), pods_there[chosen], short)

    def _fewest_first(self, able: Rows, short: Floats) -> list[int]:
        """Return some of these nodes, first where each pod brings most of what is short."""
        largest = np.zeros(short.shape)
        np.maximum.at(largest, self._row[self._may_go], self._pods.held[self._may_go])
        least = np.where(short > 0, short / np.where(largest > 0, largest, 1.0), 0.0).max(axis=1, initial=0.0)
        order: list[int] = able[np.argsort(np.ceil(least[able]), kind="stable")][:_NODES_TRIED].tolist()
        return order

    def _held(self) -> Floats:
        """Return what comes free if all go who may, of the nodes where some are [M, R]."""
        held = np.zeros((len(self._nodes), self._free.shape[1]))
        np.add.at(held, self._row[self._may_go], self._pods.held[self._may_go])
        return held

    def _on(self, demand: Floats) -> Floats:
        """Return what a pod needs of the nodes where some are [M, R]."""
        return np.broadcast_to(demand, self._free.shape)[self._nodes]


def _times(free: Floats, demand: Floats) -> Floats:
    """Return how often a pod fits on each node [N]; `demand` [R] or [N, R]."""
    ratio = np.where(demand > 0, np.floor(free / np.where(demand > 0, demand, 1.0)), np.inf)
    return np.asarray(ratio.min(axis=-1, initial=np.inf))
