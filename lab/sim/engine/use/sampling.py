"""Use as a policy sees it: the mean over a window, sampled every so often, and known a while later.

As with Prometheus: CPU, disk and network are the rate of a counter over the window, and so is how long regular tasks
wait for CPU; memory is what it is at the time of the sample.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Mask, Rows
from extender.cluster.resources import MEMORY_INDEX
from extender.errors import DovetailError
from lab.sim.engine.use.tasks import UsedTasks

_MEMORY = MEMORY_INDEX
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class Sampling:
    """A scrape every `scrape` seconds; means over `window` seconds (0: four scrapes); known `delay` seconds late."""

    scrape: float = 15.0
    window: float = 0.0
    delay: float = 1.0

    def __post_init__(self) -> None:
        if not (self.scrape > 0 and (self.window == 0 or self.window >= self.scrape) and self.delay >= 0):
            raise DovetailError("scrape: above 0; window: 0, or a scrape at least; delay: 0 or more")

    @property
    def window_seconds(self) -> float:
        """How long the window is."""
        return self.window or 4.0 * self.scrape


@dataclass(frozen=True, slots=True)
class Seen:
    """A sample: the mean use from `since` to `at` of each node [N, R], and of each of these `task`s [P, R].

    `pressure` [N] is for which part of that time regular tasks waited for CPU: those of a node all wait alike.
    Tasks are rows of the table, with the `node` on which each ran: all of which a scrape in the window has something,
    also those that have ended since.
    """

    since: float
    at: float
    nodes: Floats
    task: Rows
    node: Rows
    tasks: Floats
    pressure: Floats

    def of(self, task: Rows) -> tuple[Floats, Mask]:
        """Return what was measured of these tasks [K, R], 0 where nothing was; and of which something was."""
        place = np.minimum(np.searchsorted(self.task, task), max(len(self.task) - 1, 0))
        known = self.task[place] == task if len(self.task) else np.zeros(len(task), dtype=np.bool_)
        use = np.zeros((len(task), self.nodes.shape[1]))
        use[known] = self.tasks[place[known]]
        return use, known

    def of_others(self, task: Rows) -> Floats:
        """Return what was measured of all tasks but these, on each node [N, R]."""
        others = ~np.isin(self.task, task)
        total = np.zeros_like(self.nodes)
        np.add.at(total, self.node[others], self.tasks[others])
        return total


@dataclass(frozen=True, slots=True)
class _Scrape:
    """Counters and gauges at one moment: what nodes and tasks have used until `at`, and their memory then.

    `waited` [N] is for how many seconds regular tasks have waited for CPU.
    """

    at: float
    used: Floats
    waited: Floats
    memory: Floats
    task: Rows
    node: Rows
    began: Floats
    task_used: Floats
    task_memory: Floats


class Sampler:
    """Samples the use of machines [N] while time passes; `newest` is what is known of it at a time."""

    def __init__(self, sampling: Sampling, nodes: int, width: int, begin: float) -> None:
        self._sampling = sampling
        self._used, self._waited = np.zeros((nodes, width)), np.zeros(nodes)
        self._scrapes: deque[_Scrape] = deque()
        self._next = begin
        self._newest: Seen | None = None

    def between(self, begin: float, end: float, tasks: UsedTasks) -> None:
        """Take the scrapes of a time in which nothing changes, before the tasks go on."""
        while self._next <= end:
            self._scrapes.append(self._scrape(self._next, self._next - begin, tasks))
            self._forget(self._next)
            self._next += self._sampling.scrape
        self._used += tasks.use_on * (end - begin)
        self._waited += tasks.waits * (end - begin)

    def newest(self, now: float) -> Seen | None:
        """Return the newest sample that is known now; the same object until there is another."""
        known = [scrape for scrape in self._scrapes if scrape.at + self._sampling.delay <= now]
        if known and (self._newest is None or known[-1].at > self._newest.at):
            self._newest = self._seen(known[-1])
        return self._newest

    def next_known(self, now: float) -> float:
        """Return when the next sample will be known."""
        late = [scrape.at for scrape in self._scrapes if scrape.at + self._sampling.delay > now]
        return (late[0] if late else self._next) + self._sampling.delay

    def _forget(self, now: float) -> None:
        """Forget the scrapes before all windows from now on, whether anybody asks for samples or not."""
        sampling = self._sampling
        newest_known = now - sampling.delay - sampling.scrape
        while len(self._scrapes) > 1 and self._scrapes[1].at <= newest_known - sampling.window_seconds:
            self._scrapes.popleft()

    def _scrape(self, at: float, seconds: float, tasks: UsedTasks) -> _Scrape:
        running, own = tasks.running, tasks.now_used()[0]
        return _Scrape(
            at=at,
            used=self._used + tasks.use_on * seconds,
            waited=self._waited + tasks.waits * seconds,
            memory=tasks.use_on[:, _MEMORY].copy(),
            task=running.task.copy(),
            node=running.node.copy(),
            began=running.began.copy(),
            task_used=(running.used + own * seconds).T.copy(),
            task_memory=own[_MEMORY].copy(),
        )

    def _seen(self, last: _Scrape) -> Seen:
        """Return the sample that ends with a scrape; older ones than its window needs are forgotten."""
        # 1. The scrape with which the window begins.
        since = last.at - self._sampling.window_seconds
        while len(self._scrapes) > 1 and self._scrapes[1].at <= since:
            self._scrapes.popleft()
        first = self._scrapes[0]
        seconds = last.at - first.at
        # 2. What nodes have used from there on, and each task that any scrape has seen: the newest that is known of it.
        nodes = (last.used - first.used) / max(seconds, _LEAST)
        pressure = (last.waited - first.waited) / max(seconds, _LEAST)
        inside = [scrape for scrape in self._scrapes if scrape.at <= last.at]
        tasks = np.unique(np.concatenate([scrape.task for scrape in inside]))
        newest, began = np.zeros((len(tasks), nodes.shape[1])), np.zeros(len(tasks))
        node, before, memory = np.zeros(len(tasks), dtype=np.intp), np.zeros_like(newest), np.zeros(len(tasks))
        for scrape in inside:
            place = np.searchsorted(tasks, scrape.task)
            newest[place], began[place], node[place] = scrape.task_used, scrape.began, scrape.node
        place = np.searchsorted(tasks, first.task)
        same = began[place] == first.began
        before[place[same]] = first.task_used[same]
        memory[np.searchsorted(tasks, last.task)] = last.task_memory
        of_tasks = (newest - before) / max(seconds, _LEAST)
        # 3. Memory is a gauge.
        nodes[:, _MEMORY], of_tasks[:, _MEMORY] = last.memory, memory
        return Seen(first.at, last.at, nodes, tasks, node, of_tasks, pressure)
