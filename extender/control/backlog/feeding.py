"""News on its way to ledger and backlog: both take the same pods, as they count (`cluster.reckoning`)."""

import threading
from collections.abc import Callable

from extender.cluster.ledger.ledger import Ledger
from extender.cluster.model import Event
from extender.control.backlog.backlog import Backlog


class Feed:
    """Takes events of watches in any thread. The backlog, where there is one, is told before the ledger.

    Whoever waits for news of the ledger finds it in the backlog then.
    """

    def __init__(self, ledger: Ledger, backlog: Backlog | None, now: Callable[[], float]) -> None:
        self._ledger, self._backlog, self._now = ledger, backlog, now
        self._lock = threading.Lock()

    def take(self, event: Event) -> list[Event]:
        """Take an event in, and return it in parts, with pods as they count."""
        with self._lock:
            parts = self._ledger.reckon(event)
            for part in parts:
                if self._backlog is not None:
                    self._backlog.apply(part, self._now())
                self._ledger.take(part)
        return parts
