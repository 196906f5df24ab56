"""The CPU time of processes, as Linux counts it in /proc."""

import os
from collections.abc import Mapping
from pathlib import Path

_PROC = Path("/proc")
_USER, _SYSTEM = 11, 12
"""Fields of /proc/PID/stat after the program's name, which is in parentheses and may hold spaces."""
_IDLE, _WAITING = 3, 4
"""Fields of the first line of /proc/stat after its name that are no work."""


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
