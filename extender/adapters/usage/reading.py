"""Looks at the use of the cluster every interval, in a thread of its own, and keeps the last look.

A look that fails leaves all nodes out until the next: what was true before it may not be any more. Neither planning nor
readiness waits for anything here.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from extender.adapters.usage.looks import Source, UsageLook
from extender.adapters.usage.trust import nothing, oldest_sample, still_fresh
from extender.cluster.model import Node, Pod
from extender.cluster.usage import Usage
from extender.errors import UsageError

NOT_YET = "nothing was measured yet"

log = structlog.get_logger()


class LookListener(Protocol):
    """Hears of each look."""

    def note_look(self, kind: str) -> None:
        """Count a look: `kind` is "ok", or of what kind its failure was."""

    def note_failure(self, problem: str) -> None:
        """Say that nothing is measured from now on. It is not said again until a look has been good."""


@dataclass(slots=True)
class UsageReader:
    """Reads from `source`; `nodes` and `pods` give what there is: all nodes, and the pods to be measured one by one.

    Pods that have ended are among them for as long as rates hold something of them.

    Any thread may ask for `usage`; `run` belongs to one.
    """

    source: Source
    nodes: Callable[[], Sequence[Node]]
    pods: Callable[[], Sequence[Pod]]
    listener: LookListener
    interval_seconds: float
    stale_seconds: float
    clock: Callable[[], float] = time.time
    last: UsageLook = field(default_factory=lambda: UsageLook(Usage(), failure=NOT_YET, kind="not_yet"))
    looked_at: float = 0.0
    _failed: bool = False
    _kept: "_Kept | None" = None

    def usage(self) -> Usage:
        """Return what is known now. It may be asked at any time: what has become too old since the look is left out."""
        look, kept, now = self.last, self._kept, self.clock()
        if look.failure is not None:
            return nothing(self.nodes(), look.failure)
        if kept is None or kept.look is not look or now > kept.good_until:
            usage = still_fresh(look.usage, now, self.stale_seconds, look.node_of)
            kept = self._kept = _Kept(look, usage, oldest_sample(usage) + self.stale_seconds)
        return kept.usage

    def run(self, stopped: threading.Event) -> None:
        """Look every interval until `stopped`."""
        while not stopped.is_set():
            begun = time.monotonic()
            self.look()
            stopped.wait(max(0.0, begun + self.interval_seconds - time.monotonic()))

    def look(self) -> None:
        """Look once. Nothing that goes wrong leaves here."""
        try:
            pods = [pod for pod in self.pods() if pod.node is not None]
            look = self.source.look(self.nodes(), pods)
        except UsageError as error:
            look = UsageLook(Usage(), failure=str(error), kind=error.kind)
        except Exception as error:  # whatever it is: a loop that ended here would never measure again
            log.exception("look failed")
            look = UsageLook(Usage(), failure=f"the look failed: {error!r}", kind="error")
        self.last, self.looked_at = look, self.clock()
        self._tell(look)

    def _tell(self, look: UsageLook) -> None:
        """Count each look; log and say when failing begins and when it ends, not in between.

        It ends with the first look that measures a node: just after a failure there are samples, and none is believed.
        """
        self.listener.note_look(look.kind or "ok")
        failed = look.failure is not None
        if failed and not self._failed:
            log.warning("use of nodes cannot be read", problem=look.failure, kind=look.kind)
            self.listener.note_failure(look.failure or "")
        elif self._failed and look.usage.nodes:
            log.info("use of nodes is read again", nodes=len(look.usage.nodes), problems=len(look.usage.problems))
        self._failed = failed or (self._failed and not look.usage.nodes)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is left of a look, and until when nothing more of it grows too old."""

    look: UsageLook
    usage: Usage
    good_until: float
