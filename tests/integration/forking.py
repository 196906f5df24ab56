"""Services of this checkout as forks of one process that has imported them: an import takes most of a second of CPU.

What runs in the fork is `main` with the same arguments, environment, folder and log as a process of its own. The
command as its own process is run by the tests of the command line, the wheel, the playground and the demo.
"""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from extender.__main__ import main
from lab.controlplane.component import Launch, Process, start_process
from lab.controlplane.running import THIS_CHECKOUT

_PRELOADED = ["extender.cli", "extender.app.together"]


class Fork:
    """A process of `multiprocessing` with what a component asks of its process."""

    def __init__(self, launch: Launch) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        arguments = launch.command[len(THIS_CHECKOUT) :]
        self._process = context.Process(
            target=_run, args=(arguments, str(launch.log), dict(os.environ), os.getcwd()), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """Return its number."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return its exit code, None while it runs."""
        return self._process.exitcode

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code once it has ended; raise subprocess.TimeoutExpired after so many seconds."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return self._process.exitcode


def fork_service(launch: Launch) -> Process:
    """Start what runs this checkout's `dovetail` as a fork, and everything else as a process of its own."""
    ours = tuple(launch.command[: len(THIS_CHECKOUT)]) == THIS_CHECKOUT
    return Fork(launch) if ours else start_process(launch)


def _run(arguments: Sequence[str], log: str, environment: Mapping[str, str], folder: str) -> None:
    """Be `python -m extender` with these arguments: in a session of its own, without input, its output in the log."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for opened, flags, streams in (
        (os.devnull, os.O_RDONLY, (0,)),
        (log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, (1, 2)),
    ):
        descriptor = os.open(opened, flags)
        for stream in streams:
            os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.argv = ["dovetail", *arguments]
    main()
