"""Has the Hold of the cluster say what was decided: written until it is read back, by the leader alone."""

import threading
from collections.abc import Callable
from typing import Protocol

import structlog

from extender.cluster.hold import Hold
from extender.control.holding.decision import Holding
from extender.errors import ClusterError

SOMEBODY_WAITS, NOBODY_WAITS = "somebody waits for room", "nobody waits for room"

_PAUSE_SECONDS = 1.0
_LOOK_SECONDS = 10.0
"""Others may write the Hold too: it is read so often where nothing is to be changed."""

_UNUSABLE_SECONDS = 60.0
"""Where the kind or the right to it is missing, it is tried again after so long: somebody may install them."""

_UNUSABLE = (403, 404)

log = structlog.get_logger()


class HoldObject(Protocol):
    """The Hold of an installation. Calls raise ClusterError, with the API server's status where it answered."""

    def read(self) -> Hold | None:
        """Return it; None where there is none."""

    def write(self, hold: Hold, before: Hold | None) -> None:
        """Write it, unless it has changed since `before`; None: make it."""


class HoldKeeper:
    """Writes the Hold. `run` belongs to one thread; any may call `soon` and read `shown`, `why`, and `flips`.

    `shown` is what the Hold was last seen to say; None: not known, or there is none. `flips` counts its changes by us.
    """

    def __init__(
        self,
        holding: Holding,
        hold_object: HoldObject,
        leads: Callable[[], bool],
        now: Callable[[], float],
        *,
        always: str,
        moved: Callable[[], None] = lambda: None,
    ) -> None:
        """Take why pods are held `always`, whether or not somebody waits for room; empty: they are not.

        `now` is the clock of `holding`. `moved` is called at each turn.
        """
        self._holding, self._object, self._leads, self._now = holding, hold_object, leads, now
        self._always, self._moved = always, moved
        self._wanted = threading.Event()
        self._stopped = False
        self._read_at = self._unusable_at = float("-inf")
        self._led = False
        self._said = ""
        self.shown: bool | None = None
        self.flips = 0

    @property
    def why(self) -> str:
        """Why pods are held, or not, as it would be written now."""
        if self._always:
            return self._always
        return SOMEBODY_WAITS if self._holding.held else NOBODY_WAITS

    def run(self) -> None:
        """Keep the Hold until `stop`."""
        while not self._stopped:
            self._moved()
            self.turn()
            self._wanted.wait(_PAUSE_SECONDS)
            self._wanted.clear()

    def soon(self) -> None:
        """Have `run` look at once."""
        self._wanted.set()

    def stop(self) -> None:
        """End `run`."""
        self._stopped = True
        self.soon()

    def turn(self) -> None:
        """Read the Hold where that is due, and write it where it does not say what it should."""
        now = self._now()
        # 1. Only the leader writes. A new one goes on from what its predecessor wrote.
        if not self._leads():
            self._led, self.shown = False, None
            return
        if 0 <= now - self._unusable_at < _UNUSABLE_SECONDS:
            return
        held = self._holding.held or bool(self._always)
        if self._led and held is self.shown and 0 <= now - self._read_at < _LOOK_SECONDS:
            return
        try:
            # 2. See what is there.
            before = self._object.read()
            self._read_at, self.shown = now, None if before is None else before.held
            if not self._led and before is not None and before.held:
                self._holding.begin(now)
                held = True
            self._led = True
            # 3. Write what should be there, also if only the reason is another. The next turn reads it back.
            if (held is not self.shown or self._why_is_old(before)) and self._leads():
                self._object.write(Hold(held, self.why), before)
                if held is not self.shown:
                    self.flips += before is not None or held
                    self.shown = None
                    log.info("new pods are held" if held else "new pods pass", why=self.why)
                    self.soon()
            self._said = ""
        except ClusterError as error:
            self._note_failure(error, now)

    def _why_is_old(self, before: Hold | None) -> bool:
        """Say whether the Hold gives another reason, such as that of a `serve` whose `control` was gone."""
        return before is not None and before.why != self.why

    def _note_failure(self, error: ClusterError, now: float) -> None:
        """Say once what keeps us from it; leave it for a while where no more tries can help."""
        is_new, self._said = str(error.status) != self._said, str(error.status)
        if error.status in _UNUSABLE:
            self._unusable_at = now
            if is_new:
                log.info("pods cannot be held; filter alone keeps the order", error=str(error))
        elif is_new:
            log.warning("hold not written", error=str(error))
