"""How many evictions may be asked for, or pods be woken: so many a minute."""

from dataclasses import dataclass, field

_BURST_SECONDS = 1.0


@dataclass(slots=True)
class Allowance:
    """A token bucket: it fills at `per_minute` and holds what `_BURST_SECONDS` bring, at least one.

    The victims of one pod go together or not at all, so they may overdraw what is left, by no more than a minute's
    worth; later ones wait for it.
    """

    per_minute: float
    left: float = field(init=False)
    at: float | None = None

    def __post_init__(self) -> None:
        self.left = self._most()

    def refill(self, now: float) -> None:
        """Add what the time since the last call has brought."""
        seconds = max(now - self.at, 0.0) if self.at is not None else 0.0
        self.left, self.at = min(self.left + seconds * self.per_minute / 60, self._most()), now

    def allows(self, count: int) -> bool:
        """Say whether so many may be asked for together."""
        return self.left >= 1.0 - 1e-9 and count <= max(self.per_minute, 1.0)

    def _most(self) -> float:
        return max(self.per_minute * _BURST_SECONDS / 60, 1.0)
