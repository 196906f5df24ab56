"""Whether a process still works: no thread of it has died, and no loop stands still."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from extender.adapters.kube.recorder import Poster

SILENT_SECONDS = 180.0
"""A loop that is silent for so long is taken for stuck: every call to the API server ends long before."""

log = structlog.get_logger()


@dataclass(slots=True)
class Liveness:
    """Watches over the threads of one process. `clock` is monotonic; any thread may call."""

    clock: Callable[[], float] = time.monotonic
    _died: dict[str, str] = field(default_factory=dict)
    _due: dict[object, tuple[str, float]] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, name: str, run: Callable[[], None]) -> threading.Thread:
        """Run something in a thread of its own, by this name. One that returns is done; one that raises has died."""
        thread = threading.Thread(target=self._supervise, args=(name, run), name=name, daemon=True)
        thread.start()
        return thread

    def beat(self, name: str, rest_seconds: float = 0.0) -> None:
        """Say that a loop moves, and that it may rest for so long. Nothing is expected of one before its first beat."""
        self._expect(name, name, rest_seconds)

    @contextmanager
    def during(self, name: str) -> Iterator[None]:
        """Expect the work inside to end in time. Many threads may be inside by one name."""
        key = object()
        self._expect(key, name)
        try:
            yield
        finally:
            self._forget(key)

    def over(self, poster: Poster, name: str) -> Poster:
        """Return the same poster, each of whose writes must end in time."""
        return _Watched(self, poster, name)

    def problem(self) -> str | None:
        """Return which thread has died, or which loop stands still; None where all is well."""
        now = self.clock()
        with self._lock:
            died = [f"thread {name} has died: {why}" for name, why in self._died.items()]
            late = {name for name, due in self._due.values() if now > due}
        problems = died + [f"{name} has not moved for more than {SILENT_SECONDS:g} s" for name in sorted(late)]
        for text in problems:
            if text not in self._reported:
                self._reported.add(text)
                log.error("not live", problem=text)
        return "; ".join(problems) or None

    def _supervise(self, name: str, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:
            with self._lock:
                self._died[name] = repr(error)
            log.exception("thread died", thread=name)
        finally:
            self._forget(name)

    def _expect(self, key: object, name: str, rest_seconds: float = 0.0) -> None:
        with self._lock:
            self._due[key] = (name, self.clock() + rest_seconds + SILENT_SECONDS)

    def _forget(self, key: object) -> None:
        with self._lock:
            self._due.pop(key, None)


@dataclass(frozen=True, slots=True)
class _Watched:
    liveness: Liveness
    poster: Poster
    name: str

    def post(self, path: str, body: Mapping[str, Any]) -> None:
        with self.liveness.during(self.name):
            self.poster.post(path, body)
