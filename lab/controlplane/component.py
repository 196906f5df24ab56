"""One program of a control plane: started, watched, stopped, with its log in a file."""

import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lab.controlplane.guard import Guard
from lab.errors import ControlPlaneError

_STOP_SECONDS = 3
"""An API server with open watches would take a minute."""
_SHOWN_LINES = 20


@dataclass(frozen=True)
class Launch:
    """How to start a component and how to see that it is healthy; `context` is for an https address."""

    name: str
    command: Sequence[str]
    log: Path
    health: str
    context: ssl.SSLContext | None = None


class Process(Protocol):
    """What a component asks of its process: a part of `subprocess.Popen`."""

    @property
    def pid(self) -> int:
        """Return its number."""

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""

    def terminate(self) -> None:
        """Send SIGTERM."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code once it has ended; raise subprocess.TimeoutExpired after so many seconds."""


Starter = Callable[[Launch], Process]


def start_process(launch: Launch) -> Process:
    """Run the command in a session of its own; its log is continued."""
    with launch.log.open("ab") as log:
        return subprocess.Popen(
            launch.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


class Component:
    """A process that can be stopped, killed and started again with the same command."""

    def __init__(self, launch: Launch, guard: Guard, starter: Starter = start_process) -> None:
        self.launch = launch
        self._guard = guard
        self._starter = starter
        self._process: Process | None = None

    @property
    def name(self) -> str:
        """Return the component's name, as in `restart(name)`."""
        return self.launch.name

    @property
    def pid(self) -> int | None:
        """Return the number of the running process, None if it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process; its log is continued."""
        if self.pid is not None:
            raise ControlPlaneError(f"{self.name} runs already as process {self.pid}; stop it first")
        self._process = self._starter(self.launch)
        self._guard.add(self._process.pid)

    def wait_healthy(self, seconds: float) -> None:
        """Return once the component says that it is healthy; raise if it ends or the time is over."""
        limit = time.monotonic() + seconds
        while not self._is_healthy():
            if self.pid is None:
                raise ControlPlaneError(self._failure("ended before it was healthy"))
            if time.monotonic() > limit:
                raise ControlPlaneError(self._failure(f"was not healthy within {seconds:g} s"))
            time.sleep(0.05)

    def stop(self) -> None:
        """End the process in its own way (SIGTERM), and by SIGKILL if that takes too long."""
        self.terminate()
        self.wait_gone()

    def kill(self) -> None:
        """End the process at once (SIGKILL)."""
        if self.pid is not None and self._process is not None:
            self._process.kill()
        self.wait_gone()

    def terminate(self) -> None:
        """Ask the process to end."""
        if self.pid is not None and self._process is not None:
            self._process.terminate()

    def wait_gone(self) -> None:
        """Return once the process has ended, killing it where it does not."""
        if self._process is None:
            return
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._guard.remove(self._process.pid)
        self._process = None

    def _is_healthy(self) -> bool:
        request = urllib.request.Request(self.launch.health)  # noqa: S310 - an address of ours on loopback
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.launch.context)
        )
        try:
            with opener.open(request, timeout=10) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def _failure(self, what: str) -> str:
        lines = self.launch.log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]
        return f"{self.name} {what}; the end of {self.launch.log}:\n" + "\n".join(lines)
