"""How many evictions may be asked for: so many in any minute, of one node and in all."""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from extender.control.allowance import Allowance

_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Rates:
    """How many evictions a minute at most: of one node, and in all; below 1, one after so much longer."""

    per_node: float = 60.0
    in_all: float = 600.0


class EvictionRates:
    """Counts who was asked to go. One thread.

    The victims of one choice go together: half of them bring nothing back, and their end makes the samples void that
    chose the others. They may take all that is left of the minute. Whoever comes next waits until as much time has
    passed as they take at the rate.
    """

    def __init__(self, rates: Rates) -> None:
        self._rates, self._in_all, self._of_node = rates, _Rate(rates.in_all), dict[str, _Rate]()

    def most(self, node: str, now: float) -> int:
        """Return how many pods of a node may be asked to go now."""
        return min(self._in_all.most(now), self._node(node).most(now))

    def allow(self, counts: dict[str, int], now: float) -> bool:
        """Say whether so many pods of each of these nodes may be asked to go now."""
        in_all = sum(counts.values()) <= self._in_all.most(now)
        return in_all and all(count <= self._node(node).most(now) for node, count in counts.items())

    def take(self, node: str, count: int, now: float) -> None:
        """Note that so many pods of a node are asked to go."""
        for rate in (self._in_all, self._node(node)):
            rate.take(count, now)

    def keep(self, nodes: Collection[str]) -> None:
        """Forget all other nodes."""
        for node in self._of_node.keys() - nodes:
            del self._of_node[node]

    def _node(self, node: str) -> "_Rate":
        return self._of_node.setdefault(node, _Rate(self._rates.per_node))


@dataclass(slots=True)
class _Rate:
    """Evictions of the last minute, by a time of its own: a clock that is set back does not stop it."""

    per_minute: float
    allowance: Allowance = field(init=False)
    asked: deque[tuple[float, int]] = field(default_factory=deque)
    seconds: float = 0.0
    at: float | None = None

    def __post_init__(self) -> None:
        self.allowance = Allowance(self.per_minute)

    def most(self, now: float) -> int:
        self._pass_time(now)
        if not self.allowance.allows(1):
            return 0
        return max(int(max(self.per_minute, 1.0)) - sum(count for _, count in self.asked), 0)

    def take(self, count: int, now: float) -> None:
        self._pass_time(now)
        self.allowance.left -= count
        self.asked.append((self.seconds, count))

    def _pass_time(self, now: float) -> None:
        self.seconds += 0.0 if self.at is None else max(now - self.at, 0.0)
        self.at = now
        self.allowance.refill(now)
        while self.asked and self.asked[0][0] <= self.seconds - _MINUTE:
            self.asked.popleft()
