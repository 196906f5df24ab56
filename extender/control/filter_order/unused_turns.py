"""Turns that nobody uses: after a while room is no longer kept for them.

kube-scheduler refuses some pods for reasons that a plan does not know (volumes to be found, affinity between pods,
other extenders), and never asks us about them. Such a pod would keep its turn, and all others waiting, for ever.
"""

from collections.abc import Mapping


class UnusedTurns:
    """Follows the turns of task classes by name; times in seconds, of any clock.

    A turn lasts for `refused_seconds` where all pods of its class were refused before, for `untried_seconds` where
    some were never tried: kube-scheduler comes to these, unless it does not schedule them at all. A class that is left
    out gets another chance after `again_seconds`. Not safe for threads: callers hold a lock, or are one thread.
    """

    def __init__(self, *, refused_seconds: float, untried_seconds: float, again_seconds: float = 30.0) -> None:
        self._refused, self._untried, self._again = refused_seconds, untried_seconds, again_seconds
        self._since: dict[str, float] = {}
        self._out: dict[str, float] = {}

    def note(self, turns: Mapping[str, bool], now: float) -> None:
        """Note which classes have turns now, and whether some of their pods were never tried."""
        self._since = {name: self._since.get(name, now) for name in turns}
        for name, untried in turns.items():
            if now - self._since[name] >= (self._untried if untried else self._refused):
                self._out[name] = now

    def use(self, name: str) -> None:
        """Note that a pod of the class came: its turns count again, from now on."""
        self._since.pop(name, None)
        self._out.pop(name, None)

    def out(self, now: float) -> Mapping[str, float]:
        """Return since when which classes are left out of plans; each gets another chance after a while."""
        for name in [name for name, since in self._out.items() if now - since > self._again]:
            self.use(name)
        return self._out
