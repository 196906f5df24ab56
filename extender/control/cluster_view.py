"""What the loops of the leader get to work with: the cluster as the watches show it, and the means to write."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from extender.cluster.ledger.ledger import Ledger
from extender.cluster.ledger.snapshot import Snapshot
from extender.control.backlog.backlog import Backlog
from extender.control.backlog.pending_writes import LONGEST_CLAIM_SECONDS
from extender.control.plan_input.builder import PlanInputBuilder

_LOOK_SECONDS = 1.0


@dataclass(slots=True)
class Sight:
    """Since when the watches have shown without a break what was written. One thread."""

    _last: tuple[float, float] = (math.inf, 0.0)
    _broken_at: float = -math.inf

    def look(self, now: float, flight_time: float) -> None:
        """Note whether flight time has gone on since the last look, a second ago or more.

        A shorter time says nothing, as the two clocks are not read at one moment: calls may be nearer to each other
        than these readings. The clock of `now` may also go up to twice as fast as the other.
        """
        passed, flown = now - self._last[0], flight_time - self._last[1]
        if not 0 <= passed < _LOOK_SECONDS:
            self._last = now, flight_time
            if flown < passed / 3:
                self._broken_at = now

    def lasts(self, seconds: float, now: float) -> bool:
        """Say whether flight time has gone on for so many seconds, by all looks."""
        return not 0 <= now - self._broken_at < seconds


@dataclass(frozen=True, slots=True)
class ClusterView:
    """Shared by the release loop and reclaim, which run in one thread.

    `leads` says whether we may still write; `flight_time` is a clock that stands still while a watch is down;
    `run_soon` runs a write, now or later, in any thread; `assume_seconds` is how long a write takes to show.
    `awaiting_evictions` are the pods, by UID, that reclaim keeps a node for until its victims are gone: they are in
    flight and not yet on their way. Only reclaim changes it. `passed_by` are released pods, by UID, that kube-scheduler
    does not try. Only the release loop changes it.
    """

    ledger: Ledger
    backlog: Backlog
    input_builder: PlanInputBuilder
    leads: Callable[[], bool]
    flight_time: Callable[[], float]
    run_soon: Callable[[Callable[[], None]], object]
    assume_seconds: float = 15.0
    awaiting_evictions: set[str] = field(default_factory=set)
    passed_by: set[str] = field(default_factory=set)
    sight: Sight = field(default_factory=Sight)

    def snapshot(self) -> Snapshot:
        """Return what is free on the nodes now."""
        return self.ledger.snapshot(self.flight_time())

    def flights(self) -> set[str]:
        """Return the pods, by UID, that count on a node where the watches do not show them yet."""
        return self.ledger.in_flight(self.flight_time())

    def expire_writes(self, now: float) -> bool:
        """Forget claims and backoffs that have ended, and those that end too late because the clock was set back.

        While a watch is down, and for as long afterwards as a write takes to show, claims stay: return False.
        """
        self.sight.look(now, self.flight_time())
        sees = self.sight.lasts(self.assume_seconds, now)
        longest = max(2 * self.assume_seconds, LONGEST_CLAIM_SECONDS)
        self.backlog.writes.expire(now, longest, claims=sees)
        return sees
