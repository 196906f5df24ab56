"""`control` and `serve` killed at random moments, and started again."""

import threading
import time
from types import TracebackType

import numpy as np

from lab.controlplane.running import ControlPlane
from lab.errors import ControlPlaneError
from lab.experiments.ubis.real.plane import PROCESSES

_DOWN_SECONDS = 3.0
_END_SECONDS = 90.0


class Kills:
    """A context manager: while it is entered, one of our processes is killed about every `seconds` (SIGKILL).

    It stays down for up to three seconds. Who and when is drawn by the seed. `at` says when who was killed.
    """

    def __init__(self, control_plane: ControlPlane, seconds: float, seed: int) -> None:
        self.at: list[tuple[float, str]] = []
        self._control_plane, self._seconds, self._draw = control_plane, seconds, np.random.default_rng(seed)
        self._failure: BaseException | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kills", daemon=True)

    def __enter__(self) -> "Kills":
        """Begin."""
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End, with all of them running."""
        self._stopped.set()
        self._thread.join(_END_SECONDS)

    def check(self) -> None:
        """Raise what went wrong in the background."""
        if self._failure is not None:
            raise ControlPlaneError(f"a killed process did not start again: {self._failure}") from self._failure

    def _run(self) -> None:
        try:
            while not self._stopped.wait(self._draw.uniform(0.5, 1.5) * self._seconds):
                victim = PROCESSES[self._draw.integers(len(PROCESSES))]
                down = self._draw.uniform(0.0, _DOWN_SECONDS)
                self._control_plane.kill(victim)
                self.at.append((time.time(), victim))
                self._stopped.wait(down)
                self._control_plane.start(victim)
        except Exception as error:  # the edge of the thread: shown to whoever asks
            self._failure = error
