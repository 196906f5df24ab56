"""Events on their way to the ledger and the backlog: both see pods as they count (`cluster.pods.reckoning`)."""

import threading
from collections.abc import Callable

from extender.cluster.events import Event
from extender.cluster.ledger.ledger import Ledger
from extender.control.backlog.backlog import Backlog


class Feed:
    """Takes events of watches in any thread. The backlog, where there is one, has an event before the ledger.

    So whoever waits for an event in the ledger finds it in the backlog too.
    """

    def __init__(self, ledger: Ledger, backlog: Backlog | None, now: Callable[[], float]) -> None:
        self._ledger, self._backlog, self._now = ledger, backlog, now
        self._lock = threading.Lock()

    def take(self, event: Event) -> list[Event]:
        """Take an event in, and return its parts, with pods as they count."""
        with self._lock:
            parts = self._ledger.reckon(event)
            for part in parts:
                if self._backlog is not None:
                    self._backlog.apply(part, self._now())
                self._ledger.take(part)
        return parts
