"""What executors do next, by simple rules and by ours, and what no rule can pass.

Ours goes by the same two functions as the service: a job's remaining work (`policy.remaining`) and, inside a job, the
longest path (`graph.orders`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, Rows
from extender.policy.remaining import remaining_work, work_by_resource
from lab.sim.dag.executors import MOVE_SECONDS, NOWHERE, Choice, Executors, Rule
from lab.sim.workloads.waves import REST

OURS = "dovetail"
WORTH_MOVES = 15.0
"""Ours moves an executor only to so many times the seconds of a move; settled on drawn sequences (see the results)."""


WAIT_SECONDS = 1.0
"""Ours lets an executor wait so long for its job's next stage to open; settled on the same sequences."""


def fifo(run: Executors, free: Sequence[int]) -> Choice | None:
    """Serve the job that came first."""
    return _serve(run, free, np.arange(len(run.held), dtype=float))


def fair(run: Executors, free: Sequence[int]) -> Choice | None:
    """Serve the job that has the fewest executors, of equals the one that came first."""
    return _serve(run, free, run.held.astype(float))


def least_work(run: Executors, free: Sequence[int]) -> Choice | None:
    """Keep executors with their job while it has tasks to take, else serve the job with the least remaining work."""
    for executor in free:
        stages = _open_stages(run, int(run.at[executor]))
        if len(stages):
            return executor, _longest(run, stages)
    return _serve(run, free, _remaining(run))


def ours(run: Executors, free: Sequence[int]) -> Choice | None:
    """Serve the job with the least remaining work to which it is worth to move, after every task.

    A move is worth it if, beside every executor that runs tasks of the job, `WORTH_MOVES` times the seconds of a move
    wait to be taken. An executor that is with the job comes without a move. One that is with a job of less remaining
    work, of which a stage opens within `WAIT_SECONDS`, waits for that. Where nothing is worth it, executors wait.
    """
    open_ = np.flatnonzero(run.open)
    remaining = _remaining(run)
    waiting = remaining_work(run.seconds[open_, REST, -1], run.left[open_], run.job[open_], len(run.held))
    jobs = np.unique(run.job[open_])
    soon = run.opens_soon(WAIT_SECONDS)
    for job in jobs[np.argsort(remaining[jobs], kind="stable")].tolist():
        there = [executor for executor in free if run.at[executor] == job]
        if there:
            own = run.own_stage(there[0])
            return there[0], own if own != NOWHERE else _longest(run, _open_stages(run, job))
        movable = [e for e in free if run.at[e] not in soon or remaining[run.at[e]] > remaining[job]]
        if movable and waiting[job] >= WORTH_MOVES * MOVE_SECONDS * run.busy[job]:
            return movable[0], _longest(run, _open_stages(run, job))
    return None


@dataclass(frozen=True, slots=True)
class RulesContender:
    """A rule, whether executors stay with their stage under it, and how it is called in words."""

    rule: Rule
    stays: bool
    words: str


CONTENDERS: Mapping[str, RulesContender] = {
    "fifo": RulesContender(fifo, True, "first in, first out"),
    "fair": RulesContender(fair, True, "fair by executors"),
    "least_work": RulesContender(least_work, True, "least remaining work, longest path inside"),
    OURS: RulesContender(ours, False, "ours: least remaining work that is worth a move, longest path inside"),
}


def fluid_bound(run: Executors) -> float:
    """Return the mean job time that no rule can pass.

    All executors as one, that runs the job with the least remaining work, with nothing of what a move, a first task or
    an order of stages costs.
    """
    seconds = run.seconds[:, REST].min(axis=1)
    executors = len(run.at)
    left = _by_job(run, seconds / executors)
    arrives, ended = run.arrives, np.full(len(left), np.nan)
    now = 0.0
    while np.isnan(ended).any():
        here = np.flatnonzero((arrives <= now) & np.isnan(ended))
        later = arrives[arrives > now].min(initial=np.inf)
        if not len(here):
            now = later
            continue
        job = here[left[here].argmin()]
        seconds_on = min(left.item(job), later - now)
        ends = now + left.item(job) <= later
        left[job] -= seconds_on
        now += seconds_on
        if ends:
            ended[job] = now
    return float((ended - arrives).mean())


def _by_job(run: Executors, seconds: Floats) -> Floats:
    return remaining_work(seconds, run.unended, run.job, len(run.held))


def _remaining(run: Executors) -> Floats:
    """Return the remaining work of each job [J], in seconds of all executors."""
    executors = np.array([float(len(run.at))])
    work = work_by_resource(np.ones((len(run.job), 1)), run.seconds[:, REST, -1], executors).sum(axis=1)
    return _by_job(run, work)


def _serve(run: Executors, free: Sequence[int], keys: Floats) -> Choice:
    """Return the first free executor, one that is there before others, for the job with the least key [J]."""
    open_ = np.flatnonzero(run.open)
    job = int(run.job[open_[keys[run.job[open_]].argmin()]])
    there = [executor for executor in free if run.at[executor] == job]
    return (there or free)[0], _longest(run, _open_stages(run, job))


def _open_stages(run: Executors, job: int) -> Rows:
    return np.flatnonzero(run.open & (run.job == job)) if job != NOWHERE else np.empty(0, dtype=np.intp)


def _longest(run: Executors, stages: Rows) -> int:
    return int(stages[run.path[stages].argmax()])
