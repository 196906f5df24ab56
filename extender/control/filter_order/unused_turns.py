"""Turns that nobody uses: after a while room is no longer kept for them.

kube-scheduler refuses some pods for reasons that a plan does not know (volumes to be found, affinity between pods,
other extenders), and never asks us about them. Such a pod would keep its turn, and all others waiting, for ever.
"""

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TypeVar

from extender.control.backlog.pending_writes import doubled

_GAP_SECONDS = 1.0
"""A turn that is back before this time is over is still the same: plan by plan it may be that of one and of another."""

_LONGEST_SECONDS = 300.0

AnyTurn = TypeVar("AnyTurn", bound="Turn")


@dataclass(slots=True)
class Turn:
    """Since when somebody has a turn, and since when not any more; infinite while it goes on."""

    since: float
    ended: float = math.inf


def end_turns(turns: dict[str, AnyTurn], going_on: Container[str], now: float) -> None:
    """End all turns but those `going_on`, and forget turns that are not back soon enough."""
    for name, turn in [*turns.items()]:
        turn.ended = min(turn.ended, now)
        if now - turn.ended >= _GAP_SECONDS:
            del turns[name]
        elif name in going_on:
            turn.ended = math.inf


@dataclass(slots=True)
class _Rest:
    """Since when a class is left out, and for the how many-th time in a row."""

    since: float
    times: int


class UnusedTurns:
    """Follows the turns of task classes by name; times in seconds, of any clock.

    A turn lasts for `refused_seconds` where all pods of its class were refused before, for `untried_seconds` where
    some were never tried: kube-scheduler comes to these, unless it does not schedule them at all. A class that is left
    out gets another chance after `again_seconds`; where that is in vain too, after twice as long each time, five
    minutes at most. Not safe for threads: callers hold a lock, or are one thread.
    """

    def __init__(self, *, refused_seconds: float, untried_seconds: float, again_seconds: float = 30.0) -> None:
        self._refused, self._untried, self._again = refused_seconds, untried_seconds, again_seconds
        self._turns: dict[str, Turn] = {}
        self._rests: dict[str, _Rest] = {}
        self._released_at: dict[str, float] = {}

    def note(self, turns: Mapping[str, bool], now: float) -> None:
        """Note which classes have turns now, and whether some of their pods were never tried."""
        end_turns(self._turns, turns, now)
        out = self.out(now)
        for name, untried in turns.items():
            turn = self._turns.setdefault(name, Turn(now))
            if name not in out and now - turn.since >= (self._untried if untried else self._refused):
                times = self._rests[name].times + 1 if name in self._rests else 1
                self._rests[name] = _Rest(now, times)
                del self._turns[name]

    def use(self, name: str) -> None:
        """Note that a pod of the class came: its turns count again, from now on."""
        self._turns.pop(name, None)
        self._rests.pop(name, None)

    def note_releases(self, latest: Mapping[str, float]) -> None:
        """Note when a pod of each class was released last: one that was released since the last call used its turn.

        What was released before a class first had a turn says nothing of that, nor of its rests.
        """
        for name, released_at in latest.items():
            if released_at > self._released_at.get(name, released_at):
                self.use(name)
        names = self._turns.keys() | self._rests.keys()
        self._released_at = {name: at for name, at in self._released_at.items() if name in names} | dict(latest)

    def out(self, now: float) -> Mapping[str, float]:
        """Return since when which classes are left out of plans; each gets another chance after a while."""
        out: dict[str, float] = {}
        for name, rest in [*self._rests.items()]:
            seconds = doubled(self._again, rest.times, _LONGEST_SECONDS)
            if now - rest.since <= seconds:
                out[name] = rest.since
            elif now - rest.since > seconds + _LONGEST_SECONDS:
                del self._rests[name]  # it got no other turn, or is gone
        return out
