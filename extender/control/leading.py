"""Who leads: one replica at a time, by a Lease, and never longer than it can be sure of.

The client library's own election goes by the wall clock, cannot be stopped, and does not say until when we lead; the
fence before each write needs just that.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from extender.cluster.lease import Record
from extender.errors import ClusterError

log = structlog.get_logger()


class Lease(Protocol):
    """One Lease. Calls raise ClusterError where the server is out of reach or somebody else was faster."""

    def read(self) -> Record | None:
        """Return it; None where there is none."""

    def write(self, holder: str, before: Record | None) -> Record:
        """Make `holder` its holder, unless it has changed since `before`; return what is there now."""


@dataclass(frozen=True, slots=True)
class Terms:
    """`seconds` after the last renewal others may take over; `renew` < `seconds`: for so long we take it for ours."""

    seconds: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Leader:
    """Runs for the Lease until stopped. `clock` is monotonic; it goes on while the process is paused.

    `moved` is called at each turn of `run`.
    """

    def __init__(
        self,
        lease: Lease,
        identity: str,
        terms: Terms,
        clock: Callable[[], float],
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.identity = identity
        self._moved = moved
        self._lease, self._terms, self._clock = lease, terms, clock
        self._sure_until = -1.0
        self._seen: tuple[Record | None, float] | None = None
        self._gave_up = False
        self._stopped = threading.Event()
        self.elected = threading.Event()

    def leads(self) -> bool:
        """Say whether nobody else can lead now."""
        return self._clock() < self._sure_until

    def run(self) -> None:
        """Take the Lease when it is free and renew it, until `stop`."""
        while not self._stopped.is_set():
            self._moved()
            led = self.leads()
            try:
                self.attempt()
            except Exception:  # whatever it is: a loop that ended here would never lead again
                log.exception("lease not renewed")
            if self.leads() != led:
                log.info("leading" if self.leads() else "no longer leading", identity=self.identity)
            self._stopped.wait(self._terms.retry)

    def attempt(self) -> None:
        """Try once to take or renew the Lease, unless it was given up meanwhile."""
        asked_at = self._clock()
        try:
            found = self._lease.read()
            if not self._gave_up and self._may_take(found, asked_at):
                record = self._lease.write(self.identity, found)
                self._seen = (record, asked_at)
                self._sure_until = asked_at + self._terms.renew
                self.elected.set()
        except ClusterError as error:
            log.warning("lease not renewed", error=str(error))

    def stop(self) -> None:
        """End `run`; `give_up` afterwards, once nothing is being written any more."""
        self._stopped.set()

    def give_up(self) -> None:
        """Let others lead at once, if we lead."""
        self._gave_up = True
        led, self._sure_until = self.leads(), -1.0
        if not led:
            return
        try:
            found = self._lease.read()
            if found is not None and found.holder == self.identity:
                self._lease.write("", found)
        except ClusterError as error:
            log.warning("lease not given up", error=str(error))

    def _may_take(self, found: Record | None, now: float) -> bool:
        """Say whether it is free, ours, or unchanged for longer than it lasts, by our own clock."""
        if found is None or found.holder in ("", self.identity):
            return True
        if self._seen is None or self._seen[0] != found:
            self._seen = (found, now)
            self._sure_until = -1.0
            return False
        return now - self._seen[1] > found.seconds
