"""How Prometheus can be gone, and how it comes back."""

import os
import signal
from collections.abc import Callable, Mapping
from types import MappingProxyType

from lab.experiments.ubis.real.plane import Plane

_HEALTHY_SECONDS = 60.0


def _stop(plane: Plane) -> None:
    plane.prometheus.kill()


def _start(plane: Plane) -> None:
    plane.prometheus.start()
    plane.prometheus.wait_healthy(_HEALTHY_SECONDS)


def _fail(plane: Plane) -> None:
    plane.front.failing = True


def _answer(plane: Plane) -> None:
    plane.front.failing = False


def _freeze(plane: Plane) -> None:
    _signal(plane, signal.SIGSTOP)


def _thaw(plane: Plane) -> None:
    _signal(plane, signal.SIGCONT)


def _signal(plane: Plane, number: signal.Signals) -> None:
    if plane.prometheus.pid is not None:
        os.kill(plane.prometheus.pid, number)


Act = Callable[[Plane], None]

OUTAGES: Mapping[str, tuple[Act, Act]] = MappingProxyType(
    {"stopped": (_stop, _start), "failing": (_fail, _answer), "frozen": (_freeze, _thaw)}
)
"""By name: what begins it, and what ends it. Killed; answers 500 to everything; stopped by SIGSTOP, so it is silent."""
