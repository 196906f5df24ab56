"""Ends holding where nobody is left to release pods: `dovetail control` has not renewed its Lease for long."""

import threading
from collections.abc import Callable
from typing import Protocol

import structlog

from extender.cluster.hold import Hold
from extender.cluster.lease import Record
from extender.control.holding.keeper import HoldObject
from extender.errors import ClusterError

STALE_LEASES = 4.0
"""So many times as long as the Lease lasts. Another replica takes over after once; a new one starts in that time."""

_LOOKS = 6
"""So often we look in that time."""

log = structlog.get_logger()


class ReadLease(Protocol):
    """The Lease that `control` leads by. Raises ClusterError."""

    def read(self) -> Record | None:
        """Return it; None where there is none."""


class HoldEnder:
    """Has new pods pass once the Lease has been as it is for `stale_seconds`, by our own `clock`.

    Time in which the API server does not answer us does not count: it may not have answered `control` either.
    """

    def __init__(
        self,
        lease: ReadLease,
        hold_object: HoldObject,
        stale_seconds: float,
        clock: Callable[[], float],
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        """Take what is called at each turn (`moved`)."""
        self._lease, self._object, self._stale_seconds = lease, hold_object, stale_seconds
        self._clock, self._moved = clock, moved
        self._last: tuple[Record | None, float] | None = None
        self._stopped = threading.Event()

    def run(self) -> None:
        """Look again and again, until `stop`."""
        while not self._stopped.is_set():
            self._moved()
            self.turn()
            self._stopped.wait(self._stale_seconds / _LOOKS)

    def stop(self) -> None:
        """End `run`."""
        self._stopped.set()

    def turn(self) -> None:
        """Look at the Lease; where it is stale, and pods are held, write that they are not."""
        try:
            record, now = self._lease.read(), self._clock()
            if self._last is None or self._last[0] != record:
                self._last = (record, now)
            if now - self._last[1] < self._stale_seconds:
                return
            hold = self._object.read()
            if hold is not None and hold.held:
                why = f"the Lease of dovetail control has not been renewed for {self._stale_seconds:g} s"
                self._object.write(Hold(held=False, why=why), hold)
                log.warning("new pods pass", why=why)
        except ClusterError as error:
            self._last = None
            log.warning("cannot tell whether pods are held in vain", error=str(error))
