"""Whose waiting for CPU is not that of a regular pod: who is opportunistic, or was so within the window."""

from collections.abc import Collection
from dataclasses import dataclass, field

Name = tuple[str, str]
"""A pod's namespace and name."""


@dataclass(slots=True)
class LatelyOpportunistic:
    """Remembers who was opportunistic. A pod that was promoted has waited for longer before that than after."""

    _now: frozenset[Name] = frozenset()
    _until: dict[Name, float] = field(default_factory=dict)

    def at(self, now: float, opportunistic: Collection[Name], window: float) -> set[Name]:
        """Return who is opportunistic at `now`, and who was so at any time in the `window` seconds before."""
        before, self._now = self._now, frozenset(opportunistic)
        self._until |= dict.fromkeys(before - self._now, now + window)
        self._until = {pod: until for pod, until in self._until.items() if until > now}
        return {*self._now, *self._until}
