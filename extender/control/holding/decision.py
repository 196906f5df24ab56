"""Whether pods that are created now are to be held."""

from dataclasses import dataclass

OFF_AFTER_SECONDS = 5.0
"""Pods pass again once nobody has waited for room for so long: room that comes and goes flips nothing."""


@dataclass(slots=True)
class Holding:
    """Held at once where somebody waits for room; not held once nobody has for `OFF_AFTER_SECONDS`.

    One thread calls `note` and `keep`; another may read `held`, and call `begin`. Times in seconds, of any clock.
    """

    held: bool = False
    _waited_at: float = 0.0

    def begin(self, now: float) -> None:
        """Go on from a predecessor by whom pods are held: as if somebody had waited just now."""
        self._waited_at, self.held = now, True

    def keep(self, now: float) -> None:
        """Leave it as it is, for `OFF_AFTER_SECONDS` at least: at `now` nobody knows whether somebody waits."""
        self._waited_at = now

    def note(self, *, somebody_waits: bool, now: float) -> None:
        """Take note of what a plan leaves at `now`."""
        if somebody_waits:
            self._waited_at, self.held = now, True
        self._waited_at = min(self._waited_at, now)  # the clock may have been set back
        if now - self._waited_at >= OFF_AFTER_SECONDS:
            self.held = False
