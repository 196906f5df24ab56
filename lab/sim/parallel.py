"""Many runs over the cores: each in a process of its own, with results in the order of the tasks.

The result of a run depends only on its task: neither the number of processes nor the order of the ends changes it.
"""

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from extender.errors import DovetailError

Task = TypeVar("Task")
Result = TypeVar("Result")
Tell = Callable[[int, int], None]
"""Says how far a run is: how much has ended, of how much."""

Show = Callable[[str, int, int], None]
"""Shows how far the run of this name is. When it has ended, well or not, the two numbers are equal."""

_TELL_SECONDS = 0.1
_END_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Failed:
    """A run that failed: the reason, and the traceback if it is a bug."""

    reason: str
    trace: str = ""


def usable_cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    function: Callable[[Task, Tell], Result], tasks: Mapping[str, Task], *, processes: int, show: Show
) -> dict[str, Result | Failed]:
    """Return the result of `function` for each task, by name, in the order of the tasks.

    `function` is a module's own; tasks and results can be pickled. With one process, or one task, all is done in this
    one. An interrupt (Ctrl-C) ends the processes and goes on to the caller.
    """
    crew = min(processes, len(tasks))
    if crew <= 1:
        return {name: _here(function, name, task, show) for name, task in tasks.items()}
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(function)) for _ in range(crew)]
        results: dict[str, Result | Failed] = _dispatch(workers, tasks, show)
    return {name: results.get(name, _GONE) for name in tasks}


def unless_failed(results: Mapping[str, Result | Failed]) -> dict[str, Result]:
    """Return the results if every run was done. Raises DovetailError, with the first other's name and reason."""
    done: dict[str, Result] = {}
    for name, result in results.items():
        if isinstance(result, Failed):
            raise DovetailError("\n".join(filter(None, (f"{name}: {result.reason}", result.trace))))
        done[name] = result
    return done


_GONE = Failed("its process has ended; was it killed, or is memory short?")


@dataclass(frozen=True, slots=True)
class _Progress:
    """A message of a worker: its progress."""

    done: int
    total: int


def _here(function: Callable[[Task, Tell], Result], name: str, task: Task, show: Show) -> Result | Failed:
    result = _attempt(function, task, _seldom(lambda done, total: show(name, done, total)))
    show(name, 1, 1)
    return result


def _dispatch(crew: Sequence[Connection], tasks: Mapping[str, Any], show: Show) -> dict[str, Any]:
    """Give each idle worker the next task until all are done or no worker is left; return what came back."""
    remaining = iter(tasks.items())
    results: dict[str, Any] = {}
    busy = dict(_send_tasks(crew, remaining))
    while busy:
        for worker in [ready for ready in wait(list(busy)) if isinstance(ready, Connection)]:
            message = _message(worker)
            if isinstance(message, _Progress):
                show(busy[worker], message.done, message.total)
                continue
            name = busy.pop(worker)
            results[name] = message
            show(name, 1, 1)
            if message is not _GONE:
                busy.update(_send_tasks((worker,), remaining))
    return results


def _send_tasks(crew: Iterable[Connection], remaining: Iterator[tuple[str, Any]]) -> Iterator[tuple[Connection, str]]:
    """Send each of these workers a task while any are left; yield the worker and the name of its task."""
    for worker, (name, task) in zip(crew, remaining, strict=False):
        with suppress(OSError):  # it has ended; receiving from it says so
            worker.send(task)
        yield worker, name


def _message(worker: Connection) -> object:
    """Return the worker's next message; a worker that has ended has failed at its task."""
    try:
        return worker.recv()
    except (EOFError, OSError):
        return _GONE


@contextmanager
def _worker(function: Callable[[Task, Tell], Result]) -> Iterator[Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(function, theirs), daemon=True)
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # which it inherits: the parent handles interrupts
    process.start()
    signal.signal(signal.SIGINT, handler)
    theirs.close()
    try:
        yield ours
    finally:
        process.terminate()
        process.join(_END_SECONDS)
        ours.close()


def _work(function: Callable[[Task, Tell], Result], connection: Connection) -> None:
    """Run tasks as they are sent, until the parent is gone."""
    try:
        while True:
            task = connection.recv()
            connection.send(_attempt(function, task, _seldom(lambda *far: connection.send(_Progress(*far)))))
    except (EOFError, BrokenPipeError):
        return


def _attempt(function: Callable[[Task, Tell], Result], task: Task, tell: Tell) -> Result | Failed:
    """Return the result of a run, or why it failed; a failed run does not end the others."""
    try:
        return function(task, tell)
    except DovetailError as error:
        return Failed(str(error))
    except Exception as error:
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())


def _seldom(tell: Tell) -> Tell:
    """Return a function that shows progress a few times a second, however often it is called."""
    last = -_TELL_SECONDS

    def now_and_then(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _TELL_SECONDS:
            last = time.monotonic()
            tell(done, total)

    return now_and_then
