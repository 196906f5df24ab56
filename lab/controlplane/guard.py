"""Nothing outlives its owner: a small process that kills what was registered once the owner is gone.

It reads `+PID` and `-PID` lines from a pipe whose other end only the owner holds. The end of the pipe means
that the owner stopped or was killed, however hard; whatever is registered then gets SIGKILL.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable


class Guard:
    """The owner's side of the pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-E", __file__], stdin=subprocess.PIPE, text=True, start_new_session=True
        )

    def add(self, pid: int) -> None:
        """Register a process."""
        self._tell(f"+{pid}\n")

    def remove(self, pid: int) -> None:
        """Forget a process; to be told before its number can be given to another."""
        self._tell(f"-{pid}\n")

    def close(self) -> None:
        """End the guard, and with it whatever is still registered."""
        self._process.communicate()

    def _tell(self, line: str) -> None:
        if self._process.stdin is None or self._process.poll() is not None:
            return
        self._process.stdin.write(line)
        self._process.stdin.flush()


def watch(lines: Iterable[str]) -> None:
    """Follow the lines to their end, then kill what they left registered."""
    registered: set[int] = set()
    for line in lines:
        pid = int(line[1:])
        if line.startswith("+"):
            registered.add(pid)
        else:
            registered.discard(pid)
    for pid in registered:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    watch(sys.stdin)
