"""When a class is due: the promise to a class, inside its queue's turn (docs/concepts/turns.md).

A class that has waited for `starved_after` seconds gets a due time. It is that moment, and on top `_PATIENCE` times the
seconds that its queue's part of the cluster needs for all that the queue's jobs still have to do; at most a day. So
nobody is due merely because a backlog is long, or has many classes: in the order of arrival all would have had their
turn well before.
From its due time on the class goes before others of its queue, the earliest first, in every second start.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.arrays import Floats, sum_by
from extender.cluster.waiting import Waiting
from extender.planner.candidates import at_the_head
from extender.planner.fairness.turn import Fairness
from extender.planner.plan import Carried, DueTime
from extender.planner.tuning import Policy
from extender.policy.shares import dominant

_PATIENCE = 2.0
"""Half of a queue's starts are for those that are due: at that rate they need twice the time."""
_LONGEST_SECONDS = 86_400.0
_LEAST_PART = 1e-3
_ROUNDING_SECONDS = 1e-3
_EARLIEST = -1e15


@dataclass(frozen=True, slots=True)
class DueTimes:
    """`due` [C]: since when a class is due, infinite if it is not; `next_at`: when the next one will be.

    `promised` is what the next plan goes on with, by class name.
    """

    due: Floats
    promised: Mapping[str, DueTime]
    next_at: float


def due_times(policy: Policy, waiting: Waiting, fairness: Fairness, carried: Carried, now: float) -> DueTimes:
    """Return which classes are due at `now` seconds.

    In a FIFO queue only who is first in line: the others wait because they are not.
    """
    due = np.full(len(waiting.count), np.inf)
    old = (waiting.count > 0) & (now - waiting.since >= policy.starved_after - _ROUNDING_SECONDS)
    if waiting.behind is not None:
        old &= at_the_head(waiting.job, waiting.behind, waiting.count > 0)
    rows = old.nonzero()[0]
    if not len(rows):
        return DueTimes(due, {}, np.inf)
    seconds = _queue_seconds(waiting, fairness)[fairness.queue[rows]]
    fresh = np.maximum(waiting.since[rows], _EARLIEST) + policy.starved_after + seconds
    promised: dict[str, DueTime] = {}
    for row, since, at in zip(rows.tolist(), waiting.since[rows].tolist(), fresh.tolist(), strict=True):
        name = waiting.names[row]
        time = carried.due.get(name)
        if time is None or time.since != since:
            time = DueTime(since, at)
        promised[name] = time
        due[row] = time.due
    later = due > now + _ROUNDING_SECONDS
    next_at = float(due[later].min(initial=np.inf))
    return DueTimes(np.where(later, np.inf, due), promised, max(next_at, now + 1.0))


def _queue_seconds(waiting: Waiting, fairness: Fairness) -> Floats:
    """Return for how long what each queue's jobs have left keeps its part of the cluster busy, times patience [Q].

    `Jobs.work` adds up all resources; here the one counts of which a job's waiting tasks take most, or where none wait
    those that run (DRF).
    """
    jobs, each = waiting.jobs, fairness.takes * (waiting.count * waiting.duration)[:, np.newaxis]
    waits = sum_by(waiting.job, each, len(jobs.names))
    of_jobs = np.where(waits.any(axis=1, keepdims=True), waits, fairness.used)
    all_resources = of_jobs.sum(axis=1)
    ratio = np.divide(dominant(of_jobs), all_resources, out=np.ones(len(jobs.names)), where=all_resources > 0)
    left = np.maximum(jobs.work * ratio, dominant(waits))
    work = np.bincount(jobs.queue, weights=left, minlength=len(jobs.queue_weight))
    seconds = _PATIENCE * work / np.maximum(fairness.queues.part, _LEAST_PART)
    return np.asarray(np.minimum(seconds, _LONGEST_SECONDS))
