"""The second pass: what the regular pass leaves is planned again, on room that is reserved and not used (UBIS, IV.B).

The same planner, on a board of which only the idle room is free. Shares of it are apart from regular ones (IV.E), and
so are waits for locality. Nothing is reserved of it: idle room that is kept for somebody is idle. At the start of each
decision opportunistic tasks become regular where regular room has appeared (algorithm 1, line 7).
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from extender.arrays import Counts, Floats, Mask, Rows, fits, read_only
from extender.cluster.ledger.snapshot import Snapshot, no_nominations
from extender.cluster.waiting import Waiting
from extender.planner.caps import CapRoom, Caps, below
from extender.planner.plan import Assignments, Plan
from extender.planner.planning import Planner
from extender.planner.tuning import Policy
from extender.policy.suitability import suitability


def second_planner(policy: Policy) -> Planner:
    """Return a planner of idle room by the same policy: nobody is starved of it, and nothing of it is reserved."""
    return Planner(replace(policy, starved_after=math.inf))


def idle_snapshot(snapshot: Snapshot, room: Floats) -> Snapshot:
    """Return the cluster as if only this `room` [N, R] were free; all of what a node does not limit."""
    capacity = snapshot.layout.capacity
    limited = np.isfinite(capacity)
    taken = np.where(limited, capacity - np.floor(np.where(limited, room, 0.0)), 0.0)
    nothing = read_only(np.zeros_like(capacity))
    nobody = no_nominations(capacity.shape[1])
    return replace(snapshot, allocated=read_only(taken), in_flight=nothing, nominations=nobody, flights=0)


def second_pass(
    planner: Planner,
    snapshot: Snapshot,
    room: Floats,
    waiting: Waiting,
    now: float,
    *,
    may: Mask | None = None,
    evicted: Floats | None = None,
    caps: Caps | None = None,
    most: int | None = None,
) -> Plan:
    """Return which tasks of `waiting`, what the regular pass left, go on idle `room` [N, R] as opportunistic ones.

    `may` [C] are the classes that can be opportunistic (None: all), `evicted` [C] which part of each was evicted when
    it was (None: nobody): among those whose turn it is, short and seldom evicted ones come first (UBIS, VII).
    `planner` is that of the second pass, which keeps what one of its plans hands to the next; `most` is how many it is
    asked for. Gangs are never opportunistic. No queue or job gets more than its `caps`, with what it has already.
    """
    room_below = CapRoom(caps, waiting, snapshot.layout.total) if caps is not None and caps.limit else None
    allowed = np.ones(len(waiting.count), dtype=np.bool_) if may is None else may
    if waiting.gang is not None:
        allowed = allowed & (waiting.gang < 0)
    jobs = waiting.jobs
    given = np.zeros_like(jobs.allocated) if jobs.opportunistic is None else jobs.opportunistic
    left = replace(
        waiting,
        count=np.where(allowed, waiting.count if room_below is None else room_below.most(waiting.count), 0),
        jobs=replace(jobs, allocated=given, opportunistic=None),
        gang=None,
        gang_least=None,
        running=None,
        suited=suitability(waiting.duration, np.zeros(len(allowed)) if evicted is None else evicted),
    )
    plan = planner.plan(idle_snapshot(snapshot, room), left, now, most=most if room_below is None else None)
    return plan if room_below is None else _only(plan, below(room_below, plan.assignments))


def _only(plan: Plan, places: Rows) -> Plan:
    """Return a plan with only the assignments at these places."""
    assignments = plan.assignments
    if len(places) == len(assignments):
        return plan
    kept = Assignments(
        assignments.task_class[places], assignments.node[places], assignments.task[places], assignments.source[places]
    )
    return replace(plan, assignments=kept, terms=[plan.terms[place] for place in places.tolist()])


Waits = tuple[float, float, Callable[[], Mask]]
"""A class that waits: its priority, what its queue has of its share, and what says on which nodes [N] it fits now."""


def nobody_before(priority: Counts, share: Floats, node: Rows, waiting: Iterable[Waits], nodes: int) -> Mask:
    """Return which opportunistic tasks [P], at least one, may have regular room of their `node` [P] now (IV.E).

    What waits and fits there comes before them if it has a higher `priority` [P], or if its queue has less of its share
    than theirs has, `share` [P]. `nodes` is how many there are.
    """
    lowest, most = priority.min(), share.max()
    # Holds at each turn: what is the highest priority, and the least share, of the classes so far that want a node.
    highest, least = np.full(nodes, -np.inf), np.full(nodes, np.inf)
    for rank, less, fitting in waiting:
        if rank > lowest or less < most:  # else it comes before none of these tasks
            wants = fitting()
            highest[wants] = np.maximum(highest[wants], rank)
            least[wants] = np.minimum(least[wants], less)
    return np.asarray((priority >= highest[node]) & (share <= least[node]))


def promotions(free: Floats, node: Rows, demand: Floats, since: Floats, *, may: Mask) -> Rows:
    """Return which opportunistic tasks [P] regular room on their own nodes holds now, in the order of promotion.

    `free` [N, R] is what is free as regular; `demand` [P, R] what each needs on its `node` [P]; who has run longest
    (`since` [P]) goes first. `may` [P] are those that nobody with an older claim to the room stands before.
    """
    left = free.copy()
    able = np.flatnonzero(may)
    able = able[fits(free[node[able]], demand[able])]
    chosen = []
    for pod in able[np.argsort(since[able], kind="stable")].tolist():
        if fits(left[node[pod]], demand[pod]):
            left[node[pod]] -= demand[pod]
            chosen.append(pod)
    return np.array(chosen, dtype=np.intp)
