"""When a reservation ends, and when there may be another for its class after it came to nothing."""

from extender.planner.board import Board
from extender.planner.plan import Lapse

_LEAST_LAPSE_SECONDS, _LONGEST_LAPSE_SECONDS = 60.0, 3600.0
_MOST_LATE_SECONDS = 3600.0


class Lapses:
    """Which reservations have `lapsed`, by the names of their classes."""

    def __init__(self, board: Board, now: float) -> None:
        self._now, names = now, set(board.waiting.names)
        self._least_seconds = max(board.policy.starved_after, _LEAST_LAPSE_SECONDS)
        self.lapsed: dict[str, Lapse] = {name: lapse for name, lapse in board.carried.lapsed.items() if name in names}

    def may_claim(self, name: str) -> bool:
        """Whether a class is not put off, or no longer."""
        lapse = self.lapsed.get(name)
        return lapse is None or self._now >= lapse.again_at

    def until(self, ready: float) -> float:
        """Return until when room is kept that should be there when it is `ready`: as much later as that is to come."""
        late = min(ready - self._now, _MOST_LATE_SECONDS)
        return max(ready + late, self._now + self._least_seconds)

    def note(self, name: str) -> None:
        """Put off the next reservation for a class, for longer each time."""
        before = self.lapsed.get(name)
        seconds = min(self._least_seconds if before is None else 2 * before.seconds, _LONGEST_LAPSE_SECONDS)
        self.lapsed[name] = Lapse(self._now + seconds, seconds)
