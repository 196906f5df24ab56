"""The CPU time of processes and of the machine, as Linux counts it in /proc."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_USER, _SYSTEM = 11, 12
"""Fields of /proc/PID/stat after the program's name, which is in parentheses and may hold spaces."""
_IDLE, _WAITING = 3, 4
"""Fields of the first line of /proc/stat after its name that are no work."""
_MUCH, _FULL = 1 / 8, 7 / 8


@dataclass(frozen=True, slots=True)
class Load:
    """How many of a machine's `cores` were busy in the mean: with certain processes, `own`, and with all `others`."""

    cores: int
    own: float
    others: float

    @property
    def crowded(self) -> bool:
        """Whether the processes had to share: others kept much of the machine busy, and hardly any of it was idle."""
        return self.others >= _MUCH * self.cores and self.own + self.others >= _FULL * self.cores


class LoadMeter:
    """How busy the machine is from now on, with this process and those named, and with others."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        """Take the process numbers by name; the processes must live until the last call of `load`."""
        self._pids = pids
        self._begun, self._before = time.monotonic(), self._used()

    def load(self) -> Load:
        """Return the means over the time since the beginning."""
        seconds = max(time.monotonic() - self._begun, 1e-9)
        own, machine = (after - before for after, before in zip(self._used(), self._before, strict=True))
        return Load(os.cpu_count() or 1, own / seconds, max(machine - own, 0.0) / seconds)

    def _used(self) -> tuple[float, float]:
        """Return the CPU time of the processes and of the machine so far."""
        return sum(cpu_seconds(self._pids).values()) + time.process_time(), machine_seconds()


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """Return the CPU time that each process has used so far, all its threads together, by name."""
    return {name: _used((_PROC / str(pid) / "stat").read_text()) for name, pid in pids.items()}


def machine_seconds() -> float:
    """Return the CPU time that the whole machine has used so far, whoever by."""
    return _busy((_PROC / "stat").read_text())


def _used(stat: str) -> float:
    fields = stat.rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _ticks()


def _busy(stat: str) -> float:
    """Return the busy time of the line of all cores; guests' time, the last two fields, is within the user's."""
    fields = [int(field) for field in stat.splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[_IDLE] - fields[_WAITING]) / _ticks()


def _ticks() -> int:
    return os.sysconf("SC_CLK_TCK")
