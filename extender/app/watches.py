"""The watches of one process: whoever follows the same kind shares one, and sees the same events."""

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from extender.adapters.kube.api import Api
from extender.adapters.kube.watching import Resource, Watch
from extender.app.caches import name_of
from extender.app.liveness import Liveness
from extender.cluster.events import Event

Take = Callable[[Event], object]
Restarted = Callable[[str, str], None]

_COLLECT_AFTER = (50_000, 20, 20)
"""So many new objects make Python look for cycles among them; each event makes some hundred, which live or die without.

Python's own 700 cost 4 to 6 % of the CPU time of `serve` and `control`.
"""


@dataclass(slots=True)
class _Followers:
    """Who takes the events of one watch, and hears what ended it, in the order in which they came."""

    takes: list[Take] = field(default_factory=list)
    restarted: list[Restarted] = field(default_factory=list)

    def take(self, event: Event) -> None:
        for take in self.takes:
            take(event)

    def note_restart(self, resource: str, cause: str) -> None:
        for restarted in self.restarted:
            restarted(resource, cause)


class Watches:
    """Follows kinds for the `parts` of a process (`serve`, `control`); each runs in a thread of its own.

    A part follows what it needs, and then calls `start`. Nothing is listed until all parts have done so.
    """

    def __init__(self, api: Api, liveness: Liveness, *, parts: int = 1) -> None:
        self._api, self._liveness = api, liveness
        self._by_path: dict[str, tuple[Watch, _Followers]] = {}
        self._lock = threading.Lock()
        self._all = threading.Barrier(parts, action=self._start)

    def follow(self, resource: Resource, take: Take, restarted: Restarted) -> Watch:
        """Return the watch of a resource; `take` gets its events, `restarted` hears what ended it."""
        with self._lock:
            if resource.path not in self._by_path:
                followers, moved = _Followers(), partial(self._liveness.beat, name_of(resource))
                watch = Watch(self._api, resource, followers.take, restarted=followers.note_restart, moved=moved)
                self._by_path[resource.path] = watch, followers
            watch, followers = self._by_path[resource.path]
            followers.takes.append(take)
            followers.restarted.append(restarted)
            return watch

    def start(self) -> None:
        """Start all watches, once every part has called this."""
        self._all.wait()

    def _start(self) -> None:
        gc.set_threshold(*_COLLECT_AFTER)
        for watch, _ in self._by_path.values():
            self._liveness.start(name_of(watch.resource), watch.run)
