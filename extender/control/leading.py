"""Who leads: one replica at a time, by a Lease, and only while it is sure that no other can.

The client library's own election goes by the wall clock, cannot be stopped, and does not say until when we lead. The
check before each write needs that.
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
class LeaseTimes:
    """We act for `renew` seconds after the last renewal, less than the Lease lasts for others.

    `retry` is the pause between two attempts.
    """

    renew: float
    retry: float


class Leader:
    """Runs for the Lease until stopped. `clock` is monotonic; it goes on while the process is paused.

    `run` belongs to one thread and calls `moved` at each turn; any thread may ask whether we lead.
    """

    def __init__(
        self,
        lease: Lease,
        identity: str,
        times: LeaseTimes,
        clock: Callable[[], float],
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        self.identity = identity
        self._moved = moved
        self._lease, self._times, self._clock = lease, times, clock
        self._sure_until = -1.0
        self._last_change: tuple[Record | None, float] | None = None
        self._gave_up = False
        self._stopped = threading.Event()

    def leads(self) -> bool:
        """Say whether nobody else can lead now."""
        return self._clock() < self._sure_until

    def run(self) -> None:
        """Take the Lease when it is free and renew it, until `stop`."""
        led = False
        while not self._stopped.is_set():
            self._moved()
            led = self._tell_change(led)  # our time may have run out since the last turn
            try:
                self.attempt()
            except Exception:  # whatever it is: a loop that ended here would never lead again
                log.exception("lease not renewed")
            led = self._tell_change(led)
            self._stopped.wait(self._times.retry)

    def attempt(self) -> None:
        """Try once to take or renew the Lease, unless it was given up meanwhile."""
        asked_at = self._clock()
        try:
            before = self._lease.read()
            self._note(before, asked_at)
            if not self._gave_up and self._is_free(before, asked_at):
                record = self._lease.write(self.identity, before)
                self._last_change = (record, asked_at)
                self._sure_until = asked_at + self._times.renew
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
            record = self._lease.read()
            if record is not None and record.holder == self.identity:
                self._lease.write("", record)
        except ClusterError as error:
            log.warning("lease not given up", error=str(error))

    def _tell_change(self, led: bool) -> bool:
        """Return whether we lead now, and log that where it has changed."""
        leads = self.leads()
        if leads != led:
            log.info("leading" if leads else "no longer leading", identity=self.identity)
        return leads

    def _note(self, record: Record | None, now: float) -> None:
        """Note when another holder's Lease was seen to change: we do not lead then, and its time begins anew."""
        of_another = record is not None and record.holder not in ("", self.identity)
        if of_another and (self._last_change is None or self._last_change[0] != record):
            self._last_change = (record, now)
            self._sure_until = -1.0

    def _is_free(self, record: Record | None, now: float) -> bool:
        """Say whether the Lease is free, ours, or unchanged for longer than it lasts, by our own clock."""
        if record is None or record.holder in ("", self.identity):
            return True
        return self._last_change is not None and now - self._last_change[1] > record.seconds
